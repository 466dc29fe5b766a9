"""What has to hold at the end of compat/chaos."""

import glob
import time


def create(bootstrap, topics, partitions, replicas):
    from confluent_kafka.admin import AdminClient, NewTopic
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    new = [
        NewTopic(topic, partitions, replicas, config={"min.insync.replicas": "2"})
        for topic in topics]
    for created in admin.create_topics(new).values():
        created.result(60)


def read_back(bootstrap, topic, partitions):
    """Every record of the topic: {(partition, offset): number}."""
    import confluent_kafka
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": bootstrap, "group.id": "chaos-check", "enable.auto.commit": False,
        "enable.partition.eof": True, "auto.offset.reset": "earliest", "log_level": 2})
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(partitions)])
    found = {}
    ended = set()
    deadline = time.monotonic() + 120
    while len(ended) < partitions:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {sorted(ended)} of {topic} could be read to their ends")
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            if message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            continue
        found[message.partition(), message.offset()] = int(message.value())
    consumer.close()
    return found


def records(writer, found, aside, count):
    name = writer.name
    acknowledged = {**writer.acknowledged, **aside}
    lost = [(at, n) for at, n in acknowledged.items() if found.get(at) != n]
    if lost:
        count.fail(f"{name}: acknowledged records", f"{len(lost)} lost or elsewhere, as {lost[:3]}")
    else:
        count.ok(f"{name}: acknowledged records: {len(acknowledged)} are there"
                 + (f", {len(aside)} of a node that was alone" if aside else ""))
    wrong = []
    for partition in range(writer.partitions):
        # What a client wrote aside is below 0.
        inside = sorted((offset, n) for (p, offset), n in found.items() if p == partition and n >= 0)
        numbers = [n for _, n in inside]
        if numbers != sorted(set(numbers)):
            wrong.append(partition)
    if wrong:
        count.fail(f"{name}: order", f"partitions {wrong} have records twice or out of order")
    else:
        count.ok(f"{name}: order: {len(found)} records, none twice")
    if writer.failed:
        count.fail(f"{name}: producer", f"{len(writer.failed)} failed, as {writer.failed[:3]}")
    elif writer.sent != len(writer.acknowledged):
        count.fail(
            f"{name}: producer", f"{writer.sent} sent, {len(writer.acknowledged)} acknowledged")
    else:
        count.ok(f"{name}: producer: all of {writer.sent} acknowledged")


def group(group, found, count):
    ends = {}
    for partition, offset in found:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    caught_up = group.caught_up(ends)
    group.end()
    stored = group.stored()
    missing = [
        (partition, len(set(range(end)) - group.read[partition])) for partition, end in ends.items()
        if set(range(end)) - group.read[partition]]
    name = f"{group.name}: group"
    if not caught_up:
        count.fail(name, f"it has committed {group.committed} of {ends}")
    elif missing:
        count.fail(name, f"records were not delivered, as (partition, how many) {missing}")
    elif stored != group.committed:
        count.fail(name, f"it has committed {group.committed}, stored is {stored}")
    else:
        count.ok(f"{name}: all of {sum(ends.values())} delivered, commits are there")


def epochs(watch, count):
    if watch.conflicts:
        count.fail("epochs", f"two leaders in one, as {watch.conflicts[:3]}")
    else:
        count.ok(f"epochs: {len(watch.leaders)} seen, each with one leader")


def times(slow, count):
    if slow:
        count.fail("times", f"too long without an acknowledgement: {slow}")
    else:
        count.ok("times: none was too long")


def replicas(cluster, topics, count):
    """Of each partition the same bytes in every node's log."""
    different = []
    compared = 0
    folders = {
        folder.rsplit("/", 1)[1] for id in cluster.ids for topic in topics
        for folder in glob.glob(f"{cluster.folder}/{id}/data/{topic}-*")}
    for folder in sorted(folders):
        contents = set()
        for id in cluster.ids:
            files = sorted(glob.glob(f"{cluster.folder}/{id}/data/{folder}/*.log"))
            if files:
                contents.add(b"".join(open(file, "rb").read() for file in files))
        compared += 1
        # A log that was never written to may have no file.
        if len(contents) > 1:
            different.append(folder)
    if different:
        count.fail("replicas", f"the logs of {different} differ")
    else:
        count.ok(f"replicas: the logs of {compared} partitions are equal, byte for byte")
