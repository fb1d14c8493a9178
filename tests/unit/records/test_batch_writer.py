"""Batches with every field said: gaps, nothing left, the broker's time, markers."""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.records import Cursor, scan, verify
from headrace.records.batch_writer import write_batch, write_end_marker

from .samples import batch, contents, names, resum, simple, timestamps

rows = st.lists(st.tuples(st.integers(0, 1000), timestamps, contents, contents,
                          st.lists(st.tuples(names, contents), max_size=2)),
                min_size=1, max_size=8, unique_by=itemgetter(0)).map(lambda found: sorted(found, key=itemgetter(0)))


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


def test_a_batch_with_the_brokers_time_keeps_the_producers_below(twin: Any) -> None:
    data = bytearray(batch([(5, None, b"a", []), (9, None, b"b", [])], leader_epoch=-1))
    twin.set_log_append_time(data, 77)
    assert data == write_batch([(0, 5, None, b"a", []), (1, 9, None, b"b", [])], log_append_time_ms=77)
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(9)] == [(2, 77), (2, 77)]
    data[22] &= ~8
    resum(data)
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(9)] == [(1, 5), (1, 9)]


@settings(max_examples=80)
@given(rows=rows, first=st.integers(0, 2**40), codec=st.integers(0, 4))
def test_what_is_written_is_read_with_its_gaps(rows: list[Any], first: int, codec: int) -> None:
    moved = [(first + row[0], *row[1:]) for row in rows]
    data = bytes(write_batch(moved, codec=codec, leader_epoch=3))
    verify(data)
    found = Cursor(data, "t", 0, 0).take(100)
    assert [(m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or []) for m in found] == [
        (*row[:4], [(name.decode(), content) for name, content in row[4]]) for row in moved]
    (info,) = scan(data)
    assert (info.base_offset, info.last_offset, info.count) == (moved[0][0], moved[-1][0], len(moved))
    assert info.max_timestamp == max(row[1] for row in moved)


def test_everything_that_is_said_of_a_producer_stands_in_the_header() -> None:
    (info,) = scan(write_batch([(7, 5, None, b"v", [])], base_offset=4, last_offset=9, producer_id=11, epoch=2,
                               base_sequence=33, leader_epoch=8, transactional=True))
    assert (info.producer_id, info.epoch, info.base_sequence, info.leader_epoch) == (11, 2, 33, 8)
    assert (info.base_offset, info.last_offset, info.last_sequence) == (4, 9, 38)


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_marker_is_one_control_record_of_its_transaction(commit: bool) -> None:
    data = write_end_marker(commit, 5, 1, 7, 1234, offset=40, leader_epoch=2)
    verify(data)
    (info,) = scan(data)
    assert (info.base_offset, info.count, info.producer_id, info.epoch, info.leader_epoch) == (40, 1, 5, 1, 2)
    assert (info.is_control, info.is_transactional, info.max_timestamp) == (True, True, 1234)
    assert data != write_end_marker(not commit, 5, 1, 7, 1234, offset=40, leader_epoch=2)


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_a_batch_without_records_is_not_compressed(codec: int) -> None:
    batch = write_batch([], base_offset=5, last_offset=7, codec=codec)
    assert (len(batch), int.from_bytes(batch[21:23], "big"), int.from_bytes(batch[23:27], "big")) == (61, 0, 2)
