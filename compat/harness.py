"""What the suites share: the clients' builds, brokers under test, counting.

Everything that is built goes to ${XDG_CACHE_HOME:-~/.cache}/klamm/compat, nothing to the work tree.
"""

import atexit
import contextlib
import fcntl
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "klamm", "compat")
JAVA = os.path.join(CACHE, "java")
GO = os.path.join(CACHE, "go")
NODE = os.path.join(CACHE, "node")
VENV = os.path.join(CACHE, "venv")
CLOCK = os.path.join(CACHE, "clock")
# Below the ephemeral ports, so that no outgoing connection takes one in between. KLAMM_PORTS names
# others, FIRST-LAST, for several runs on one machine.
PORTS = range(*map(int, os.environ.get("KLAMM_PORTS", "21600-21700").split("-")), 2)

_print = threading.Lock()
# Clients that run, each in a process group of its own; a signal ends them too.
children = set()


def say(line):
    with _print:
        print(line, flush=True)


# Builds -------------------------------------------------------------------------------------

def digest(*paths):
    """Of the contents of files and of all files below folders."""
    found = hashlib.sha256()
    for path in paths:
        path = os.path.join(HERE, path)
        files = [path] if os.path.isfile(path) else sorted(
            os.path.join(folder, file) for folder, _, files in os.walk(path) for file in files)
        for file in files:
            found.update(os.path.relpath(file, HERE).encode())
            with open(file, "rb") as content:
                found.update(content.read())
    return found.hexdigest()


def once(name, sources, build):
    """Builds unless the stamp says that these very sources are built."""
    stamp = os.path.join(CACHE, f"{name}.stamp")
    wanted = digest(*sources)
    with contextlib.suppress(FileNotFoundError):
        if open(stamp).read() == wanted:
            return
    say(f"building {name}")
    build()
    with open(stamp, "w") as out:
        out.write(wanted)


def command(*args, **options):
    """Runs quietly; what it printed is shown when it fails."""
    ran = subprocess.run(
        args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        **options)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(args)} failed:\n{ran.stdout.decode(errors='replace')[-4000:]}")


def build_java():
    shutil.rmtree(JAVA, ignore_errors=True)
    command(
        "mvn", "-q", "-B", "-f", os.path.join(HERE, "java/pom.xml"), "package",
        f"-Dbuild.dir={JAVA}")


def build_go():
    os.makedirs(GO, exist_ok=True)
    command(
        "go", "build", "-mod=readonly", "-o", GO + "/", "./chaoswriter", "./franz", "./groupload",
        "./member", "./pipeline", "./sarama",
        cwd=os.path.join(HERE, "go"))


def build_node():
    os.makedirs(NODE, exist_ok=True)
    for name in ["package.json", "package-lock.json"]:
        shutil.copy(os.path.join(HERE, "node", name), NODE)
    # The packages that are used have no install scripts, or work without them.
    command("npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit", cwd=NODE)


def build_python():
    shutil.rmtree(VENV, ignore_errors=True)
    command("python3", "-m", "venv", VENV)
    command(
        f"{VENV}/bin/pip", "install", "-q", "-r", os.path.join(HERE, "python/requirements.txt"))


def build_clock():
    os.makedirs(CLOCK, exist_ok=True)
    command("cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", f"{CLOCK}/jump.so",
            os.path.join(HERE, "clock/jump.c"))


BUILDS = {
    "clock": (["clock"], build_clock),
    "java": (["java"], build_java),
    "go": (["go"], build_go),
    "node": (["node/package.json", "node/package-lock.json"], build_node),
    "python": (["python/requirements.txt"], build_python),
}


def build(*names):
    os.makedirs(CACHE, exist_ok=True)
    # Two runs at once must not build into each other.
    with open(os.path.join(CACHE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in names or BUILDS:
            once(name, *BUILDS[name])


def java(main, *args, heap="512m"):
    return [
        "java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-cp", f"{JAVA}/compat.jar:{JAVA}/lib/*",
        f"klamm.compat.{main}", *args]


def python(suite, *args):
    return [f"{VENV}/bin/python", "-B", os.path.join(HERE, "python", f"{suite}.py"), *args]


def in_venv():
    """Starts this script again with the Python that has the clients, unless it is that already."""
    if os.path.abspath(sys.prefix) != os.path.abspath(VENV):
        os.execv(f"{VENV}/bin/python", [f"{VENV}/bin/python", "-B", *sys.argv])


# Brokers ------------------------------------------------------------------------------------

_taken = set()


def free_port():
    """A port of 127.0.0.1 that nothing listens on, nor on the one after it."""
    # In an order of its own, since another run may be between here and the start of its broker.
    for port in random.sample(PORTS, len(PORTS)):
        if port in _taken:
            continue
        try:
            for candidate in [port, port + 1]:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", candidate))
        except OSError:
            continue
        _taken.add(port)
        return port
    sys.exit(f"no free port in {PORTS}")


class Broker:
    """A node of Klamm or of the oracle in a folder of its own."""

    live = []

    def __init__(self, kind, folder, *configs):
        self.kind = kind
        self.folder = folder
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.data = os.path.join(folder, "data")
        Broker.live.append(self)
        self.script("start", kind, folder, str(self.port), *configs)

    def script(self, verb, *args):
        # The script has deadlines of its own for all it waits for.
        ran = subprocess.run(
            [os.path.join(HERE, "broker"), verb, *args], stdin=subprocess.DEVNULL,
            capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"broker {verb} {self.kind}: {ran.stdout}{ran.stderr}")

    def restart(self):
        self.script("restart", self.folder)

    def kill(self):
        self.script("kill", self.folder)

    def stop(self):
        self.script("stop", self.folder)

    def alive(self):
        try:
            pid = int(open(os.path.join(self.folder, "pid")).read())
            return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
        except (OSError, ValueError):
            return False

    @property
    def log(self):
        path = os.path.join(self.folder, "broker.log")
        return open(path, errors="replace").read() if os.path.exists(path) else ""


@contextlib.contextmanager
def scratch():
    """A temporary folder; whatever runs in it is killed and it is removed at the end."""
    folder = tempfile.mkdtemp(prefix="klamm-compat-")

    def clean():
        for broker in Broker.live:
            if broker.folder.startswith(folder) and broker.alive():
                broker.kill()
        if os.environ.get("KEEP"):
            say(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def interrupted(*_):
        for process in children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        clean()
        # Threads may still wait for what does not come any more.
        os._exit(130)

    atexit.register(clean)
    for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
        signal.signal(number, interrupted)
    try:
        yield folder
    finally:
        atexit.unregister(clean)
        clean()


# Counting -----------------------------------------------------------------------------------

class Count:
    """Passed and failed checks; `ok NAME` and `FAIL NAME: why` are the lines that count."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def ok(self, name):
        self.passed += 1
        say(f"ok {name}")

    def fail(self, name, why):
        self.failed += 1
        say(f"FAIL {name}: {why}")

    def end(self):
        say(f"{self.passed} passed, {self.failed} failed")
        return 0 if self.failed == 0 and self.passed > 0 else 1
