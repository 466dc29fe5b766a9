"""Brokers under measurement: start, stop, kill, and what the kernel says of their process."""

import atexit
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COMPAT = os.path.dirname(HERE)
sys.path.insert(0, COMPAT)
import harness
CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "klamm", "perf")
KPERF = os.path.join(CACHE, "kperf")
KLAMM = os.environ.get("KLAMM") or os.path.join(COMPAT, "../target/release/klamm")
TICKS = os.sysconf("SC_CLK_TCK")
# Below the ephemeral ports, and apart from those of the other suites.
PORTS = iter(range(*map(int, os.environ.get("KLAMM_PERF_PORTS", "22100-22700").split("-")), 2))
LIMIT_S = 900


def say(line):
    print(line, file=sys.stderr, flush=True)


def build_client():
    os.makedirs(CACHE, exist_ok=True)
    source = os.path.join(HERE, "kperf.c")
    if not os.path.exists(KPERF) or os.path.getmtime(KPERF) < os.path.getmtime(source):
        command = ["cc", "-O2", "-Wall", "-Wextra", "-o", KPERF, source, "-lrdkafka", "-lpthread"]
        if subprocess.run(command).returncode != 0:
            sys.exit("the client needs a C compiler and librdkafka-dev (apt-get install)")


removed_later = []


def remove_tree(directory):
    """Removes what a round left; many files only after the last round.

    ext4 does not give an inode that was freed within the last minutes to a new file, and looks at
    each of them in turn: with tens of thousands, making 10,000 partitions takes five seconds and not
    one, for any broker.
    """
    if sum(len(files) for _, _, files in os.walk(directory)) > 5_000:
        removed_later.append(directory)
    else:
        shutil.rmtree(directory, ignore_errors=True)


@atexit.register
def remove_rest():
    for directory in removed_later:
        shutil.rmtree(directory, ignore_errors=True)


class Broker:
    """Klamm or Kafka in a folder of its own, or any broker by its address."""

    def __init__(self, name, address=None, pid=None, properties=()):
        self.name = name
        self.address = address
        self.pid = pid
        self.is_ours = address is None
        self.properties = list(properties)
        self.dir = None

    def start(self):
        """Returns the seconds from the start of the command to the first Metadata answer."""
        if not self.is_ours:
            return None
        self.dir = tempfile.mkdtemp(prefix=f"klamm-perf-{self.name}-")
        self.port = next(PORTS)
        self.address = f"127.0.0.1:{self.port}"
        # Deleted topics give their space back at once, or the disk fills up between the rows.
        properties = ["log.segment.delete.delay.ms=1000", *self.properties]
        if self.name == "kafka":
            return self.launch([f"{COMPAT}/broker", "start", "kafka", self.dir, str(self.port),
                                *properties])
        with open(f"{self.dir}/kind", "w") as kind:
            kind.write("klamm\n")
        with open(f"{self.dir}/server.properties", "w") as out:
            subprocess.run([f"{COMPAT}/reference/kafka", "properties", self.dir, str(self.port),
                            *properties], check=True, stdout=out)
        return self.launch_klamm()

    def launch_klamm(self):
        # Started here and not by a script, whose own start would be a part of the figure.
        start = time.monotonic()
        log = open(f"{self.dir}/broker.log", "ab")
        self.process = subprocess.Popen([KLAMM, f"{self.dir}/server.properties"],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self.process.pid
        with open(f"{self.dir}/pid", "w") as out:
            out.write(str(self.pid))
        return first_metadata(self.port) - start

    def launch(self, command):
        start = time.monotonic()
        script = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        answered = first_metadata(self.port)
        if script.wait() != 0:
            sys.exit(f"{self.name} did not start; see {self.dir}")
        self.pid = int(open(f"{self.dir}/pid").read())
        return answered - start

    def restart(self):
        if self.name == "kafka":
            return self.launch([f"{COMPAT}/broker", "restart", self.dir])
        return self.launch_klamm()

    def end(self, how="stop"):
        """Stops or kills the process; returns the seconds that took."""
        start = time.monotonic()
        if self.name == "kafka":
            subprocess.run([f"{COMPAT}/broker", how, self.dir], check=True)
        else:
            self.process.send_signal(15 if how == "stop" else 9)
            self.process.wait(120)
        return time.monotonic() - start

    def remove(self):
        if self.is_ours and self.dir:
            with contextlib.suppress(Exception):
                self.end("kill")
            remove_tree(self.dir)
            self.address = self.pid = self.dir = None

    def cpu(self):
        """Seconds of processor time so far, user and system."""
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) / TICKS, int(fields[12]) / TICKS

    def memory_mib(self, field="VmRSS"):
        status = open(f"/proc/{self.pid}/status").read()
        return int(re.search(rf"^{field}:\s+(\d+)", status, re.M).group(1)) / 1024

    def handles(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @contextlib.contextmanager
    def metered(self):
        """Counts the broker's processor time while the block runs and until it has settled."""
        used = {}
        if self.pid is None:
            yield used
            return
        user, system = self.cpu()
        yield used
        time.sleep(0.2)
        user_after, system_after = self.cpu()
        used.update(user=user_after - user, system=system_after - system)
        used["cpu"] = used["user"] + used["system"]

    def kperf(self, mode, *pairs, background=False):
        command = [KPERF, mode, self.address, *(f"{k}={v}" for k, v in pairs)]
        if background:
            return subprocess.Popen(command, stdout=subprocess.PIPE)
        ran = subprocess.run(command, stdout=subprocess.PIPE, timeout=LIMIT_S)
        if ran.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed")
        return json.loads(ran.stdout)

    def java(self, tool, *args):
        """Runs a tool of Kafka; its output."""
        command = [f"{COMPAT}/reference/kafka", "tool", f"org.apache.kafka.tools.{tool}", *args]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=LIMIT_S)
        if ran.returncode != 0:
            raise RuntimeError(f"{tool} failed: {ran.stdout[-500:]}{ran.stderr[-500:]}")
        return ran.stdout


    def compat_java(self, name, *args):
        """Runs a program of compat/java; the JSON that it prints."""
        harness.build("java")
        command = harness.java(name, self.address, *map(str, args))
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             timeout=LIMIT_S)
        if ran.returncode != 0:
            raise RuntimeError(f"{name} failed: {ran.stderr[-500:]}")
        return json.loads(ran.stdout)


def metadata_request():
    """Metadata v1 for no topic, with its length."""
    client = b"perf"
    body = struct.pack(">hhih", 3, 1, 7, len(client)) + client + struct.pack(">i", 0)
    return struct.pack(">i", len(body)) + body


def read_frame(connection):
    wanted, got = 4, b""
    while len(got) < wanted:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("closed")
        got += part
        if wanted == 4 and len(got) >= 4:
            wanted = 4 + struct.unpack(">i", got[:4])[0]
    return got


def first_metadata(port, limit_s=120):
    """Asks until a Metadata answer names a broker; the monotonic time of that answer."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                connection.sendall(metadata_request())
                answer = read_frame(connection)
                if struct.unpack(">i", answer[8:12])[0] > 0:
                    return time.monotonic()
        except OSError:
            pass
        time.sleep(0.001)
    raise RuntimeError(f"no Metadata answer on port {port}")
