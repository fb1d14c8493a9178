"""Opens and closes clients, or has a group rebalance, and looks at what is left: threads, sockets, timers, memory.

    python -m tests.campaigns.leaks --producers 1000 --consumers 1000
    python -m tests.campaigns.leaks --rebalances 10000
    python -m tests.campaigns.leaks --share-consumers 1000 --rebalances 500 --kafka

Each producer connects to a broker in another process, some in TLS, and delivers a record; some in a transaction, some
under asyncio. Each consumer reads a record, most as a member of a group of either protocol, some with deserializers,
some under asyncio; some are not closed, but let go with callbacks that lead back to them. Members of share groups need
a real broker (`--kafka`). Rebalances are of a group in which one member stays and another joins and leaves: eager,
cooperative, and planned by the coordinator. After a warm-up the process must have as many threads, open files and loop
handles as before, and less than a megabyte more of memory; it is looked at ten times on the way.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import time
from typing import NamedTuple

from tests.campaigns.leaks.clients import Consumers, Producers, ShareConsumers
from tests.campaigns.leaks.rebalances import KINDS, PER_TURN
from tests.campaigns.leaks.rounds import SETTLING_S, Left, Rounds
from tests.campaigns.memory.application import status

GROWTH_BYTES = 1_000_000
_LOOKS = 10
_MORE = 50
_ALLOCATOR = "PYTHONMALLOC"


class Found(NamedTuple):
    """What a run has left.

    Attributes:
        before, after: what was open.
        may_differ: so much more is no leak.
        grown: bytes that it took at the end beyond what it had after the warm-up.
        looks: the same, on the way.
    """

    before: Left
    after: Left
    may_differ: Left
    grown: int
    looks: list[int]

    @property
    def leaks(self) -> bool:
        """Whether more is left than was there."""
        allowed = map(sum, zip(self.before, self.may_differ, strict=True))
        return any(now > most for now, most in zip(self.after, allowed, strict=True)) or self.grown >= GROWTH_BYTES


def memory() -> int:
    """Resident bytes, without what the allocator could give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def run(kind: type[Rounds], count: int, real: bool = False) -> Found:
    """Run so many rounds after a warm-up."""
    with kind.running_brokers(real) as brokers:
        rounds = kind(brokers)
        for number in range(_warm_up(kind, count)):
            rounds.run(number)
        before, taken, looks = _settled(rounds, None), memory(), list[int]()
        for number in range(count):
            rounds.run(number)
            if number * _LOOKS // count > len(looks):
                looks.append(memory() - taken)
        after = _settled(rounds, before)
        grown = memory() - taken
        for number in range(_MORE):  # the allocator may keep a large block for a while; what leaks stays for good
            if grown < GROWTH_BYTES:
                break
            rounds.run(number)
            grown = min(grown, memory() - taken)
        rounds.close()
    return Found(before, after, kind.may_differ, grown, looks)


def _warm_up(kind: type[Rounds], count: int) -> int:
    """Rounds before the first look: a tenth as many, or more, for what is rare comes late for the first time."""
    return max(kind.warm_up, count // 10)


def _settled(rounds: Rounds, expected: Left | None) -> Left:
    """What is open once the brokers have noticed that their clients left."""
    end = time.monotonic() + (SETTLING_S if expected is not None else 1.0)
    while time.monotonic() < end:
        left = rounds.left()
        if expected is not None and all(now <= then for now, then in zip(left, expected, strict=True)):
            break
        time.sleep(0.05)
    return rounds.left()


def main() -> int:
    """Print what is left; 1 when it is more than before."""
    arguments = _parser().parse_args()
    if os.environ.get(_ALLOCATOR) != "malloc":  # Python's own takes and gives back a megabyte at a time
        os.execve(sys.executable, [sys.executable, "-m", "tests.campaigns.leaks", *sys.argv[1:]],
                  {**os.environ, _ALLOCATOR: "malloc"})
    wanted: list[tuple[str, type[Rounds], int, int]] = [
        ("producers", Producers, arguments.producers, arguments.producers),
        ("consumers", Consumers, arguments.consumers, arguments.consumers),
        ("share consumers", ShareConsumers, arguments.share_consumers, arguments.share_consumers),
        *((f"{name} rebalances", KINDS[name], arguments.rebalances, -(-arguments.rebalances // PER_TURN))
          for name in arguments.groups)]
    leaks = False
    for name, kind, count, rounds in wanted:
        if count:
            found = run(kind, rounds, arguments.kafka)
            on_the_way = " ".join(f"{size / 1e6:+.2f}" for size in found.looks)
            print(f"{count:,} {name} after {_warm_up(kind, rounds)} rounds: {found.before} before, "
                  f"{found.after} after, {found.grown / 1e6:+.2f} MB (on the way {on_the_way}): "
                  f"{'LEAK' if found.leaks else 'nothing left'}", flush=True)
            leaks |= found.leaks
    return 1 if leaks else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.leaks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("producers", "consumers", "share-consumers", "rebalances"):
        parser.add_argument(f"--{name}", type=int, default=0, help="so many after the warm-up")
    parser.add_argument("--groups", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of groups to rebalance")
    parser.add_argument("--kafka", action="store_true", help="use a real broker; producers need the embedded one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
