"""Message sets become batches and batches message sets: what stays, what is lost, what is refused."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import records
from headrace.errors import CorruptRecordError, KafkaError, KafkaException
from headrace.records.compression import GZIP, LZ4, ZSTD, compress
from headrace.records.legacy.conversion import downgrade, upgrade
from headrace.records.legacy.message_set import resum_lz4
from headrace.records.legacy.message_set_writer import write_message_set
from tests.unit.records.samples import batch, contents, record_lists, resum, simple

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
Rows = list[tuple[int, int, bytes | None, bytes | None]]


@pytest.fixture(autouse=True)
def _use(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the conversion run on the twin."""
    for name in ("BatchBuilder", "Cursor", "scan", "set_log_append_time"):
        monkeypatch.setattr(records, name, getattr(twin, name))


def rows_of(data: bytes, first: int = 0) -> list[tuple[Any, ...]]:
    """Offset, timestamp, key, value, headers of all records."""
    found = records.Cursor(data, "t", 0, first).take(100_000)
    return [(m.offset(), m.timestamp(), m.key(), m.value(), m.headers()) for m in found]


@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize("magic", [0, 1])
@quick
@given(fields=st.lists(st.tuples(st.integers(-1, 2**62), contents, contents), min_size=1, max_size=9),
       first=st.integers(0, 2**40))
def test_a_message_set_becomes_one_batch_of_the_same_codec(
    magic: int, codec: int, fields: list[tuple[int, bytes | None, bytes | None]], first: int
) -> None:
    sent: Rows = [(first + index, *row) for index, row in enumerate(fields)]
    made = upgrade(write_message_set(magic, sent, codec), now_ms=5)
    info, = records.scan(made)
    records.verify(made)
    assert (info.magic, info.codec, info.base_offset, info.count, info.producer_id) == (2, codec, 0, len(sent), -1)
    times = [row[1] if magic else -1 for row in sent]
    assert rows_of(made) == [
        (index, (1, times[index]), row[2], row[3], None) for index, row in enumerate(sent)]
    assert info.max_timestamp == max(times)


@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize("magic", [0, 1])
@quick
@given(rows=record_lists, first=st.integers(0, 2**40))
def test_a_batch_becomes_a_message_set_with_its_own_offsets(
    magic: int, codec: int, rows: list[Any], first: int
) -> None:
    made = downgrade(batch(rows, base_offset=first, codec=codec, producer_id=7), magic)
    infos = records.scan(made)
    records.verify(made)
    assert {(info.magic, info.codec) for info in infos} == {(magic, codec)}
    assert (len(infos), infos[-1].last_offset) == (1 if codec else len(rows), first + len(rows) - 1)
    assert rows_of(made) == [(first + index, (1, row[0]) if magic else (0, 0), row[1], row[2], None)
                             for index, row in enumerate(rows)]


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_and_other_messages_of_one_set_become_one_compressed_batch(magic: int) -> None:
    rows: Rows = [(0, 7, None, b"a"), (1, 7, None, b"b")]
    packed, plain = (bytes(write_message_set(magic, rows, codec)) for codec in (GZIP, 0))
    for sent in (packed + plain, plain + packed):
        made = upgrade(sent, now_ms=5)
        assert [info.codec for info in records.scan(made)] == [GZIP]
        assert [row[3] for row in rows_of(made)] == [b"a", b"b"] * 2


def test_the_brokers_time_replaces_the_producers() -> None:
    sent: Rows = [(0, 7, b"k", b"v"), (1, 9, None, None)]
    for codec in (0, LZ4):
        made = upgrade(write_message_set(1, sent, codec), now_ms=1234, log_append_time=True)
        records.verify(made)
        assert [row[1] for row in rows_of(made)] == [(2, 1234), (2, 1234)]
        back = downgrade(made, 1)
        assert [row[1] for row in rows_of(back)] == [(2, 1234), (2, 1234)]
        assert records.scan(back)[0].is_log_append_time
        assert not records.scan(downgrade(made, 0))[0].is_log_append_time


def test_several_messages_and_wrappers_become_one_batch() -> None:
    data = write_message_set(1, [(5, 1, None, b"a")]) + write_message_set(1, [(0, 2, None, b"b")], GZIP) + (
        write_message_set(1, [(0, 3, None, b"c"), (1, 4, None, b"d")], GZIP))
    made = upgrade(data, now_ms=0)
    assert [(row[0], row[3]) for row in rows_of(made)] == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert records.scan(made)[0].codec == GZIP


def test_what_a_client_says_of_offsets_does_not_matter() -> None:
    data = bytearray(write_message_set(1, [(0, 1, None, b"a"), (1, 1, None, b"b")], GZIP))
    struct.pack_into(">q", data, 0, -1)
    assert len(rows_of(upgrade(data, now_ms=0))) == 2


def test_markers_headers_and_parts_of_batches_are_left_out() -> None:
    marker = simple([b"\0\0\0\0\0\0"], base_offset=2, producer_id=1, transactional=True, control=True)
    data = batch([(1, b"k", b"v", [(b"h", b"x")])], base_offset=1, producer_id=1, transactional=True) + marker + (
        simple([b"w"], base_offset=3))
    for magic in (0, 1):
        assert [(row[0], row[3], row[4]) for row in rows_of(downgrade(data + data[:70], magic))] == [
            (1, b"v", None), (3, b"w", None)]


def test_records_before_the_first_wanted_are_left_out_of_uncompressed_batches_only() -> None:
    plain, packed = simple([b"a", b"b", b"c"], base_offset=10), simple([b"a", b"b"], base_offset=13, codec=GZIP)
    assert [row[0] for row in rows_of(downgrade(plain + packed, 1, first_offset=12))] == [12, 13, 14]
    assert [row[0] for row in rows_of(downgrade(plain + packed, 1, first_offset=14))] == [13, 14]


