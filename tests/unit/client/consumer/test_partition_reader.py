"""Raw ranges of one partition: complete, in order, and an error when records are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.broker.faults import Action, Fault
from headrace.client.consumer.partition_reader import PartitionReader
from headrace.client.producer.producer import Producer
from headrace.errors import KafkaError, KafkaException
from headrace.records import Cursor
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.consumer.fetch import FetchRequest

COUNT = 2000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "batch.num.messages": 50,
                       "compression.type": "gzip"}) as producer:
            for i in range(COUNT):
                producer.produce("t", value=b"%d" % i + b"." * 100)
            assert producer.flush(10) == 0
        yield broker


def reader(broker: EmbeddedBroker, start: int, end: int, **more: Any) -> PartitionReader:
    return PartitionReader({"bootstrap.servers": broker.bootstrap_servers, "fetch.wait.max.ms": 50}, "t", 0, start, end,
                           **more)


def offsets(source: PartitionReader, start: int, end: int) -> list[int]:
    found: list[int] = []
    at = start
    for piece in source:
        assert piece.fetch_offset == at
        at = piece.next_offset
        messages = Cursor(piece.data, "t", 0, piece.fetch_offset, aborted=piece.aborted).take(COUNT)
        found += [offset for m in messages if (offset := m.offset()) is not None and offset < end]
    return found


@pytest.mark.parametrize(("start", "end"), [(0, COUNT), (0, 1), (17, 18), (49, 51), (COUNT - 1, COUNT), (123, 1777)])
def test_a_range_holds_exactly_its_offsets(broker: EmbeddedBroker, start: int, end: int) -> None:
    with reader(broker, start, end) as source:
        assert offsets(source, start, end) == list(range(start, end))


def test_an_empty_range_asks_nobody(broker: EmbeddedBroker) -> None:
    with reader(broker, 5, 5) as source:
        assert list(source) == []


def test_small_replies_are_read_one_after_the_other(broker: EmbeddedBroker) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers, "max.partition.fetch.bytes": 2000}
    with PartitionReader(config, "t", 0, 0, COUNT) as source:
        pieces = list(source)
    assert len(pieces) > 3
    assert [p.fetch_offset for p in pieces[1:]] == [p.next_offset for p in pieces[:-1]]
    assert {p.high_watermark for p in pieces} == {COUNT}


def test_a_cut_connection_is_ridden_out(broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(action=Action.CUT, request=FetchRequest, times=2))
    with reader(broker, 0, COUNT) as source:
        assert offsets(source, 0, COUNT) == list(range(COUNT))


def test_records_that_are_gone_are_an_error_and_not_a_gap(broker: EmbeddedBroker) -> None:
    with reader(broker, COUNT + 5, COUNT + 10) as source, pytest.raises(KafkaException) as gone:
        list(source)
    assert gone.value.error == KafkaError._AUTO_OFFSET_RESET


def test_an_end_that_the_log_never_reaches_is_an_error(broker: EmbeddedBroker) -> None:
    with reader(broker, COUNT - 1, COUNT + 1, timeout_s=2.0) as source, pytest.raises(KafkaException) as late:
        list(source)
    assert late.value.error == KafkaError.OFFSET_OUT_OF_RANGE
    assert str(COUNT + 1) in late.value.error.str()


def test_an_unknown_topic_is_named(broker: EmbeddedBroker) -> None:
    with PartitionReader({"bootstrap.servers": broker.bootstrap_servers}, "nowhere", 0, 0, 1,
                         timeout_s=2.0) as source, pytest.raises(KafkaException, match="nowhere"):
        list(source)


def test_it_is_closed_behind_its_block_and_again_without_harm(broker: EmbeddedBroker) -> None:
    with reader(broker, 0, 1) as source:
        assert not source._reader.closed
    assert source._reader.closed
    source.close()
