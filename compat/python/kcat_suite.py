"""kcat (librdkafka 2.0, from Debian): -P, -C, -L, -Q.   kcat_suite.py HOST:PORT [--groups]"""

import json
import subprocess
import sys
import time

from checks import Checks, eventually, same, that, unique

bootstrap = sys.argv[1]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def kcat(*args, stdin=b"", ok=True):
    ran = subprocess.run(
        ["kcat", "-b", bootstrap, "-m", "20", *args], input=stdin, capture_output=True, timeout=60)
    if ok and ran.returncode != 0:
        raise AssertionError(f"kcat {' '.join(args)}: {ran.stderr.decode()[-300:]}")
    return ran


def made(prefix):
    """A topic, made by asking for its metadata, that serves."""
    name = unique(prefix)

    def serves():
        found = json.loads(kcat("-L", "-J", "-t", name).stdout)["topics"][0]
        same("partitions", 1, len(found["partitions"]))
        same("error", None, found.get("error"))

    eventually(serves)
    return name


def consumed(name, *args):
    """All records of partition 0, as kcat's JSON envelopes."""
    out = kcat("-C", "-t", name, "-p", "0", "-e", "-q", "-J", *args).stdout
    return [json.loads(line) for line in out.splitlines()]


def round_trip(codec, acks):
    name = made("kcat")
    lines = [f"k{i}:value {i} " + "x" * (i % 300) for i in range(500)]
    before = int(time.time() * 1000)
    kcat(
        "-P", "-t", name, "-p", "0", "-K", ":", "-z", codec, "-X", f"acks={acks}",
        "-H", "one=1", "-H", "two=zwei", stdin="\n".join(lines).encode())
    after = int(time.time() * 1000)
    records = consumed(name, "-o", "beginning")
    same("records", 500, len(records))
    for i, record in enumerate(records):
        key, value = lines[i].split(":")
        same("offset", i, record["offset"])
        same("key", key, record["key"])
        same("payload", value, record["payload"])
        same("headers", ["one", "1", "two", "zwei"], record["headers"])
        same("timestamp type", "create", record["tstype"])
        that("timestamp of now", before <= record["ts"] <= after)


def nulls():
    name = made("nulls")
    kcat("-P", "-t", name, "-p", "0", "-K", ":", "-Z", stdin=b"a:one\nb:\n:three\n")
    kcat("-P", "-t", name, "-p", "0", "-K", ":", stdin=b"a:\n")
    records = consumed(name, "-o", "beginning")
    same("keys", ["a", "b", None, "a"], [r["key"] for r in records])
    same("payloads", ["one", None, "three", ""], [r["payload"] for r in records])


def sizes():
    name = made("sizes")
    kcat("-P", "-t", name, "-p", "0", "-K", ":", stdin=b"a:one\nbb:\n")
    kcat("-P", "-t", name, "-p", "0", "-Z", stdin=b"plain\n")
    out = kcat("-C", "-t", name, "-p", "0", "-e", "-q", "-f", "%p %o %K %S\n").stdout
    same("partition, offset, key and value size", "0 0 1 3\n0 1 2 0\n0 2 -1 5\n", out.decode())


def offsets():
    name = made("offsets")
    kcat("-P", "-t", name, "-p", "0", "-z", "gzip", stdin="\n".join(map(str, range(100))).encode())
    for start, first in [("beginning", 0), ("0", 0), ("42", 42), ("99", 99), ("-7", 93)]:
        records = consumed(name, "-o", start)
        same(f"first from {start}", first, records[0]["offset"])
        same("payloads", [str(i) for i in range(first, 100)], [r["payload"] for r in records])
    same("from the end", [], consumed(name, "-o", "end"))
    same("-c 3", 3, len(consumed(name, "-o", "5", "-c", "3")))


def query():
    name = made("query")
    kcat("-P", "-t", name, "-p", "0", stdin=b"a\nb\n")
    times = [r["ts"] for r in consumed(name, "-o", "beginning")]
    for time_ms, offset in [(times[0], 0), (times[1] + 10_000, 2), (-1, 2), (-2, 0)]:
        out = kcat("-Q", "-t", f"{name}:0:{time_ms}").stdout.decode()
        # A time after the last record is no offset, which kcat shows as -1 (the end).
        expected = -1 if offset == 2 and time_ms > 0 else offset
        same(f"offset for {time_ms}", f"{name} [0] offset {expected}", out.strip())


def listing():
    name = made("listing")
    found = json.loads(kcat("-L", "-J").stdout)
    same("brokers", [{"id": 1, "name": bootstrap}], found["brokers"])
    same("controller", 1, found["controllerid"])
    mine = [t for t in found["topics"] if t["topic"] == name]
    same("topic", 1, len(mine))
    partition = mine[0]["partitions"][0]
    same("leader", 1, partition["leader"])
    same("replicas", [{"id": 1}], partition["replicas"])
    same("isrs", [{"id": 1}], partition["isrs"])


def out_of_range():
    name = made("range")
    kcat("-P", "-t", name, "-p", "0", stdin=b"a\n")
    ran = kcat(
        "-C", "-t", name, "-p", "0", "-o", "77", "-e", "-X", "auto.offset.reset=error", ok=False)
    that("fails", ran.returncode != 0)
    that("says why", b"out of range" in ran.stderr.lower())


def idempotent():
    name = made("idempotent")
    stdin = "\n".join(map(str, range(2000))).encode()
    kcat("-P", "-t", name, "-p", "0", "-X", "enable.idempotence=true", stdin=stdin)
    same("payloads", [str(i) for i in range(2000)],
         [r["payload"] for r in consumed(name, "-o", "beginning")])


def large():
    name = made("large")
    body = ("0123456789" * 90_000).encode()
    kcat("-P", "-t", name, "-p", "0", "-D", "|", stdin=body)
    same("payload", body.decode(), consumed(name, "-o", "beginning")[0]["payload"])


def group():
    name = made("group")
    kcat("-P", "-t", name, "-p", "0", stdin=b"a\nb\nc\n")
    member = ["-G", unique("group"), "-q", "-J", "-X", "auto.offset.reset=earliest", name]
    first = kcat("-c", "2", *member).stdout.splitlines()
    same("first", ["a", "b"], [json.loads(r)["payload"] for r in first])
    second = kcat("-c", "1", *member).stdout.splitlines()
    same("then", ["c"], [json.loads(r)["payload"] for r in second])


def main():
    run = Checks("kcat")
    if "--groups" in sys.argv:
        run.check("group", group)
        return run.end()
    for codec in CODECS:
        for acks in ["0", "1", "all"]:
            run.check(f"acks={acks} {codec}", round_trip, codec, acks)
    run.check("null keys and values, empty values", nulls)
    run.check("key and value sizes", sizes)
    run.check("offsets", offsets)
    run.check("-Q", query)
    run.check("-L", listing)
    run.check("an offset out of range", out_of_range)
    run.check("idempotent producer", idempotent)
    run.check("a record of 900,000 bytes", large)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
