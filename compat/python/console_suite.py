"""Kafka's own command line tools.   console_suite.py HOST:PORT [--groups]

The console consumer reads one partition from an offset, without a group.
"""

import codecs
import json
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


def commits_of(group, topic, times):
    """Commits to both partitions again and again; what was committed, in order."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    done = []
    for n in range(times):
        partition, metadata = n % 2, f"note {n}" if n % 3 else ""
        asked = TopicPartition(topic, partition, n + 1, metadata)
        consumer.commit(offsets=[asked], asynchronous=False)
        done.append((partition, n + 1, metadata))
    consumer.close()
    return done


def formatted(formatter):
    """The records of __consumer_offsets as Kafka's own formatter prints them, one by one.

    While other suites commit, the topic has no end: who asks goes on until it has what it wants.
    """
    command = [
        KAFKA, "tool", f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap,
        "--topic", "__consumer_offsets", "--from-beginning",
        "--formatter", f"{TOOLS}.consumer.{formatter}", "--timeout-ms", "15000"]
    decoder, text = codecs.getincrementaldecoder("utf-8")(), ""
    deadline = time.monotonic() + 90
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            while chunk := process.stdout.read1(65536):
                that("enough in 90 s", time.monotonic() < deadline)
                text += decoder.decode(chunk)
                # One after the other, without anything between them.
                while (at := text.find("{")) >= 0:
                    try:
                        record, end = json.JSONDecoder().raw_decode(text, at)
                    except json.JSONDecodeError:
                        break  # The rest of it comes.
                    text = text[end:]
                    yield record
        finally:
            process.kill()


def offsets_formatter():
    name = made("formatter", "--partitions", "2")
    group = unique("formatter")
    done = commits_of(group, name, 60)
    seen = {0: [], 1: []}
    for record in formatted("OffsetsMessageFormatter"):
        key, value = record["key"], record["value"]
        same("type of key", 1, int(key["type"]))
        if key["data"]["group"] != group:
            continue
        same("topic", name, key["data"]["topic"])
        data = value["data"]
        that("commit timestamp", abs(data["commitTimestamp"] / 1000 - time.time()) < 600)
        partition = key["data"]["partition"]
        # This client sends the zero byte at the end of its text as well.
        seen[partition].append((partition, data["offset"], data["metadata"].rstrip("\0")))
        if sum(map(len, seen.values())) == len(done):
            break
    for partition in seen:
        wanted = [commit for commit in done if commit[0] == partition]
        same(f"commits of partition {partition}", wanted, seen[partition])


def member_of(group, name, protocol):
    """A member that holds both partitions; closed by the caller."""
    from confluent_kafka import Consumer

    member = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol,
        "client.id": "member", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    member.subscribe([name])

    def holds():
        member.poll(0.1)
        same("partitions", 2, len(member.assignment()))

    eventually(holds)
    return member


def group_formatter():
    name = made("formatter", "--partitions", "2")
    group = unique("formatter")
    member_of(group, name, "classic").close()
    seen = []
    for record in formatted("GroupMetadataMessageFormatter"):
        if record["key"]["data"]["group"] == group:
            seen.append(record)
            members = [bool(one["value"]["data"]["members"]) for one in seen]
            if any(members) and not members[-1]:
                break
    that("records of the group", len(seen) >= 2)
    filled = [record["value"]["data"] for record in seen if record["value"]["data"]["members"]]
    that("a record with its member", filled)
    data = filled[-1]
    same("protocol", ("consumer", "range"), (data["protocolType"], data["protocol"]))
    same("client", "member", data["members"][0]["clientId"])
    same("members in the end", [], seen[-1]["value"]["data"]["members"])


def groups(*args, ok=True):
    return lines(tool("consumer.group.ConsumerGroupCommand", *args, ok=ok))


def offsets_in(out, group):
    """Partition to offset, from what --describe or --reset-offsets prints."""
    rows = [line.split() for line in out if line.startswith(group)]
    return {int(row[2]): row[3] for row in rows}


def tool_on_group(protocol):
    name = made("tool", "--partitions", "2")
    tool("ConsoleProducer", "--topic", name, stdin=b"a\nb\nc\n")
    group = unique(f"tool-{protocol}")
    member = member_of(group, name, protocol)
    kind = {"classic": "Classic", "consumer": "Consumer"}[protocol]
    that("listed", group in groups("--list"))
    row = next(line.split() for line in groups("--list", "--state") if line.startswith(group))
    same("state", [group, kind, "Stable"] if len(row) > 2 else [group, "Stable"], row)
    row = next(line.split() for line in groups("--list", "--type") if line.startswith(group))
    same("type", kind, row[1])
    row = next(
        line.split() for line in groups("--describe", "--group", group, "--members", "--verbose")
        if line.startswith(group))
    that("the member and its partitions", "member" in row and name in " ".join(row))
    row = next(
        line.split() for line in groups("--describe", "--group", group, "--state")
        if line.startswith(group))
    that("state and number of members", "Stable" in row and row[-1] == "1")
    # What is in use may not be changed.
    reset = ["--reset-offsets", "--group", group, "--topic", name, "--execute"]
    tool("consumer.group.ConsumerGroupCommand", *reset, "--to-earliest", ok=False)
    tool("consumer.group.ConsumerGroupCommand", "--delete", "--group", group, ok=False)
    that("still there", group in groups("--list"))
    member.close()
    change_offsets(group, name, reset)


def change_offsets(group, name, reset):
    out = offsets_in(groups(*reset, "--to-latest"), group)
    same("at the ends", 3, sum(map(int, out.values())))
    described = groups("--describe", "--group", group)
    same("described", out, offsets_in(described, group))
    same("reset to the start", {"0"}, set(offsets_in(groups(*reset, "--to-earliest"), group).values()))
    groups("--reset-offsets", "--group", group, "--topic", f"{name}:0", "--to-offset", "0", "--execute")
    same("described", {0: "0", 1: "0"}, offsets_in(groups("--describe", "--group", group), group))
    groups("--delete-offsets", "--group", group, "--topic", f"{name}:0")
    same("offsets left", [1], list(offsets_in(groups("--describe", "--group", group), group)))
    groups("--delete", "--group", group)
    that("deleted", group not in groups("--list"))


def main():
    run = Checks("console")
    if "--groups" in sys.argv:
        run.check("console consumer in a group, kafka-consumer-groups", group_tool)
        run.check("OffsetsMessageFormatter prints every commit", offsets_formatter)
        run.check("GroupMetadataMessageFormatter prints groups and members", group_formatter)
        for protocol in ["classic", "consumer"]:
            run.check(
                f"kafka-consumer-groups on a {protocol} group: lists, describes, resets, deletes",
                tool_on_group, protocol)
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
