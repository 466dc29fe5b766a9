"""kafka-python: a pure Python client that picks its versions by probing and by api_version.

    kafka_python_suite.py HOST:PORT [--groups]
"""

import logging
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import (
    InvalidReplicationFactorError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from checks import Checks, DEADLINE_S, eventually, same, that, unique
import checks

logging.disable(logging.CRITICAL)
bootstrap = sys.argv[1]
COUNT = 200
# None negotiates; the others speak as a client of that broker release would.
VERSIONS = [None, (2, 1), (1, 0), (0, 11)]
admin = KafkaAdminClient(bootstrap_servers=bootstrap)


def topic(prefix, partitions=1, config=None):
    name = unique(prefix)
    admin.create_topics([NewTopic(name, partitions, 1, topic_configs=config or {})])
    serves(name, partitions)
    return name


def serves(name, partitions=1):
    wanted = [TopicPartition(name, p) for p in range(partitions)]

    def look():
        consumer = KafkaConsumer(bootstrap_servers=bootstrap)
        try:
            same("partitions", set(range(partitions)), consumer.partitions_for_topic(name))
            consumer.end_offsets(wanted)
        finally:
            consumer.close()

    eventually(look)


def fails(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}, but it succeeded")


def send(name, count, **config):
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **config)
    futures = [
        producer.send(
            name, checks.value(1, i), checks.key(1, i), checks.headers(1, i, null=False), 0,
            checks.timestamp_ms(i))
        for i in range(count)
    ]
    answers = [future.get(DEADLINE_S) for future in futures]
    producer.close()
    return answers


def read(name, count, offset=0, **config):
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none", **config)
    at = TopicPartition(name, 0)
    consumer.assign([at])
    consumer.seek(at, offset)
    records = []
    deadline = time.monotonic() + DEADLINE_S
    while len(records) < count:
        that(f"{count} records in time, not {len(records)}", time.monotonic() < deadline)
        records += consumer.poll(500).get(at, [])
    consumer.close()
    same("records", count, len(records))
    return records


def same_record(i, record):
    same("offset", i, record.offset)
    same("timestamp", checks.timestamp_ms(i), record.timestamp)
    same("timestamp type", 0, record.timestamp_type)
    same("key", checks.key(1, i), record.key)
    same("value", checks.value(1, i), record.value)
    same("headers", checks.headers(1, i, null=False), [tuple(h) for h in record.headers])


def round_trip(version, codec, acks):
    name = topic("kafka-python")
    config = {} if version is None else {"api_version": version}
    more = {"enable_idempotence": False}
    answers = send(name, COUNT, compression_type=codec, acks=acks, **more, **config)
    if acks != 0:
        same("acknowledged offsets", list(range(COUNT)), [a.offset for a in answers])
    for i, record in enumerate(read(name, COUNT, **config)):
        same_record(i, record)


def offsets():
    name = topic("offsets")
    send(name, 50, compression_type="gzip")
    at = TopicPartition(name, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    same("beginning", {at: 0}, consumer.beginning_offsets([at]))
    same("end", {at: 50}, consumer.end_offsets([at]))
    first = next(i for i in range(50) if checks.timestamp_ms(i) >= checks.timestamp_ms(20))
    found = consumer.offsets_for_times({at: checks.timestamp_ms(20)})[at]
    same("offset for a time", (first, checks.timestamp_ms(first)), (found.offset, found.timestamp))
    consumer.close()
    same_record(33, read(name, 17, offset=33)[0])


def out_of_range():
    name = topic("range")
    send(name, 3)
    fails(OffsetOutOfRangeError, lambda: read(name, 1, offset=99))


def too_large():
    name = topic("large", config={"max.message.bytes": "2000"})
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    fails(
        MessageSizeTooLargeError,
        lambda: producer.send(name, b"x" * 5000, partition=0).get(DEADLINE_S))
    producer.close()


def topics():
    name = topic("topics", 2)
    that("listed", name in admin.list_topics())
    described = admin.describe_topics([name])[0]
    same("partitions", 2, len(described["partitions"]))
    fails(TopicAlreadyExistsError, lambda: admin.create_topics([NewTopic(name, 1, 1)]))
    fails(
        InvalidReplicationFactorError,
        lambda: admin.create_topics([NewTopic(unique("other"), 1, 3)]))
    admin.delete_topics([name])
    eventually(lambda: that("gone", name not in admin.list_topics()))
    fails(UnknownTopicOrPartitionError, lambda: admin.delete_topics([name]))


def configs():
    name = topic("configs", config={"retention.ms": "98000"})
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    that("described", "98000" in str(admin.describe_configs([resource])))


def group():
    name = topic("group", 2)
    send(name, 20)
    member = unique("group")
    seen = []
    for _ in range(2):
        consumer = KafkaConsumer(
            name, bootstrap_servers=bootstrap, group_id=member, auto_offset_reset="earliest",
            enable_auto_commit=False, max_poll_records=10)
        deadline = time.monotonic() + DEADLINE_S
        goal = len(seen) + 10
        while len(seen) < goal:
            that("in time", time.monotonic() < deadline)
            for records in consumer.poll(500, max_records=goal - len(seen)).values():
                seen += [record.offset for record in records]
        consumer.commit()
        consumer.close()
    same("offsets", list(range(20)), seen)


def main():
    run = Checks("kafka-python")
    if "--groups" in sys.argv:
        run.check("group", group)
        return run.end()
    for version in VERSIONS:
        name = "negotiated" if version is None else "as for " + ".".join(map(str, version))
        for codec in [None, "gzip", "snappy", "lz4"] + (["zstd"] if version in VERSIONS[:2] else []):
            run.check(f"{name} {codec}", round_trip, version, codec, "all")
        for acks in [0, 1]:
            run.check(f"{name} acks={acks}", round_trip, version, None, acks)
    run.check("offsets and times", offsets)
    run.check("an offset out of range", out_of_range)
    run.check("a record that is too large", too_large)
    run.check("topics", topics)
    run.check("configs", configs)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
