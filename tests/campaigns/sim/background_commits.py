"""The simulation of `planned_membership` with applications that do not wait for their commits.

A commit is under way while partitions go to another member and come back. It must not take effect then: it would set
back what the other one has committed.

    python -m tests.campaigns.sim.background_commits --schedules 100000 --jobs 2
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from headrace.broker.faults import Action, Fault
from headrace.errors import KafkaError, KafkaException
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest

from . import membership
from .application import Worker
from .planned_membership import PlannedMembership


class BackgroundCommits(PlannedMembership):
    """One schedule."""

    ways = ("in the background",)
    troubles_per_s = 4.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._refused = ""  # the one whose requests are not

    async def _hurt(self) -> None:
        self.network.cluster.faults.add(Fault(
            action=Action.ERROR, request=OffsetCommitRequest, times=None, when=self._is_refused,
            error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
        await super()._hurt()

    def _is_refused(self, request: OffsetCommitRequest) -> bool:
        return request.member_id == self._refused

    def troubles(self) -> Sequence[Callable[[Worker | None], Awaitable[None]]]:
        """What may happen."""
        return self._end, self._join, self._refuse_commits

    async def _refuse_commits(self, victim: Worker | None) -> None:
        """For a while the coordinator does not take a member's commits. Another comes, gets partitions, and goes."""
        with suppress(KafkaException):
            self._refused = await victim.consumer.memberid() or "" if victim is not None else ""
            await self._join(None)
            await asyncio.sleep(self.chance.uniform(0.5, 2))
            await self._end(self._workers[-1])
            await asyncio.sleep(self.chance.uniform(0, 1))
        self._refused = ""


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return BackgroundCommits(seed).run()


if __name__ == "__main__":
    sys.exit(membership.main(run_schedule, "tests.campaigns.sim.background_commits"))
