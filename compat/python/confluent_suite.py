"""confluent-kafka (librdkafka): producer, consumer with assign, admin client.

    confluent_suite.py HOST:PORT [--groups]
"""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from confluent_kafka import TopicCollection

from checks import Checks, DEADLINE_S, eventually, same, that, unique
import checks

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
COUNT = 300
bootstrap = sys.argv[1]
admin = AdminClient({"bootstrap.servers": bootstrap})


def topic(prefix, partitions=1, **config):
    name = unique(prefix)
    asked = NewTopic(name, partitions, 1, config=config)
    admin.create_topics([asked])[name].result()
    serves(name, partitions)
    return name


def serves(name, partitions=1):
    """Kafka answers before the partitions serve. A client of its own has no stale metadata."""
    fresh = AdminClient({"bootstrap.servers": bootstrap})
    asked = {TopicPartition(name, p): OffsetSpec.latest() for p in range(partitions)}
    eventually(lambda: [f.result() for f in fresh.list_offsets(asked).values()])


def fails(code, call):
    try:
        call()
    except KafkaException as error:
        same("error", KafkaError(code).name(), error.args[0].name())
        return error.args[0]
    raise AssertionError(f"expected {KafkaError(code).name()}, but it succeeded")


def producer(**config):
    config = {name.replace("_", "."): value for name, value in config.items()}
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **config})


def consumer(**config):
    config = {name.replace("_", "."): value for name, value in config.items()}
    return Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": "unused",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        **config,
    })


def send(name, count, seed=1, partition=0, **config):
    """Sends the sample; returns what the delivery reports said."""
    reports = []
    p = producer(**config)
    for i in range(count):
        p.produce(
            name, checks.value(seed, i), checks.key(seed, i), partition,
            on_delivery=lambda error, message: reports.append((error, message)),
            timestamp=checks.timestamp_ms(i), headers=checks.headers(seed, i))
        p.poll(0)
    same("left unsent", 0, p.flush(DEADLINE_S))
    return reports


def read(name, count, partition=0, offset=0, **config):
    c = consumer(**config)
    c.assign([TopicPartition(name, partition, offset)])
    records = []
    deadline = time.monotonic() + DEADLINE_S
    while len(records) < count:
        that(f"{count} records in time, not {len(records)}", time.monotonic() < deadline)
        for message in c.consume(500, 0.2):
            if message.error():
                raise KafkaException(message.error())
            records.append(message)
    c.close()
    same("records", count, len(records))
    return records


def same_record(seed, i, offset, message):
    same("offset", offset, message.offset())
    same("timestamp", (1, checks.timestamp_ms(i)), message.timestamp())
    same("key", checks.key(seed, i), message.key())
    same("value", checks.value(seed, i), message.value())
    same("headers", checks.headers(seed, i), message.headers() or [])


def round_trip(codec, acks, idempotent):
    name = topic("rdkafka")
    reports = send(
        name, COUNT, compression_codec=codec, acks=acks, enable_idempotence=idempotent)
    same("delivery reports", COUNT, len(reports))
    for i, (error, message) in enumerate(reports):
        same("error", None, error)
        # With acks=0 nobody tells the offset.
        if acks != "0":
            same("acknowledged offset", i, message.offset())
    for i, message in enumerate(read(name, COUNT)):
        same_record(1, i, i, message)


def middle_of_batch():
    name = topic("middle")
    send(name, COUNT, compression_codec="lz4", linger_ms=100)
    for start in [1, 37, 150, 298]:
        for n, message in enumerate(read(name, COUNT - start, offset=start)):
            same_record(1, start + n, start + n, message)


def watermarks():
    name = topic("watermarks")
    send(name, 20)
    c = consumer()
    same("watermarks", (0, 20), c.get_watermark_offsets(TopicPartition(name, 0), 10))
    trimmed = admin.delete_records([TopicPartition(name, 0, 8)])
    same("low watermark", 8, list(trimmed.values())[0].result().low_watermark)
    same("watermarks", (8, 20), c.get_watermark_offsets(TopicPartition(name, 0), 10))
    at = [TopicPartition(name, 0, checks.timestamp_ms(12))]
    first = next(i for i in range(8, 20) if checks.timestamp_ms(i) >= checks.timestamp_ms(12))
    same("offset for a time", first, c.offsets_for_times(at, 10)[0].offset)
    late = [TopicPartition(name, 0, checks.timestamp_ms(500))]
    same("offset for a late time", -1, c.offsets_for_times(late, 10)[0].offset)
    c.close()
    same_record(1, 8, 8, read(name, 12, offset=-2)[0])


