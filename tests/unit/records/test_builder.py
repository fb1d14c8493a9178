"""Batches as a producer builds them, and the few fields that are written into them later."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from headrace.errors import CorruptRecordError
from headrace.records.builder import BatchBuilder

from .samples import batch, fields, resum, simple

# "key" -> "value" with header h=1 at 1,000 ms, and a tombstone without key at 1,005 ms, written out by hand from
# KIP-98: what no twin may change.
BY_HAND = bytes.fromhex(
    "0000000000000000" "00000000" "ffffffff" "02" "00000000" "0000" "00000001"
    "00000000000003e8" "00000000000003ed" "ffffffffffffffff" "ffff" "ffffffff" "00000002"
    "24" "00" "00" "00" "06" "6b6579" "0a" "76616c7565" "02" "02" "68" "02" "31"
    "0c" "00" "0a" "02" "01" "01" "00")


def test_a_batch_is_what_the_specification_says(twin: Any) -> None:
    builder = twin.BatchBuilder(1000, 10)
    assert builder.append(1000, b"key", b"value", [(b"h", b"1")])
    assert builder.append(1005, None, None, [])
    sealed = builder.seal()
    expected = bytearray(BY_HAND)
    struct.pack_into(">i", expected, 8, len(expected) - 12)
    resum(expected)
    assert sealed.data == expected
    assert (sealed.count, sealed.size_bytes, sealed.max_timestamp) == (2, len(expected), 1005)


def test_a_batch_says_when_it_is_full(twin: Any) -> None:
    by_count, by_size = twin.BatchBuilder(10_000, 2), twin.BatchBuilder(150, 100)
    assert [by_count.append(1, None, b"x", []) for _ in range(3)] == [True, True, False]
    assert by_size.append(1, None, b"x" * 500, [])  # the first record always fits
    assert not by_size.append(1, None, b"x", [])
    assert (by_count.count, by_size.count) == (2, 1)
    assert by_size.seal().count == 1


def test_a_stamp_can_be_replaced_and_keeps_the_checksum_right(twin: Any) -> None:
    builder = twin.BatchBuilder(1000, 10)
    builder.append(1, None, b"x", [])
    sealed = builder.seal(1)
    plain_size = sealed.size_bytes
    for stamp in ((5, 0, 10, False), (5, 1, 20, True), (-1, -1, -1, False)):
        sealed.stamp(*stamp)
        twin.verify(sealed.data)
        info = twin.scan(sealed.data)[0]
        assert (info.producer_id, info.epoch, info.base_sequence, info.is_transactional) == stamp
        assert info.codec == 1
    assert sealed.size_bytes == plain_size


def test_a_broker_sets_offset_and_epoch_without_touching_the_checksum(twin: Any) -> None:
    data = bytearray(simple([b"a", b"b"]))
    twin.set_base_offset(memoryview(data), 1 << 40, 77)
    twin.verify(data)
    info = twin.scan(data)[0]
    assert (info.base_offset, info.last_offset, info.leader_epoch) == (1 << 40, (1 << 40) + 1, 77)


def test_log_append_time_replaces_every_records_timestamp(twin: Any) -> None:
    data = bytearray(simple([b"a", b"b"]))
    twin.set_log_append_time(data, 123_456)
    assert twin.scan(data)[0].is_log_append_time
    assert [m.timestamp() for m in twin.Cursor(data, "t", 0, 0).take(5)] == [(2, 123_456)] * 2


@pytest.mark.parametrize("codec", range(5))
def test_other_clients_read_what_is_written(twin: Any, codec: int) -> None:
    kafka_records = pytest.importorskip("aiokafka.record.default_records")
    data = batch([(5, b"k", b"v", [(b"h", None)]), (9, None, None, [])], codec=codec, base_offset=40,
                 twin_builder=twin.BatchBuilder)
    theirs = kafka_records.DefaultRecordBatch(bytearray(data))
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in theirs] == [
        (40, 5, b"k", b"v", [("h", None)]), (41, 9, None, None, [])]


def test_the_records_so_far_can_be_read_back() -> None:
    builder = BatchBuilder(1000, 10)
    builder.append(1000, b"k", b"a", [(b"h", None)])
    builder.append(995, None, None)
    assert [fields(m)[:7] for m in builder.read_back("t", 3)] == [
        ("t", 3, 0, b"k", b"a", [("h", None)], (1, 1000)), ("t", 3, 1, None, None, None, (1, 995))]
    assert builder.append(996, None, b"more")
    assert len(list(builder.read_back("t", 3))) == 3


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_is_as_large_as_was_said_while_it_is_not_compressed(twin: Any, codec: int) -> None:
    builder = twin.BatchBuilder(10_000, 100)
    sizes = []
    for number in range(20):
        sizes.append(builder.size_bytes)
        builder.append(number, b"key", b"value " * number)
    assert sizes == sorted(set(sizes))
    said, sealed = builder.size_bytes, builder.seal(codec)
    assert sealed.size_bytes == len(sealed.data)
    assert (sealed.size_bytes == said) == (codec == 0)


def test_a_sealed_builder_takes_no_more_records(twin: Any) -> None:
    builder = twin.BatchBuilder(1000, 10)
    builder.append(1, None, b"x", [])
    builder.seal()
    assert not builder.append(2, None, b"y", [])


def test_what_is_shorter_than_a_header_cannot_be_written_into(twin: Any) -> None:
    for write in (twin.set_base_offset, twin.set_log_append_time):
        with pytest.raises(CorruptRecordError, match="shorter than its header"):
            write(bytearray(60), *((1, 2) if write is twin.set_base_offset else (1,)))
