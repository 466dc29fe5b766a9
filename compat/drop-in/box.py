"""The image's files without a Docker engine: its tree in namespaces of its own (mounts, network, host
name, processes), as root. What a box writes lies over the tree and is gone with it.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
PATH = ("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/kafka/bin")
PACKAGES = ["bash-static", "busybox-static", "netcat-openbsd"]
HOST = "c0ffee"

# The first process of a box. Everything else enters its namespaces.
INIT = """
ip link set lo up
mount -t tmpfs none {upper}
mkdir {upper}/files {upper}/work {upper}/root
mount -t overlay -o lowerdir={tree},upperdir={upper}/files,workdir={upper}/work none {upper}/root
mount -t proc none {upper}/root/proc
mount --rbind /dev {upper}/root/dev
hostname {host}
exec sleep 3600
"""


def install():
    """The Debian packages that the tree is made of."""
    programs = ["/usr/bin/bash-static", "/usr/bin/busybox", "/usr/bin/nc.openbsd"]
    if not all(os.path.exists(program) for program in programs):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends",
                                          *PACKAGES]):
            subprocess.run(["apt-get", *words], check=True, env=env, stdout=subprocess.DEVNULL)


def tree(folder, binary):
    """The tree of the image below `folder`."""
    context, root = os.path.join(folder, "context"), os.path.join(folder, "tree")
    os.makedirs(context)
    subprocess.run(["strip", "-o", f"{context}/klamm", binary], check=True)
    shutil.copytree(os.path.join(ROOT, "deploy", "image"), f"{context}/image")
    subprocess.run([f"{context}/image/assemble", root], check=True)
    with open(f"{root}/etc/hosts", "w") as hosts:
        hosts.write(f"127.0.0.1 localhost\n127.0.0.1 {HOST}\n")
    open(f"{root}/.dockerenv", "w").close()
    return root


class Box:
    """One container that is none: `start` is its command, `exec` runs beside it."""

    def __init__(self, tree_of_image, env=None, user="1000:1000", cwd="/home/appuser"):
        self.env = {"PATH": PATH, "LANG": "C.UTF-8", "COMPONENT": "kafka",
                    "KAFKA_HOME": "/opt/kafka", "HOSTNAME": HOST, "HOME": "/home/appuser",
                    **(env or {})}
        self.user, self.cwd = user, cwd
        self.upper = tempfile.mkdtemp(prefix="klamm-box-")
        script = INIT.format(upper=self.upper, tree=tree_of_image, host=HOST)
        self.init = subprocess.Popen(
            ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child",
             "--propagation", "private", "sh", "-ec", script],
            stdin=subprocess.DEVNULL, start_new_session=True)
        self.root = f"{self.upper}/root"
        self.pid = self.pid_of_init()
        self.process = None
        self.out = tempfile.TemporaryFile(mode="w+")

    def pid_of_init(self):
        """Of the process that became `sleep`, once it is that."""
        end = time.time() + 30
        while time.time() < end:
            children = f"/proc/{self.init.pid}/task/{self.init.pid}/children"
            for pid in open(children).read().split():
                if open(f"/proc/{pid}/comm").read().strip() == "sleep":
                    return pid
            if self.init.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError("the box did not open")

    def words(self, command, user=None, env=None):
        pairs = [f"{name}={value}" for name, value in {**self.env, **(env or {})}.items()]
        return ["nsenter", "-t", self.pid, "-m", "-n", "-u", "-p", "chroot",
                f"--userspec={user or self.user}", self.root, "/usr/bin/env", "-i", *pairs,
                "sh", "-c", 'cd "$0" && exec "$@"', self.cwd, *command]

    def start(self, *command):
        self.started = time.time()
        self.process = subprocess.Popen(
            self.words(command or ["/usr/lib/klamm/start"]), stdin=subprocess.DEVNULL,
            stdout=self.out, stderr=self.out, start_new_session=True)

    def log(self):
        self.out.flush()
        with open(f"/proc/self/fd/{self.out.fileno()}") as log:
            return log.read()

    def wait_log(self, pattern, seconds=60):
        """Seconds from the start to the line."""
        end = time.time() + seconds
        while time.time() < end:
            text = self.log()
            if re.search(pattern, text):
                return time.time() - self.started
            if self.process.poll() is not None and not re.search(pattern, self.log()):
                raise AssertionError(f"ended with {self.process.returncode}: {self.log()[-1500:]}")
            time.sleep(0.02)
        raise AssertionError(f"no {pattern}: {self.log()[-1500:]}")

    def ready(self):
        return self.wait_log("Kafka Server started")

    def exec(self, *command, code=0, text=None, user=None, env=None, timeout=60):
        words = ["sh", "-c", command[0]] if len(command) == 1 else list(command)
        done = subprocess.run(self.words(words, user, env), input=text, text=True,
                              capture_output=True, timeout=timeout)
        if code is not None and done.returncode != code:
            raise AssertionError(
                f"{' '.join(command)}: {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}")
        return done.stdout + done.stderr

    def write(self, path, text, mode=0o644, owner=(0, 0)):
        """As the archive call of Docker's API does: root's file."""
        self.exec("mkdir", "-p", os.path.dirname(path), user="0:0")
        self.exec(f"cat > {path} && chmod {mode:o} {path} && chown {owner[0]}:{owner[1]} {path}",
                  text=text, user="0:0")

    def signal(self, name):
        """To the container's command, as an engine does it."""
        self.exec(f"kill -{name} {self.pid_inside()}", user="0:0")

    def pid_inside(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("NSpid:"):
                return self.child_inside(self.process.pid)
        raise AssertionError("it has ended")

    def child_inside(self, pid):
        # nsenter has forked: the command is its child, and has another number inside.
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        status = open(f"/proc/{children[0]}/status").read()
        return re.search(r"NSpid:.*\s(\d+)$", status, re.M).group(1)

    def end(self, seconds=30):
        return self.process.wait(seconds)

    def close(self):
        self.init.kill()
        self.init.wait()
        if self.process:
            self.process.wait()
        shutil.rmtree(self.upper, ignore_errors=True)
