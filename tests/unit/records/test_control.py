"""Control batches, and what else a header can say: markers, delete horizons, gaps, sequences, nothing at all."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from headrace.errors import CorruptRecordError
from headrace.records.batch_writer import write_batch, write_end_marker
from headrace.records.control import ABORT, COMMIT, CONTROL_NAMES, ControlRecord, control_records
from headrace.records.header import BatchInfo

from .samples import batch, resum, simple

JAVAS_MARKER = bytes.fromhex(
    "00000000000000050000004200000007020e8be0e60030000000000000000000000006000000000000000600000000000000080009ffffffff00"
    "0000012000000008000000010c00000000000a00")
"""MemoryRecords.withEndTransactionMarker(5, 6, 7, 8, 9, new EndTransactionMarker(COMMIT, 10)) of Kafka 4.4.0."""


def offsets(twin: Any, data: bytes, **how: Any) -> list[int]:
    return [message.offset() for message in twin.Cursor(data, "t", 0, 0, **how).take(100)]


def test_a_transactions_marker_is_javas() -> None:
    made = write_end_marker(True, 8, 9, 10, 6, offset=5, leader_epoch=7)
    assert made == JAVAS_MARKER
    assert list(control_records(made)) == [ControlRecord(5, 6, 0, COMMIT, 10, b"\0\0\0\0\0\x0a", 8, 9)]
    record, = control_records(write_end_marker(False, 1, 2, 3, 4))
    assert (record.type, CONTROL_NAMES[record.type], record.coordinator_epoch) == (ABORT, "ABORT", 3)


def test_control_records_are_found_between_others_and_never_given_to_applications(twin: Any) -> None:
    leader = write_batch([(8, 5, b"\0\0\0\2", b"\0\0", [])], control=True)
    data = simple([b"a"], base_offset=6) + write_end_marker(True, 3, 0, 1, 5, offset=7) + leader + simple(
        [b"b"], base_offset=9)
    assert [(r.offset, CONTROL_NAMES[r.type], r.coordinator_epoch) for r in control_records(data + data[:50])] == [
        (7, "COMMIT", 1), (8, "LEADER_CHANGE", -1)]
    assert offsets(twin, data) == [6, 9]
    assert twin.read_columns(data, "t", 0, 0, 99).rows == 2


def test_newer_markers_may_have_more_fields() -> None:
    newer = write_batch([(0, 5, b"\0\1\0\1more", b"\0\2\0\0\0\7more", [])], producer_id=1, epoch=0, control=True)
    assert [(r.version, r.type, r.coordinator_epoch) for r in control_records(newer)] == [(1, COMMIT, 7)]


@pytest.mark.parametrize(("key", "value"), [
    (None, b"\0\0\0\0\0\0"), (b"\0\0\0", b"\0\0\0\0\0\0"), (b"\xff\xff\0\0", b"\0\0\0\0\0\0"), (b"\0\0\0\0", None),
    (b"\0\0\0\0", b"\0\0\0\0\0"), (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
])
def test_a_marker_that_says_nothing_is_damage(twin: Any, key: bytes | None, value: bytes | None) -> None:
    data = bytes(write_batch([(4, 5, key, value, [])], producer_id=1, epoch=0, transactional=True, control=True))
    with pytest.raises(CorruptRecordError, match="control record at offset 4"):
        list(control_records(data))
    with pytest.raises(CorruptRecordError, match="control record at offset 4"):
        twin.Cursor(data, "t", 0, 0, aborted=[(1, 0)]).take(1)
    assert twin.Cursor(data, "t", 0, 0).exhausted  # nobody asks what it is


def test_a_damaged_marker_has_a_wrong_checksum() -> None:
    data = bytearray(JAVAS_MARKER)
    data[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        list(control_records(data))


def test_only_an_abort_marker_ends_an_aborted_transaction(twin: Any) -> None:
    def of(offset: int) -> bytes:
        return simple([b"x"], base_offset=offset, producer_id=1, transactional=True)

    commit, abort = write_end_marker(True, 1, 0, 0, 5, offset=1), write_end_marker(False, 1, 0, 0, 5, offset=3)
    data = of(0) + commit + of(2) + abort + of(4)
    assert offsets(twin, data, aborted=[(1, 0)]) == [4]
    assert offsets(twin, data, aborted=[(1, 2)]) == [0, 4]
    assert offsets(twin, data) == [0, 2, 4]


def test_a_marker_that_compaction_emptied_ends_nothing(twin: Any) -> None:
    empty = write_batch([], base_offset=1, last_offset=1, producer_id=1, epoch=0, transactional=True, control=True)
    data = simple([b"x"], producer_id=1, transactional=True) + empty + simple(
        [b"y"], base_offset=2, producer_id=1, transactional=True)
    assert offsets(twin, data, aborted=[(1, 0)]) == []
    assert list(control_records(data)) == []


def test_a_batch_that_compaction_emptied_moves_the_position(twin: Any) -> None:
    empty = bytes(write_batch([], base_offset=5, last_offset=9, producer_id=3, epoch=1, base_sequence=7,
                              max_timestamp=44, leader_epoch=2, codec=1))
    info, = twin.scan(empty)
    assert (info.count, info.base_offset, info.last_offset, info.codec, info.size) == (0, 5, 9, 0, 61)
    assert (info.base_timestamp, info.max_timestamp, info.last_sequence, info.leader_epoch) == (-1, 44, 11, 2)
    cursor = twin.Cursor(empty, "t", 0, 5)
    assert (cursor.exhausted, cursor.position) == (True, 10)
    assert twin.read_columns(empty, "t", 0, 5, 99).next_offset == 10
    cursor = twin.Cursor(empty + simple([b"a"], base_offset=10), "t", 0, 5)
    assert [m.offset() for m in cursor.take(9)] == [10]


@pytest.mark.parametrize("codec", range(5))
def test_gaps_that_compaction_left_stay(twin: Any, codec: int) -> None:
    rows = [(7, 5, None, b"a", []), (12, 3, None, b"b", [])]
    data = bytes(write_batch(rows, base_offset=5, last_offset=20, codec=codec))
    cursor = twin.Cursor(data, "t", 0, 5)
    assert [(m.offset(), m.timestamp()) for m in cursor.take(9)] == [(7, (1, 5)), (12, (1, 3))]
    assert cursor.position == 21
    columns = twin.read_columns(data, "t", 0, 8, 99)
    assert (struct.unpack("<q", columns.offsets), columns.next_offset) == ((12,), 21)


def test_the_delete_horizon_stands_in_for_the_base_timestamp(twin: Any) -> None:
    data = bytes(write_batch([(0, 500, b"k", None, []), (1, 900, b"l", b"v", [])], delete_horizon_ms=86_400_000))
    info, = twin.scan(data)
    assert (info.delete_horizon_ms, info.base_timestamp, info.max_timestamp) == (86_400_000, 86_400_000, 900)
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(9)] == [(1, 500), (1, 900)]
    assert twin.scan(simple([b"a"]))[0].delete_horizon_ms is None


def test_sequence_numbers_go_on_from_0_behind_the_largest() -> None:
    def last(base: int, count: int) -> int:
        return BatchInfo(0, count - 1, 2, 0, -1, 0, 0, 1, 0, base, count, 0, 99).last_sequence

    assert [last(5, 3), last((1 << 31) - 1, 1), last((1 << 31) - 1, 2), last((1 << 31) - 2, 4), last(-1, 4)] == [
        7, (1 << 31) - 1, 0, 1, -1]


def test_headers_may_be_null_nameless_and_twice_there(twin: Any) -> None:
    headers = [(b"", None), (b"a", b""), (b"a", b"x"), (b"", b"y"), (b"a", b"x")]
    data = batch([(1, None, None, headers)], twin_builder=twin.BatchBuilder)
    message, = twin.Cursor(data, "t", 0, 0).take(2)
    assert message.headers() == [(name.decode(), value) for name, value in headers]
    assert twin.read_columns(data, "t", 0, 0, 9, want_headers=True).headers.total == 5


def test_timestamps_count_on_behind_the_largest_as_in_java(twin: Any) -> None:
    largest = (1 << 63) - 1
    rows = [(-1, None, b"a", []), (largest, None, b"b", []), (0, None, b"c", [])]
    data = batch(rows, twin_builder=twin.BatchBuilder)
    assert data == write_batch([(n, *row) for n, row in enumerate(rows)], leader_epoch=7)
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(9)] == [(1, -1), (1, largest), (1, 0)]


def test_offsets_that_a_batch_cannot_have_are_refused() -> None:
    row = (5, 1, None, None, [])
    far = (1 << 40, 1, None, None, [])
    for rows, how in (([row, row], {}), ([row], {"base_offset": 6}), ([far], {"base_offset": 0}), ([], {}),
                      ([], {"base_offset": 5}), ([row], {"last_offset": 4})):
        with pytest.raises(ValueError, match="offset"):
            write_batch(rows, **how)  # type: ignore[arg-type]


def test_only_what_is_whole_is_read_and_a_single_byte_may_be_missing(twin: Any) -> None:
    data = simple([b"a"]) + bytes(JAVAS_MARKER) + simple([b"b"], base_offset=6)
    for missing in (1, 40, 60, 62):
        assert len(twin.scan(data[:-missing])) == 2
        assert offsets(twin, data[:-missing]) == [0]


def test_a_batch_with_the_brokers_time_keeps_the_producers_below(twin: Any) -> None:
    data = bytearray(batch([(5, None, b"a", []), (9, None, b"b", [])], leader_epoch=-1))
    twin.set_log_append_time(data, 77)
    assert data == write_batch([(0, 5, None, b"a", []), (1, 9, None, b"b", [])], log_append_time_ms=77)
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(9)] == [(2, 77), (2, 77)]
    data[22] &= ~8
    resum(data)
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(9)] == [(1, 5), (1, 9)]
