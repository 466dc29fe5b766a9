"""What a client of a case does, with confluent-kafka: client.py ADDRESS TOPIC WORK...

    roundtrip    produces ten records, idempotent; a group reads and commits them
    transaction  commits five records and aborts five; read_committed sees the first five
    metadata     prints the brokers as id@host:port
    large        produces one record of 4 MB
    more         produces ten records, nothing else
    read         prints what is in the topic
    committed    prints what the group `round` has committed
    create:P:R   creates the topic with so many partitions and replicas
"""

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ADDRESS, TOPIC = sys.argv[1:3]
COMMON = {"bootstrap.servers": ADDRESS, "socket.timeout.ms": 10000}
DEADLINE_S = 40


def consume(count, group, **more):
    config = dict(COMMON, **{"group.id": group, "auto.offset.reset": "earliest",
                             "enable.auto.commit": False}, **more)
    consumer, found, end = Consumer(config), [], time.time() + DEADLINE_S
    consumer.subscribe([TOPIC])
    while len(found) < count and time.time() < end:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            found.append(message.value())
    if found:
        consumer.commit(asynchronous=False)
    consumer.close()
    return found


def produce(values, **more):
    producer, errors = Producer(dict(COMMON, **{"message.timeout.ms": 30000}, **more)), []
    for value in values:
        producer.produce(TOPIC, value, on_delivery=lambda e, _: e and errors.append(str(e)))
    left = producer.flush(DEADLINE_S)
    assert not left and not errors, (left, errors)


def roundtrip():
    values = [b"value %d" % i for i in range(10)]
    produce(values, **{"enable.idempotence": True})
    found = consume(10, "round")
    assert sorted(found) == sorted(values), found


def more():
    produce([b"more %d" % i for i in range(10)], acks="all")


def transaction():
    config = dict(COMMON, **{"transactional.id": "t-" + TOPIC, "message.timeout.ms": 30000})
    producer = Producer(config)
    producer.init_transactions(DEADLINE_S)
    for word, finish in ((b"kept", producer.commit_transaction),
                         (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        for _ in range(5):
            producer.produce(TOPIC, word)
        producer.flush(DEADLINE_S)
        finish(DEADLINE_S)
    found = consume(5, "tx", **{"isolation.level": "read_committed"})
    assert found == [b"kept"] * 5, found


def metadata():
    for broker in sorted(AdminClient(COMMON).list_topics(timeout=20).brokers.values(),
                         key=lambda b: b.id):
        print(f"{broker.id}@{broker.host}:{broker.port}")


def read():
    consumer = Consumer(dict(COMMON, **{"group.id": f"read-{time.time()}",
                                        "auto.offset.reset": "earliest"}))
    partitions = consumer.list_topics(TOPIC, timeout=20).topics[TOPIC].partitions
    consumer.assign([TopicPartition(TOPIC, p, 0) for p in partitions])
    idle = 0
    while idle < 4:
        message = consumer.poll(0.5)
        idle = idle + 1 if message is None else 0
        if message is not None and not message.error():
            print(message.value().decode())
    consumer.close()


def committed():
    consumer = Consumer(dict(COMMON, **{"group.id": "round"}))
    partitions = consumer.list_topics(TOPIC, timeout=20).topics[TOPIC].partitions
    wanted = [TopicPartition(TOPIC, p) for p in partitions]
    print(sum(max(p.offset, 0) for p in consumer.committed(wanted, timeout=20)))


def create(partitions, replicas):
    topic = NewTopic(TOPIC, int(partitions), int(replicas))
    # Its answers end with it.
    admin = AdminClient(COMMON)
    for future in admin.create_topics([topic]).values():
        future.result(30)


for work in sys.argv[3:]:
    if work.startswith("create:"):
        create(*work.split(":")[1:])
    elif work == "large":
        produce([b"x" * 4_000_000], **{"message.max.bytes": 5_000_000})
    else:
        globals()[work]()
