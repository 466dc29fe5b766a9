"""Named checks for the Python suites: one line each, `ok NAME` or `FAIL NAME: why`."""

import os
import random
import time
import traceback

RUN = f"{os.getpid():x}-{time.time_ns() // 1_000_000:x}"
BASE_TIMESTAMP_MS = int(time.time() * 1000) - 60_000
DEADLINE_S = 30


class Checks:
    def __init__(self, suite):
        self.suite = suite
        self.failed = 0

    def check(self, name, body, *args):
        try:
            body(*args)
            print(f"ok {self.suite} {name}", flush=True)
        except Exception as error:
            self.fail(name, error)

    async def check_async(self, name, body, *args):
        try:
            await body(*args)
            print(f"ok {self.suite} {name}", flush=True)
        except Exception as error:
            self.fail(name, error)

    def fail(self, name, error):
        self.failed += 1
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if os.path.dirname(__file__) in f.filename and f.name != "same"]
        at = f" ({os.path.basename(own[-1].filename)}:{own[-1].lineno})" if own else ""
        why = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"FAIL {self.suite} {name}: {why}{at}", flush=True)

    def end(self):
        return 1 if self.failed else 0


_names = iter(range(1, 1_000_000))


def unique(prefix):
    """A name that no other run has used."""
    return f"py-{prefix}-{RUN}-{next(_names)}"


def same(what, expected, actual):
    if expected != actual:
        raise AssertionError(f"{what}: expected {show(expected)}, got {show(actual)}")


def show(value):
    text = repr(value)
    return text if len(text) < 200 else f"{text[:150]}... ({len(text)} characters)"


def that(what, holds):
    if not holds:
        raise AssertionError(f"not so: {what}")


def eventually(body):
    """Repeats what becomes true a moment after the answer that promised it."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return body()
        except Exception:
            if time.monotonic() > deadline:
                raise


# Records whose every part follows from a seed and an index; see java's Sample.

def key(seed, i):
    if i % 5 == 0:
        return None
    return b"" if i % 7 == 0 else f"key-{seed}-{i}".encode()


def value(seed, i):
    # Some clients refuse a record without key and value.
    if i % 11 == 3 and i % 5 != 0:
        return None
    if i % 13 == 4:
        return b""
    noise = random.Random(seed * 31 + i)
    size = 1 + noise.randrange(600)
    head = noise.randbytes(size)
    return head if i % 2 else head[: size // 4] + b"x" * (size - size // 4)


def timestamp_ms(i):
    return BASE_TIMESTAMP_MS + i * 7 - (i % 3) * 20


def headers(seed, i, null=True):
    values = [bytes([i % 256, seed % 256, 255]), None if null else b"no", b""]
    names = ["h0-é", "h1", "h0-é"]
    return [(names[h], values[h]) for h in range(i % 4)]
