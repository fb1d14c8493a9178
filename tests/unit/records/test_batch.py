"""Cursors over fetched bytes: records in their order, what is passed over, and damage."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import CorruptRecordError
from headrace.records.batch_writer import write_end_marker

from .samples import Record, batch, fields, record_lists, resum, simple


def values(messages: list[Any]) -> list[bytes]:
    return [message.value() for message in messages]


def test_records_come_in_order_and_the_position_follows(twin: Any) -> None:
    cursor = twin.Cursor(simple([b"a", b"b", b"c"], base_offset=5) + simple([b"d"], base_offset=8, codec=1), "t", 0, 5)
    assert values(cursor.take(2)) == [b"a", b"b"]
    assert (cursor.position, cursor.exhausted) == (7, False)
    assert cursor.take_one().value() == b"c"
    assert cursor.position == 8
    assert values(cursor.take(10)) == [b"d"]
    assert (cursor.position, cursor.exhausted) == (9, True)
    assert cursor.take(10) == []
    assert cursor.take_one() is None


def test_records_before_the_wanted_offset_are_passed_over(twin: Any) -> None:
    data = simple([b"a", b"b"]) + simple([b"c", b"d", b"e"], base_offset=2)
    cursor = twin.Cursor(data, "t", 0, 3)
    assert cursor.position == 3
    assert values(cursor.take(10)) == [b"d", b"e"]


def test_nothing_to_read_is_exhausted_at_once(twin: Any) -> None:
    for data in (b"", simple([b"a"])[:-1]):
        cursor = twin.Cursor(data, "t", 0, 42)
        assert cursor.exhausted
        assert cursor.position == 42
        assert cursor.take(5) == []
    cursor = twin.Cursor(simple([b"a"]), "t", 0, 42)
    assert (cursor.exhausted, cursor.position) == (True, 42)


def test_control_batches_and_compacted_gaps_move_the_position_only(twin: Any) -> None:
    marker = simple([b"\0\0\0\1"], base_offset=11, producer_id=1, transactional=True, control=True)
    gap = bytearray(simple([b"b"], base_offset=12))
    struct.pack_into(">i", gap, 23, 7)  # six records behind it were compacted away
    resum(gap)
    cursor = twin.Cursor(simple([b"a"], base_offset=10) + marker + bytes(gap), "t", 0, 10)
    assert values(cursor.take(1)) == [b"a"]
    assert cursor.position == 12
    assert values(cursor.take(9)) == [b"b"]
    assert cursor.position == 20
    assert twin.Cursor(marker, "t", 0, 11).position == 12


def test_aborted_transactions_are_passed_over_until_their_marker(twin: Any) -> None:
    def of(producer: int, offset: int, value: bytes, transactional: bool = True) -> bytes:
        return simple([value], base_offset=offset, producer_id=producer, transactional=transactional)

    def end(producer: int, offset: int, commit: bool) -> bytes:
        return bytes(write_end_marker(commit, producer, 0, 3, 1000, offset=offset))

    data = b"".join([
        of(1, 0, b"committed 1"), of(2, 1, b"aborted 2"), end(1, 2, True), of(1, 3, b"aborted 1"),
        end(2, 4, False), of(2, 5, b"committed 2"), of(1, 6, b"plain", transactional=False),
        end(1, 7, False), of(1, 8, b"again 1"),
    ])
    cursor = twin.Cursor(data, "t", 0, 0, aborted=[(1, 3), (2, 1)])
    assert values(cursor.take(99)) == [b"committed 1", b"committed 2", b"plain", b"again 1"]
    assert cursor.position == 9
    assert len(twin.Cursor(data, "t", 0, 0).take(99)) == 6


def test_damage_is_told_after_the_records_in_front_of_it_and_then_every_time(twin: Any) -> None:
    bad = bytearray(simple([b"b"], base_offset=1))
    bad[-1] ^= 1
    cursor = twin.Cursor(simple([b"a"]) + bytes(bad), "topic", 2, 0)
    assert values(cursor.take(10)) == [b"a"]
    assert (cursor.position, cursor.exhausted) == (1, False)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=r"offset 1 of topic\[2\]"):
            cursor.take(10)
        with pytest.raises(CorruptRecordError):
            cursor.take_one()


def test_checksums_are_compared_only_when_asked(twin: Any) -> None:
    data = bytearray(simple([b"a"]))
    data[17] ^= 1
    assert values(twin.Cursor(data, "t", 0, 0, check_crcs=False).take(1)) == [b"a"]
    with pytest.raises(CorruptRecordError, match="checksum"):
        twin.Cursor(data, "t", 0, 0).take(1)


def test_a_batch_may_not_decompress_to_more_than_the_limit(twin: Any) -> None:
    for codec in range(1, 5):
        data = simple([bytes(100_000)], codec=codec)
        with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
            twin.Cursor(data, "t", 0, 0, max_decompressed_bytes=1000).take(1)


def test_messages_outlive_the_cursor_and_the_callers_reference_to_the_bytes(twin: Any) -> None:
    for codec in (0, 4):
        data = bytearray(simple([b"value %d" % n for n in range(50)], codec=codec))
        messages = twin.Cursor(memoryview(data), "t", 0, 0).take(50)
        del data
        assert values(messages) == [b"value %d" % n for n in range(50)]


@pytest.mark.parametrize("codec", range(5))
def test_what_other_clients_write_is_read(twin: Any, codec: int) -> None:
    kafka_records = pytest.importorskip("aiokafka.record.default_records")
    builder = kafka_records.DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=100_000)
    for offset in range(100):
        builder.append(offset, timestamp=offset + 1, key=b"k", value=b"v" * offset, headers=[("h", b"x")])
    messages = twin.Cursor(bytes(builder.build()), "t", 1, 0).take(1000)
    assert [fields(m)[:7] for m in messages] == [
        ("t", 1, offset, b"k", b"v" * offset, [("h", b"x")], (1, offset + 1)) for offset in range(100)]


def test_headers_may_be_null_nameless_and_twice_there(twin: Any) -> None:
    headers = [(b"", None), (b"a", b""), (b"a", b"x"), (b"", b"y"), (b"a", b"x")]
    data = batch([(1, None, None, headers)], twin_builder=twin.BatchBuilder)
    message, = twin.Cursor(data, "t", 0, 0).take(2)
    assert message.headers() == [(name.decode(), value) for name, value in headers]
    assert twin.read_columns(data, "t", 0, 0, 9, want_headers=True).headers.total == 5


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=record_lists, more=record_lists, codec=st.integers(0, 4), first=st.integers(0, 30),
       step=st.integers(1, 9))
def test_records_are_the_same_in_whatever_steps_they_are_taken(
    twin: Any, rows: list[Record], more: list[Record], codec: int, first: int, step: int
) -> None:
    data = batch(rows, codec=codec) + batch(more, base_offset=len(rows))
    cursor, found = twin.Cursor(data, "t", 0, first), []
    while not cursor.exhausted:
        taken = cursor.take(step)
        found += taken
        assert cursor.position >= max((message.offset() + 1 for message in taken), default=first)
    wanted = [*enumerate([*rows, *more])][first:]
    assert [(m.offset(), m.timestamp()[1], m.key(), m.value()) for m in found] == [
        (offset, *row[:3]) for offset, row in wanted]
    assert cursor.position == max(first, len(rows) + len(more))
