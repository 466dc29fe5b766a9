"""Makes network links slow, where the kernel has no netem: frames go through this process.

    slow_links.py DELAY_MS JITTER_MS STALL_MS PERIOD_MS TAP TAP [TAP TAP ...]

Each pair of tap devices is the two ends of a link. A frame comes out at the other end after the
delay and a part of the jitter, in order. With STALL_MS nothing comes out of a link at the beginning
of each PERIOD_MS, and what was held comes out all at once then. Prints `ready` once it runs.
"""

import collections
import fcntl
import os
import random
import selectors
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 2, 0x1000
FRAME_MAX = 65536


def attach(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


class Way:
    """From one end of a link to the other."""

    def __init__(self, source, sink, shape):
        self.source, self.sink = source, sink
        self.delay, self.jitter, self.stall, self.period = shape
        # Links do not stall all at the same time.
        self.begin = time.monotonic() - random.uniform(0, self.period)
        self.held = collections.deque()
        self.last = 0.0

    def take(self, now):
        try:
            while True:
                frame = os.read(self.source, FRAME_MAX)
                due = now + self.delay + random.uniform(0, self.jitter)
                self.last = max(self.last, self.out(due))
                self.held.append((self.last, frame))
        except BlockingIOError:
            pass

    def out(self, at):
        """When a frame that would come out then does, stalls considered."""
        if self.stall == 0:
            return at
        into = (at - self.begin) % self.period
        return at + max(self.stall - into, 0)

    def give(self, now):
        while self.held and self.held[0][0] <= now:
            try:
                os.write(self.sink, self.held[0][1])
            except BlockingIOError:
                return
            self.held.popleft()


def main():
    shape = [int(value) / 1000 for value in sys.argv[1:5]]
    taps = [attach(name) for name in sys.argv[5:]]
    selector = selectors.DefaultSelector()
    ways = []
    for one, other in zip(taps[::2], taps[1::2]):
        for source, sink in [(one, other), (other, one)]:
            ways.append(Way(source, sink, shape))
            selector.register(source, selectors.EVENT_READ, ways[-1])
    print("ready", flush=True)
    while True:
        due = min((way.held[0][0] for way in ways if way.held), default=None)
        # A millisecond at least: what the kernel does not take yet is tried again.
        wait = None if due is None else max(due - time.monotonic(), 0.001)
        for key, _ in selector.select(wait):
            key.data.take(time.monotonic())
        now = time.monotonic()
        for way in ways:
            way.give(now)


if __name__ == "__main__":
    main()
