"""The pytest plugin, found through the package's entry point: the fixtures `headrace_broker` and
`headrace_registry`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.embedded import EmbeddedBroker

__all__ = ["headrace_broker", "headrace_registry"]


@pytest.fixture
def headrace_broker() -> Iterator[EmbeddedBroker]:
    """A fresh embedded broker with one node, in memory, on a free loopback port; topics are made when first named."""
    from headrace.testing.embedded import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def headrace_registry() -> Iterator[EmbeddedBroker]:
    """As `headrace_broker`, with a Schema Registry: its address is `registry_url`."""
    from headrace.testing.embedded import EmbeddedBroker

    with EmbeddedBroker(registry=True) as broker:
        yield broker
