"""Producers behind a stalled broker, and consumers, keep to their memory: a short run of `python -m
tests.campaigns.memory`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.campaigns.memory.__main__ import CONSTANT_BYTES, MIB, measure, stalled_brokers


@pytest.fixture(scope="module")
def addresses() -> Iterator[list[str]]:
    with stalled_brokers() as addresses:
        yield addresses


@pytest.mark.parametrize("case", ["values of 100 bytes", "a callback for each record", "a topic that is not there",
                                  "no acknowledgements"])
def test_what_waits_for_a_stalled_broker_takes_its_memory_and_a_constant(addresses: list[str], case: str) -> None:
    figures = measure(case, addresses, 100_000, **{"buffer.memory": 2 * MIB, "message.timeout.ms": 100})
    assert figures["beyond"] <= CONSTANT_BYTES, figures
    assert figures["full"] > 0, "the buffer was never full"


@pytest.mark.parametrize("case", ["a consumer that reads", "a consumer that does not poll",
                                  "a consumer with a paused partition", "a consumer under asyncio"])
def test_what_a_consumer_fetches_ahead_takes_its_queue_and_a_constant(addresses: list[str], case: str) -> None:
    figures = measure(case, addresses, 100_000)
    assert figures["beyond"] <= CONSTANT_BYTES, figures
    assert figures["told"]["read"] >= 100_000
