"""What a task reads: its ranges in their order, as columns, and what is left of them when records are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyarrow")

from headrace import Producer
from headrace.admin import AdminClient
from headrace.spark import range_columns
from headrace.spark.options import SourceOptions
from headrace.spark.plan import DataLossError, Range
from headrace.spark.range_columns import read_columns
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition

COUNT, PATIENCE_S = 200, 10


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 3}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "batch.num.messages": 10}) as out:
            for n in range(COUNT * 3):
                out.produce("t", b"v%d" % n, partition=n % 3)
            assert out.flush(PATIENCE_S) == 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_records([TopicPartition("t", 2, 50)])[TopicPartition("t", 2)].result(PATIENCE_S)
        yield broker


def read(broker: EmbeddedBroker, wanted: list[Range], columns: list[str] | None = None, **given: str) -> list[Any]:
    options = SourceOptions.parse({
        "kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "500",
        **given}, streaming=False)
    batches = list(read_columns(options, columns or ["partition", "offset"], wanted))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def expected(*ranges: tuple[int, int, int]) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, start, end in ranges for offset in range(start, end)]


def test_ranges_are_read_in_their_order_and_columns_as_they_are_named(broker: EmbeddedBroker) -> None:
    wanted = [Range("t", 1, 5, 120), Range("t", 0, 0, COUNT), Range("t", 2, 77, 80)]
    assert read(broker, wanted) == expected((1, 5, 120), (0, 0, COUNT), (2, 77, 80))
    assert read(broker, [Range("t", 1, 3, 5)], ["value", "topic"]) == [(b"v10", "t"), (b"v13", "t")]


def test_the_next_task_goes_on_with_the_connections(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    take = range_columns._READERS.take
    monkeypatch.setattr(range_columns._READERS, "take", lambda given: taken.append(take(given)) or taken[-1])
    for start in (1, 2, 3):
        assert read(broker, [Range("t", 0, start, 9)]) == expected((0, start, 9))
    assert len(set(taken)) == 1


def test_records_that_are_gone_fail_the_task(broker: EmbeddedBroker) -> None:
    with pytest.raises(DataLossError, match=r"t\[2\] 10\.\.60.* are gone.*Set failOnDataLoss to false"):
        read(broker, [Range("t", 0, 0, 20), Range("t", 2, 10, 60)])


def test_without_that_each_record_that_is_left_comes_once(broker: EmbeddedBroker) -> None:
    wanted = [Range("t", 0, 0, 20), Range("t", 2, 10, 60), Range("t", 1, 7, 9)]
    found = read(broker, wanted, failOnDataLoss="false")
    assert found == expected((0, 0, 20), (2, 50, 60), (1, 7, 9))


def test_an_end_that_was_cut_off_is_left_out(broker: EmbeddedBroker) -> None:
    with pytest.raises(DataLossError):
        read(broker, [Range("t", 1, COUNT - 2, COUNT + 5)])
    found = read(broker, [Range("t", 1, COUNT - 2, COUNT + 5)], failOnDataLoss="false")
    assert found == expected((1, COUNT - 2, COUNT))


def test_nothing_is_read_of_another_topic_that_has_the_name(broker: EmbeddedBroker) -> None:
    wanted = [Range("t", 0, 0, 20, str(uuid4()))]
    with pytest.raises(DataLossError, match="made anew"):
        read(broker, wanted)
    assert read(broker, wanted, failOnDataLoss="false") == []
