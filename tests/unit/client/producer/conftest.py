"""What tests of several producers share."""

from __future__ import annotations

from typing import Any

import pytest

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
