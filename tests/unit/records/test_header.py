"""What headers of batches say, and what no header can say."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import CorruptRecordError
from headrace.records.batch_writer import write_batch, write_end_marker
from headrace.records.header import HEADER_BYTES, BatchInfo, check_sum, read_info, scan, scan_to_damage

from .samples import batch, record_lists, simple


def test_scan_tells_what_the_headers_say_and_leaves_out_a_part_at_the_end(twin: Any) -> None:
    first = simple([b"a", b"b"], base_offset=10, codec=2)
    second = simple([b"c"], base_offset=15, producer_id=9, transactional=True, control=True, leader_epoch=4)
    data = first + second + first[:-1]
    one, two = twin.scan(data)
    assert (one.base_offset, one.last_offset, one.count, one.codec, one.position, one.size) == (
        10, 11, 2, 2, 0, len(first))
    assert (two.base_offset, two.last_offset, two.position) == (15, 15, len(first))
    assert (two.is_control, two.is_transactional, two.producer_id, two.leader_epoch) == (True, True, 9, 4)
    assert (one.base_timestamp, one.max_timestamp, one.magic) == (1000, 1001, 2)
    assert not one.is_log_append_time
    for size in range(len(first)):
        assert twin.scan(first[:size]) == []


def test_a_header_that_cannot_be_true_is_damage(twin: Any) -> None:
    whole = simple([b"a", b"b"])
    for at, kind, number in ((0, ">q", -1), (8, ">i", 20), (8, ">i", -1), (23, ">i", -1), (57, ">i", -5),
                             (57, ">i", 3), (16, ">b", 3), (16, ">b", -1)):
        data = bytearray(whole)
        struct.pack_into(kind, data, at, number)
        with pytest.raises(CorruptRecordError, match=r"t\[4\]"):
            twin.scan(bytes(data), "t", 4)


def test_verify_finds_a_changed_bit_in_whatever_batch(twin: Any) -> None:
    data = bytearray(simple([b"a"] * 10) + simple([b"b"] * 10, base_offset=10))
    twin.verify(data)
    data[-1] ^= 0x40
    with pytest.raises(CorruptRecordError, match=r"offset 10 of t\[0\]: checksum"):
        twin.verify(data, "t", 0)


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


@settings(max_examples=60)
@given(st.lists(st.tuples(record_lists, st.integers(0, 2**40), st.integers(0, 4)), min_size=1, max_size=4))
def test_headers_of_batches_are_found_one_behind_the_other(given_batches: list[Any]) -> None:
    batches = [batch(rows, base_offset=first, codec=codec) for rows, first, codec in given_batches]
    infos = scan(b"".join(batches))
    assert [(info.base_offset, info.count, info.codec, info.size) for info in infos] == [
        (first, len(rows), codec, len(data))
        for (rows, first, codec), data in zip(given_batches, batches, strict=True)]
    assert [info.position for info in infos] == [sum(map(len, batches[:index])) for index in range(len(batches))]


def test_a_header_is_read_at_the_place_that_is_asked_for() -> None:
    data = memoryview(simple([b"a"]) + simple([b"b", b"c"], base_offset=1))
    first = read_info(data, 0)
    assert first is not None
    second = read_info(data, first.size)
    assert second is not None
    assert (second.base_offset, second.last_offset, second.position) == (1, 2, first.size)
    assert read_info(data, len(data)) is None
    assert read_info(data[:first.size + HEADER_BYTES - 1], first.size) is None


def test_what_is_in_front_of_damage_can_be_had_without_an_error() -> None:
    good, bad = simple([b"a"]), bytearray(simple([b"b"], base_offset=1))
    bad[16] = 3
    assert scan_to_damage(good + bytes(bad)) == scan(good)
    assert scan_to_damage(good + simple([b"b"], base_offset=1)) == scan(good + simple([b"b"], base_offset=1))
    assert scan_to_damage(bytes(bad)) == []


@pytest.mark.parametrize("at", [21, 30, 57, 61, -1])
def test_a_checksum_covers_everything_from_the_attributes_on(at: int) -> None:
    data = bytearray(simple([b"a", b"b"]))
    (info,) = scan(data)
    check_sum(memoryview(data), info)
    data[at] ^= 0x10
    with pytest.raises(CorruptRecordError, match=r"batch at offset 0 of t\[7\]: checksum is 0x[0-9a-f]{8}"):
        check_sum(memoryview(data), info, "t", 7)


@pytest.mark.parametrize("at", [0, 7, 12, 15])
def test_a_checksum_does_not_cover_what_a_broker_sets(at: int) -> None:
    data = bytearray(simple([b"a", b"b"]))
    (info,) = scan(data)
    data[at] ^= 1
    check_sum(memoryview(data), info)


def test_each_flag_has_a_bit_of_its_own() -> None:
    plain = [(0, 5, b"k", b"v", [])]
    flags = ("is_log_append_time", "is_transactional", "is_control", "delete_horizon_ms")
    for how, name in (({"log_append_time_ms": 9}, "is_log_append_time"), ({"transactional": True}, "is_transactional"),
                      ({"control": True}, "is_control"), ({"delete_horizon_ms": 9}, "delete_horizon_ms")):
        (info,) = scan(write_batch(plain, **how))  # type: ignore[arg-type]
        assert [flag for flag in flags if getattr(info, flag)] == [name]
    (info,) = scan(write_end_marker(True, 1, 0, 0, 5))
    assert [flag for flag in flags if getattr(info, flag)] == ["is_transactional", "is_control"]


def test_a_header_alone_is_a_whole_batch_that_compaction_emptied() -> None:
    empty = memoryview(write_batch([], base_offset=3, last_offset=5))
    assert len(empty) == HEADER_BYTES
    (info,) = scan(empty)
    assert (info.base_offset, info.last_offset, info.count, info.size) == (3, 5, 0, HEADER_BYTES)


@pytest.mark.parametrize(("base", "whole"), [(2**63 - 2, True), (2**63 - 1, False)])
def test_the_last_offset_of_all_is_no_records_because_none_could_be_behind_it(base: int, whole: bool) -> None:
    data = bytearray(simple([b"a"]))
    struct.pack_into(">q", data, 0, base)
    if whole:
        assert scan(data)[0].last_offset == base
    else:
        with pytest.raises(CorruptRecordError, match="bad header"):
            scan(data)
