"""What tests of several producers share."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.client.producer.direct_sends import _LentConnection
from headrace.machines.producer.sender import Sender


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When senders were polled: not for records that are sent directly."""
    times: list[float] = []
    poll = Sender.poll

    def counted(self: Sender, now: float) -> Any:
        times.append(now)
        return poll(self, now)

    monkeypatch.setattr(Sender, "poll", counted)
    return times


@pytest.fixture
def by_loop(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many replies to direct batches the loop took, in each step."""
    counts: list[int] = []
    take = _LentConnection.take

    def counted(self: _LentConnection, data: memoryview, count: int) -> Any:
        taken = take(self, data, count)
        counts.append(len(taken))
        return taken

    monkeypatch.setattr(_LentConnection, "take", counted)
    return counts