def out_of_range():
    name = topic("range")
    send(name, 5)
    c = consumer()
    c.assign([TopicPartition(name, 0, 77)])
    deadline = time.monotonic() + DEADLINE_S
    message = None
    while message is None or message.error() is None:
        that("an error in time", time.monotonic() < deadline)
        message = c.poll(0.5)
    same("error", "_AUTO_OFFSET_RESET", message.error().name())
    c.close()


def too_large():
    name = topic("large", **{"max.message.bytes": "2000"})
    seen = []
    p = producer()
    p.produce(name, b"x" * 5000, partition=0, callback=lambda error, _: seen.append(error))
    p.flush(DEADLINE_S)
    same("error", "MSG_SIZE_TOO_LARGE", seen[0].name())


def bad_timestamp():
    name = topic("ahead")
    seen = []
    ahead = int(time.time() * 1000) + 7_200_000
    p = producer()
    p.produce(name, b"x", partition=0, timestamp=ahead, callback=lambda e, _: seen.append(e))
    p.flush(DEADLINE_S)
    same("error", "INVALID_TIMESTAMP", seen[0].name())


def unknown_partition():
    name = topic("partition")
    seen = []
    p = producer()
    p.list_topics(name, 10)
    try:
        p.produce(name, b"x", partition=9, callback=lambda error, _: seen.append(error))
        p.flush(DEADLINE_S)
    except KafkaException as error:
        seen.append(error.args[0])
    same("error", "_UNKNOWN_PARTITION", seen[0].name())


def auto_creation():
    name = unique("auto")
    reports = send(name, 3)
    same("errors", [None] * 3, [error for error, _ in reports])
    same_record(1, 2, 2, read(name, 3)[2])


def metadata():
    name = topic("metadata", 3)
    found = admin.list_topics(name, 10)
    same("brokers", [1], list(found.brokers))
    same("partitions", [0, 1, 2], sorted(found.topics[name].partitions))
    for partition in found.topics[name].partitions.values():
        same("leader", 1, partition.leader)
        same("replicas", [1], partition.replicas)
        same("isrs", [1], partition.isrs)
    that("in the full list", name in admin.list_topics(timeout=10).topics)


def describe():
    name = topic("describe", 2)
    described = admin.describe_topics(
        TopicCollection([name]), include_authorized_operations=True)[name].result()
    same("partitions", 2, len(described.partitions))
    same("leader", 1, described.partitions[0].leader.id)
    same("authorized operations", 8, len(described.authorized_operations))
    cluster = admin.describe_cluster().result()
    same("nodes", [1], [n.id for n in cluster.nodes])
    same("controller", 1, cluster.controller.id)
    same("length of the cluster id", 22, len(cluster.cluster_id))


def admin_errors():
    name = topic("errors")
    twice = lambda: admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    fails(KafkaError.TOPIC_ALREADY_EXISTS, twice)
    other = unique("other")
    make = lambda asked: admin.create_topics([asked])[asked.topic].result()
    fails(KafkaError.INVALID_REPLICATION_FACTOR, lambda: make(NewTopic(other, 1, 3)))
    fails(KafkaError.INVALID_PARTITIONS, lambda: make(NewTopic(other, 0, 1)))
    fails(KafkaError.TOPIC_EXCEPTION, lambda: make(NewTopic("no good", 1, 1)))
    bad = NewTopic(other, 1, 1, config={"retention.ms": "x"})
    fails(KafkaError.INVALID_CONFIG, lambda: make(bad))
    gone = lambda: admin.delete_topics([other])[other].result()
    fails(KafkaError.UNKNOWN_TOPIC_OR_PART, gone)
    shrink = lambda: admin.create_partitions([NewPartitions(name, 1)])[name].result()
    fails(KafkaError.INVALID_PARTITIONS, shrink)


