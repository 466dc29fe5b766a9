"""Topics that are deleted and made again, grown and moved while nodes are killed (partition-dirs).

Node 1 is controller and broker, 2 and 3 are brokers only, and 3 has two log directories. Each round
does one to three random changes to topics of few names, around a fault of one node; then all nodes
are up, every partition leads again, and the acknowledged records of the topics are there.
"""

import os
import random
import signal
import threading
import time

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import clusters
import jbod
import wire

NAMES = ["a", "b", "c"]
NODES = [1, 2, 3]
PARTITIONS = 8
LED_MAX_S = 30


class Topics:
    """What was made and acknowledged."""

    def __init__(self, cluster, chance):
        self.cluster = cluster
        self.chance = chance
        self.written = 0
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap(1), "log_level": 0})
        # Acknowledged values by partition.
        self.records = {}
        self.factors = {}
        # That replicas may be given to.
        self.nodes = NODES
        self.down = None

    def replicas(self, name, n):
        """Most often where that partition of an older topic was."""
        factor = self.factors[name]
        usual = [NODES[(n + i) % len(NODES)] for i in range(factor)]
        if self.chance.random() < 0.8 and set(usual) <= set(self.nodes):
            return usual
        return self.chance.sample(self.nodes, factor)

    def assign(self, create, name, indexes):
        """Without the node that is down, where its being fenced already is why it is refused."""
        try:
            create([self.replicas(name, n) for n in indexes])[name].result(30)
        except KafkaException as error:
            jbod.expect(error.args[0].code() == KafkaError.INVALID_REPLICA_ASSIGNMENT, f"{error}")
            before, self.nodes = self.nodes, [node for node in NODES if node != self.down]
            create([self.replicas(name, n) for n in indexes])[name].result(30)
            self.nodes = before

    def make(self, name):
        self.factors[name] = self.chance.choice([1, 1, 2])

        def create(assignment):
            topic = NewTopic(name, PARTITIONS, replica_assignment=assignment)
            return self.admin.create_topics([topic])

        self.assign(create, name, range(PARTITIONS))
        self.records[name] = {n: [] for n in range(PARTITIONS)}

    def recreate(self, name):
        self.admin.delete_topics([name])[name].result(30)
        known = lambda: name in self.admin.list_topics(timeout=30).topics
        jbod.wait_for(lambda: not known(), f"{name} is not deleted")
        self.make(name)

    def grow(self, name):
        more = len(self.records[name]) + 2

        def create(assignment):
            partitions = NewPartitions(name, more, replica_assignment=assignment)
            return self.admin.create_partitions([partitions])

        self.assign(create, name, range(more - 2, more))
        for n in range(more):
            self.records[name].setdefault(n, [])

    def move(self, name):
        connection = wire.Connection(self.cluster.bootstrap(1))
        targets = {n: self.replicas(name, n) for n in self.records[name]}
        connection.alter_reassignments({name: targets})

    def write(self, name):
        """To all partitions; those without a leader refuse."""
        self.written += 1
        value = f"{name} {self.written}".encode()
        producer = Producer({
            "bootstrap.servers": self.cluster.bootstrap(), "acks": "all", "linger.ms": 0,
            "message.timeout.ms": 3000, "log_level": 0})
        records = self.records[name]

        def delivered(error, message):
            if error is None:
                records[message.partition()].append(message.value())

        for n in records:
            producer.produce(name, value, str(n), partition=n, on_delivery=delivered)
        producer.flush(30)

    def changes(self):
        others = [self.recreate, self.grow, self.move, self.write]
        more = [self.chance.choice(others) for _ in range(self.chance.randint(0, 2))]
        return [self.change(change) for change in [self.recreate, *more]]

    def change(self, change):
        name = self.chance.choice(NAMES)
        change(name)
        self.write(name)
        return f"{change.__name__} {name}"

    def without_leader(self):
        time.sleep(0.1)
        topics = self.admin.list_topics(timeout=10).topics
        return [f"{name}-{n}" for name in NAMES
                for n, row in topics[name].partitions.items() if row.leader < 0]

    def check(self):
        for name, partitions in self.records.items():
            for n, values in partitions.items():
                found = jbod.read(self.cluster, name, n)
                missing = [value for value in values if value not in found]
                jbod.expect(not missing, f"{name}-{n} has lost {missing}")


def killed_at_once(topics, node):
    """In the middle of the changes, or just after."""
    kill = lambda: topics.cluster.stop(node, signal.SIGKILL)
    timer = threading.Timer(topics.chance.random(), kill)
    timer.start()
    done = topics.changes()
    timer.join()
    return done


def killed_before(topics, node):
    topics.cluster.stop(node, signal.SIGKILL)
    return topics.changes()


def frozen(topics, node):
    """It hears of nothing, and is killed."""
    topics.cluster.processes[node].send_signal(signal.SIGSTOP)
    done = topics.changes()
    topics.cluster.stop(node, signal.SIGKILL)
    return done


def unregistered(topics, node):
    topics.cluster.stop(node)
    wire.Connection(topics.cluster.bootstrap(1)).unregister(node)
    topics.nodes = [other for other in NODES if other != node]
    done = topics.changes()
    topics.nodes = NODES
    return done


def recreate(kind, count, folder, seed, rounds):
    chance = random.Random(seed)
    cluster = clusters.Cluster(
        kind, os.path.join(folder, "recreate"), NODES, "log.initial.task.delay.ms=500",
        "log.flush.offset.checkpoint.interval.ms=1000", voters=[1], fixed=True)
    cluster.stop(3)
    cluster.write(3, f"log.dirs={cluster.node(3)}/data,{cluster.node(3)}/more")
    cluster.start(3)
    topics = Topics(cluster, chance)
    for name in NAMES:
        topics.make(name)
        topics.write(name)
    faults = [killed_at_once, killed_at_once, killed_before, frozen, frozen, unregistered]
    slowest = 0
    for number in range(rounds):
        time.sleep(chance.choice([0, 2]))
        node, fault = chance.choice([2, 2, 3]), chance.choice(faults)
        topics.down = node
        done = fault(topics, node)
        if chance.random() < 0.2:
            cluster.stop(1, signal.SIGKILL)
            cluster.start(1)
        # Fenced meanwhile, or not yet.
        time.sleep(chance.choice([0, 12, 12]))
        begun = time.monotonic()
        cluster.start(node)
        what = f"round {number}, seed {seed}: node {node} {fault.__name__}, {', '.join(done)}"
        jbod.wait_for(lambda: not topics.without_leader(), f"{what}: no leaders", LED_MAX_S)
        slowest = max(slowest, time.monotonic() - begun)
        topics.check()
        print(f"  {what}", flush=True)
    count.ok(f"partition-dirs {kind}: {rounds} crashes around topics that are made again: all led"
             f" within {slowest:.1f} s, {topics.written} writes, seed {seed}")
    cluster.kill_all()
