"""A consumer that reads on and on takes no more memory: a short run of `python -m tests.campaigns.memory.reading`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker
from tests.campaigns.memory.__main__ import CONSTANT_BYTES, MIB
from tests.campaigns.memory.reading import PARTITIONS, QUEUE_KIB, TOPIC, WAYS, fill, growth, measure, slope

TOPIC_RECORDS = 20_000


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with EmbeddedBroker(topics={TOPIC: PARTITIONS}) as broker:
        fill(broker.bootstrap_servers, TOPIC_RECORDS)
        yield broker.bootstrap_servers


@pytest.mark.parametrize("way", WAYS)
def test_a_topic_that_is_read_ten_times_leaves_nothing_behind(address: str, way: str) -> None:
    samples = measure(address, way, 10 * TOPIC_RECORDS, TOPIC_RECORDS)
    assert samples[-1][0] == 10 * TOPIC_RECORDS
    assert len(samples) >= 10
    sizes = [size for _, size in samples]
    assert max(sizes) - min(sizes) <= QUEUE_KIB * 1024 + CONSTANT_BYTES
    assert growth(samples) <= 16 * MIB, samples


def test_the_slope_and_the_growth_are_those_of_a_line() -> None:
    line = [(1000 * number, 7 * 1000 * number) for number in range(1, 101)]
    assert slope(line) == pytest.approx(7.0)
    assert growth(line) == 7 * 1000 * 60
    wave = [(read, 5000 + 100 * (read // 1000 % 2)) for read, _ in line]
    assert abs(slope(wave)) < 0.01
    assert growth(wave) == 0
