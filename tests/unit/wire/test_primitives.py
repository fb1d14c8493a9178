"""Varints, tagged fields, ids, and views of buffers."""

from __future__ import annotations

import array
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ProtocolError
from headrace.wire.primitives import (
    TINY,
    as_view,
    read_text_length,
    read_uuid,
    read_uvarint,
    write_tags,
    write_text_length,
    write_uvarint,
)

lengths = st.integers(0, 2**31 - 1) | st.sampled_from([0, 127, 128, 16_383, 16_384, 2**31 - 1])
tags = st.dictionaries(st.integers(0, 2**31 - 1), st.binary(max_size=200), max_size=4)


def tags_of(data: bytes) -> list[tuple[int, bytes]]:
    """What `write_tags` wrote, read field by field."""
    count, at = read_uvarint(data, 0)
    found = []
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        found.append((tag, data[at:at + size]))
        at += size
    assert at == len(data)
    return found


def test_a_varint_has_seven_bits_a_byte_and_the_lowest_first() -> None:
    assert [write_uvarint(value) for value in (0, 1, TINY - 1, TINY, 300)] == [
        b"\0", b"\x01", b"\x7f", b"\x80\x01", b"\xac\x02"]
    assert write_uvarint(2**31 - 1) == b"\xff\xff\xff\xff\x07"


@given(lengths, st.binary(max_size=5), st.binary(max_size=5))
def test_a_varint_is_read_back_wherever_it_stands(value: int, before: bytes, behind: bytes) -> None:
    written = write_uvarint(value)
    for data in (before + written + behind, memoryview(before + written + behind)):
        assert read_uvarint(data, len(before)) == (value, len(before) + len(written))
    assert (len(written) == 1) == (value < TINY)


@given(lengths)
def test_a_varint_that_is_cut_short_ends_too_early(value: int) -> None:
    written = write_uvarint(value)
    for size in range(len(written)):
        with pytest.raises(IndexError):
            read_uvarint(written[:size], 0)


@given(st.integers(2**31, 2**35 - 1))
def test_a_varint_that_can_be_no_length_is_refused(value: int) -> None:
    with pytest.raises(ProtocolError, match=f"a varint before byte 5 is too large: {value}"):
        read_uvarint(write_uvarint(value), 0)


def test_a_varint_of_more_than_five_bytes_is_refused_however_small_it_is() -> None:
    with pytest.raises(ProtocolError, match="a varint before byte 5 does not end"):
        read_uvarint(b"\x80\x80\x80\x80\x80\x00", 0)


def test_a_text_is_as_long_as_an_int16_can_say_at_most() -> None:
    for above in (0, 1, 128, 32_768):
        assert read_text_length(write_text_length(above), 0) == (above, len(write_uvarint(above)))
    with pytest.raises(ValueError, match="a string takes at most 32767 bytes, not 32768"):
        write_text_length(32_769)
    with pytest.raises(ProtocolError, match="a string before byte 3 has 32768 bytes; at most 32767 are allowed"):
        read_text_length(write_uvarint(32_769), 0)


@given(tags, tags)
def test_tagged_fields_are_written_in_the_order_of_their_numbers(
    known: dict[int, bytes], more: dict[int, bytes]
) -> None:
    unknown = {tag: data for tag, data in more.items() if tag not in known}
    out = bytearray(b"before")
    write_tags(out, sorted(known.items()), unknown, tuple(known))
    assert out.startswith(b"before")
    assert tags_of(bytes(out[6:])) == sorted({**known, **unknown}.items())


@pytest.mark.parametrize("tag", [-1, 3, 2**31])
def test_an_unknown_tagged_field_has_a_number_of_its_own(tag: int) -> None:
    with pytest.raises(ValueError, match=f"{tag} cannot be the number of an unknown tagged field"):
        write_tags(bytearray(), [], {tag: b""}, (3,))
    out = bytearray()
    write_tags(out, [], None, (3,))
    assert out == b"\0"


@given(st.uuids())
def test_an_id_is_the_uuid_of_its_bytes(uuid: UUID) -> None:
    assert read_uuid(uuid.bytes) == uuid


@given(st.binary(max_size=40))
def test_a_view_has_single_bytes_and_copies_none(data: bytes) -> None:
    writable = bytearray(data)
    for buffer in (data, writable, memoryview(data), memoryview(writable)[:len(data) // 2]):
        assert as_view(buffer) == bytes(buffer)
    numbers = array.array("i", range(5))
    view = as_view(memoryview(numbers))
    assert (view.format, view.nbytes, view.obj) == ("B", 5 * numbers.itemsize, numbers)
    assert as_view(memoryview(data).cast("c") if data else data) == data
