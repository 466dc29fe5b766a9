"""Members of a group that tell what they read and commit, for compat/groups.

    group_member.py LIBRARY HOST:PORT TOPIC GROUP MODE COUNT NAME

LIBRARY is confluent, kafka-python or aiokafka; MODE is eager, cooperative, static or consumer; COUNT
members run in this process, named NAME-0 and so on. Each prints a line for each batch it has read and
for each commit that was acknowledged, with the time in nanoseconds, and ends cleanly on SIGTERM:

    R ns member partition first-offset count          C ns member partition offset
"""

import asyncio
import signal
import sys
import threading
import time

LIBRARY, BOOTSTRAP, TOPIC, GROUP, MODE, COUNT, NAME = sys.argv[1:]
SESSION_MS = 6000
HEARTBEAT_MS = 500
stopping = threading.Event()


def read(ns, member, records):
    """`records` are (partition, offset) in the order they came."""
    runs = []
    for partition, offset in records:
        if runs and runs[-1][0] == partition and runs[-1][1] + runs[-1][2] == offset:
            runs[-1][2] += 1
        else:
            runs.append([partition, offset, 1])
    lines = [f"R {ns} {member} {p} {o} {n}\n" for p, o, n in runs]
    sys.stdout.write("".join(lines))
    sys.stdout.flush()


def committed(member, offsets):
    ns = time.time_ns()
    sys.stdout.write("".join(f"C {ns} {member} {p} {o}\n" for p, o in offsets.items()))
    sys.stdout.flush()


def ends_of(records):
    ends = {}
    for partition, offset in records:
        ends[partition] = offset + 1
    return ends


def confluent(member):
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    config = {
        "bootstrap.servers": BOOTSTRAP, "group.id": GROUP, "client.id": member,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 1000, "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
    }
    if MODE == "consumer":
        config["group.protocol"] = "consumer"
    else:
        config["session.timeout.ms"] = SESSION_MS
        config["heartbeat.interval.ms"] = HEARTBEAT_MS
        strategy = "cooperative-sticky" if MODE == "cooperative" else "range"
        config["partition.assignment.strategy"] = strategy
    if MODE == "static":
        config["group.instance.id"] = member
    consumer = Consumer(config)
    consumer.subscribe([TOPIC])
    while not stopping.is_set():
        messages = consumer.consume(100, 0.1)
        ns = time.time_ns()
        records = [(m.partition(), m.offset()) for m in messages if not m.error()]
        if not records:
            continue
        read(ns, member, records)
        ends = ends_of(records)
        try:
            asked = [TopicPartition(TOPIC, p, o) for p, o in ends.items()]
            stored = consumer.commit(offsets=asked, asynchronous=False)
            committed(member, {t.partition: t.offset for t in stored if not t.error})
        except KafkaException as error:
            print(f"# {member}: {error}", file=sys.stderr, flush=True)
    consumer.close()


def kafka_python(member):
    from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        bootstrap_servers=BOOTSTRAP, group_id=GROUP, client_id=member, auto_offset_reset="earliest",
        enable_auto_commit=False, metadata_max_age_ms=1000, session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS, fetch_max_wait_ms=100,
        **({"group_instance_id": member} if MODE == "static" else {}))
    consumer.subscribe([TOPIC])
    while not stopping.is_set():
        # Long enough for a whole rebalance: a join that outlives several polls makes 3.0.12 stop for
        # good now and then, with any broker (docs/testing.md).
        batches = consumer.poll(timeout_ms=5000, max_records=100)
        ns = time.time_ns()
        records = [(r.partition, r.offset) for batch in batches.values() for r in batch]
        if not records:
            continue
        read(ns, member, records)
        ends = ends_of(records)
        try:
            consumer.commit({
                TopicPartition(TOPIC, p): OffsetAndMetadata(o, "", -1) for p, o in ends.items()})
            committed(member, ends)
        except KafkaError as error:
            print(f"# {member}: {error}", file=sys.stderr, flush=True)
    consumer.close()


async def aiokafka_member(member):
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, client_id=member,
        auto_offset_reset="earliest", enable_auto_commit=False, metadata_max_age_ms=1000,
        session_timeout_ms=SESSION_MS, heartbeat_interval_ms=HEARTBEAT_MS, fetch_max_wait_ms=100,
        **({"group_instance_id": member} if MODE == "static" else {}))
    await consumer.start()
    while not stopping.is_set():
        batches = await consumer.getmany(timeout_ms=100, max_records=100)
        ns = time.time_ns()
        records = [(r.partition, r.offset) for batch in batches.values() for r in batch]
        if not records:
            continue
        read(ns, member, records)
        ends = ends_of(records)
        try:
            await consumer.commit({TopicPartition(TOPIC, p): o for p, o in ends.items()})
            committed(member, ends)
        except KafkaError as error:
            print(f"# {member}: {error}", file=sys.stderr, flush=True)
    await consumer.stop()


async def aiokafka():
    names = [f"{NAME}-{i}" for i in range(int(COUNT))]
    await asyncio.gather(*(aiokafka_member(name) for name in names))


def main():
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    if LIBRARY == "aiokafka":
        asyncio.run(aiokafka())
        return
    run = {"confluent": confluent, "kafka-python": kafka_python}[LIBRARY]
    threads = [threading.Thread(target=run, args=(f"{NAME}-{i}",)) for i in range(int(COUNT))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
