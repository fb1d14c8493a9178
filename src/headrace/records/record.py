"""One record of a batch, and what it is made of: zigzag varints and length-prefixed bytes.

Every read is checked against the end. The layout is described in `headrace.records.batch`; read that next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.errors import CorruptRecordError

__all__ = ["Record", "encode_record", "read_all", "read_record", "read_varint", "take_bytes", "wrapped", "write_bytes",
           "write_varint"]


def wrapped(value: int) -> int:
    """A sum of timestamps in 64 bits, as Java and C count: the largest is followed by the smallest."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def write_varint(out: bytearray, value: int) -> None:
    """Append a number of at most 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def write_bytes(out: bytearray, data: bytes | None) -> None:
    """Append bytes with their length in front; -1 stands for None."""
    if data is None:
        out.append(1)
    else:
        write_varint(out, len(data))
        out += data


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it.

    Raises:
        CorruptRecordError: it passes the end or has more than 64 bits.
    """
    rest = 0
    for index, byte in enumerate(data[at : at + 10]):
        rest |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if rest >= 1 << 64:
                break
            return (rest >> 1) ^ -(rest & 1), at + index + 1
    raise CorruptRecordError("a number in a record passes its end or has more than 64 bits")


def take_bytes(data: memoryview, at: int) -> tuple[bytes | None, int]:
    """The length-prefixed bytes at a place, and the place behind them.

    Raises:
        CorruptRecordError: they pass the end.
    """
    size, at = read_varint(data, at)
    if size == -1:
        return None, at
    if not 0 <= size <= len(data) - at:
        raise CorruptRecordError("a field of a record passes its end")
    return bytes(data[at : at + size]), at + size


def encode_record(timestamp_delta: int, offset_delta: int, key: bytes | None, value: bytes | None,
                  headers: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """One record with its length in front."""
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    write_bytes(body, key)
    write_bytes(body, value)
    headers = list(headers)
    write_varint(body, len(headers))
    for name, content in headers:
        write_bytes(body, name)
        write_bytes(body, content)
    record = bytearray()
    write_varint(record, len(body))
    return bytes(record + body)


class Record(NamedTuple):
    """A record as it lies in its batch."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


def read_record(body: memoryview) -> Record:
    """Decode a record without its length.

    Raises:
        CorruptRecordError: a field passes the end, or something is left behind the last one.
    """
    timestamp, at = read_varint(body, 1)
    offset, at = read_varint(body, at)
    key, at = take_bytes(body, at)
    value, at = take_bytes(body, at)
    headers, at = _read_headers(body, at)
    if at != len(body):
        raise CorruptRecordError("a record's length does not fit its fields")
    return Record(timestamp, offset, key, value, headers)


def read_all(plain: memoryview, count: int) -> Iterator[Record]:
    """Decode the records of a batch, one by one.

    Raises:
        CorruptRecordError: one is damaged, or there are more bytes than records.
    """
    at = 0
    for _ in range(count):
        size, at = read_varint(plain, at)
        if not 0 < size <= len(plain) - at:
            raise CorruptRecordError("a record's length passes the end of its batch")
        yield read_record(plain[at : at + size])
        at += size
    if at != len(plain):
        raise CorruptRecordError("bytes are left behind the last record of a batch")


def _read_headers(body: memoryview, at: int) -> tuple[list[tuple[str, bytes | None]] | None, int]:
    count, at = read_varint(body, at)
    if not 0 <= count <= len(body) - at:
        raise CorruptRecordError("a record's count of headers passes its end")
    headers = []
    for _ in range(count):
        name, at = take_bytes(body, at)
        value, at = take_bytes(body, at)
        if name is None:
            raise CorruptRecordError("a header has no name")
        headers.append((name.decode(errors="replace"), value))
    return headers or None, at
