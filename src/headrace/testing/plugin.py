"""The pytest plugin, found through the package's entry point: the fixture `headrace_broker`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.embedded import EmbeddedBroker

__all__ = ["headrace_broker"]


@pytest.fixture
def headrace_broker() -> Iterator[EmbeddedBroker]:
    """A fresh embedded broker with one node, in memory, on a free loopback port; topics are made when first named."""
    from headrace.testing.embedded import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker
