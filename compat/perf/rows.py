"""The rows of the table: what each measures, and how."""

import itertools
import json
import re
import selectors
import socket
import time

from brokers import metadata_request, read_frame

MILLION = 1_000_000
names = itertools.count()


class Row:
    def __init__(self, name, measure, own_process):
        self.name = name
        self.measure = measure
        # It starts, stops or kills the broker itself.
        self.own_process = own_process


ROWS = []


def row(name, own_process=False):
    def register(measure):
        ROWS.append(Row(name, measure, own_process))
        return measure
    return register


class Run:
    """One broker in one state, and where its figures go."""

    def __init__(self, broker, figures, state, full):
        self.broker = broker
        self.figures = figures
        self.state = state
        self.full = full

    def size(self, quick, full):
        return full if self.full else quick

    def add(self, label, metric, unit, value, better="less"):
        self.figures.add(label, metric, unit, self.broker.name, self.state, value, better)

    def topic(self, partitions, *configs, topics=None):
        """A new topic, or `topics` of one prefix, as pairs for the client."""
        pairs = [("topic", f"perf-{next(names)}"), ("partitions", partitions)]
        if topics:
            pairs.append(("topics", topics))
        self.broker.kperf("create", *pairs, *configs)
        return pairs

    def delete(self, topic):
        self.broker.kperf("delete", *topic)

    def add_cpu(self, label, metric, used, records):
        if "cpu" in used:
            self.add(label, metric, "s per million", used["cpu"] / records * MILLION)
            share = used["system"] / used["cpu"] if used["cpu"] else 0
            self.add(label, f"{metric}: of it in the system", "", share)


def warm_up(run):
    """What a JVM needs before it is at its speed; the same for every broker."""
    topic = run.topic(12)
    for records, size in [(run.size(500_000, 2 * MILLION), 1024),
                          (run.size(MILLION, 4 * MILLION), 100)]:
        run.broker.kperf("produce", *topic, ("records", records), ("size", size), ("acks", "all"))
    run.broker.kperf("consume", *topic, ("records", run.size(1_500_000, 6 * MILLION)))
    for rate in [1000, 5000]:
        run.broker.kperf("latency", *topic, ("rate", rate), ("seconds", run.size(5, 20)),
                         ("P.linger.ms", 0), ("acks", "all"))
    run.delete(topic)


def produce_and_consume(run, size, partitions, codec, acks, records, metrics="both"):
    label = f"{size} B, {partitions} partitions"
    label += f", {codec}" if codec != "none" else ""
    label += f", acks={acks}" if acks != "all" else ""
    topic = run.topic(partitions)
    with run.broker.metered() as used:
        sent = run.broker.kperf("produce", *topic, ("records", records), ("size", size),
                                ("acks", acks), ("compression.type", codec))
    if sent["failed"]:
        raise RuntimeError(f"{sent['failed']} records were not acknowledged: {sent['error']}")
    run.add_cpu(label, "CPU to produce", used, records)
    run.add(label, "produced", "records/s", records / sent["seconds"], "more")
    if metrics == "both":
        with run.broker.metered() as used:
            got = run.broker.kperf("consume", *topic, ("records", records))
        if got["records"] < records:
            raise RuntimeError(f"{got['records']} of {records} records came back")
        run.add_cpu(label, "CPU to consume", used, records)
        run.add(label, "consumed", "records/s", records / got["seconds"], "more")
    run.delete(topic)


@row("produce")
def throughput(run):
    """librdkafka: 1 KiB and 100 B records, 1 and 12 partitions, produced and consumed."""
    kib, small = run.size(500_000, MILLION), run.size(2 * MILLION, 5 * MILLION)
    produce_and_consume(run, 1024, 1, "none", "all", kib)
    produce_and_consume(run, 1024, 12, "none", "all", kib)
    produce_and_consume(run, 1024, 12, "lz4", "all", kib)
    produce_and_consume(run, 100, 12, "none", "all", small)


@row("matrix")
def matrix(run):
    """librdkafka: all sizes, partition counts, codecs and both acks."""
    for size, records in [(100, 2 * MILLION), (1024, 500_000), (102_400, 10_000)]:
        for partitions in [1, 12, 100]:
            for codec in ["none", "lz4", "zstd"]:
                for acks in [1, "all"]:
                    count = records if run.full else records // 4
                    produce_and_consume(run, size, partitions, codec, acks, count)


@row("java")
def java(run):
    """The perf tools of Kafka: produced and consumed, 1 KiB, 12 partitions."""
    records = run.size(500_000, 2 * MILLION)
    label = "Java client, 1024 B, 12 partitions"
    topic = run.topic(12)
    name = topic[0][1]
    with run.broker.metered() as used:
        out = run.broker.java(
            "ProducerPerformance", "--topic", name, "--num-records", str(records),
            "--record-size", "1024", "--throughput", "-1", "--bootstrap-server",
            run.broker.address, "--command-property", "acks=all")
    run.add_cpu(label, "CPU to produce", used, records)
    rate = re.findall(r"records sent, ([\d.]+) records/sec", out)[-1]
    run.add(label, "produced", "records/s", float(rate), "more")
    with run.broker.metered() as used:
        out = run.broker.java(
            "ConsumerPerformance", "--topic", name, "--num-records", str(records),
            "--bootstrap-server", run.broker.address)
    run.add_cpu(label, "CPU to consume", used, records)
    header, line = [x.split(",") for x in out.strip().splitlines() if "," in x][-2:]
    at = [i for i, name in enumerate(header) if "fetch.nMsg.sec" in name][0]
    run.add(label, "consumed", "records/s", float(line[at]), "more")
    run.delete(topic)


