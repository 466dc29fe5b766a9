"""aiokafka: producer and consumer on asyncio.   aiokafka_suite.py HOST:PORT [--groups]"""

import asyncio
import logging
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
)

from checks import Checks, DEADLINE_S, same, that, unique
import checks

logging.disable(logging.CRITICAL)
bootstrap = sys.argv[1]
COUNT = 200


async def topic(prefix, partitions=1, config=None):
    name = unique(prefix)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=config or {})])
    await admin.close()
    return name


async def send(name, count, partition=0, **config):
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **config)
    await producer.start()
    try:
        futures = [
            await producer.send(
                name, checks.value(1, i), checks.key(1, i), partition, checks.timestamp_ms(i),
                checks.headers(1, i))
            for i in range(count)
        ]
        return [await asyncio.wait_for(future, DEADLINE_S) for future in futures]
    finally:
        await producer.stop()


async def read(name, count, offset=0, **config):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="none", enable_auto_commit=False, **config)
    at = TopicPartition(name, 0)
    await consumer.start()
    try:
        consumer.assign([at])
        consumer.seek(at, offset)
        return [await asyncio.wait_for(consumer.getone(), DEADLINE_S) for _ in range(count)]
    finally:
        await consumer.stop()


def same_record(i, record):
    same("offset", i, record.offset)
    same("timestamp", (checks.timestamp_ms(i), 0), (record.timestamp, record.timestamp_type))
    same("key", checks.key(1, i), record.key)
    same("value", checks.value(1, i), record.value)
    same("headers", checks.headers(1, i), list(record.headers))


async def round_trip(codec, **config):
    name = await topic("aiokafka")
    answers = await send(name, COUNT, compression_type=codec, **config)
    if config.get("acks") != 0:
        same("acknowledged offsets", list(range(COUNT)), [a.offset for a in answers])
    for i, record in enumerate(await read(name, COUNT)):
        same_record(i, record)
    same_record(123, (await read(name, 1, offset=123, isolation_level="read_committed"))[0])


async def offsets():
    name = await topic("offsets")
    await send(name, 50)
    at = TopicPartition(name, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        same("beginning", {at: 0}, await consumer.beginning_offsets([at]))
        same("end", {at: 50}, await consumer.end_offsets([at]))
        first = next(i for i in range(50) if checks.timestamp_ms(i) >= checks.timestamp_ms(20))
        found = (await consumer.offsets_for_times({at: checks.timestamp_ms(20)}))[at]
        same("offset for a time", first, found.offset)
        same("its timestamp", checks.timestamp_ms(first), found.timestamp)
    finally:
        await consumer.stop()


async def fails(kind, call):
    try:
        await call
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}, but it succeeded")


async def errors():
    name = await topic("errors", config={"max.message.bytes": "2000"})
    await send(name, 1)
    await fails(OffsetOutOfRangeError, read(name, 1, offset=99))
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        await fails(
            MessageSizeTooLargeError, producer.send_and_wait(name, b"x" * 5000, partition=0))
    finally:
        await producer.stop()


async def admin():
    name = await topic("admin", 3)
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        that("listed", name in await client.list_topics())
        described = await client.describe_topics([name])
        same("partitions", 3, len(described[0]["partitions"]))
        answer = await client.create_topics([NewTopic(name, 1, 1)])
        same("error", TopicAlreadyExistsError.errno, answer.topic_errors[0][1])
        await client.delete_topics([name])
    finally:
        await client.close()


async def group():
    name = await topic("group", 2)
    await send(name, 20)
    member = unique("group")
    seen = []
    for _ in range(2):
        consumer = AIOKafkaConsumer(
            name, bootstrap_servers=bootstrap, group_id=member, auto_offset_reset="earliest",
            enable_auto_commit=False)
        await consumer.start()
        for _ in range(10):
            record = await asyncio.wait_for(consumer.getone(), DEADLINE_S)
            seen.append(record.offset)
        await consumer.commit()
        await consumer.stop()
    same("offsets", list(range(20)), seen)


async def main():
    run = Checks("aiokafka")
    if "--groups" in sys.argv:
        await run.check_async("group", group)
        return run.end()
    for codec in [None, "gzip", "snappy", "lz4", "zstd"]:
        await run.check_async(f"acks=all {codec}", lambda: round_trip(codec, acks="all"))
        await run.check_async(
            f"idempotent {codec}", lambda: round_trip(codec, enable_idempotence=True))
    for acks in [0, 1]:
        await run.check_async(f"acks={acks}", lambda: round_trip(None, acks=acks))
    await run.check_async("offsets and times", offsets)
    await run.check_async("errors", errors)
    await run.check_async("admin", admin)
    return run.end()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