def test_offsets_that_compaction_left_gaps_in_are_kept(twin: Any) -> None:
    gap = bytearray(simple([b"a", b"b"], base_offset=5))
    struct.pack_into(">i", gap, 23, 9)
    gap[-5] = 18  # the second record's offset is 9 behind the first one's
    resum(gap)
    expected = [(row[0], row[3]) for row in rows_of(bytes(gap))]
    assert expected == [(5, b"a"), (14, b"b")]
    for codec in (0, GZIP):
        data = gap if codec == 0 else bytearray(gap[:61] + compress(GZIP, gap[61:]))
        struct.pack_into(">i", data, 8, len(data) - 12)
        data[22] = codec
        resum(data)
        for magic in (0, 1):
            assert [(row[0], row[3]) for row in rows_of(downgrade(bytes(data), magic))] == expected


def test_what_is_old_enough_stays_and_what_is_newer_is_converted() -> None:
    old = write_message_set(0, [(0, -1, None, b"a"), (1, -1, None, b"b")], GZIP)
    newer = write_message_set(1, [(2, 5, None, b"c")])
    assert downgrade(old + newer, 1) == old + newer
    made = downgrade(old + newer + simple([b"d"], base_offset=3), 0)
    assert made[: len(old)] == old
    assert [info.magic for info in records.scan(made)] == [0, 0, 0]
    assert [(row[0], row[3]) for row in rows_of(made)] == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_zstd_is_not_for_old_formats() -> None:
    data = simple([b"a"], codec=ZSTD)
    for act in (lambda: downgrade(data, 1), lambda: write_message_set(0, [(0, 1, None, None)], ZSTD)):
        with pytest.raises(KafkaException, match=r"compression\.type") as caught:
            act()
        assert caught.value.error.code() == KafkaError.UNSUPPORTED_COMPRESSION_TYPE
    with pytest.raises(ValueError, match="format 0 or 1"):
        downgrade(data, 2)
    with pytest.raises(ValueError, match="format 0 or 1"):
        write_message_set(2, [])
    with pytest.raises(ValueError, match="does not follow"):
        write_message_set(1, [(1, 0, None, None), (1, 0, None, None)])


def wrapper(inner: bytes, codec: int = GZIP, magic: int = 1, offset: int = 9) -> bytes:
    """A message that wraps bytes that need not be sound."""
    packed = compress(codec, inner)
    body = bytes((magic, codec)) + (bytes(8) if magic else b"") + b"\xff\xff\xff\xff" + struct.pack(
        ">i", len(packed)) + packed
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_damaged_message_sets_are_refused() -> None:
    one = bytes(write_message_set(1, [(0, 5, b"k", b"v")]))
    wrong_sum = bytearray(one)
    wrong_sum[13] ^= 1
    for data in (
        b"", one[:-1], one + b"\0", one + one[:-3], bytes(wrong_sum), simple([b"a"]), one + simple([b"a"]),
        wrapper(b""), wrapper(wrapper(one)), wrapper(bytes(wrong_sum)), wrapper(one[:-1]), wrapper(one + b"\0" * 20),
        wrapper(one, magic=0), one + bytes(write_message_set(0, [(0, -1, None, None)])), wrapper(one, ZSTD),
        wrapper(one, GZIP) + wrapper(one, LZ4),
    ):
        with pytest.raises(CorruptRecordError):
            upgrade(data, now_ms=0)


def test_all_wrappers_together_may_not_decompress_to_more_than_the_limit() -> None:
    data = bytes(write_message_set(1, [(0, 5, None, bytes(6000))], GZIP))
    assert upgrade(data, now_ms=0, max_decompressed_bytes=7000)
    with pytest.raises(CorruptRecordError, match="more than"):
        upgrade(data + data, now_ms=0, max_decompressed_bytes=7000)
    with pytest.raises(CorruptRecordError, match="more than 500 bytes"):
        downgrade(simple([bytes(6000)], codec=GZIP), 1, max_decompressed_bytes=500)


def test_a_damaged_batch_is_not_given_a_new_checksum() -> None:
    data = bytearray(simple([b"aaaa"]))
    data[-3] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        downgrade(bytes(data), 1)


def test_a_freshly_sealed_batch_of_an_idempotent_producer_can_be_sent_to_an_old_broker(twin: Any) -> None:
    builder = twin.BatchBuilder(10_000, 10)
    for n in range(3):
        builder.append(5 + n, None, b"%d" % n)
    sealed = builder.seal(LZ4)
    sealed.stamp(77, 1, 5)
    assert [row[:2] for row in rows_of(downgrade(sealed.data, 1))] == [(0, (1, 5)), (1, (1, 6)), (2, (1, 7))]


def test_lz4_frames_of_format_0_have_the_checksum_that_javas_have() -> None:
    """Bytes of a set that Java 3.9.2 wrote: the sum of its frame's head covers the magic number (KAFKA-3160)."""
    javas = bytes.fromhex("000000000000000000000032c616a6d50003ffffffff0000002404224d1860401a1500000016000100511119"
                          "ecdc720f0080016100000002626200000000")
    assert rows_of(javas) == [(0, (0, 0), b"a", b"bb", None)]
    frame = javas[26:]
    assert resum_lz4(resum_lz4(frame), with_magic=True) == frame != resum_lz4(frame)
    made = write_message_set(0, [(0, -1, b"a", b"bb")], LZ4)
    assert made[26:] == resum_lz4(bytes(made[26:]), with_magic=True) != resum_lz4(bytes(made[26:]))
