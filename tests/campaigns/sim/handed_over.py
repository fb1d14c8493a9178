"""The simulation of `membership` with applications that leave their commits to the client, and no other trouble.

Members come and go, and their callbacks do what they like: nothing, give partitions up by themselves, fail, leave.
What was handed out and stored before partitions went to another member must be committed by then: no record comes
twice.

    python -m tests.campaigns.sim.handed_over --schedules 100000 --jobs 2
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from headrace.records import Message
from headrace.testing.memory_network import Connect

from . import membership
from .application import Worker
from .membership import Membership
from .planned_membership import PlannedMembership


class HandedOver(Membership):
    """One schedule."""

    ways = ("stored",)
    troubles_per_s = 3.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.troubled = False  # nobody takes longer than it may: then its partitions are lost

    def connected(self, name: str) -> tuple[Mapping[str, Any], Connect]:
        """As always, but the clock commits seldom."""
        properties, connect = super().connected(name)
        return {**properties, "auto.commit.interval.ms": 5000, "max.poll.interval.ms": 60_000}, connect

    def troubles(self) -> Sequence[Callable[[Worker | None], Awaitable[None]]]:
        """What may happen."""
        return self._end, self._join

    def note_processed(self, records: list[Message]) -> None:
        """An application is done with records, which nobody was before."""
        for each in records:
            partition, offset = each.partition() or 0, each.offset() or 0
            self.hold(offset not in self.written[partition], f"{partition}@{offset} came twice")
        super().note_processed(records)


class PlannedHandedOver(HandedOver, PlannedMembership):
    """The same with a coordinator that plans."""


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return (PlannedHandedOver if seed % 2 else HandedOver)(seed).run()


if __name__ == "__main__":
    sys.exit(membership.main(run_schedule, "tests.campaigns.sim.handed_over"))
