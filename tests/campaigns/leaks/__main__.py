"""Opens and closes producers or consumers and looks at what is left: threads, sockets, timers, tasks and memory.

    python -m tests.campaigns.leaks --producers 1000 --consumers 1000

Each producer connects to a broker in another process, some in TLS, and delivers a record; some in a transaction, some
under asyncio. Each consumer reads a record, most as a member of a group, some under asyncio; some are not closed, but
let go with callbacks that lead back to them. After a warm-up the process must have as many threads, open files and
loop handles as before, and less than a megabyte more of memory.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from headrace.aio import AIOConsumer, AIOProducer
from headrace.net.thread import loop_thread
from headrace.records import Message
from tests.campaigns.leaks.brokers import FULL
from tests.campaigns.memory.application import status
from tests.support.threaded_broker import TOPIC

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
    """The ways to use a client, in turn.

    Args:
        brokers: what `brokers` prints.
    """

    def __init__(self, brokers: dict[str, str]) -> None:
        self._brokers = brokers
        self._loop = asyncio.new_event_loop()
        self._ways = self.ways()

    def ways(self) -> tuple[Callable[[], None], ...]:
        """Each opens, uses and closes one client."""
        raise NotImplementedError

    def run(self, number: int) -> None:
        """Open, use and close one client."""
        self._ways[number % len(self._ways)]()

    def left(self) -> Left:
        """What is open now."""
        loops: list[Any] = [self._loop, loop_thread().loop]
        return Left(threading.active_count(), len(os.listdir("/proc/self/fd")),
                    sum(len(loop._scheduled) + len(loop._ready) for loop in loops),
                    sum(len(asyncio.all_tasks(loop)) for loop in loops))

    def close(self) -> None:
        self._loop.close()


class Producers(Rounds):
    """The ways to use a producer."""

    def ways(self) -> tuple[Callable[[], None], ...]:
        self._plain = {"bootstrap.servers": self._brokers["plain"], "linger.ms": 0}
        self._tls = {"bootstrap.servers": self._brokers["secure"], "linger.ms": 0, "security.protocol": "ssl",
                     "ssl.ca.pem": self._brokers["pem"]}
        return (self.plain, self.plain, self.tls, self.transaction, self.asynchronous)

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


class Consumers(Rounds):
    """The ways to use a consumer. Each is the only member of its group."""

    def ways(self) -> tuple[Callable[[], None], ...]:
        self._numbers = itertools.count()
        return (self.assigned, self.member, self.let_go, self.asynchronous, self.asynchronous_let_go)

    def _conf(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self._brokers["plain"], "group.id": f"group {next(self._numbers)}",
                "auto.offset.reset": "earliest", **more}

    def assigned(self) -> None:
        with Consumer(self._conf(**{"group.id": ""})) as reader:
            reader.assign([TopicPartition(FULL, 0, OFFSET_BEGINNING)])
            _read(reader.poll(_SETTLING_S))

    def member(self) -> None:
        with Consumer(self._conf()) as reader:
            reader.subscribe([FULL])
            _read(reader.poll(_SETTLING_S))
            reader.commit(asynchronous=False)

    def let_go(self) -> None:
        def read() -> None:
            told: list[object] = []
            reader = Consumer(self._conf(error_cb=lambda error: told.append(reader)))
            reader.subscribe([FULL], on_assign=lambda face, _: told.append(face))
            _read(reader.poll(_SETTLING_S))
            assert told == [reader]

        read()
        gc.collect()

    def asynchronous(self) -> None:
        async def read() -> None:
            async with AIOConsumer(self._conf()) as reader:
                await reader.subscribe([FULL])
                _read(await reader.poll(_SETTLING_S))

        self._loop.run_until_complete(read())

    def asynchronous_let_go(self) -> None:
        async def read() -> None:
            reader = AIOConsumer(self._conf())
            await reader.subscribe([FULL])
            _read(await reader.poll(_SETTLING_S))
            del reader
            await asyncio.sleep(0.001)
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.001)

        self._loop.run_until_complete(read())


def _deliver(producer: Producer) -> None:
    errors: list[object] = []
    with producer:
        producer.produce(TOPIC, b"value", on_delivery=lambda error, message: errors.append(error))
    assert errors == [None], errors


def _read(message: Message | None) -> None:
    assert message is not None
    assert message.error() is None


def memory() -> int:
    """Resident bytes, without what the allocator could give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def run(kind: type[Rounds], count: int) -> tuple[Left, Left, int]:
    """Open and close so many clients after a warm-up. Returns what was open before and after, and bytes grown by."""
    command = [sys.executable, "-m", "tests.campaigns.leaks.brokers"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as brokers:
        assert brokers.stdout is not None
        try:
            rounds = kind(json.loads(brokers.stdout.readline()))
            for number in range(WARM_UP):
                rounds.run(number)
            before, taken = _settled(rounds, None), memory()
            for number in range(count):
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
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.leaks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--producers", type=int, default=0, help="so many producers after the warm-up")
    parser.add_argument("--consumers", type=int, default=0, help="so many consumers after the warm-up")
    arguments = parser.parse_args()
    if os.environ.get(_ALLOCATOR) != "malloc":  # Python's own takes and gives back a megabyte at a time
        os.execve(sys.executable, [sys.executable, "-m", "tests.campaigns.leaks", *sys.argv[1:]],
                  {**os.environ, _ALLOCATOR: "malloc"})
    leaks = False
    for kind, count in ((Producers, arguments.producers), (Consumers, arguments.consumers)):
        if count:
            before, after, grown = run(kind, count)
            leak = any(now > then for now, then in zip(after, before, strict=True)) or grown >= GROWTH_BYTES
            print(f"{count:,} {kind.__name__.lower()} after {WARM_UP}: {before} before, {after} after, "
                  f"{grown / 1e6:+.2f} MB: {'LEAK' if leak else 'nothing left'}")
            leaks |= leak
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
