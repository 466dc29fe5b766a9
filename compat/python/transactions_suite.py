"""Transactions of librdkafka (confluent-kafka), which adds partitions and groups by requests of its
own, and what kcat reads of them.

    transactions_suite.py HOST:PORT
"""

import shutil
import subprocess
import sys
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from checks import Checks, DEADLINE_S, eventually, same, that, unique

bootstrap = sys.argv[1]
admin = AdminClient({"bootstrap.servers": bootstrap})


def topic(prefix, partitions=1):
    name = unique(prefix)
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    fresh = AdminClient({"bootstrap.servers": bootstrap})
    asked = {TopicPartition(name, p): OffsetSpec.latest() for p in range(partitions)}
    eventually(lambda: [f.result() for f in fresh.list_offsets(asked).values()])
    return name


def producer(transactional_id, **config):
    config = {name.replace("_", "."): value for name, value in config.items()}
    made = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **config})
    made.init_transactions(DEADLINE_S)
    return made


def send(made, name, *values, partition=0):
    for value in values:
        made.produce(name, value, partition=partition)
    same("left unsent", 0, made.flush(DEADLINE_S))


def stable_end(name, isolation=IsolationLevel.READ_COMMITTED):
    at = TopicPartition(name, 0)
    listed = admin.list_offsets({at: OffsetSpec.latest()}, isolation_level=isolation)
    return listed[at].result().offset


def read(name, isolation="read_committed"):
    c = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": isolation,
        "auto.offset.reset": "error", "enable.partition.eof": True, "enable.auto.commit": False})
    c.assign([TopicPartition(name, 0, 0)])
    values, deadline = [], time.monotonic() + DEADLINE_S
    while True:
        that("read to the end in time", time.monotonic() < deadline)
        message = c.poll(1)
        if message is None:
            continue
        if message.error():
            same("error", KafkaError._PARTITION_EOF, message.error().code())
            c.close()
            return values
        values.append(message.value().decode())


def commit_and_abort():
    name = topic("txn")
    p = producer(unique("id"))
    for n in range(30):
        p.begin_transaction()
        send(p, name, f"{n}a", f"{n}b")
        p.abort_transaction(DEADLINE_S) if n % 3 == 2 else p.commit_transaction(DEADLINE_S)
    expected = [f"{n}{x}" for n in range(30) if n % 3 != 2 for x in "ab"]
    same("committed", expected, read(name))
    same("all", 60, len(read(name, "read_uncommitted")))


def kcat_reads_committed():
    kcat = shutil.which("kcat") or shutil.which("kafkacat")
    that("kcat is installed", kcat)
    name = topic("txn")
    p = producer(unique("id"))
    for value, commit in [("one", True), ("no", False), ("two", True)]:
        p.begin_transaction()
        send(p, name, value)
        p.commit_transaction(DEADLINE_S) if commit else p.abort_transaction(DEADLINE_S)
    p.begin_transaction()
    send(p, name, "open")
    for isolation, expected in [
        ("read_committed", ["one", "two"]), ("read_uncommitted", ["one", "no", "two", "open"]),
    ]:
        line = [kcat, "-b", bootstrap, "-C", "-t", name, "-p", "0", "-o", "beginning", "-e", "-q",
                "-X", f"isolation.level={isolation}"]
        ran = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S)
        same(isolation, expected, ran.stdout.split())
    p.abort_transaction(DEADLINE_S)


def fails_for_good(call):
    try:
        call()
    except KafkaException as error:
        that(f"fatal: {error}", error.args[0].fatal())
        return
    raise AssertionError("a fenced producer went on")


def fencing():
    name = topic("txn")
    transactional_id = unique("id")
    zombie = producer(transactional_id)
    zombie.begin_transaction()
    send(zombie, name, "zombie")
    owner = producer(transactional_id)
    owner.begin_transaction()
    send(owner, name, "owner")
    fails_for_good(lambda: zombie.commit_transaction(DEADLINE_S))
    owner.commit_transaction(DEADLINE_S)
    same("committed", ["owner"], read(name))


def time_out():
    name = topic("txn")
    slow = producer(unique("id"), transaction_timeout_ms=1000)
    slow.begin_transaction()
    send(slow, name, "slow")
    same("stable end", 0, stable_end(name))
    eventually(lambda: that("it was ended", stable_end(name) == 2))
    try:
        slow.commit_transaction(DEADLINE_S)
        raise AssertionError("an aborted transaction was committed")
    except KafkaException:
        pass
    same("committed", [], read(name))


def offsets():
    name, group = topic("txn"), unique("group")
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    p = producer(unique("id"))
    metadata = c.consumer_group_metadata()

    def committed():
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(name, 0)])
        found = admin.list_consumer_group_offsets([asked], require_stable=True)[group]
        return found.result().topic_partitions[0].offset

    for offset, commit in [(5, True), (9, False)]:
        p.begin_transaction()
        p.send_offsets_to_transaction([TopicPartition(name, 0, offset)], metadata, DEADLINE_S)
        p.commit_transaction(DEADLINE_S) if commit else p.abort_transaction(DEADLINE_S)
        # Kafka answers the end of a transaction before its markers are everywhere.
        eventually(lambda: same("committed", 5, committed()))
    c.close()


def main():
    checks = Checks("transactions/librdkafka")
    checks.check("committed records are read, aborted ones are not", commit_and_abort)
    checks.check("kcat reads committed records only", kcat_reads_committed)
    checks.check("a second producer shuts the first one out", fencing)
    checks.check("a transaction that takes too long is aborted", time_out)
    checks.check("offsets of a group", offsets)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
