"""A group of stock clients under change: who writes, who reads, and what has to hold at the end.

Members are processes (python/group_member.py, go/member, node/member.js, java's GroupMember) that
print what they read and what they commit, with the time in nanoseconds.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time

import harness

DEADLINE_S = 300
RECORDS_PER_PARTITION_S = 20
# A broker that has no time for more gets no more.
UNACKNOWLEDGED_MAX = 2000
# A Java virtual machine ends with the second one after SIGTERM, once its hooks have run.
ENDED = [0, 143]
# Of librdkafka's own lines only the critical ones.
QUIET = {"log_level": 2, "reconnect.backoff.max.ms": 500}
# A member that died is missed after six seconds in both protocols.
CONFIGS = [
    "group.consumer.session.timeout.ms=6000",
    "group.consumer.min.session.timeout.ms=6000",
    "group.consumer.heartbeat.interval.ms=500",
    "group.consumer.min.heartbeat.interval.ms=500",
]


def members():
    """Client, mode, command without HOST:PORT TOPIC GROUP MODE COUNT NAME."""
    java = harness.java("GroupMember", heap="256m")
    node = ["node", os.path.join(harness.HERE, "node/member.js")]
    go = [os.path.join(harness.GO, "member")]
    python = lambda library: harness.python("group_member", library)
    return [
        ("java", "eager", java),
        ("java", "cooperative", java),
        ("java", "static", java),
        ("java", "consumer", java),
        ("librdkafka", "eager", python("confluent")),
        ("librdkafka", "cooperative", python("confluent")),
        ("librdkafka", "static", python("confluent")),
        ("librdkafka", "consumer", python("confluent")),
        ("franz-go", "eager", go),
        ("franz-go", "cooperative", go),
        ("franz-go", "static", go),
        ("kafkajs", "eager", node),
        ("kafka-python", "eager", python("kafka-python")),
        ("kafka-python", "static", python("kafka-python")),
        ("aiokafka", "eager", python("aiokafka")),
        ("aiokafka", "static", python("aiokafka")),
    ]


def wait_for(what, holds):
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {DEADLINE_S} s: {what}")
        time.sleep(0.05)


class Writer:
    """Writes to every partition at a steady pace, until stopped."""

    def __init__(self, address, topic, partitions):
        from confluent_kafka import KafkaError, KafkaException, Producer

        # What produce() raises of a partition that this client does not know of yet, and what
        # becomes of a record for one that it took before it knew the topic.
        self.unknown_partition = KafkaException
        self.unknown_partition_code = KafkaError._UNKNOWN_PARTITION
        self.producer = Producer({
            **QUIET, "bootstrap.servers": address, "acks": "all", "linger.ms": 5,
            "topic.metadata.refresh.interval.ms": 1000})
        self.topic = topic
        self.ends = {p: 0 for p in range(partitions)}
        self.failed = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def delivered(self, error, message):
        if error:
            if error.code() != self.unknown_partition_code:
                self.failed.append(str(error))
        else:
            partition = message.partition()
            self.ends[partition] = max(self.ends[partition], message.offset() + 1)

    def run(self):
        while not self.stopping.wait(1 / RECORDS_PER_PARTITION_S):
            wanted = list(self.ends) if len(self.producer) < UNACKNOWLEDGED_MAX else []
            for partition in wanted:
                try:
                    self.producer.produce(
                        self.topic, b"x", partition=partition, on_delivery=self.delivered)
                except self.unknown_partition:
                    pass
            self.producer.poll(0)
        self.producer.flush()

    def stop(self):
        self.stopping.set()
        self.thread.join()


class Group:
    """One run: the topic, the processes with members, and all that they told."""

    def __init__(self, address, client, mode, command, size):
        from confluent_kafka.admin import AdminClient

        self.address, self.mode, self.command, self.size = address, mode, command, size
        self.name = f"{client}-{mode}-{os.getpid()}"
        self.topic = f"topic-{self.name}"
        self.partitions = size + 3
        self.processes = {}
        self.lock = threading.Lock()
        self.lines = []
        self.seen_members = set()
        self.read_to = {}
        self.went_back = []
        self.admin = AdminClient({**QUIET, "bootstrap.servers": address})
        self.errors = tempfile.TemporaryFile(mode="w+")

    def create(self):
        from confluent_kafka.admin import NewTopic

        self.admin.create_topics([NewTopic(self.topic, self.partitions, 1)])[self.topic].result()
        self.writer = Writer(self.address, self.topic, self.partitions)
        self.committed = {}
        self.watching = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def grow(self):
        from confluent_kafka.admin import NewPartitions

        self.partitions += 3
        asked = NewPartitions(self.topic, self.partitions)
        self.admin.create_partitions([asked])[self.topic].result()
        self.writer.ends.update({
            p: self.writer.ends.get(p, 0) for p in range(self.partitions)})

    def fetch_committed(self, name=None):
        """What is committed, by partition. A new client each time, so that none has to find its way
        back to a broker that was killed."""
        from confluent_kafka import Consumer, TopicPartition

        client = Consumer({
            **QUIET, "bootstrap.servers": self.address, "group.id": name or self.name,
            "enable.auto.commit": False})
        try:
            asked = [TopicPartition(self.topic, p) for p in range(self.partitions)]
            answer = client.committed(asked, timeout=10)
            return {t.partition: t.offset for t in answer if t.offset >= 0}
        finally:
            client.close()

    def watch(self):
        """What an administrator sees, again and again."""
        while not self.watching.wait(0.5):
            try:
                seen = self.fetch_committed()
            except Exception:  # The group is not there yet.
                continue
            for partition, offset in seen.items():
                before = self.committed.get(partition, -1)
                if offset < before:
                    self.went_back.append(f"partition {partition}: {before}, then {offset}")
                self.committed[partition] = offset

    def launch(self, name, count):
        """Starts a process with members."""
        line = [*self.command, self.address, self.topic, self.name, self.mode, str(count), name]
        env = {**os.environ, "NODE_PATH": os.path.join(harness.NODE, "node_modules")}
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=env, start_new_session=True)
        harness.children.add(process)
        reader = threading.Thread(target=self.listen, args=(process,), daemon=True)
        reader.start()
        self.processes[name] = (process, reader)

    def start(self, name, count):
        """The same, and waits until each of its members has read something."""
        wanted = {f"{name}-{i}" for i in range(count)}
        self.seen_members -= wanted
        self.launch(name, count)
        wait_for(f"all of {name} read", lambda: wanted <= self.seen_members)

    def listen(self, process):
        for line in process.stdout:
            kind, ns, member, partition, *rest = line.split()
            rest = [int(each) for each in rest]
            with self.lock:
                self.lines.append((int(ns), kind, member, int(partition), *rest))
                self.seen_members.add(member)
                if kind == "R":
                    self.read_to[int(partition)] = max(
                        self.read_to.get(int(partition), 0), sum(rest))

    def end(self, name, number):
        process, reader = self.processes.pop(name)
        process.send_signal(number)
        try:
            code = process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{name} does not end")
        reader.join()
        harness.children.discard(process)
        return code

    def caught_up(self, after):
        ends = dict(self.writer.ends)
        if len(ends) < self.partitions or not all(ends.values()):
            wait_for(
                f"records in every partition {after}",
                lambda: len(self.writer.ends) == self.partitions and all(self.writer.ends.values()))
            ends = dict(self.writer.ends)
        wait_for(
            f"caught up {after}",
            lambda: all(self.read_to.get(p, 0) >= end for p, end in ends.items()))

    def run(self):
        self.create()
        try:
            self.start("a", 1)
            self.start("b", self.size - 3)
            self.start("c", 2)
            self.end("c", signal.SIGKILL)
            if self.mode == "static":
                self.start("c", 2)
            self.caught_up("after a crash")
            self.grow()
            self.caught_up("after partitions were added")
            self.end("a", signal.SIGTERM)
            self.caught_up("after a member left")
            self.start("d", 1)
            self.caught_up("after a member joined")
            self.writer.stop()
            ends = self.writer.ends
            wait_for("everything is committed", lambda: self.committed == ends)
            codes = [self.end(name, signal.SIGTERM) for name in list(self.processes)]
        finally:
            self.stop()
        return codes

    def stop(self):
        self.writer.stop()
        self.watching.set()
        for process, _ in self.processes.values():
            process.kill()

    def wrong(self):
        """What does not hold of what was told. A member commits what it has read before it reads
        on, so a commit belongs to the member's last read of that partition. A member that is
        fenced may still have records delivered; what counts is that it cannot commit them."""
        wrong = [f"write: {error}" for error in self.writer.failed[:3]] + self.went_back[:3]
        last_read = {}
        delivered = {p: set() for p in self.writer.ends}
        committed = {p: {} for p in self.writer.ends}
        for ns, kind, member, partition, offset, *count in self.lines:
            place = (member, partition)
            if kind == "R":
                read_ns, offsets = last_read.get(place, (None, []))
                new = range(offset, offset + count[0])
                last_read[place] = (ns, [*(offsets if read_ns == ns else []), *new])
                delivered[partition].update(new)
                continue
            for each in last_read.pop(place, (None, []))[1]:
                if each in committed[partition] and each < offset:
                    first = committed[partition][each]
                    wrong.append(f"{partition}@{each}: committed by {first} and by {member}")
                if each < offset:
                    committed[partition][each] = member
        for partition, end in self.writer.ends.items():
            missing = set(range(end)) - delivered[partition]
            if missing:
                wrong.append(f"partition {partition}: {len(missing)} of {end} not delivered")
        return wrong
