"""Rules of a consumer without a group, each broken in the client: the simulation of readers has to notice."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.machines.consumer import fetcher
from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.consumer.subscription import PartitionState

from . import reading
from .mutation import Rules

READING_RULES = Rules()
broken = READING_RULES.broken


@broken("Fetch: who looks up where to go on is asked when a position is given up late", reading.run_schedule, 100,
        "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    leave_range = Fetcher._leave_range

    def in_silence(self: Fetcher) -> None:
        leave_range(self)
        self.alone = True

    patch.setattr(Fetcher, "_leave_range", in_silence)


@broken("Fetch: an answer to what was asked before a seek is of no use", reading.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetcher, "_is_current", lambda asked: True)


@broken("Fetch: what is queued from before a seek is not handed out", reading.run_schedule, 100, "was to come")
def _(patch: pytest.MonkeyPatch) -> None:
    jump = PartitionState.jump

    def in_the_same_epoch(self: PartitionState, *arguments: Any, **more: Any) -> None:
        before = self.epoch
        jump(self, *arguments, **more)
        self.epoch = before

    patch.setattr(PartitionState, "jump", in_the_same_epoch)
