"""Opens and closes producers and looks at what is left: threads, sockets, timers, tasks and memory.

    python -m tests.leaks --producers 1000

Each producer connects to a broker in another process, some in TLS, and delivers a record; some in a transaction, some
under asyncio. After a warm-up the process must have as many threads, open files and loop handles as before, and
less than a megabyte more of memory.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

from headrace import Producer
from headrace.aio import AIOProducer
from headrace.net.thread import loop_thread
from tests.memory.application import status
from tests.net.threaded_broker import TOPIC

WARM_UP = 200
GROWTH_BYTES = 1_000_000
_SETTLING_S = 5.0
_MORE = 50
_ALLOCATOR = "PYTHONMALLOC"


class Left(NamedTuple):
    """What a process has open."""

    threads: int
    files: int
    handles: int
    tasks: int


class Rounds:
    """The ways to use a producer, in turn.

    Args:
        brokers: what `brokers` prints.
    """

    def __init__(self, brokers: dict[str, str]) -> None:
        self._plain = {"bootstrap.servers": brokers["plain"], "linger.ms": 0}
        self._tls = {"bootstrap.servers": brokers["secure"], "linger.ms": 0, "security.protocol": "ssl",
                     "ssl.ca.pem": brokers["pem"]}
        self._loop = asyncio.new_event_loop()
        self._ways = (self.plain, self.plain, self.tls, self.transaction, self.asynchronous)

    def run(self, number: int) -> None:
        """Open, use and close one producer."""
        self._ways[number % len(self._ways)]()

    def plain(self) -> None:
        _deliver(Producer(self._plain))

    def tls(self) -> None:
        _deliver(Producer(self._tls))

    def transaction(self) -> None:
        with Producer({**self._plain, "transactional.id": "one and the same"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.produce(TOPIC, b"value")
            producer.commit_transaction()

    def asynchronous(self) -> None:
        async def deliver() -> None:
            async with AIOProducer(self._plain) as producer:
                await (await producer.produce(TOPIC, b"value"))

        self._loop.run_until_complete(deliver())

    def left(self) -> Left:
        """What is open now."""
        loops: list[Any] = [self._loop, loop_thread().loop]
        return Left(threading.active_count(), len(os.listdir("/proc/self/fd")),
                    sum(len(loop._scheduled) + len(loop._ready) for loop in loops),
                    sum(len(asyncio.all_tasks(loop)) for loop in loops))

    def close(self) -> None:
        self._loop.close()


def _deliver(producer: Producer) -> None:
    errors: list[object] = []
    with producer:
        producer.produce(TOPIC, b"value", on_delivery=lambda error, message: errors.append(error))
    assert errors == [None], errors


def memory() -> int:
    """Resident bytes, without what the allocator could give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def run(producers: int) -> tuple[Left, Left, int]:
    """Open and close so many producers after a warm-up. Returns what was open before and after, and bytes grown by."""
    command = [sys.executable, "-m", "tests.leaks.brokers"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as brokers:
        assert brokers.stdout is not None
        try:
            rounds = Rounds(json.loads(brokers.stdout.readline()))
            for number in range(WARM_UP):
                rounds.run(number)
            before, taken = _settled(rounds, None), memory()
            for number in range(producers):
                rounds.run(number)
            after = _settled(rounds, before)
            grown = memory() - taken
            for number in range(_MORE):  # the allocator may keep a large block for a while; what leaks stays for good
                if grown < GROWTH_BYTES:
                    break
                rounds.run(number)
                grown = min(grown, memory() - taken)
            rounds.close()
        finally:
            brokers.kill()
    return before, after, grown


def _settled(rounds: Rounds, expected: Left | None) -> Left:
    """What is open once the brokers have noticed that their clients left."""
    end = time.monotonic() + (_SETTLING_S if expected is not None else 1.0)
    while time.monotonic() < end:
        left = rounds.left()
        if expected is not None and all(now <= then for now, then in zip(left, expected, strict=True)):
            break
        time.sleep(0.05)
    return rounds.left()


def main() -> int:
    """Print what is left; 1 when it is more than before."""
    parser = argparse.ArgumentParser(prog="python -m tests.leaks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--producers", type=int, default=100, help="after the warm-up (default: %(default)s)")
    arguments = parser.parse_args()
    if os.environ.get(_ALLOCATOR) != "malloc":  # Python's own takes and gives back a megabyte at a time
        os.execve(sys.executable, [sys.executable, "-m", "tests.leaks", *sys.argv[1:]],
                  {**os.environ, _ALLOCATOR: "malloc"})
    before, after, grown = run(arguments.producers)
    leaks = any(now > then for now, then in zip(after, before, strict=True)) or grown >= GROWTH_BYTES
    print(f"{arguments.producers:,} producers after {WARM_UP}: {before} before, {after} after, "
          f"{grown / 1e6:+.2f} MB: {'LEAK' if leaks else 'nothing left'}")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
