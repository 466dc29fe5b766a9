"""What test modules do with an image: a container that waits for its start script, which is copied in
as root, and a wait for lines of the log or for ports."""

import io
import re
import tarfile
import time

from cases import contains, expect

RECOVERY = r"Transitioning from RECOVERY to RUNNING"
KAFKA_SERVER = r"\[KafkaServer id=\d+\] started"
SERVER_STARTED = r"Kafka Server started"


class Container:
    """One container of a module, in a network of its own."""

    def __init__(self, case, env, ports, path, shell="sh", first="", alias=None, entrypoint=True):
        self.case, self.path = case, path
        self.network = case.project
        engine = case.engine
        engine.docker("network", "create", self.network, check=False)
        words = ["run", "-d", "--network", self.network, "--name", f"{case.project}-broker"]
        for name in alias or []:
            words += ["--network-alias", name]
        for port in ports:
            words += ["-p", f"127.0.0.1::{port}"]
        for name, value in env.items():
            words += ["-e", f"{name}={value}"]
        run = path if shell == "sh" else f"{shell} {path}"
        loop = f"{first}while [ ! -f {path} ]; do sleep 0.1; done; {run}"
        words += (["--entrypoint", "sh", "klamm:drop-in", "-c", loop] if entrypoint
                  else ["klamm:drop-in", "sh", "-c", loop])
        self.id = engine.docker(*words).stdout.strip()
        self.ports = {p: self.port(p) for p in ports}
        self.hostname = self.id[:12]

    def port(self, number):
        text = self.case.engine.docker("port", self.id, str(number)).stdout
        return text.split()[0].rsplit(":", 1)[1]

    def copy(self, lines, mode=0o777):
        """As the archive call of the API does: owned by root."""
        text = "\n".join(lines).encode() + b"\n"
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            entry = tarfile.TarInfo(self.path.lstrip("/"))
            entry.size, entry.mode, entry.mtime = len(text), mode, int(time.time())
            tar.addfile(entry, io.BytesIO(text))
        self.case.engine.docker("cp", "-", f"{self.id}:/", input=archive.getvalue().decode())
        self.started = time.time()

    def log(self):
        done = self.case.engine.docker("logs", self.id)
        return done.stdout + done.stderr

    def wait_log(self, pattern, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if re.search(pattern, self.log()):
                took = time.time() - self.started
                times = len(re.findall(pattern, self.log()))
                assert times == 1, f"{pattern}: {times} times"
                print(f"   {self.case.name}: {took:.2f} s from the script to {pattern}")
                return
            time.sleep(0.05)
        raise AssertionError(f"no {pattern}: {self.log()[-1500:]}")

    def exec(self, *words, code=0):
        done = self.case.engine.docker("exec", self.id, *words, check=False)
        assert done.returncode == code, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def host(self, port, *works):
        return self.case.host(f"127.0.0.1:{self.ports[port]}", "t", *works)

    def in_network(self, address):
        line = f"echo one | kcat -P -b {address} -t n && kcat -C -b {address} -t n -e -q"
        done = self.case.engine.docker("run", "--rm", "--network", self.network, "stand-in/kcat:1",
                                       "timeout", "40", "sh", "-c", line, check=False)
        contains(done.stdout, "one")

    def close(self):
        self.case.engine.docker("rm", "-f", "-v", self.id, check=False)
        self.case.engine.docker("network", "rm", self.network, check=False)


ONE = {
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
KRAFT = {
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
}
ZOOKEEPER_FILE = [
    "echo 'clientPort=2181' > zookeeper.properties",
    "echo 'dataDir=/var/lib/zookeeper/data' >> zookeeper.properties",
    "echo 'dataLogDir=/var/lib/zookeeper/log' >> zookeeper.properties",
    "zookeeper-server-start zookeeper.properties &",
]


def with_container(make, checks):
    def run(case):
        container = make(case)
        try:
            checks(case, container)
        finally:
            container.close()
        case.down = lambda: None
    return run


def java_apache(case):
    env = {"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw", **ONE, **KRAFT,
           "KAFKA_LISTENERS": "TC-0://kafka:19092,PLAINTEXT://0.0.0.0:9092,"
                              "CONTROLLER://0.0.0.0:9094,BROKER://0.0.0.0:9093",
           "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":
               "PLAINTEXT:PLAINTEXT,TC-0:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
           "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094"}
    return Container(case, env, [9092], "/tmp/testcontainers_start.sh", alias=["tc-x", "kafka"],
                     entrypoint=False)


def java_apache_checks(case, c):
    c.copy(["#!/bin/bash",
            f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{c.ports[9092]},"
            f"BROKER://{c.hostname}:9093,TC-0://kafka:19092", "/etc/kafka/docker/run"])
    case.check("the line it waits for", lambda: c.wait_log(RECOVERY))
    case.check("the host", lambda: c.host(9092, "create:1:1", "roundtrip") and None)
    case.check("the extra listener", lambda: c.in_network("kafka:19092"))


def java_zookeeper(case):
    env = {**ONE, "KAFKA_LISTENERS": "BROKER://0.0.0.0:9092,PLAINTEXT://0.0.0.0:9093",
           "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT",
           "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER", "KAFKA_BROKER_ID": "1",
           "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}
    return Container(case, env, [9093, 2181], "/tmp/testcontainers_start.sh")


def java_zookeeper_checks(case, c):
    c.copy(["#!/bin/bash",
            f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{c.ports[9093]},"
            f"BROKER://{c.hostname}:9092",
            "echo '' > /etc/confluent/docker/ensure",
            "printf '%s\\n' clientPort=2181 dataDir=/nowhere/data > /tmp/zookeeper.properties",
            "zookeeper-server-start /tmp/zookeeper.properties &", "/etc/confluent/docker/run"])
    case.check("the line it waits for", lambda: c.wait_log(KAFKA_SERVER))
    case.check("the host", lambda: c.host(9093, "roundtrip") and None)
    case.check("the network", lambda: c.in_network(f"{c.hostname}:9092"))


def go_local(case):
    listeners = "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094"
    env = {"CLUSTER_ID": "kraftCluster", **ONE, **KRAFT, "KAFKA_LISTENERS": listeners,
           "KAFKA_REST_BOOTSTRAP_SERVERS": listeners, "KAFKA_BROKER_ID": "1",
           "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":
               "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
           "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker-alias:9094"}
    return Container(case, env, [9093], "/usr/sbin/testcontainers_start.sh", shell="bash",
                     alias=["broker-alias"])


def go_local_checks(case, c):
    c.copy(["#!/bin/bash", "source /etc/confluent/docker/bash-config",
            f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{c.ports[9093]},"
            f"BROKER://{c.hostname}:9092",
            "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure",
            "echo 'kafka-storage format --ignore-formatted -t \"$(kafka-storage random-uuid)\" "
            "-c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure",
            "echo '' > /etc/confluent/docker/ensure",
            "/etc/confluent/docker/configure", "/etc/confluent/docker/launch"], 0o755)
    case.check("the line it waits for", lambda: c.wait_log(RECOVERY))
    case.check("the host", lambda: c.host(9093, "roundtrip") and None)
    case.check("the network is told the container", lambda: c.in_network("broker-alias:9092"))
    case.check("the script is there", lambda: contains(
        c.exec("cat", "/usr/sbin/testcontainers_start.sh"), "launch"))


def python_zookeeper(case):
    env = {"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
           "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
           "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER", "KAFKA_BROKER_ID": "1",
           "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
           "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
           "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000",
           "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0"}
    return Container(case, env, [9093], "/tc-start.sh", shell="sh ", entrypoint=False)


def python_zookeeper_checks(case, c):
    c.copy(["#!/bin/bash", *ZOOKEEPER_FILE, "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'",
            f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{c.ports[9093]},"
            "BROKER://$(hostname -i):9092",
            ". /etc/confluent/docker/bash-config", "/etc/confluent/docker/configure",
            "/etc/confluent/docker/launch"], 0o644)
    case.check("the line it waits for", lambda: c.wait_log(KAFKA_SERVER, 30))
    case.check("the host", lambda: c.host(9093, "roundtrip") and None)


def node_ports(case):
    env = {**ONE, "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
           "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
           "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER", "KAFKA_BROKER_ID": "1",
           "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
           "KAFKA_ADVERTISED_LISTENERS": "BROKER://localhost:9092",
           "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}
    return Container(case, env, [9093, 2181], "/tmp/testcontainers_start.sh",
                     first="echo 'Waiting for script...'; ")


def node_ports_checks(case, c):
    c.copy(["#!/bin/bash",
            f"export KAFKA_ADVERTISED_LISTENERS=BROKER://{c.hostname}:9092,"
            f"PLAINTEXT://127.0.0.1:{c.ports[9093]}",
            "echo '' > /etc/confluent/docker/ensure", *ZOOKEEPER_FILE,
            "/etc/confluent/docker/run"])
    for port in ("9093", "2181"):
        case.check(f"port {port} opens inside", lambda port=port: case.wait(port, lambda:
                   case.engine.docker("exec", c.id, "nc", "-vz", "-w", "1", "localhost", port,
                                      check=False).returncode == 0))
    case.check("as seen in /proc/net/tcp", lambda: contains(
        c.exec("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 | awk '{print $2}' | grep -i :2385"),
        ":2385"))
    case.check("the host at once", lambda: c.host(9093, "create:1:1", "roundtrip") and None)


def rust_apache(case):
    env = {**KRAFT, "CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw", "KAFKA_BROKER_ID": "1",
           "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,BROKER://0.0.0.0:9093,"
                              "CONTROLLER://0.0.0.0:9094",
           "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":
               "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
           "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092,BROKER://localhost:9092",
           "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
           "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094"}
    del env["KAFKA_NODE_ID"]
    return Container(case, env, [9092], "/opt/kafka/testcontainers_start.sh",
                     shell="chmod 755 /opt/kafka/testcontainers_start.sh; ", entrypoint=False)


def rust_apache_checks(case, c):
    text = (f"#!/usr/bin/env bash\\nexport KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:"
            f"{c.ports[9092]},BROKER://localhost:9093\\n/etc/kafka/docker/run \\n")
    c.started = time.time()
    case.check("the user may write the script", lambda: c.exec(
        "sh", "-c", f"printf '{text}' > {c.path}") and None)
    case.check("the line it waits for", lambda: c.wait_log(SERVER_STARTED))
    case.check("the host", lambda: c.host(9092, "roundtrip") and None)


CASES = {
    "59-testcontainers-java": with_container(java_apache, java_apache_checks),
    "63-testcontainers-java-zookeeper": with_container(java_zookeeper, java_zookeeper_checks),
    "65-testcontainers-go": with_container(go_local, go_local_checks),
    "67-testcontainers-python": with_container(python_zookeeper, python_zookeeper_checks),
    "69-testcontainers-node": with_container(node_ports, node_ports_checks),
    "71-testcontainers-rust": with_container(rust_apache, rust_apache_checks),
}
