"""Embedded brokers for the tests of the broker."""

import warnings
from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what foreign clients do while they are imported is not ours to judge
    import aiokafka  # noqa: F401
    import kafka  # noqa: F401


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """One node, in memory."""
    with EmbeddedBroker() as embedded:
        yield embedded


@pytest.fixture
def three_nodes() -> Iterator[EmbeddedBroker]:
    """Three nodes, in memory."""
    with EmbeddedBroker(nodes=3) as embedded:
        yield embedded
