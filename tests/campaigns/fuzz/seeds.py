"""What a fuzzer begins with: valid inputs of every target, made anew from a fixed seed."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

from headrace.records import compress
from tests.campaigns.hostile import batches, bombs, frames

from . import codecs, native


def write(target: str, folder: Path) -> None:
    """Write the inputs into a folder, named by what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in {"native": _native, "codecs": _codecs, "compression": _compression}[target](Random(1)):
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def _native(chance: Random) -> Iterator[bytes]:
    readers = [native.ENTRIES.index(entry) for entry in (native.cursor, native.columns, native.headers)]
    for how in range(256):
        draft = batches.Draft(chance)
        plain = how & 2 and not how & 1
        data = bytes(draft.seal(packed=bytes(draft.records)) if plain else draft.seal())
        if chance.random() < 0.2 and not plain:
            data += batches.message_set(chance)
        yield bytes([chance.choice(readers), how]) + data
    for _ in range(60):
        data = bytes(batches.Draft(chance).seal())
        yield bytes([native.ENTRIES.index(native.changing), 7]) + chance.randbytes(14) + data
        yield bytes([native.ENTRIES.index(native.arrow), chance.randrange(256)]) + _arrow(chance)
        for entry in (native.produced, native.built):
            yield bytes([native.ENTRIES.index(entry), chance.randrange(256)]) + chance.randbytes(chance.randrange(200))
        for entry in (native.joined, native.joined_columns):
            yield bytes([native.ENTRIES.index(entry), chance.randrange(256)]) + _cells(chance)
        yield bytes([native.ENTRIES.index(native.sums), 9]) + chance.randbytes(chance.choice((5, 30, 900, 4000)))


def _cells(chance: Random) -> bytes:
    """Keys, values and columns: what `native.joined` and `native.joined_columns` take."""
    out = bytearray()
    for _ in range(chance.randrange(1, 9)):
        piece = chance.choice(("plain text of some length", '"quoted" \\ \n\0', "\u00fc\u20ac\U0001f600")).encode()
        offsets = struct.pack("<3i", 0, len(piece) // 2, len(piece))
        for part in (piece + chance.randbytes(chance.randrange(3)), offsets):
            out += bytes([0, len(part)]) + part
    return bytes(out)


def _arrow(chance: Random) -> bytes:
    """Arrays as they should be: what `native.arrow` takes, in its order."""
    out = bytearray([chance.randrange(256), 50 + 4])  # the buffer, four rows
    for _ in range(2):
        out += _array(chance, 4, True)
    out += bytes([0, 16]) + struct.pack("<4i", *(chance.randrange(-1, 3) for _ in range(4)))
    out += bytes([0, 32]) + struct.pack("<4q", *(chance.randrange(100) for _ in range(4)))
    out += _array(chance, 4, False) + _array(chance, 9, True) + _array(chance, 9, True)
    return bytes(out)


def _array(chance: Random, rows: int, binary: bool) -> bytes:
    ends = [0]
    for _ in range(rows):
        ends.append(ends[-1] + chance.randrange(3))
    large = chance.random() < 0.3
    offsets = struct.pack(f"<{rows + 1}{'q' if large else 'i'}", *ends)
    validity = None if chance.random() < 0.5 else chance.randbytes(2)
    out = bytearray([(validity is None) | 2 * (not binary) | 8 * large])
    for piece in (validity, offsets, b"x" * ends[-1] if binary else None):
        if piece is not None:
            out += bytes([len(piece)]) + piece
    return bytes(out)


def _codecs(chance: Random) -> Iterator[bytes]:
    for kind, cls, version in frames.kinds():
        data = frames.make(chance, kind, cls, version).data
        if kind == "inner":
            yield bytes([codecs.INNER, codecs.number_of(cls), version]) + data
        else:
            yield bytes([codecs.REQUEST if kind == "request" else codecs.RESPONSE, cls.api_key & 0xFF, version]) + data


def _compression(chance: Random) -> Iterator[bytes]:
    for codec in range(5):
        for size in (0, 1, 20, 300, 3000):
            for limit in (2, 3, 4):
                yield bytes([codec, limit]) + compress(codec, chance.randbytes(size // 3) * 3)
    for _, codec, packed in bombs.payloads():
        if len(packed) < 4000:
            yield bytes([codec, 4]) + packed
    yield bytes([5, 0]) + compress(3, b"old" * 9)
