"""Control batches: markers of transactions, and what readers make of them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import CorruptRecordError
from headrace.records.batch_writer import write_batch, write_end_marker
from headrace.records.control import ABORT, COMMIT, CONTROL_NAMES, ControlRecord, control_records

from .samples import simple

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


def test_only_what_is_whole_is_read_and_a_single_byte_may_be_missing(twin: Any) -> None:
    data = simple([b"a"]) + bytes(JAVAS_MARKER) + simple([b"b"], base_offset=6)
    for missing in (1, 40, 60, 62):
        assert len(twin.scan(data[:-missing])) == 2
        assert offsets(twin, data[:-missing]) == [0]
