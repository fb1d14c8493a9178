"""What tests of consumers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.consumer.fetch import FetchRequest


@pytest.fixture
def asked(broker: EmbeddedBroker) -> Iterator[list[FetchRequest]]:
    """The fetches that come to the test's `broker`."""
    asked: list[FetchRequest] = []

    def note(request: FetchRequest) -> bool:
        asked.append(request)
        return False

    broker.add_fault(Fault(action=Action.DELAY, request=FetchRequest, times=None, when=note))
    yield asked
    broker.clear_faults()