def partitions_and_delete():
    name = topic("grow")
    admin.create_partitions([NewPartitions(name, 4)])[name].result()
    serves(name, 4)
    same("partitions", 4, len(admin.list_topics(name, 10).topics[name].partitions))
    admin.delete_topics([name])[name].result()
    eventually(lambda: that("gone", name not in admin.list_topics(timeout=10).topics))


def configs():
    name = topic("configs", **{"retention.ms": "123000"})
    resource = ConfigResource(ResourceType.TOPIC, name)
    look = lambda: admin.describe_configs([resource])[resource].result()
    entry = look()["retention.ms"]
    same("value", "123000", entry.value)
    same("source", ConfigSource.DYNAMIC_TOPIC_CONFIG.value, entry.source)
    that("synonyms", "retention.ms" in entry.synonyms)
    changes = [
        ConfigEntry("retention.ms", "456000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
    ]
    change = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    admin.incremental_alter_configs([change])[change].result()
    eventually(lambda: same("value", "456000", look()["retention.ms"].value))
    same("appended", "delete,compact", look()["cleanup.policy"].value)
    bad = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[
        ConfigEntry("no.such", "1", incremental_operation=AlterConfigOpType.SET)])
    fails(
        KafkaError.INVALID_CONFIG,
        lambda: admin.incremental_alter_configs([bad])[bad].result())


def list_offsets():
    name = topic("offsets")
    send(name, 30)
    partition = TopicPartition(name, 0)
    newest = max(range(30), key=lambda i: (checks.timestamp_ms(i), -i))
    for spec, offset in [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 30),
        (OffsetSpec.max_timestamp(), newest),
        (OffsetSpec.for_timestamp(0), 0),
    ]:
        for level in [IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED]:
            found = admin.list_offsets({partition: spec}, isolation_level=level)
            same(f"{spec}", offset, found[partition].result().offset)


def groups():
    name = topic("groups", 4)
    for p in range(4):
        send(name, 50, seed=p, partition=p)
    for protocol in ["classic", "consumer"]:
        group = unique("group")
        seen = set()
        for _ in range(2):
            c = consumer(**{
                "group.id": group, "auto.offset.reset": "earliest", "group.protocol": protocol})
            c.subscribe([name])
            deadline = time.monotonic() + DEADLINE_S
            goal = len(seen) + 100
            while len(seen) < goal:
                that("in time", time.monotonic() < deadline)
                for message in c.consume(min(50, goal - len(seen)), 0.2):
                    at = (message.partition(), message.offset())
                    that("read once", at not in seen)
                    seen.add(at)
                    same_record(at[0], at[1], at[1], message)
            c.commit(asynchronous=False)
            c.close()
        same("records", 200, len(seen))
        asked = [ConsumerGroupTopicPartitions(group)]
        stored = admin.list_consumer_group_offsets(asked)[group].result().topic_partitions
        same("committed", [50] * 4, [p.offset for p in stored if p.topic == name])


def main():
    run = Checks("confluent-kafka")
    if "--groups" in sys.argv:
        run.check("groups", groups)
        return run.end()
    for codec in CODECS:
        for acks, idempotent in [("0", False), ("1", False), ("all", False), ("all", True)]:
            kind = "idempotent" if idempotent else f"acks={acks}"
            run.check(f"{kind} {codec}", round_trip, codec, acks, idempotent)
    run.check("fetch from the middle of a batch", middle_of_batch)
    run.check("watermarks, offsets for times, deleted records", watermarks)
    run.check("an offset out of range", out_of_range)
    run.check("a record that is too large", too_large)
    run.check("a timestamp that is ahead", bad_timestamp)
    run.check("a partition that is not there", unknown_partition)
    run.check("auto-creation", auto_creation)
    run.check("metadata", metadata)
    run.check("describe topics and cluster", describe)
    run.check("admin errors", admin_errors)
    run.check("create partitions, delete topics", partitions_and_delete)
    run.check("describe and alter configs", configs)
    run.check("list offsets", list_offsets)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
