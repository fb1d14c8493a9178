"""One record of a batch: zigzag varints, length-prefixed bytes, and every read checked against the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import CorruptRecordError
from headrace.records.record import (
    Record,
    encode_record,
    read_all,
    read_record,
    read_varint,
    take_bytes,
    wrapped,
    write_bytes,
    write_varint,
)

from .samples import contents

numbers = st.integers(-2**63, 2**63 - 1) | st.sampled_from([0, -1, 63, 64, -64, -65, 2**63 - 1, -2**63])
headers = st.lists(st.tuples(st.text(max_size=4), contents), max_size=3)
records = st.builds(lambda time, offset, key, value, pairs: Record(time, offset, key, value, pairs or None),
                    numbers, st.integers(0, 2**31 - 1), contents, contents, headers)


def varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def encoded(record: Record) -> bytes:
    return encode_record(record.timestamp_delta, record.offset_delta, record.key, record.value,
                         [(name.encode(), content) for name, content in record.headers or ()])


def body_of(record: Record) -> memoryview:
    """A record without its length."""
    data = memoryview(encoded(record))
    _, at = read_varint(data, 0)
    return data[at:]


def test_small_numbers_of_either_sign_take_one_byte() -> None:
    assert [varint(value) for value in (0, -1, 1, -2, 63, -64)] == [b"\0", b"\x01", b"\x02", b"\x03", b"\x7e", b"\x7f"]
    assert [varint(value) for value in (64, -65, 300)] == [b"\x80\x01", b"\x81\x01", b"\xd8\x04"]
    assert len(varint(-2**63)) == 10


@given(numbers, st.binary(max_size=5))
def test_a_number_is_read_back_wherever_it_stands(value: int, before: bytes) -> None:
    written = varint(value)
    assert read_varint(memoryview(before + written + b"\xff"), len(before)) == (value, len(before) + len(written))


@given(numbers)
def test_a_number_that_is_cut_short_is_damage(value: int) -> None:
    written = varint(value)
    for size in range(len(written)):
        with pytest.raises(CorruptRecordError, match="passes its end"):
            read_varint(memoryview(written[:size]), 0)


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\x02", b"\xff" * 11, b"\x80" * 10 + b"\0"])
def test_a_number_of_more_than_64_bits_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="more than 64 bits"):
        read_varint(memoryview(data), 0)


@given(contents)
def test_bytes_have_their_length_in_front_and_none_is_not_empty(data: bytes | None) -> None:
    out = bytearray()
    write_bytes(out, data)
    assert take_bytes(memoryview(out), 0) == (data, len(out))
    assert out.startswith(varint(-1 if data is None else len(data)))
    if data:
        with pytest.raises(CorruptRecordError, match="passes its end"):
            take_bytes(memoryview(out)[:-1], 0)


def test_a_length_below_minus_one_is_damage() -> None:
    with pytest.raises(CorruptRecordError, match="passes its end"):
        take_bytes(memoryview(varint(-2) + b"xx"), 0)


@given(st.integers(-2**65, 2**65))
def test_a_sum_of_timestamps_stays_in_64_bits(value: int) -> None:
    assert -2**63 <= wrapped(value) < 2**63
    assert (wrapped(value) - value) % 2**64 == 0


def test_the_largest_timestamp_is_followed_by_the_smallest() -> None:
    assert [wrapped(value) for value in (2**63 - 1, 2**63, -2**63 - 1)] == [2**63 - 1, -2**63, 2**63 - 1]


def test_a_record_is_what_the_specification_says() -> None:
    assert encode_record(5, 1, b"key", None, [(b"h", b"1")]) == bytes.fromhex(
        "1a" "00" "0a" "02" "06" "6b6579" "01" "02" "02" "68" "02" "31")


@given(records)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    assert read_record(body_of(record)) == record


@given(st.lists(records, max_size=5))
def test_the_records_of_a_batch_are_read_one_after_the_other(batch: list[Record]) -> None:
    plain = memoryview(b"".join(encoded(record) for record in batch))
    assert list(read_all(plain, len(batch))) == batch
    with pytest.raises(CorruptRecordError):
        list(read_all(plain, len(batch) + 1))
    with pytest.raises(CorruptRecordError, match="left behind the last record"):
        list(read_all(memoryview(bytes(plain) + b"\0"), len(batch)))


@given(records)
def test_a_record_that_is_cut_short_or_too_long_is_damage(record: Record) -> None:
    body = bytes(body_of(record))
    for size in {1, len(body) // 2, len(body) - 1}:
        with pytest.raises(CorruptRecordError):
            read_record(memoryview(body[:size]))
    with pytest.raises(CorruptRecordError, match="does not fit its fields"):
        read_record(memoryview(body + b"\0"))


@given(st.binary(max_size=40), st.integers(0, 4))
def test_nothing_but_corrupt_record_error_comes_out_of_random_bytes(data: bytes, count: int) -> None:
    try:
        found = list(read_all(memoryview(data), count))
    except CorruptRecordError:
        return
    assert len(found) == count


def test_a_header_without_a_name_and_a_count_of_headers_that_cannot_be_are_damage() -> None:
    fields = varint(0) + varint(0) + varint(-1) + varint(-1)
    with pytest.raises(CorruptRecordError, match="a header has no name"):
        read_record(memoryview(b"\0" + fields + varint(1) + varint(-1) + varint(-1)))
    for count in (-1, 2**31):
        with pytest.raises(CorruptRecordError, match="count of headers"):
            read_record(memoryview(b"\0" + fields + varint(count)))


def test_a_name_that_is_not_utf_8_is_mended() -> None:
    record = memoryview(encode_record(0, 0, None, None, [(b"\xff", b"x")]))
    assert read_record(record[1:]).headers == [("�", b"x")]
