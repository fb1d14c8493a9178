"""What can be done to bytes. Every function takes a source of chance and bytes, and returns other bytes.

Places are (position, width): numbers of a fixed width, big-endian, or with width 0 a varint. Lengths and counts are
among them, so that a hostile one is met where it counts and not only by luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Place = tuple[int, int]

ENDLESS = b"\xff" * 12
VARINTS = (
    b"\x00", b"\x01", b"\x02", b"\x7f", b"\x80\x01", b"\xff\xff\x03", b"\x80\x80\x00",
    b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01", b"\xfe" + b"\xff" * 8 + b"\x01", ENDLESS)


def mutate(chance: Random, data: bytes, places: Sequence[Place] = (), other: bytes = b"") -> bytes:
    """One to four changes, one after the other.

    Args:
        chance: what is done.
        data: bytes that are as they should be.
        places: where numbers are in them.
        other: bytes to splice with.
    """
    for turn in range(chance.choice((1, 1, 1, 2, 4))):
        if turn:  # bytes may have moved: what is aimed at is less sure then
            places = [place for place in places if place[0] < len(data)]
        data = _change(chance, data, places, other)
    return data


def _change(chance: Random, data: bytes, places: Sequence[Place], other: bytes) -> bytes:
    if not data:
        return chance.randbytes(chance.randrange(8))
    what = chance.randrange(16)
    if places and what < 7:
        return set_number(chance, data, chance.choice(places))
    at = chance.choice(places)[0] if places and what & 1 else chance.randrange(len(data))
    if what < 9:
        return data[:at]
    if what < 11:
        return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]
    if what == 11:
        return data[:at] + chance.randbytes(min(4, len(data) - at)) + data[at + 4:]
    if what == 12:
        return data[:at] + other[chance.randrange(len(other) + 1):]
    if what == 13:  # the same again: nests, tags and records that come twice
        piece = data[at : at + chance.randrange(1, 40)]
        return data[: at + len(piece)] + piece * chance.choice((1, 2, 50)) + data[at + len(piece):]
    if what == 14:
        return data[:at] + data[at + chance.randrange(1, 20):]
    return data[:at] + bytes(min(len(data) - at, chance.randrange(1, 60))) + data[at:]


def set_number(chance: Random, data: bytes, place: Place) -> bytes:
    """Another number at a place: about the bytes that are left, an extreme, or a random one."""
    at, width = place
    if width == 0:
        end = at
        while end < len(data) - 1 and data[end] & 0x80:
            end += 1
        return data[:at] + chance.choice(VARINTS) + data[end + 1:]
    top = 1 << (8 * width)
    left = len(data) - at - width
    value = chance.choice((0, 1, -1, -2, top // 2 - 1, top // 2, top - 2, left, left + 1, left - 1, left // 2, 100_000,
                           chance.getrandbits(8 * width)))
    return data[:at] + (value % top).to_bytes(width, "big") + data[at + width:]
