from __future__ import annotations

import struct
from typing import Any

import pytest

from headrace.errors import CorruptRecordError

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
