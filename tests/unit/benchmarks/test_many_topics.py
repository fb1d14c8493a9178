"""The benchmark of admin clients and many topics runs: small, at the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import many_topics
from benchmarks.measure import run_child
from headrace.testing import EmbeddedBroker

TOPICS, CONFIGS = 30, 5


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        many_topics.prepare(broker.bootstrap_servers, TOPICS)
        yield broker.bootstrap_servers


@pytest.mark.parametrize("client", many_topics.MODULES)
def test_many_topics_are_listed_and_described_by_both_clients(servers: str, client: str) -> None:
    request = {"client": client, "bootstrap": servers, "topics": TOPICS, "configs": CONFIGS, "turns": 2}
    turns = run_child("benchmarks.many_topics", request)["turns"]
    assert [list(turn) for turn in turns] == [list(many_topics.ACTIONS)] * 2
    assert all(figures["wall_s"] > 0 for turn in turns for figures in turn.values())
