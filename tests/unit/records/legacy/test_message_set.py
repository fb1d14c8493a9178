"""Message sets of the formats 0 and 1 as old brokers keep them: what is read, and what is refused."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import CorruptRecordError
from headrace.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from headrace.records.legacy.message_set_writer import write_message_set
from tests.support.peak_memory import peak_bytes
from tests.unit.records.samples import LIMIT, contents, simple, tabled, taken, told

from .by_hand import message, wrapper

quick = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(twin: Any, data: bytes, first: int = 0, **how: Any) -> list[tuple[Any, ...]]:
    """Offset, timestamp, key and value of all records, and the same from columns."""
    cursor = twin.Cursor(data, "t", 1, first, **how)
    rows = [(m.offset(), m.timestamp(), m.key(), m.value()) for m in cursor.take(1000)]
    assert cursor.exhausted or cursor.take(1) == []
    columns = twin.read_columns(data, "t", 1, first, 1 << 62, **how)
    count = columns.rows
    found = zip(struct.unpack(f"<{count}q", columns.offsets), struct.unpack(f"<{count}q", columns.timestamps),
                struct.unpack(f"<{count}i", columns.timestamp_types), strict=True)
    assert [(offset, (kind + 1, micros // 1000 if kind >= 0 else 0)) for offset, micros, kind in found] == [
        row[:2] for row in rows]
    return rows


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_read_beside_batches(twin: Any, magic: int) -> None:
    data = message(3, b"a", b"k", magic=magic) + message(4, None, magic=magic) + simple([b"new"], base_offset=5)
    stamp = (1, 7) if magic else (0, 0)
    assert read(twin, data, 3) == [(3, stamp, b"k", b"a"), (4, stamp, None, None), (5, (1, 1000), None, b"new")]
    assert [info.magic for info in twin.scan(data)] == [magic, magic, 2]
    twin.verify(data)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_sets_are_read_from_the_middle(twin: Any, magic: int, codec: int) -> None:
    data = bytes(write_message_set(magic, [(offset, 7, None, b"v") for offset in (10, 11, 12)], codec))
    cursor = twin.Cursor(data, "t", 0, 11)
    assert [m.offset() for m in cursor.take(1)] == [11]
    assert (cursor.position, cursor.exhausted) == (12, False)
    assert [m.offset() for m in cursor.take(9)] == [12]
    assert (cursor.position, cursor.exhausted) == (13, True)
    assert [row[0] for row in read(twin, data, 12)] == [12]


def test_relative_offsets_count_back_from_the_wrapper_where_compaction_left_gaps(twin: Any) -> None:
    inner = message(2, b"c") + message(5, b"f")  # 0, 1, 3 and 4 were compacted away
    assert [row[0] for row in read(twin, wrapper(inner, 105))] == [102, 105]
    inner = message(102, b"c", magic=0) + message(105, b"f", magic=0)
    assert [row[0] for row in read(twin, wrapper(inner, 105, magic=0))] == [102, 105]


def test_the_offsets_of_a_wrapper_at_0_are_taken_as_they_are(twin: Any) -> None:
    assert [row[0] for row in read(twin, wrapper(message(0, b"a") + message(1, b"b"), 0))] == [0, 1]


def test_the_brokers_timestamp_stands_in_the_wrapper(twin: Any) -> None:
    inner = message(0, b"a", timestamp=5) + message(1, b"b", timestamp=6)
    assert [row[1] for row in read(twin, wrapper(inner, 1, timestamp=99, by_broker=True))] == [(2, 99), (2, 99)]
    assert [row[1] for row in read(twin, wrapper(inner, 1, timestamp=99))] == [(1, 5), (1, 6)]
    assert read(twin, message(0, b"a", attributes=8, timestamp=44))[0][1] == (2, 44)
    assert read(twin, message(0, b"a", attributes=8, magic=0))[0][1] == (0, 0)


def test_a_part_of_a_message_at_the_end_is_left_out(twin: Any) -> None:
    whole = message(3, b"a", b"k") + wrapper(message(0, b"b"), 4)
    for size in range(len(message(3, b"a", b"k")), len(whole)):
        assert [row[0] for row in read(twin, whole[:size])] == [3]
        assert len(twin.scan(whole[:size])) == 1
    assert twin.Cursor(whole[:20], "t", 0, 3).exhausted


def test_a_message_longer_than_the_bytes_is_not_whole(twin: Any) -> None:
    data = bytearray(message(0, b"a") + message(1, b"b"))
    struct.pack_into(">i", data, len(message(0, b"a")) + 8, 0x7FFFFFFF)
    assert [row[0] for row in read(twin, bytes(data))] == [0]


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_an_unknown_format_is_damage_however_little_is_there(twin: Any, magic: int) -> None:
    data = bytearray(message(5, b"a"))
    struct.pack_into(">b", data, 16, magic)
    for size in (17, 18, len(data)):
        with pytest.raises(CorruptRecordError, match=rf"offset 5 of t\[4\]: unknown format {magic}"):
            twin.scan(bytes(data[:size]), "t", 4)
        with pytest.raises(CorruptRecordError, match="unknown format"):
            twin.Cursor(bytes(data[:size]), "t", 4, 0).take(1)


REFUSED = {
    "empty": wrapper(b"", 9),
    "null": message(9, None, attributes=GZIP),
    "nested": wrapper(wrapper(message(0, b"a"), 0), 9),
    "other format": wrapper(message(0, b"a", magic=0), 9),
    "a batch": wrapper(simple([b"a"]), 9),
    "zstd": wrapper(message(0, b"a"), 9, codec=ZSTD),
    "codec 7": message(9, b"x", attributes=7),
    "cut inside": wrapper(message(0, b"a")[:-1], 9),
    "trailing bytes": wrapper(message(0, b"a") + b"\0" * 9, 9),
    "offsets before 0": wrapper(message(11, b"a"), 9),
    "offsets too large": wrapper(message((1 << 63) - 1, b"a") + message(0, b"b"), 9),
    "not compressed": message(9, b"value", attributes=GZIP),
    "short": struct.pack(">qiIbb", 9, 13, 0, 1, 0) + bytes(20),
    "last offset of all": message((1 << 63) - 1, b"a"),
    "key too long": message(9, b"a")[:26] + b"\0\0\0\x09" + message(9, b"a")[30:],
    "negative key": message(9, b"a")[:26] + b"\xff\xff\xff\xfe" + message(9, b"a")[30:],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_broker_keeps_is_damage(twin: Any, name: str) -> None:
    for check in (True, False):
        cursor = twin.Cursor(message(5, b"in front") + REFUSED[name], "t", 0, 0, check_crcs=check)
        assert [m.value() for m in cursor.take(9)] == [b"in front"]
        with pytest.raises(CorruptRecordError):
            cursor.take(1)
        with pytest.raises(CorruptRecordError):
            twin.read_columns(REFUSED[name], "t", 0, 0, 1 << 62, check_crcs=check)


def test_checksums_of_wrapped_messages_are_compared_when_asked(twin: Any) -> None:
    inner = bytearray(message(0, b"a"))
    inner[-1] ^= 1
    data = wrapper(bytes(inner), 0)
    with pytest.raises(CorruptRecordError, match="checksum"):
        twin.Cursor(data, "t", 0, 0).take(1)
    assert [m.value() for m in twin.Cursor(data, "t", 0, 0, check_crcs=False).take(1)] == [b"`"]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_wrapper_may_not_decompress_to_more_than_the_limit(twin: Any, codec: int) -> None:
    data = wrapper(message(0, bytes(1 << 24)), 0, codec=codec)

    def refused() -> None:
        for act in (lambda: twin.Cursor(data, "t", 0, 0, max_decompressed_bytes=1000).take(1),
                    lambda: twin.read_columns(data, "t", 0, 0, 9, max_decompressed_bytes=1000)):
            with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
                act()

    assert peak_bytes(refused) < 1 << 22


def test_records_of_a_large_set_are_made_one_by_one(twin: Any) -> None:
    inner = b"".join(message(offset, None, magic=0) for offset in range(50_000))
    data = wrapper(inner, 49_999, magic=0)

    def read() -> None:
        cursor = twin.Cursor(data, "t", 0, 0, check_crcs=False)
        count = sum(len(cursor.take(10)) for _ in range(100))
        assert (count, cursor.position) == (1000, 1000)

    assert peak_bytes(read) < 3 * len(inner)


sets = st.builds(
    lambda magic, codec, rows, first: bytes(write_message_set(
        magic, [(first + index, *row) for index, row in enumerate(rows)], codec)),
    st.integers(0, 1), st.integers(0, 3), st.lists(st.tuples(st.integers(-1, 2**62), contents, contents), min_size=1,
                                                   max_size=6), st.integers(0, 2**40))


@quick
@given(data=st.lists(sets, min_size=1, max_size=3), changes=st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4), cut=st.integers(0, 40), sums=st.booleans(),
    step=st.integers(1, 9), first=st.sampled_from([0, 2, 2**39]))
def test_the_twins_agree_on_sound_and_on_damaged_sets(
    native: Any, plain: Any, data: list[bytes], changes: list[tuple[int, int]], cut: int, sums: bool, step: int,
    first: int
) -> None:
    damaged = bytearray(b"".join(data) + simple([b"new"], base_offset=2**41))
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    given_bytes = bytes(damaged[: len(damaged) - cut])
    how = {"check_crcs": sums, "max_decompressed_bytes": LIMIT}
    assert taken(native, given_bytes, step, first, **how) == taken(plain, given_bytes, step, first, **how)
    assert tabled(native, given_bytes, first, **how) == tabled(plain, given_bytes, first, **how)
    assert told(native.scan, given_bytes) == told(plain.scan, given_bytes)
    assert told(native.verify, given_bytes) == told(plain.verify, given_bytes)
