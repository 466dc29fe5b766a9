"""Clusters of processes on 127.0.0.1, of Klamm or of Apache Kafka, and the stock tools against them.

The nodes know their controllers by controller.quorum.bootstrap.servers, so voters come and go
(KIP-853). Klamm's nodes are started as they are; Kafka's are formatted first.
"""

import atexit
import base64
import contextlib
import os
import random
import signal
import socket
import subprocess
import time
import uuid

import harness

REFERENCE = os.path.join(harness.HERE, "reference", "kafka")
LOG4J = os.path.join(harness.HERE, "reference", "log4j2.xml")
START_MAX_S = 300

TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}


def klamm():
    return os.environ.get("KLAMM") or os.path.join(harness.HERE, "../target/release/klamm")


class Cluster:
    """Nodes 1 to N, each broker and controller; more can be added."""

    def __init__(self, kind, folder, ids, *configs, voters=None, fixed=False):
        self.kind = kind
        # With controller.quorum.voters in place of bootstrap servers (Klamm only).
        self.fixed = fixed
        self.folder = folder
        self.ports = {}
        self.processes = {}
        # How often each was started.
        self.starts = {}
        self.configs = configs
        # The controllers that are there from the start.
        self.voters = voters or list(ids)
        for id in ids:
            self.ports[id] = (harness.free_port(), harness.free_port())
        self.directories = {}
        atexit.register(self.kill_all)
        if kind == "kafka":
            harness.command(REFERENCE, "jars")
            self.format_kafka(self.voters)
        for id in ids:
            self.write(id)
            self.launch(id)
        for id in ids:
            self.wait_ready(id)

    def bootstrap(self, *ids):
        return ",".join(f"127.0.0.1:{self.ports[id][0]}" for id in ids or self.ports)

    def controllers(self):
        return ",".join(f"127.0.0.1:{self.ports[id][1]}" for id in self.voters)

    def quorum(self):
        if not self.fixed:
            return [f"controller.quorum.bootstrap.servers={self.controllers()}"]
        voters = ",".join(f"{id}@127.0.0.1:{self.ports[id][1]}" for id in self.voters)
        return [f"controller.quorum.voters={voters}"]

    def node(self, id):
        return os.path.join(self.folder, str(id))

    def properties(self, id):
        return os.path.join(self.node(id), "server.properties")

    def write(self, id, *more):
        os.makedirs(self.node(id), exist_ok=True)
        clients, controllers = self.ports[id]
        role = "broker,controller"
        listeners = f"PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controllers}"
        if self.fixed and id not in self.voters:
            role, listeners = "broker", f"PLAINTEXT://127.0.0.1:{clients}"
        lines = [
            f"process.roles={role}", f"node.id={id}", f"listeners={listeners}",
            "controller.listener.names=CONTROLLER",
            *self.quorum(),
            f"log.dirs={self.node(id)}/data", "offsets.topic.replication.factor=3",
            "offsets.topic.num.partitions=6", "transaction.state.log.num.partitions=6",
            "transaction.state.log.replication.factor=3", "transaction.state.log.min.isr=2",
            "group.initial.rebalance.delay.ms=0", f"broker.rack=rack-{id}",
            *self.configs, *more]
        with open(self.properties(id), "w") as out:
            out.write("\n".join(lines) + "\n")
        if self.kind == "kafka" and not os.path.exists(f"{self.node(id)}/data/meta.properties"):
            how = ["--no-initial-controllers"]
            if id in self.directories:
                how = ["--initial-controllers", ",".join(
                    f"{voter}@127.0.0.1:{self.ports[voter][1]}:{self.directories[voter]}"
                    for voter in self.voters)]
            self.java("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c",
                      self.properties(id), *how)

    def format_kafka(self, voters):
        new = lambda: base64.urlsafe_b64encode(b"k" + uuid.uuid4().bytes[1:]).decode()[:22]
        ids = [new() for _ in range(len(voters) + 1)]
        self.cluster_id = ids.pop()
        self.directories = dict(zip(voters, ids))

    def java_line(self, heap):
        lib = os.environ.get("COMPAT_KAFKA_LIB") or os.path.join(
            os.path.dirname(harness.CACHE), "kafka-4.4.0", "lib")
        return ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                f"-Dlog4j2.configurationFile={LOG4J}", "-cp", f"{lib}/*"]

    def java(self, *args, timeout=120):
        """Exit code, and what was printed."""
        ran = subprocess.run(
            self.java_line("256m") + list(args), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=timeout)
        return ran.returncode, ran.stdout + ran.stderr

    def launch(self, id):
        log = open(os.path.join(self.node(id), "broker.log"), "a")
        line = [klamm(), self.properties(id)]
        if self.kind == "kafka":
            line = self.java_line("400m") + ["kafka.Kafka", self.properties(id)]
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        harness.children.add(process)
        self.processes[id] = process
        self.starts[id] = self.starts.get(id, 0) + 1

    def log(self, id):
        return open(os.path.join(self.node(id), "broker.log"), errors="replace").read()

    def wait_ready(self, id):
        """Waits until the node serves clients."""
        deadline = time.monotonic() + START_MAX_S
        while not self.is_ready(id):
            if self.processes[id].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.kind} node {id} is not ready: {self.log(id)[-2000:]}")
            time.sleep(0.1)

    def is_ready(self, id):
        if self.kind == "klamm":
            # The port is bound from the start; the line says that it is served.
            return self.log(id).count("ready after") >= self.starts[id]
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.ports[id][0]), 1).close()
            return True
        return False

    def start(self, id):
        self.launch(id)
        self.wait_ready(id)

    def add(self, id, *more):
        """A new node that finds the others."""
        self.ports[id] = (harness.free_port(), harness.free_port())
        self.write(id, *more)
        self.start(id)

    def stop(self, id, number=signal.SIGTERM):
        process = self.processes[id]
        process.send_signal(number)
        process.wait(60)
        harness.children.discard(process)

    def kill_all(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            harness.children.discard(process)

    # As a harness.Broker, of which one node at a time may be killed.

    @property
    def address(self):
        return self.bootstrap()

    def kill(self):
        self.killed = random.choice(list(self.processes))
        self.stop(self.killed, signal.SIGKILL)

    def restart(self):
        self.start(self.killed)

    def alive(self):
        return all(process.poll() is None for process in self.processes.values())

    def stop_all(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            if process.wait(60) != 0:
                raise RuntimeError(f"exit code {process.returncode}")

    def tool(self, name, *args, timeout=120, server=True):
        """Runs a stock tool; exit code, and what it printed."""
        where = ["--bootstrap-server", self.bootstrap()] if server else []
        return self.java(TOOLS[name], *where, *args, timeout=timeout)
