"""librdkafka's consume-transform-produce; see compat/pipelines.

    pipeline.py HOST:PORT IN OUT GROUP ID
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

MANY = 50
DEADLINE_S = 60
bootstrap, topic_in, topic_out, group, transactional_id = sys.argv[1:]
COMMON = {"bootstrap.servers": bootstrap, "log_level": 2, "reconnect.backoff.max.ms": 500}


def live():
    """One producer and one consumer, until something cannot be repaired."""
    producer = Producer({
        **COMMON, "transactional.id": transactional_id, "transaction.timeout.ms": 10_000})
    producer.init_transactions(DEADLINE_S)
    consumer = Consumer({
        **COMMON, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "isolation.level": "read_committed", "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500, "partition.assignment.strategy": "range"})
    consumer.subscribe([topic_in])
    try:
        while True:
            messages = consumer.consume(MANY, 0.2)
            messages = [message for message in messages if not message.error()]
            if messages:
                transfer(producer, consumer, messages)
    finally:
        consumer.close()


def transfer(producer, consumer, messages):
    producer.begin_transaction()
    ends = {}
    for message in messages:
        producer.produce(topic_out, message.value())
        ends[message.partition()] = message.offset() + 1
    offsets = [TopicPartition(topic_in, partition, end) for partition, end in ends.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), DEADLINE_S)
    while True:
        try:
            producer.commit_transaction(DEADLINE_S)
            break
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
    print("committed", len(messages), flush=True)


while True:
    try:
        live()
    except KafkaException as error:
        # The next life reads again what this one has not committed.
        print("again after", error, file=sys.stderr, flush=True)
