"""Kafka's own command line tools.   console_suite.py HOST:PORT [--groups]

The console consumer reads one partition from an offset, without a group.
"""

import os
import subprocess
import sys
import time

from checks import Checks, eventually, same, that, unique

bootstrap = sys.argv[1]
KAFKA = os.path.join(os.path.dirname(__file__), "..", "reference", "kafka")
TOOLS = "org.apache.kafka.tools"


def tool(name, *args, stdin=b"", ok=True):
    ran = subprocess.run(
        [KAFKA, "tool", f"{TOOLS}.{name}", "--bootstrap-server", bootstrap, *args],
        input=stdin, capture_output=True, timeout=90)
    if ok and ran.returncode != 0:
        raise AssertionError(f"{name} {' '.join(args)}: {(ran.stdout + ran.stderr)[-300:]}")
    return ran


def lines(ran):
    return ran.stdout.decode().splitlines()


def made(prefix, *args):
    name = unique(prefix)
    tool("TopicCommand", "--create", "--topic", name, *args)
    return name


def produce_and_consume():
    name = made("console", "--partitions", "2")
    stdin = "".join(f"h{i}:{i},other:x\tkey{i}\tvalue {i} é\n" for i in range(50)).encode()
    before = int(time.time() * 1000)
    tool(
        "ConsoleProducer", "--topic", name, "--reader-property", "parse.key=true",
        "--reader-property", "parse.headers=true", "--compression-codec", "zstd",
        "--command-property", "partitioner.ignore.keys=true", stdin=stdin)
    seen = []
    for partition in ["0", "1"]:
        out = lines(tool(
            "consumer.ConsoleConsumer", "--topic", name, "--partition", partition,
            "--offset", "earliest", "--timeout-ms", "4000",
            *[f"--formatter-property=print.{p}=true"
              for p in ["key", "headers", "timestamp", "offset", "partition"]]))
        for n, line in enumerate(out):
            time_ms, at, offset, headers, key, value = line.split("\t")
            same("partition", f"Partition:{partition}", at)
            same("offset", f"Offset:{n}", offset)
            kind, ms = time_ms.split(":")
            same("timestamp type", "CreateTime", kind)
            that("timestamp", before <= int(ms) <= int(time.time() * 1000))
            i = int(key.removeprefix("key"))
            same("headers", f"h{i}:{i},other:x", headers)
            same("value", f"value {i} é", value)
            seen.append(i)
    same("records", list(range(50)), sorted(seen))


def consume_from_offset():
    name = made("offset")
    tool("ConsoleProducer", "--topic", name, stdin=b"a\nb\nc\nd\n")
    out = lines(tool(
        "consumer.ConsoleConsumer", "--topic", name, "--partition", "0", "--offset", "2",
        "--max-messages", "2"))
    same("records", ["c", "d"], out)
    out = lines(tool(
        "consumer.ConsoleConsumer", "--topic", name, "--partition", "0", "--offset", "earliest",
        "--max-messages", "1", "--isolation-level", "read_committed"))
    same("records", ["a"], out)


def topics():
    name = made("topics", "--partitions", "3", "--config", "retention.ms=99000")
    eventually(lambda: that("listed", name in lines(tool("TopicCommand", "--list"))))
    found = lines(tool("TopicCommand", "--describe", "--topic", name))
    that("one line for the topic, three for partitions", len(found) == 4)
    for part in ["PartitionCount: 3", "ReplicationFactor: 1", "retention.ms=99000"]:
        that(f"{part} in {found[0]}", part in found[0])
    that("leader", "Leader: 1" in found[1] and "Isr: 1" in found[1])
    tool("TopicCommand", "--alter", "--topic", name, "--partitions", "5")
    eventually(lambda: same(
        "lines", 6, len(lines(tool("TopicCommand", "--describe", "--topic", name)))))
    tool("TopicCommand", "--delete", "--topic", name)
    gone = tool("TopicCommand", "--describe", "--topic", name, ok=False)
    that("no longer there", gone.returncode != 0)


def offsets_and_records():
    name = made("records")
    tool("ConsoleProducer", "--topic", name, stdin=b"a\nb\nc\nd\n")
    same("latest", [f"{name}:0:4"], lines(tool("GetOffsetShell", "--topic", name)))
    asked = f'{{"partitions":[{{"topic":"{name}","partition":0,"offset":3}}],"version":1}}'
    path = f"/tmp/{name}.json"
    with open(path, "w") as file:
        file.write(asked)
    try:
        out = lines(tool("DeleteRecordsCommand", "--offset-json-file", path))
    finally:
        os.remove(path)
    that("low watermark", any("low_watermark: 3" in line for line in out))
    out = lines(tool("GetOffsetShell", "--topic", name, "--time", "earliest"))
    same("earliest", [f"{name}:0:3"], out)


def configs():
    name = made("configs")
    entity = ["--entity-type", "topics", "--entity-name", name]
    tool("ConfigCommand", *entity, "--alter", "--add-config", "retention.ms=55000")
    out = lines(tool("ConfigCommand", *entity, "--describe"))
    that("altered", any("retention.ms=55000" in line for line in out))
    tool("ConfigCommand", *entity, "--alter", "--delete-config", "retention.ms")
    out = lines(tool("ConfigCommand", *entity, "--describe"))
    that("deleted", not any("retention.ms" in line for line in out))
    out = lines(tool(
        "ConfigCommand", "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all"))
    that("all of the broker", len(out) > 250)


def versions_and_dirs():
    out = lines(tool("BrokerApiVersionsCommand"))
    that("the broker", out[0].startswith(f"{bootstrap} (id: 1 "))
    that("Produce and Fetch", any("Produce(0): 0 to 13" in line for line in out))
    out = lines(tool("LogDirsCommand", "--describe", "--broker-list", "1"))
    that("log directories", any('"logDirs"' in line and '"error":null' in line for line in out))
    ran = subprocess.run(
        [KAFKA, "tool", f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", bootstrap],
        capture_output=True, timeout=60)
    that("cluster id", b"Cluster ID: " in ran.stdout)


def group_tool():
    name = made("group")
    tool("ConsoleProducer", "--topic", name, stdin=b"a\nb\n")
    group = unique("group")
    out = lines(tool(
        "consumer.ConsoleConsumer", "--topic", name, "--group", group, "--from-beginning",
        "--max-messages", "2"))
    same("records", ["a", "b"], out)
    out = lines(tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group))
    row = next(line.split() for line in out if line.startswith(group))
    same("topic, partition, offset, end, lag", [name, "0", "2", "2", "0"], row[1:6])


def main():
    run = Checks("console")
    if "--groups" in sys.argv:
        run.check("console consumer in a group, kafka-consumer-groups", group_tool)
        return run.end()
    run.check("console producer and consumer", produce_and_consume)
    run.check("console consumer from an offset", consume_from_offset)
    run.check("kafka-topics", topics)
    run.check("kafka-get-offsets, kafka-delete-records", offsets_and_records)
    run.check("kafka-configs", configs)
    run.check("kafka-broker-api-versions, kafka-log-dirs, kafka-cluster", versions_and_dirs)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
