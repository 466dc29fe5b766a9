"""Every message of Kafka 4.4, by the names of its fields: reads src/wire/layouts.txt.

    connection = Connection("127.0.0.1:9093")
    connection.ask("BrokerHeartbeat", 1, broker_id=7, broker_epoch=3)

Fields that are not named are 0, empty, or null where they may be. A uuid is its base64 text, a
tagged field is left out unless it is named.
"""

import base64
import os
import re
import struct

from wire import Answer, Connection as Raw, array, text, varint

LAYOUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/wire/layouts.txt")
NO_UUID = "A" * 22
NUMBERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
           "int64": ">q", "float64": ">d", "boolean": ">?"}


class Api:
    def __init__(self, key, name, newest):
        self.key, self.name, self.newest = key, name, newest
        # ("request" or "response", version) -> fields
        self.bodies = {}

    def is_flexible(self, version):
        return any(field.kind == "tags" for field in self.bodies["request", version])


class Field:
    def __init__(self, name, kind, tag):
        self.name, self.kind, self.tag = name, kind, tag
        self.fields = []


def read_layouts():
    apis = {}
    head = re.compile(r"== (\d+) (\w+)  versions (\d+)-(\d+)  ")
    versions = re.compile(r"  (request|response) v(\d+)(?:-(\d+))?$")
    field = re.compile(r"( +)(?:tag (\d+) )?(\w+): (.+)$")
    for line in open(LAYOUTS):
        line = line.rstrip("\n")
        if found := head.match(line):
            key, name, _, newest = found.groups()
            api = apis[name] = Api(int(key), name, int(newest))
        elif found := versions.match(line):
            way, first, last = found.groups()
            fields = []
            for version in range(int(first), int(last or first) + 1):
                api.bodies[way, version] = fields
            levels = {4: fields}
        elif line.strip().startswith("_tagged_fields"):
            indent = len(line) - len(line.lstrip())
            levels[indent].append(Field(None, "tags", None))
            levels[indent + 2] = levels[indent]
        elif found := field.match(line):
            indent, tag, name, kind = found.groups()
            new = Field(name, kind, None if tag is None else int(tag))
            levels[len(indent)].append(new)
            levels[len(indent) + 2] = new.fields
    return apis


APIS = read_layouts()


def encode(fields, values):
    unknown = set(values) - {field.name for field in fields}
    if unknown:
        raise KeyError(f"no fields {unknown}")
    out = b""
    for field in fields:
        if field.kind == "tags":
            tagged = sorted(
                (f.tag, encode_one(f, values[f.name])) for f in fields
                if f.tag is not None and f.name in values)
            out += varint(len(tagged)) + b"".join(
                varint(tag) + varint(len(body)) + body for tag, body in tagged)
        elif field.tag is None:
            out += encode_one(field, values.get(field.name))
    return out


def encode_one(field, value):
    kind = field.kind
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value or 0)
    if kind == "uuid":
        return base64.urlsafe_b64decode((value or NO_UUID) + "==")
    may_be_null = "nullable" in kind or "?" in kind
    if value is None and may_be_null:
        return varint(0) if kind.startswith("compact") else (
            b"\xff" if kind == "struct?" else
            struct.pack(">h" if "string" in kind else ">i", -1))
    if kind.startswith("struct"):
        return (b"\x01" if "?" in kind else b"") + encode(field.fields, value or {})
    if "array" in kind:
        of = kind.split(" of")[1].strip()
        element = lambda one: encode(field.fields, one) if not of else (
            encode_one(Field(None, of, None), one))
        parts = [element(one) for one in value or []]
        return array(parts) if kind.startswith("compact") else (
            struct.pack(">i", len(parts)) + b"".join(parts))
    if kind == "compact_string" or kind == "compact_nullable_string":
        return text(value or "")
    data = (value or "").encode() if "string" in kind else value or b""
    if kind.startswith("compact"):
        return varint(len(data) + 1) + data
    return struct.pack(">h" if "string" in kind else ">i", len(data)) + data


def decode(fields, answer):
    values = {}
    for field in fields:
        if field.kind == "tags":
            by_tag = {f.tag: f for f in fields if f.tag is not None}
            for _ in range(answer.varint()):
                tag, size = answer.varint(), answer.varint()
                end = answer.at + size
                if tag in by_tag:
                    values[by_tag[tag].name] = decode_one(by_tag[tag], answer)
                answer.at = end
        elif field.tag is None:
            values[field.name] = decode_one(field, answer)
    return values


def decode_one(field, answer):
    kind = field.kind
    if kind in NUMBERS:
        return answer.take(NUMBERS[kind])
    if kind == "uuid":
        answer.at += 16
        raw = answer.data[answer.at - 16:answer.at]
        return base64.urlsafe_b64encode(raw).decode()[:22]
    if kind.startswith("struct"):
        if "?" in kind and answer.take(">b") < 0:
            return None
        return decode(field.fields, answer)
    if kind.startswith("compact"):
        size = answer.varint() - 1
    else:
        size = answer.take(">h" if "string" in kind else ">i")
    if size < 0:
        return None
    if "array" in kind:
        of = kind.split(" of")[1].strip()
        one = (lambda: decode(field.fields, answer)) if not of else (
            lambda: decode_one(Field(None, of, None), answer))
        return [one() for _ in range(size)]
    answer.at += size
    data = answer.data[answer.at - size:answer.at]
    return data.decode() if "string" in kind else data


class Connection(Raw):
    def send(self, name, version, values):
        api = APIS[name]
        header = struct.pack(">hhih", api.key, version, 1, 2) + b"me"
        if api.is_flexible(version):
            header += b"\0"
        frame = header + encode(api.bodies["request", version], values)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, name, version):
        api = APIS[name]
        answer = Answer(self.read(struct.unpack(">i", self.read(4))[0]))
        answer.take(">i")
        # ApiVersions is answered to those who know nothing yet.
        if api.is_flexible(version) and name != "ApiVersions":
            answer.tags()
        values = decode(api.bodies["response", version], answer)
        values.pop("throttle_time_ms", None)
        return values

    def ask(self, name, version=None, **values):
        version = APIS[name].newest if version is None else version
        self.send(name, version, values)
        return self.receive(name, version)
