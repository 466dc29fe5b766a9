"""A Docker engine of the suite's own: in a network namespace of its own, so that the cases' ports
(9092, 2181, ...) are taken from nobody, with its own data root and socket; it ends with the suite.

Images are built by a second engine that has no bridge and builds in the host's network. No image
registry is asked: the base image is made with debootstrap.
"""

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "klamm", "drop-in")
BASE = "debian:bookworm-slim"
IMAGE = "klamm:drop-in"
KCAT = "stand-in/kcat:1"
ZOOKEEPER = "stand-in/zookeeper:1"
PACKAGES = ["docker.io", "docker-compose", "debootstrap", "iproute2", "iptables"]


def install():
    """The Debian packages that are missing."""
    programs = ["dockerd", "docker-compose", "debootstrap", "ip", "iptables"]
    missing = [p for p, program in zip(PACKAGES, programs) if not shutil.which(program)]
    if missing:
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        subprocess.run(["apt-get", "update", "-qq"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing],
                       check=True, stdout=subprocess.DEVNULL)


class Daemon:
    """One dockerd."""

    def __init__(self, folder, *options, namespace=None, keep=False):
        self.keep = keep
        self.folder, self.socket = folder, os.path.join(folder, "docker.sock")
        self.namespace = namespace
        words = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec",
                 "-H", f"unix://{self.socket}", "--pidfile", f"{folder}/pid", *options]
        if namespace:
            words = ["nsenter", f"--net=/run/netns/{namespace}", *words]
        os.makedirs(folder, exist_ok=True)
        self.log = open(f"{folder}/log", "w")
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log,
                                        start_new_session=True)
        atexit.register(self.stop)
        for _ in range(600):
            if self.docker("version", check=False).returncode == 0:
                return
            if self.process.poll() is not None:
                sys.exit(f"dockerd did not start:\n{open(f'{folder}/log').read()[-2000:]}")
            time.sleep(0.1)
        sys.exit("dockerd does not answer")

    def env(self):
        return dict(os.environ, DOCKER_HOST=f"unix://{self.socket}")

    def docker(self, *words, check=True, **options):
        options.setdefault("capture_output", True)
        return subprocess.run(["docker", *words], text=True, check=check, env=self.env(), **options)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        # What it leaves mounted.
        mounted = [line.split()[1] for line in open("/proc/mounts")]
        for place in sorted((m for m in mounted if m.startswith(self.folder)), reverse=True):
            subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def base_archive():
    """The base image as an archive, kept."""
    os.makedirs(CACHE, exist_ok=True)
    archive = os.path.join(CACHE, "base.tar")
    if not os.path.exists(archive):
        folder = tempfile.mkdtemp(prefix="klamm-base-")
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "-C", folder, "-cf", archive + ".new", "."], check=True)
        os.replace(archive + ".new", archive)
        shutil.rmtree(folder, ignore_errors=True)
    return archive


KCAT_FILE = f"""FROM {BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends kcat
"""
ZOOKEEPER_FILE = f"""FROM {IMAGE}
HEALTHCHECK NONE
CMD ["zookeeper-server-start"]
"""


def build(scratch, binary):
    """An archive with the image under test and the stand-ins of others."""
    os.makedirs(CACHE, exist_ok=True)
    # Two runs at once must not build in each other's engine.
    with open(os.path.join(CACHE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_alone(scratch, binary)


def build_alone(scratch, binary):
    # Its layers are kept: packages are installed once.
    daemon = Daemon(f"{CACHE}/build", "--bridge=none", "--iptables=false", keep=True)
    if daemon.docker("image", "inspect", BASE, check=False).returncode:
        with open(base_archive(), "rb") as archive:
            daemon.docker("import", "-", BASE, stdin=archive)
    env = dict(daemon.env(), KLAMM=binary, DOCKER_BUILDKIT="0")
    made = subprocess.run([os.path.join(ROOT, "deploy", "build"), IMAGE], env=env, text=True,
                          capture_output=True)
    if made.returncode:
        sys.exit(f"deploy/build failed:\n{made.stdout}\n{made.stderr}")
    # KIP-974 gives 96 MB for the native binary alone.
    print(made.stdout.strip().splitlines()[-1], "(apache/kafka-native: a binary of 96 MB)")
    env = dict(daemon.env(), DOCKER_BUILDKIT="0")
    for tag, text in ((KCAT, KCAT_FILE), (ZOOKEEPER, ZOOKEEPER_FILE)):
        subprocess.run(["docker", "build", "-q", "--network", "host", "-t", tag, "-"], input=text,
                       text=True, env=env, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    images = f"{scratch}/images.tar"
    daemon.docker("save", "-o", images, IMAGE, KCAT, ZOOKEEPER)
    daemon.stop()
    return images


class Engine:
    """The engine that runs the cases, and the host of its network."""

    def __init__(self, scratch, binary):
        attached = os.environ.get("DROP_IN_ENGINE")
        if attached:
            self.attach(*attached.split(":"))
            return
        images = build(scratch, binary)
        self.name = f"klamm-{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        atexit.register(subprocess.run, ["ip", "netns", "delete", self.name], check=False)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)
        self.daemon = Daemon(f"{scratch}/run", namespace=self.name)
        self.daemon.docker("load", "-q", "-i", images)
        os.remove(images)

    def attach(self, name, folder):
        """Takes an engine that another process keeps: DROP_IN_ENGINE=NAMESPACE:FOLDER."""
        self.name, self.daemon = name, object.__new__(Daemon)
        self.daemon.socket = os.path.join(folder, "docker.sock")
        self.daemon.stop = lambda: None

    def host(self, *words, **options):
        """A command on the host that the containers' ports are published on."""
        options.setdefault("timeout", 60)
        return subprocess.run(["nsenter", f"--net=/run/netns/{self.name}", *words], text=True,
                              capture_output=True, env=self.daemon.env(), **options)

    def docker(self, *words, **options):
        return self.daemon.docker(*words, **options)

    def stop(self):
        self.daemon.stop()
