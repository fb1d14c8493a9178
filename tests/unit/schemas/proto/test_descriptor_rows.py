"""Protobuf's bytes, as far as descriptors need them."""

import random
from contextlib import suppress

import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.descriptor_rows import Wire, bytes_field, number_field, wire_fields


def test_fields_are_read_as_they_were_written() -> None:
    data = number_field(1, 5) + bytes_field(2, "text") + number_field(1, -1) + bytes_field(200, b"\0" * 300)
    assert list(wire_fields(data)) == [(1, 5), (2, b"text"), (1, (1 << 64) - 1), (200, b"\0" * 300)]
    wire = Wire(data)
    assert (wire.number(1), wire.text(2), wire.text(3), wire.number(9, 4)) == (-1, "text", "", 4)
    assert (wire.has(2), wire.has(3), wire.parts(200)) == (True, False, [b"\0" * 300])


def test_numbers_may_be_packed() -> None:
    assert Wire(number_field(3, 1) + bytes_field(3, b"\x02\x80\x01")).numbers(3) == [1, 2, 128]


def test_fields_of_fixed_size_are_passed_over() -> None:
    assert list(wire_fields(b"\x09" + b"a" * 8 + b"\x15" + b"b" * 4)) == [(1, b"a" * 8), (2, b"b" * 4)]


@pytest.mark.parametrize("data", [
    b"\x00", b"\x0b", b"\x08", b"\x08" + b"\xff" * 11, b"\x12\x05abc", b"\x09abc", b"\x12",
    b"\x12" + b"\xff" * 9 + b"\x01"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidSchemaError, match="the bytes are no descriptor"):
        list(wire_fields(data))


def test_a_text_must_be_utf_8() -> None:
    with pytest.raises(InvalidSchemaError, match="UTF-8"):
        Wire(bytes_field(1, b"\xff")).text(1)


def test_any_bytes_are_fields_or_refused() -> None:
    chance, read = random.Random(3), 0
    for _ in range(2000):
        with suppress(InvalidSchemaError):
            list(wire_fields(chance.randbytes(chance.randrange(20))))
            read += 1
    assert 0 < read < 2000
