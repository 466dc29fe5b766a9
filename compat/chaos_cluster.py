"""The nodes that compat/chaos does things to, and what they say of themselves.

Nodes are processes on 127.0.0.1, or each in a network namespace of its own, with an address of its
own on a bridge (as root): then they can be cut off from one another.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import harness

IN_SYNC_MAX_S = 120
CONFIGS = [
    "offsets.topic.replication.factor=3",
    "group.initial.rebalance.delay.ms=0",
    "group.consumer.session.timeout.ms=6000",
    "group.consumer.min.session.timeout.ms=6000",
    "group.consumer.heartbeat.interval.ms=500",
    "group.consumer.min.heartbeat.interval.ms=500",
]


def run(*command):
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ran.stdout}{ran.stderr}")
    return ran.stdout


class Hosts:
    """Network namespaces `name-1` and so on, with the addresses `net.1` and so on."""

    def __init__(self, port, ids):
        self.ids = ids
        self.name = f"kch{port}"
        self.net = f"10.{60 + port // 1000}.{port % 250}"
        script = os.path.join(harness.HERE, "cluster")
        self.script = script
        self.slowing = None
        self.remove()
        run(script, "hosts", self.name, self.net, str(len(ids)))

    def remove(self):
        self.hasten()
        run(self.script, "nohosts", self.name, str(len(self.ids)))

    def inside(self, id, *command):
        return ["ip", "netns", "exec", f"{self.name}-{id}", *command]

    def rule(self, id, *rule):
        run(*self.inside(id, "iptables", "-w", "-A", *rule))

    def cut(self, id, directions=("OUTPUT", "INPUT"), clients=False):
        """Drops what node `id` sends to the others, or gets from them, or both."""
        others = [f"{self.net}.{other}" for other in self.ids if other != id]
        if clients:
            others.append(f"{self.net}.254")
        for direction in directions:
            which = "-d" if direction == "OUTPUT" else "-s"
            self.rule(id, direction, which, ",".join(others), "-j", "DROP")

    def lose(self, share):
        """Each node loses a share of all that comes in."""
        for id in self.ids:
            self.rule(
                id, "INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random",
                "--probability", str(share), "-j", "DROP")

    def slow(self, delay_ms, jitter_ms, stall_ms=0, period_ms=0):
        """Every host's link goes through slow_links.py."""
        taps = []
        for id in self.ids:
            link = f"{self.name}-{id}"
            inner, outer = f"{link}i", f"{link}o"
            for tap, bridge in [(inner, f"{link}b"), (outer, self.name)]:
                if bridge != self.name:
                    run("ip", "link", "add", "name", bridge, "type", "bridge")
                    run("ip", "link", "set", bridge, "up")
                run("ip", "tuntap", "add", "dev", tap, "mode", "tap")
                run("ip", "link", "set", tap, "master", bridge, "up")
            taps += [inner, outer]
        shape = map(str, (delay_ms, jitter_ms, stall_ms, period_ms))
        self.slowing = subprocess.Popen(
            [sys.executable, "-B", os.path.join(harness.HERE, "slow_links.py"), *shape, *taps],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        harness.children.add(self.slowing)
        if self.slowing.stdout.readline() != b"ready\n":
            raise RuntimeError("slow_links.py does not start")
        for id in self.ids:
            link = f"{self.name}-{id}"
            run("ip", "link", "set", link, "master", f"{link}b")

    def hasten(self):
        if self.slowing is None:
            return
        for id in self.ids:
            link = f"{self.name}-{id}"
            run("ip", "link", "set", link, "master", self.name)
        self.slowing.kill()
        self.slowing.wait()
        harness.children.discard(self.slowing)
        self.slowing = None
        for id in self.ids:
            for device in "iob":
                run("ip", "link", "del", f"{self.name}-{id}{device}")

    def heal(self):
        self.hasten()
        for id in self.ids:
            run(*self.inside(id, "iptables", "-w", "-F"))


class Cluster:
    def __init__(self, kind, folder, nodes, port, hosts=None, configs=(), clocks=False):
        self.kind = kind
        self.folder = folder
        self.hosts = hosts
        self.ids = list(range(1, nodes + 1))
        if hosts:
            self.addresses = {id: (f"{hosts.net}.{id}", port) for id in self.ids}
        else:
            self.addresses = {id: ("127.0.0.1", port + id) for id in self.ids}
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in self.addresses.values())
        self.environment = {**os.environ, "CLUSTER_KIND": kind}
        if hosts:
            self.environment["CLUSTER_HOSTS"] = f"{hosts.name}:{hosts.net}"
        if clocks:
            harness.build("clock")
            self.environment["CLUSTER_CLOCKS"] = f"{harness.CLOCK}/jump.so"
        # Started one by one, a first start would wait for the others.
        self.script("start", str(nodes), folder, str(port), *CONFIGS, *configs)

    def script(self, verb, *args):
        ran = subprocess.run(
            [os.path.join(harness.HERE, "cluster"), verb, *args], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, env=self.environment)
        if ran.returncode != 0:
            raise RuntimeError(f"cluster {verb}: {ran.stdout}{ran.stderr}")

    def pid(self, id):
        return int(open(os.path.join(self.folder, str(id), "pid")).read())

    def signal(self, id, number):
        os.kill(self.pid(id), number)

    def set_clock(self, id, ahead_s):
        with open(os.path.join(self.folder, str(id), "clock"), "r+b") as out:
            out.write(struct.pack("=q", int(ahead_s * 1e9)))

    def kill(self, id):
        self.script("kill", self.folder, str(id))

    def restart(self, id):
        self.script("restart", self.folder, str(id))

    def start_again(self):
        self.script("again", self.folder)

    def term(self, id):
        pid = self.pid(id)
        os.kill(pid, signal.SIGTERM)
        for _ in range(600):
            try:
                if open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
            except FileNotFoundError:
                return
            time.sleep(0.1)
        raise RuntimeError(f"node {id} does not stop")

    def stop(self):
        self.script("stop", self.folder)

    def kill_all(self):
        for id in self.ids:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                self.signal(id, signal.SIGCONT)
                self.signal(id, signal.SIGKILL)

    def controller(self):
        """The active controller, asked of the tool for it."""
        klamm = os.environ.get("KLAMM") or os.path.join(harness.HERE, "../target/release/klamm")
        for _ in range(50):
            for host, port in self.addresses.values():
                ran = subprocess.run(
                    [klamm, "metadata-quorum", "--bootstrap-server", f"{host}:{port}", "describe",
                     "--status"], capture_output=True, text=True, timeout=60)
                for line in ran.stdout.splitlines():
                    if line.startswith("LeaderId:") and int(line.split()[1]) in self.ids:
                        return int(line.split()[1])
            time.sleep(0.2)
        raise RuntimeError(f"no node knows the controller: {ran.stdout}{ran.stderr}")


