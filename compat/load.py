"""A producer that writes all the time, and what it wrote read back: each acknowledged record is there
once, at its offset, in the order in which it was sent."""

import threading
import time

import chaos_checks


class Load(threading.Thread):
    """Sends record n to partition n mod `partitions`; keeps what was acknowledged."""

    def __init__(self, bootstrap, topic, partitions, rate):
        super().__init__(daemon=True)
        import confluent_kafka
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.rate = rate
        self.stopping = False
        self.sent = 0
        self.acknowledged = {}
        self.failed = []
        self.longest = 0.0
        self.last = time.monotonic()
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "message.timeout.ms": 180_000,
            "retry.backoff.ms": 50,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 2000,
        })

    def delivered(self, number):
        def done(error, message):
            now = time.monotonic()
            self.longest = max(self.longest, now - self.last)
            self.last = now
            if error is not None:
                self.failed.append((number, str(error)))
                return
            self.acknowledged[(message.partition(), message.offset())] = number
        return done

    def run(self):
        begin = time.monotonic()
        while not self.stopping:
            due = int((time.monotonic() - begin) * self.rate)
            while self.sent < due:
                number = self.sent
                try:
                    self.producer.produce(
                        self.topic, value=str(number).encode(),
                        partition=number % self.partitions, on_delivery=self.delivered(number))
                except BufferError:
                    break
                self.sent += 1
            self.producer.poll(0.005)
        self.producer.flush(180)

    def stop(self):
        self.stopping = True
        self.join()

    def read_back(self):
        return chaos_checks.read_back(self.bootstrap, self.topic, self.partitions)

    def check(self, count, name):
        """Stops, reads everything back and counts three checks."""
        self.stop()
        found = self.read_back()
        lost = [(at, n) for at, n in self.acknowledged.items() if found.get(at) != n]
        if lost or not self.acknowledged:
            count.fail(f"{name}: acknowledged records", f"{len(lost)} lost, as {lost[:3]}")
        else:
            count.ok(f"{name}: {len(self.acknowledged)} acknowledged records are there")
        wrong = []
        for partition in range(self.partitions):
            numbers = [n for _, n in sorted(
                (offset, n) for (p, offset), n in found.items() if p == partition)]
            if numbers != sorted(set(numbers)):
                wrong.append(partition)
        if wrong:
            count.fail(f"{name}: order", f"{wrong} have records twice or out of order")
        else:
            count.ok(f"{name}: {len(found)} records in order, none twice")
        if self.failed:
            count.fail(f"{name}: producer", f"{len(self.failed)} failed, as {self.failed[0]}")
        else:
            count.ok(f"{name}: all of {self.sent} acknowledged; longest wait {self.longest:.2f} s")
