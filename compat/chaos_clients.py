"""Clients that write to the cluster of compat/chaos and read in groups all the time.

A writer is idempotent, wants acks=all and writes to every partition of a topic of its own. Its
time-outs are short (1.5 s for an answer, metadata asked for twice a second): with its defaults a
client waits 30 s for what it has sent to a stopped node, whichever broker that is.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import harness

ANSWER_MAX_MS = 1500
REFRESH_MS = 500
GIVE_UP_MS = 180_000
END_MAX_S = 240


class Writer:
    """What was acknowledged, when, and what failed."""

    def __init__(self, name, partitions):
        self.name = name
        self.topic = f"chaos-{name}"
        self.partitions = partitions
        self.sent = 0
        self.acknowledged = {}
        self.failed = []
        self.times = [[] for _ in range(partitions)]

    def take(self, partition, offset, number, at):
        place = (partition, offset)
        if place in self.acknowledged:
            self.failed.append((number, f"acknowledged at {place}, as {self.acknowledged[place]}"))
        self.acknowledged[place] = number
        self.times[partition].append(at)

    def gap(self, since, until, partitions=None):
        """The longest time without an acknowledgement of a partition."""
        longest = 0.0
        for partition in partitions or range(self.partitions):
            inside = [t for t in list(self.times[partition]) if since <= t <= until]
            times = [since, *sorted(inside), until]
            longest = max(longest, *(b - a for a, b in zip(times, times[1:])))
        return longest


class Librdkafka(Writer):
    def __init__(self, bootstrap, partitions, rate):
        super().__init__("librdkafka", partitions)
        import confluent_kafka
        self.rate = rate
        self.stopping = False
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "log_level": 2,
            "message.timeout.ms": GIVE_UP_MS,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 250,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "socket.timeout.ms": ANSWER_MAX_MS,
            "api.version.request.timeout.ms": ANSWER_MAX_MS,
            "socket.connection.setup.timeout.ms": ANSWER_MAX_MS,
            "topic.metadata.refresh.interval.ms": REFRESH_MS,
        })

    def delivered(self, number):
        def done(error, message):
            if error is not None:
                self.failed.append((number, str(error)))
            else:
                self.take(message.partition(), message.offset(), number, time.time())
        return done

    def start(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        begin = time.monotonic()
        while not self.stopping:
            due = int((time.monotonic() - begin) * self.rate)
            while self.sent < due:
                number = self.sent
                try:
                    self.producer.produce(
                        self.topic, value=str(number).encode(), partition=number % self.partitions,
                        on_delivery=self.delivered(number))
                except BufferError:
                    break
                self.sent += 1
            self.producer.poll(0.005)
        self.producer.flush(END_MAX_S)

    def end(self):
        self.stopping = True
        self.thread.join()


class Process(Writer):
    """A writer of its own that tells: `A ns partition offset number`, `F number why`, `S sent`."""

    def __init__(self, name, command, bootstrap, partitions, rate):
        super().__init__(name, partitions)
        self.command = [*command, bootstrap, self.topic, str(partitions), str(rate)]
        self.errors = tempfile.TemporaryFile(mode="w+")

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            text=True, start_new_session=True)
        harness.children.add(self.process)
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self):
        for line in self.process.stdout:
            kind, *rest = line.split(" ", 4)
            if kind == "A":
                ns, partition, offset, number = map(int, rest)
                self.take(partition, offset, number, ns / 1e9)
            elif kind == "S":
                self.sent = int(rest[0])
            else:
                self.failed.append((rest[0], " ".join(rest[1:]).strip()))

    def end(self):
        """The end of its input lets it end."""
        self.process.stdin.close()
        try:
            self.process.wait(END_MAX_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.failed.append((-1, f"{self.name} does not end"))
        self.reader.join()
        harness.children.discard(self.process)
        if self.process.returncode != 0:
            self.errors.seek(0)
            self.failed.append((-1, f"{self.name} ended badly: {self.errors.read()[-500:]}"))


def writer(name, bootstrap, partitions, rate):
    if name == "librdkafka":
        return Librdkafka(bootstrap, partitions, rate)
    command = {
        "java": harness.java("ChaosWriter", heap="256m"),
        "franz-go": [os.path.join(harness.GO, "chaoswriter")],
    }[name]
    return Process(name, command, bootstrap, partitions, rate)


class Group:
    """A member or two that read a writer's topic and commit (python/group_member.py's lines)."""

    MEMBERS = {
        "librdkafka": ("eager", lambda: harness.python("group_member", "confluent")),
        "java": ("consumer", lambda: harness.java("GroupMember", heap="256m")),
        "franz-go": ("cooperative", lambda: [os.path.join(harness.GO, "member")]),
    }

    def __init__(self, name, bootstrap, topic, partitions):
        self.name, self.bootstrap, self.topic, self.partitions = name, bootstrap, topic, partitions
        self.group = f"group-{name}"
        self.read = {p: set() for p in range(partitions)}
        self.committed = {p: 0 for p in range(partitions)}
        self.errors = tempfile.TemporaryFile(mode="w+")

    def start(self):
        mode, command = self.MEMBERS[self.name]
        self.process = subprocess.Popen(
            [*command(), self.bootstrap, self.topic, self.group, mode, "2", f"m-{self.name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            start_new_session=True)
        harness.children.add(self.process)
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self):
        for line in self.process.stdout:
            kind, _, _, partition, offset, *count = line.split()
            partition, offset = int(partition), int(offset)
            if kind == "R":
                self.read[partition].update(range(offset, offset + int(count[0])))
            else:
                self.committed[partition] = max(self.committed[partition], offset)

    def caught_up(self, ends, within_s=120):
        """Whether it has committed up to these ends, in time."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if all(self.committed[p] >= end for p, end in ends.items()):
                return True
            time.sleep(0.1)
        return False

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.reader.join()
        harness.children.discard(self.process)

    def stored(self):
        """What the coordinator has."""
        from confluent_kafka import Consumer, TopicPartition
        client = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": self.group, "log_level": 2})
        try:
            asked = [TopicPartition(self.topic, p) for p in range(self.partitions)]
            return {t.partition: t.offset for t in client.committed(asked, timeout=60)}
        finally:
            client.close()


def write_aside(address, topic, seconds):
    """A client that sees one node only; prints `A partition offset value` of what that one
    acknowledges. Run in the namespace of a node that is cut off."""
    import confluent_kafka
    producer = confluent_kafka.Producer({
        "bootstrap.servers": address, "acks": "all", "log_level": 2, "linger.ms": 5,
        "message.timeout.ms": seconds * 1000, "topic.metadata.refresh.interval.ms": REFRESH_MS})

    def done(error, message):
        if error is None:
            print("A", message.partition(), message.offset(), message.value().decode(), flush=True)

    end = time.monotonic() + seconds
    number = 0
    print("R", flush=True)
    while time.monotonic() < end:
        producer.produce(topic, value=f"{-1 - number}".encode(), on_delivery=done)
        number += 1
        producer.poll(0.02)
    # What is still under way must not be written after the node is back.
    producer.purge()
    producer.flush(1)


if __name__ == "__main__":
    write_aside(sys.argv[1], sys.argv[2], float(sys.argv[3]))
