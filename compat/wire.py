"""Requests by hand, for what no client of Python sends: the admin APIs of a cluster's replicas."""

import socket
import struct


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(value):
    return varint(len(value) + 1) + value.encode()


def array(parts):
    return varint(0) if parts is None else varint(len(parts) + 1) + b"".join(parts)


def int32s(values):
    return array(None if values is None else [struct.pack(">i", v) for v in values])


class Answer:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        size = struct.calcsize(form)
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return value

    def varint(self):
        shift = value = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def text(self):
        size = self.varint() - 1
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def tags(self):
        for _ in range(self.varint()):
            self.varint()
            self.at += self.varint()

    def array(self, element):
        return [element() for _ in range(self.varint() - 1)]

    def int32s(self):
        return self.array(lambda: self.take(">i"))

    def by_topic(self, partition):
        """[(name, [row, ...]), ...]; `partition` reads a row up to its tags."""
        def tagged(read):
            row = read()
            self.tags()
            return row

        return self.array(
            lambda: tagged(lambda: (self.text(), self.array(lambda: tagged(partition)))))


class Connection:
    def __init__(self, address, answer_max_s=60):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 10)
        self.socket.settimeout(answer_max_s)

    def call(self, key, version, body):
        header = struct.pack(">hhih", key, version, 1, 2) + b"me" + b"\0"
        frame = header + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        size = struct.unpack(">i", self.read(4))[0]
        answer = Answer(self.read(size))
        answer.take(">i")
        answer.tags()
        return answer

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise RuntimeError("the connection was closed")
            data += part
        return data

    def alter_reassignments(self, topics, may_change_factor=True, timeout_ms=30_000):
        """`topics`: {name: {partition: replicas or None}}; code of each, or (-, code) of all."""
        rows = [
            text(name) + array([
                struct.pack(">i", index) + int32s(replicas) + b"\0"
                for index, replicas in partitions.items()]) + b"\0"
            for name, partitions in topics.items()]
        body = struct.pack(">i?", timeout_ms, may_change_factor) + array(rows) + b"\0"
        answer = self.call(45, 1, body)
        answer.take(">i")
        answer.take(">?")
        error, message = answer.take(">h"), answer.text()
        if error:
            return {("-", error): message}

        def partition():
            return (answer.take(">i"), answer.take(">h"), answer.text())

        return {
            (name, index): (code, message)
            for name, rows in answer.by_topic(partition) for index, code, message in rows}

    def list_reassignments(self, topics=None):
        """{(name, partition): (replicas, adding, removing)}"""
        rows = None if topics is None else [
            text(name) + int32s(indexes) + b"\0" for name, indexes in topics.items()]
        answer = self.call(46, 0, struct.pack(">i", 30_000) + array(rows) + b"\0")
        answer.take(">i")
        error, message = answer.take(">h"), answer.text()
        if error:
            raise RuntimeError(f"{error}: {message}")

        def partition():
            return (answer.take(">i"), answer.int32s(), answer.int32s(), answer.int32s())

        return {
            (name, index): (replicas, adding, removing)
            for name, rows in answer.by_topic(partition)
            for index, replicas, adding, removing in rows}

    def elect_leaders(self, kind, topics=None):
        """`kind` 0: preferred, 1: unclean. {(name, partition): code}, or the code of all."""
        rows = None if topics is None else [
            text(name) + int32s(indexes) + b"\0" for name, indexes in topics.items()]
        body = struct.pack(">b", kind) + array(rows) + struct.pack(">i", 30_000) + b"\0"
        answer = self.call(43, 2, body)
        answer.take(">i")
        error = answer.take(">h")
        if error:
            return error

        def partition():
            return (answer.take(">i"), answer.take(">h"), answer.text())

        return {
            (name, index): code
            for name, rows in answer.by_topic(partition) for index, code, _ in rows}

    def unregister(self, broker):
        answer = self.call(64, 0, struct.pack(">i", broker) + b"\0")
        answer.take(">i")
        return answer.take(">h")

    def remove_voter(self, id, directory, cluster_id=None):
        cluster = varint(0) if cluster_id is None else text(cluster_id)
        answer = self.call(81, 0, cluster + struct.pack(">i", id) + directory + b"\0")
        answer.take(">i")
        return answer.take(">h"), answer.text()

    def add_voter(self, id, directory, listeners, cluster_id=None, timeout_ms=3000):
        cluster = varint(0) if cluster_id is None else text(cluster_id)
        rows = [
            text(name) + text(host) + struct.pack(">H", port) + b"\0"
            for name, host, port in listeners]
        body = cluster + struct.pack(">ii", timeout_ms, id) + directory + array(rows) + b"\0"
        answer = self.call(80, 0, body)
        answer.take(">i")
        return answer.take(">h"), answer.text()

    def alter_log_dirs(self, dirs):
        """`dirs`: [(path, {topic: [partition, ...]}), ...]; [((topic, partition), code), ...]"""
        rows = [
            text(path) + array([
                text(name) + int32s(indexes) + b"\0" for name, indexes in topics.items()]) + b"\0"
            for path, topics in dirs]
        answer = self.call(34, 2, array(rows) + b"\0")
        answer.take(">i")

        def partition():
            return (answer.take(">i"), answer.take(">h"))

        return [
            ((name, index), code)
            for name, rows in answer.by_topic(partition) for index, code in rows]

    def describe_log_dirs(self):
        """{path: (code, {(topic, partition): (bytes, lag, is_future)})}"""
        answer = self.call(35, 4, array(None) + b"\0")
        answer.take(">i")
        code = answer.take(">h")
        if code:
            raise RuntimeError(f"DescribeLogDirs: {code}")

        def partition():
            return tuple(answer.take(form) for form in (">i", ">q", ">q", ">?"))

        def log_dir():
            code, path = answer.take(">h"), answer.text()
            topics = answer.by_topic(partition)
            answer.take(">q")
            answer.take(">q")
            answer.tags()
            return path, (code, {
                (name, index): rest for name, rows in topics for index, *rest in rows})

        return dict(answer.array(log_dir))
