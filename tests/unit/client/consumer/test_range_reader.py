"""Ranges of several partitions: complete, in their order, in few requests, and an error when records are gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from headrace.admin import AdminClient
from headrace.client.consumer import range_reader
from headrace.client.consumer.range_reader import OffsetRange, RangeReader
from headrace.client.producer.producer import Producer
from headrace.errors import KafkaError, KafkaException
from headrace.net.driver import Driver
from headrace.records import Cursor
from headrace.testing import EmbeddedBroker
from headrace.wire.frame_reader import FrameReader
from headrace.wire.messages.consumer.fetch import FetchRequest

COUNT, PARTITIONS, PATIENCE_S = 300, 4, 10


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": PARTITIONS, "empty": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "batch.num.messages": 50}) as out:
            for n in range(COUNT * PARTITIONS):
                out.produce("t", value=b"%d" % n + b"." * 100, partition=n % PARTITIONS)
            assert out.flush(PATIENCE_S) == 0
        yield broker


@pytest.fixture
def reader(broker: EmbeddedBroker) -> Iterator[RangeReader]:
    made = make(broker)
    yield made
    made.close()


def make(broker: EmbeddedBroker, **more: Any) -> RangeReader:
    return RangeReader({"bootstrap.servers": broker.bootstrap_servers, "fetch.wait.max.ms": 50, **more})


def read(reader: RangeReader, ranges: list[OffsetRange], timeout_s: float = PATIENCE_S) -> list[tuple[int, int]]:
    """Partition and offset of each record in the order in which they come."""
    ends = {each.partition: each.end for each in ranges}
    found = []
    for piece in reader.read(ranges, timeout_s):
        messages = Cursor(piece.data, piece.topic, piece.partition, piece.fetch_offset).take(COUNT)
        found += [(piece.partition, offset) for message in messages
                  if (offset := message.offset()) is not None and offset < ends[piece.partition]]
    return found


def expected(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(each.partition, offset) for each in ranges for offset in range(each.start, each.end)]


def test_ranges_come_whole_and_in_their_order(reader: RangeReader) -> None:
    for ranges in ([OffsetRange("t", 2, 17, COUNT), OffsetRange("t", 0, 0, 90), OffsetRange("t", 1, 5, 5),
                    OffsetRange("t", 3, 299, 300)], [OffsetRange("t", 0, 3, 60)]):
        assert read(reader, ranges) == expected(ranges)
        assert reader.finished


def test_small_ranges_of_one_broker_are_one_request(reader: RangeReader, asked: list[FetchRequest]) -> None:
    ranges = [OffsetRange("t", partition, 0, COUNT) for partition in range(PARTITIONS)]
    assert read(reader, ranges) == expected(ranges)
    assert len(asked) == 1


def test_the_first_reply_is_small_and_nothing_is_sent_ahead_until_the_caller_comes_back(
    reader: RangeReader, asked: list[FetchRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_FIRST_BYTES", (10_000, 15_000))
    pieces = reader.read([OffsetRange("t", 0, 0, COUNT)], PATIENCE_S)
    first = next(pieces)
    assert 1 < first.next_offset < COUNT
    reader.confirm()  # the loop has had time for more
    assert [each.max_bytes for each in asked] == [10_000]
    rest = list(pieces)
    assert [each.max_bytes for each in asked] == [10_000, 15_000, 8 << 20]
    assert rest[-1].next_offset == COUNT


def test_a_small_range_takes_one_request_and_a_large_one_hardly_more_than_if_all_replies_were_large(
    broker: EmbeddedBroker, reader: RangeReader, asked: list[FetchRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    def requests(count: int) -> int:
        asked.clear()
        *_, last = reader.read([OffsetRange(name, 0, 0, count)], PATIENCE_S)
        assert last.next_offset >= count
        return len(asked)

    name, counts = f"sizes-{uuid4().hex[:8]}", (1, 9, 40, 400)
    broker.create_topic(name, 1)
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50}) as out:
        for _ in range(counts[-1]):
            out.produce(name, bytes(100_000))
    found = [requests(count) for count in counts]
    monkeypatch.setattr(range_reader, "_FIRST_BYTES", ())
    large = [requests(count) for count in counts]
    assert found[:2] == large[:2] == [1, 1]
    assert all(ours <= others + 2 for ours, others in zip(found, large, strict=True))


def test_a_small_reply_does_not_wait_for_more_bytes_than_it_may_bring(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_FIRST_BYTES", (10_000,))
    reader = make(broker, **{"fetch.min.bytes": 20_000, "fetch.wait.max.ms": 60_000})
    assert next(reader.read([OffsetRange("t", 0, 0, COUNT)], PATIENCE_S)).next_offset < COUNT
    reader.close()


def test_ranges_whose_turn_is_later_do_not_use_up_what_the_first_one_needs(
    reader: RangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_FIRST_BYTES", (1,) * 1000)
    ranges = [OffsetRange("t", partition, 0, COUNT) for partition in range(PARTITIONS)]
    for order in (ranges, ranges[::-1]):
        assert read(reader, order) == expected(order)


def test_without_ranges_nobody_is_asked(reader: RangeReader, asked: list[FetchRequest]) -> None:
    assert read(reader, []) == []
    assert reader.finished
    assert asked == []


def test_what_waits_for_its_turn_is_bounded(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "_HELD_BYTES", 1000)
    reader = make(broker, **{"max.partition.fetch.bytes": 6000, "fetch.max.bytes": 6000})
    ranges = [OffsetRange("t", partition, 0, COUNT) for partition in range(PARTITIONS)]
    assert read(reader, ranges) == expected(ranges)
    assert read(reader, ranges[:2]) == expected(ranges[:2])  # and the next call begins without that
    pieces = reader.read(ranges, PATIENCE_S)
    next(pieces)
    while not reader._is_one_by_one:
        next(pieces)
    monkeypatch.undo()
    assert read(reader, ranges) == expected(ranges)  # also behind one that was not read to its end
    reader.close()


def test_records_that_are_gone_are_an_error_and_not_a_gap(reader: RangeReader) -> None:
    with pytest.raises(KafkaException) as gone:
        read(reader, [OffsetRange("t", 0, 0, 5), OffsetRange("t", 1, COUNT + 5, COUNT + 6)])
    assert gone.value.error == KafkaError._AUTO_OFFSET_RESET
    assert gone.value.error.str().startswith(f"offset {COUNT + 5} is out of the range of t[1]")
    assert not reader.finished
    assert read(reader, [OffsetRange("t", 1, 0, 5)]) == expected([OffsetRange("t", 1, 0, 5)])


def test_an_end_that_the_log_never_reaches_is_an_error(reader: RangeReader) -> None:
    with pytest.raises(KafkaException) as late:
        read(reader, [OffsetRange("t", 0, COUNT - 1, COUNT + 1)], timeout_s=2.0)
    assert late.value.error == KafkaError.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("others_answer", [True, False])
def test_a_bound_of_replies_bounds_what_is_asked_for_and_a_record_beyond_it_is_told_at_once(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, others_answer: bool
) -> None:
    bound, name = 100_000, f"large-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as out:
        for _ in range(4):
            out.produce(name, bytes(bound // 2), partition=0)
            assert out.flush(PATIENCE_S) == 0
        out.produce(name, bytes(2 * bound), partition=1)
    reader = make(broker, **{"receive.message.max.bytes": str(bound)})
    try:
        assert len(read(reader, [OffsetRange(name, 0, 0, 4)])) == 4
        if not others_answer:  # no other connection's first reply has errors told anew
            monkeypatch.setattr(Driver, "on_ready", lambda driver: None)
        with pytest.raises(KafkaException, match=r'raise "receive\.message\.max\.bytes"') as large:
            read(reader, [OffsetRange(name, 1, 0, 1)], timeout_s=600)
        assert large.value.error == KafkaError._BAD_MSG
    finally:
        reader.close()


@pytest.mark.parametrize("others_answer", [True, False])
def test_a_reply_for_which_there_is_no_memory_is_told_long_before_the_timeout_and_once_is_tried_again(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, others_answer: bool
) -> None:
    name = f"memory-{uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as out:
        out.produce(name, bytes(500_000))
    left, begin = [1], FrameReader._begin_large

    def begun(frames: FrameReader, size: int, body: int) -> None:
        if left[0]:
            left[0] -= 1
            raise MemoryError
        begin(frames, size, body)

    monkeypatch.setattr(FrameReader, "_begin_large", begun)
    if not others_answer:
        monkeypatch.setattr(Driver, "on_ready", lambda driver: None)
    reader = make(broker)
    try:
        assert len(read(reader, [OffsetRange(name, 0, 0, 1)])) == 1
        left[0] = 1000
        with pytest.raises(KafkaException, match="there is no memory for what it sends: raise the limit") as none_left:
            read(reader, [OffsetRange(name, 0, 0, 1)], timeout_s=600)
        assert none_left.value.error == KafkaError._CRIT_SYS_RESOURCE
        assert "Traceback" not in caplog.text
    finally:
        reader.close()


def test_another_topic_of_that_name_is_not_read(reader: RangeReader) -> None:
    with pytest.raises(KafkaException, match="made anew") as other:
        read(reader, [OffsetRange("t", 0, 0, 5, topic_id=uuid4())])
    assert other.value.error == KafkaError.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("t", PARTITIONS)])
def test_an_unknown_topic_or_partition_is_named_and_is_no_mere_silence(
    reader: RangeReader, topic: str, partition: int
) -> None:
    with pytest.raises(KafkaException, match=rf"{topic}\[{partition}\] does not exist") as unknown:
        read(reader, [OffsetRange(topic, partition, 0, 1)], timeout_s=2.0)
    assert unknown.value.error == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize("is_known", [True, False], ids=["the reader knew it", "it did not"])
def test_a_topic_that_brokers_go_on_to_not_know_is_given_up_long_before_the_timeout(
    broker: EmbeddedBroker, reader: RangeReader, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    monkeypatch.setattr(range_reader, "LAGGING_S", 0.3)
    name, wanted = f"gone-{uuid4().hex[:8]}", [OffsetRange("t", 0, 0, 5)]
    if is_known:
        broker.create_topic(name, 1)
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as out:
            out.produce(name, b"v")
        assert len(read(reader, [OffsetRange(name, 0, 0, 1)])) == 1
        with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            admin.delete_topics([name])[name].result(PATIENCE_S)
    with pytest.raises(KafkaException, match=rf"{name}.*, brokers have said for 0\.3 s") as unknown:
        read(reader, [*wanted, OffsetRange(name, 0, 0, 1)], timeout_s=60)
    assert unknown.value.error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert read(reader, wanted) == expected(wanted)


def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_waited_for(
    broker: EmbeddedBroker, reader: RangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, missed = f"late-{uuid4().hex[:8]}", threading.Event()
    absence = reader._absence

    def noted(key: tuple[str, int]) -> str | None:
        found = absence(key)
        if found is not None:
            missed.set()
        return found

    monkeypatch.setattr(reader, "_absence", noted)
    pieces = reader.read([OffsetRange(name, 0, 0, 1)], 60)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as out, ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, pieces)
        assert missed.wait(PATIENCE_S)
        broker.create_topic(name, 1)
        out.produce(name, b"v")
        assert out.flush(PATIENCE_S) == 0
        assert first.result(PATIENCE_S).topic == name


def test_brokers_are_asked_whether_they_are_there(broker: EmbeddedBroker) -> None:
    reader = make(broker)
    assert reader.confirm()
    reader.close()
    assert reader.closed
    unreachable = RangeReader({"bootstrap.servers": "127.0.0.1:1"})
    assert not unreachable.confirm()
    unreachable.close()
