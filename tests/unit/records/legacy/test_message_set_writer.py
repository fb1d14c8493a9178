"""Message sets of the formats 0 and 1 as they are written: byte for byte, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import KafkaError, KafkaException
from headrace.records.compression import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD
from headrace.records.legacy.message_set import read_set
from headrace.records.legacy.message_set_writer import refuse_zstd, write_message_set
from tests.unit.records.samples import contents

from .by_hand import message, wrapper


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_what_the_protocol_says(magic: int) -> None:
    assert write_message_set(magic, [(3, 7, b"k", b"a"), (4, 7, None, None), (9, 7, b"", b"")]) == (
        message(3, b"a", b"k", magic=magic) + message(4, None, magic=magic) + message(9, b"", b"", magic=magic))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_wrapper_has_the_last_offset_and_the_largest_timestamp(codec: int) -> None:
    made = bytes(write_message_set(1, [(30, 5, None, b"a"), (31, 9, None, b"b"), (34, 2, b"k", None)], codec))
    inner = message(0, b"a", timestamp=5) + message(1, b"b", timestamp=9) + message(4, None, b"k", timestamp=2)
    assert made == wrapper(inner, 34, codec=codec, timestamp=9)
    assert bytes(write_message_set(1, [(30, 5, None, b"a")], codec, log_append_time_ms=77)) == wrapper(
        message(0, b"a", timestamp=77, attributes=8), 30, codec=codec, timestamp=77, by_broker=True)
    assert write_message_set(1, [], codec) == b""


@settings(max_examples=80)
@given(magic=st.integers(0, 1), codec=st.integers(GZIP, LZ4), first=st.integers(1, 2**40),
       rows=st.lists(st.tuples(st.integers(0, 2**40), contents, contents), min_size=1, max_size=6))
def test_a_compressed_set_is_read_as_it_was_written(
    magic: int, codec: int, first: int, rows: list[tuple[int, bytes | None, bytes | None]]
) -> None:
    sent = [(first + 2 * index, *row) for index, row in enumerate(rows)]
    found = read_set(memoryview(write_message_set(magic, sent, codec)), 0, 1 << 20, check_crcs=True)
    assert found.count == len(rows)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found.records] == [
        (offset, (1, time) if magic else (0, 0), key, value) for offset, time, key, value in sent]


def test_offsets_can_be_relative_to_what_a_log_says() -> None:
    made = bytes(write_message_set(1, [(30, 7, None, b"a"), (31, 7, None, b"b")], GZIP, base_offset=28))
    assert made == wrapper(message(2, b"a") + message(3, b"b"), 31)


@pytest.mark.parametrize("magic", [-1, 2])
def test_there_are_two_formats(magic: int) -> None:
    with pytest.raises(ValueError, match=f"message sets have format 0 or 1, not {magic}"):
        write_message_set(magic, [])


@pytest.mark.parametrize("offsets", [(3, 3), (3, 2), (-1,)])
def test_offsets_increase(offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="does not follow"):
        write_message_set(1, [(offset, 7, None, b"") for offset in offsets])


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_with_a_remedy_and_no_other_codec_is(magic: int) -> None:
    for refuse in (lambda: refuse_zstd(ZSTD, magic), lambda: write_message_set(magic, [], ZSTD)):
        with pytest.raises(KafkaException, match=r"choose one of them with compression\.type") as refused:
            refuse()
        assert refused.value.error.code() == KafkaError.UNSUPPORTED_COMPRESSION_TYPE
    for codec in range(len(CODEC_NAMES)):
        if codec != ZSTD:
            refuse_zstd(codec, magic)
