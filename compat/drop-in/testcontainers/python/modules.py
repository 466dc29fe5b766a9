"""Testcontainers for Python: its KafkaContainer with another image, used as in its documentation."""

import sys
import time
import uuid

from confluent_kafka import Consumer, Producer
from testcontainers.kafka import KafkaContainer

IMAGE = sys.argv[1]


def use(bootstrap):
    topic = f"t-{uuid.uuid4()}"
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"verification message")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic,
                         "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    end = time.time() + 30
    while time.time() < end:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            assert message.value() == b"verification message"
            consumer.close()
            return
    raise AssertionError("the record did not come")


def check(name, make):
    try:
        before = time.time()
        with make() as kafka:
            print(f"   python {name}: started in {(time.time() - before) * 1000:.0f} ms")
            use(kafka.get_bootstrap_server())
        print(f"ok python {name}")
        return True
    except Exception as error:  # Whatever a module raises is the result.
        print(f"FAIL python {name}: {error!r}")
        return False


done = [
    check("KafkaContainer", lambda: KafkaContainer(IMAGE)),
    check("KafkaContainer.with_kraft", lambda: KafkaContainer(IMAGE).with_kraft()),
    check("KafkaContainer with another port", lambda: KafkaContainer(IMAGE, port=8888)),
]
sys.exit(0 if all(done) else 1)
