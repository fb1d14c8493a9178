"""What all rounds of `python -m tests.campaigns.leaks` have in common: what a process has open, and its brokers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from headrace.net.thread import loop_thread
from tools.kafka import KafkaCluster

SETTLING_S = 5.0
_KAFKA = {
    "group.consumer.min.heartbeat.interval.ms": "20", "group.consumer.heartbeat.interval.ms": "20",
}
"""Members of a group that the coordinator plans for hear soon of each other."""


class Left(NamedTuple):
    """What a process has open."""

    threads: int
    files: int
    handles: int
    tasks: int


class Rounds:
    """The ways to use a client, in turn.

    Args:
        brokers: what `brokers` prints, or the address of a real one as "plain".

    Attributes:
        warm_up: rounds before the first look at what is open.
        may_differ: so much more may be open at the second look, however many rounds were between.
    """

    warm_up = 200
    may_differ = Left(0, 0, 0, 0)

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
                    sum(not handle.cancelled() for loop in loops for handle in (*loop._scheduled, *loop._ready)),
                    sum(len(asyncio.all_tasks(loop)) for loop in loops))

    def close(self) -> None:
        self._loop.close()

    @classmethod
    @contextlib.contextmanager
    def running_brokers(cls, real: bool) -> Iterator[dict[str, str]]:
        """What the rounds need: the embedded broker in a process of its own, or a real one."""
        if real:
            with KafkaCluster(properties=_KAFKA) as cluster:
                yield {"plain": cluster.bootstrap_servers}
            return
        command = [sys.executable, "-m", "tests.campaigns.leaks.brokers"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as brokers:
            assert brokers.stdout is not None
            try:
                yield json.loads(brokers.stdout.readline())
            finally:
                brokers.kill()