class Partition:
    def __init__(self, leader, epoch, replicas, isr):
        self.leader, self.epoch, self.replicas, self.isr = leader, epoch, replicas, isr


class Wire:
    """Metadata (version 7) over one socket: what a node says, and nobody else."""

    def __init__(self, address):
        self.address = address
        self.socket = None

    def ask(self, topics, timeout):
        """{(topic, partition): Partition}, or None when it does not answer."""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(self.address, timeout)
            self.socket.settimeout(timeout)
            names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
            body = struct.pack(">hhih5s", 3, 7, 1, 5, b"chaos")
            body += struct.pack(">i", len(topics)) + names + b"\0"
            self.socket.sendall(struct.pack(">i", len(body)) + body)
            size = struct.unpack(">i", self.exactly(4))[0]
            return self.read(self.exactly(size))
        except OSError:
            self.close()
            return None

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def exactly(self, size):
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                raise ConnectionError("closed")
            got += more
        return got

    @staticmethod
    def read(frame):
        at = 8

        def number(form):
            nonlocal at
            value = struct.unpack_from(">" + form, frame, at)[0]
            at += struct.calcsize(">" + form)
            return value

        def text():
            nonlocal at
            size = number("h")
            at += max(size, 0)
            return frame[at - max(size, 0):at].decode()

        def numbers():
            return [number("i") for _ in range(number("i"))]

        for _ in range(number("i")):
            number("i"), text(), number("i"), text()
        text(), number("i")
        found = {}
        for _ in range(number("i")):
            number("h")
            topic = text()
            number("b")
            for _ in range(number("i")):
                number("h")
                index, leader, epoch = number("i"), number("i"), number("i")
                replicas, isr, _ = numbers(), numbers(), numbers()
                found[topic, index] = Partition(leader, epoch, replicas, isr)
        return found


class Watch:
    """Asks every node ten times a second who leads what: one leader in an epoch, whoever is asked."""

    def __init__(self, cluster, topics):
        self.cluster, self.topics = cluster, topics
        self.leaders = {}
        self.conflicts = []
        self.views = {}
        self.stopping = threading.Event()
        self.threads = [
            threading.Thread(target=self.watch, args=[id], daemon=True) for id in cluster.ids]
        for thread in self.threads:
            thread.start()

    def watch(self, id):
        wire = Wire(self.cluster.addresses[id])
        while not self.stopping.wait(0.1):
            view = wire.ask(self.topics, 1)
            self.views[id] = view
            for place, partition in (view or {}).items():
                if partition.leader < 0:
                    continue
                known = self.leaders.setdefault((place, partition.epoch), partition.leader)
                if known != partition.leader:
                    self.conflicts.append((place, partition.epoch, known, partition.leader))
        wire.close()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def newest(self):
        """Each partition as the node sees it that has the newest epoch."""
        newest = {}
        for view in list(self.views.values()):
            for place, partition in (view or {}).items():
                known = newest.get(place)
                if known is None or (partition.epoch, len(partition.isr)) > (
                        known.epoch, len(known.isr)):
                    newest[place] = partition
        return newest

    def leader(self, topic, partition):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.newest().get((topic, partition))
            if found is not None and found.leader >= 0:
                return found.leader
            time.sleep(0.05)
        raise RuntimeError(f"{topic}-{partition} has no leader")

    def wait_in_sync(self):
        """Until every node says that all replicas are in sync; how long that took."""
        begin = time.monotonic()
        while True:
            views = [self.views.get(id) for id in self.cluster.ids]
            full = [view and all(
                p.leader >= 0 and len(p.isr) == len(p.replicas) for p in view.values())
                for view in views]
            if all(full):
                return time.monotonic() - begin
            if time.monotonic() - begin > IN_SYNC_MAX_S:
                states = {
                    f"{t}-{p}": (x.leader, x.epoch, x.isr)
                    for (t, p), x in self.newest().items() if len(x.isr) < len(x.replicas)}
                raise RuntimeError(f"not in sync after {IN_SYNC_MAX_S} s: {states}, nodes {full}")
            time.sleep(0.1)