def transactions_of(run, producers, records, transactions):
    """Transactions of so many records over 4 partitions by the Java client."""
    label = f"transactions of {records} record{'s' if records > 1 else ''}, {producers} " \
            f"producer{'s' if producers > 1 else ''}"
    topic = run.topic(4)
    with run.broker.metered() as used:
        got = run.broker.compat_java("TransactionPerf", topic[0][1], 4, producers, transactions,
                                     records)
    total = producers * transactions
    if "cpu" in used:
        run.add(label, "CPU", "s per 1,000", used["cpu"] / total * 1000)
    run.add(label, "committed", "per second", total / got["seconds"], "more")
    run.add(label, "p50", "ms", got["p50_ms"])
    run.add(label, "p99", "ms", got["p99_ms"])
    run.delete(topic)


@row("transactions")
def transactions(run):
    """The Java client: transactions of 100 records and of one, by 1 and 8 producers."""
    for producers in [1, 8]:
        for records in [100, 1]:
            transactions_of(run, producers, records, run.size(2000, 10_000) // producers)


def add_quantiles(run, label, got):
    for metric in ["p50", "p99", "p999", "max"]:
        run.add(label, metric.replace("p999", "p99.9"), "ms", got[f"{metric}_ms"])


def latency_at(run, rate, partitions, seconds, linger_ms, label=None):
    label = label or f"end to end, {rate:,}/s x 1 KiB, {partitions} partitions"
    topic = run.topic(partitions)
    with run.broker.metered() as used:
        got = run.broker.kperf(
            "latency", *topic, ("rate", rate), ("seconds", seconds), ("warm", 3), ("size", 1024),
            ("P.linger.ms", linger_ms), ("P.acks", "all"))
    add_quantiles(run, label, got)
    run.add(label, "came back", "of those sent", got["received"] / max(got["sent"], 1), "more")
    if "cpu" in used:
        run.add(label, "CPU", "s in 30 s", used["cpu"] / (seconds + 3) * 30)
    run.delete(topic)


@row("latency")
def latency(run):
    """One producer, one consumer, 1,000 records/s, linger 0."""
    latency_at(run, 1000, 1, run.size(15, 30), 0)
    # What no broker can be better than here: the client's own sleep, beside an idle broker.
    late = run.broker.kperf("wakes", ("rate", 1000), ("seconds", run.size(10, 30)))
    add_quantiles(run, "the client's timer alone, 1,000/s", late)


@row("small")
def small_requests(run):
    """The same at 20,000 records/s over 12 partitions, linger 0: very many small requests."""
    latency_at(run, 20_000, 12, run.size(10, 30), 0)


@row("curve")
def curve(run):
    """Latency at rates from 100/s to the point where it breaks."""
    for rate in [100, 1000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000]:
        latency_at(run, rate, 12, run.size(5, 20), 5, f"curve, {rate:,}/s, linger 5 ms")


@row("steady")
def steady(run):
    """100,000 records/s x 1 KiB for two minutes, linger 5 ms."""
    latency_at(run, 100_000, 12, run.size(20, 120), 5)


@row("fan-out")
def fan_out(run):
    """One producer, ten consumers of the same records."""
    records = run.size(200_000, MILLION)
    topic = run.topic(12)
    with run.broker.metered() as used:
        start = time.monotonic()
        consumers = [run.broker.kperf("consume", *topic, ("records", records), background=True)
                     for _ in range(10)]
        run.broker.kperf("produce", *topic, ("records", records), ("size", 1024), ("acks", "all"))
        got = [json.loads(consumer.communicate()[0])["records"] for consumer in consumers]
        seconds = time.monotonic() - start
    if min(got) < records:
        raise RuntimeError(f"a consumer got {min(got)} of {records}")
    run.add("1 producer, 10 consumers", "delivered", "records/s", sum(got) / seconds, "more")
    run.add_cpu("1 producer, 10 consumers", "CPU", used, sum(got))
    run.delete(topic)


@row("topics")
def thousand_topics(run):
    """1,000 topics, 2,000 records/s over all of them, linger 0."""
    seconds = run.size(5, 30)
    topic = run.topic(1, topics=1000)
    with run.broker.metered() as used:
        sent = run.broker.kperf("produce", *topic, ("records", 2000 * seconds), ("rate", 2000),
                                ("size", 100), ("linger.ms", 0), ("acks", "all"))
    if sent["failed"]:
        raise RuntimeError(sent["error"])
    run.add_cpu("1,000 topics, 2,000/s", "CPU", used, 2000 * seconds)
    run.delete(topic)


@row("connections")
def connections(run):
    """2,000 connections, each with a Metadata request in turn."""
    host, port = run.broker.address.rsplit(":", 1)
    request, rounds = metadata_request(), run.size(5, 20)
    before = run.broker.memory_mib() if run.broker.pid else None
    opened = [socket.create_connection((host, int(port)), 10) for _ in range(2000)]
    selector = selectors.DefaultSelector()
    for connection in opened:
        selector.register(connection, selectors.EVENT_READ)
    with run.broker.metered() as used:
        start = time.monotonic()
        for _ in range(rounds):
            for connection in opened:
                connection.sendall(request)
            missing = len(opened)
            while missing:
                for key, _ in selector.select(10):
                    read_frame(key.fileobj)
                    missing -= 1
        seconds = time.monotonic() - start
    label = "2,000 connections"
    run.add(label, "requests", "per second", rounds * len(opened) / seconds, "more")
    run.add_cpu(label, "CPU", used, rounds * len(opened))
    if before is not None:
        run.add(label, "memory of one", "KiB",
                (run.broker.memory_mib() - before) * 1024 / len(opened))
    for connection in opened:
        connection.close()


@row("fsync")
def fsync(run):
    """flush.messages=1, one request at a time: each acknowledgement waits for the disk."""
    records = run.size(500, 3000)
    topic = run.topic(1, ("config.flush.messages", 1))
    sent = run.broker.kperf("produce", *topic, ("records", records), ("size", 1024),
                            ("linger.ms", 0), ("acks", "all"), ("batch.num.messages", 1),
                            ("max.in.flight", 1))
    run.add("fsync for each acknowledgement", "produced", "records/s",
            records / sent["seconds"], "more")
    run.delete(topic)


@row("start", own_process=True)
def start(run):
    """From nothing to the first Metadata answer; memory and processor of an idle broker."""
    run.add("start", "first Metadata answer", "s", run.broker.start())
    time.sleep(run.size(3, 10))
    seconds = run.size(10, 30)
    user, system = run.broker.cpu()
    time.sleep(seconds)
    user_after, system_after = run.broker.cpu()
    used = user_after + system_after - user - system
    run.add("idle", "CPU", "% of a core", used / seconds * 100)
    run.add("idle", "memory", "MiB", run.broker.memory_mib())


@row("memory", own_process=True)
def memory(run):
    """Resident memory after 3 GB were written and read."""
    run.broker.start()
    topic = run.topic(12)
    records = run.size(MILLION, 3 * MILLION)
    run.broker.kperf("produce", *topic, ("records", records), ("size", 1024), ("acks", "all"))
    run.broker.kperf("consume", *topic, ("records", records))
    label = f"after {records / MILLION:.0f} GB written and read"
    run.add(label, "memory", "MiB", run.broker.memory_mib())
    run.add(label, "most memory", "MiB", run.broker.memory_mib("VmHWM"))


@row("kill", own_process=True)
def kill(run):
    """kill -9 while a producer runs, started again at once; until the first acknowledgement."""
    run.broker.start()
    topic = run.topic(12)
    records = run.size(300_000, MILLION)
    run.broker.kperf("produce", *topic, ("records", records), ("size", 1024), ("acks", "all"))
    killed = time.time()
    run.broker.end("kill")
    waiting = run.broker.kperf(
        "first", *topic, ("reconnect.backoff.ms", 5), ("reconnect.backoff.max.ms", 20),
        ("retry.backoff.ms", 10), ("linger.ms", 0), background=True)
    run.broker.restart()
    at = json.loads(waiting.communicate(timeout=120)[0])["at"]
    run.add("kill -9", "first acknowledgement", "s", at - killed)


@row("partitions", own_process=True)
def partitions(run):
    """10,000 partitions: all led, each written, stop, start until all are led again."""
    topics = run.size(20, 100)
    label = f"{topics * 100:,} partitions"
    run.broker.start()
    start = time.monotonic()
    topic = run.topic(100, topics=topics)
    run.add(label, "made and led", "s", time.monotonic() - start)
    sent = run.broker.kperf("produce", *topic, ("records", topics * 100), ("size", 100),
                            ("spread", 1), ("acks", "all"))
    if sent["failed"]:
        raise RuntimeError(f"{sent['failed']} records were not acknowledged: {sent['error']}")
    run.add(label, "each written", "s", sent["seconds"])
    run.add(label, "handles", "", run.broker.handles())
    run.add(label, "memory", "MiB", run.broker.memory_mib())
    run.add(label, "stop", "s", run.broker.end("stop"))
    start = time.monotonic()
    run.broker.restart()
    # No records: the client only waits until all have a leader.
    run.broker.kperf("produce", *topic, ("records", 0))
    run.add(label, "start, all led", "s", time.monotonic() - start)
    run.add(label, "memory after the start", "MiB", run.broker.memory_mib())
