"""Compressed bytes that hold far more than they seem to, of every codec, in many disguises."""

from __future__ import annotations

import struct
from functools import cache
from random import Random
from typing import Any

from headrace.records import GZIP, LZ4, SNAPPY, ZSTD, compress

from .batches import Draft, message
from .mutations import mutate

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_EMPTY_RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"  # a record of seven bytes without key and value


@cache
def payloads() -> list[tuple[str, int, bytes]]:
    """(name, codec, bytes) of every bomb. They would fill 64 MiB each, or keep a reader busy."""
    big = bytes(64 << 20)
    found = [(f"zeros in {name}", codec, compress(codec, big))
             for name, codec in (("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD))]
    found += [(f"{name} in itself", codec, compress(codec, compress(codec, big)))
              for name, codec in (("gzip", GZIP), ("lz4", LZ4), ("zstd", ZSTD))]
    found += [(f"empty records in codec {codec}", codec, compress(codec, _EMPTY_RECORD * 2_000_000))
              for codec in (GZIP, SNAPPY, LZ4, ZSTD)]
    small, frame, nothing = compress(GZIP, b"x"), compress(ZSTD, b"x" * 1000), compress(GZIP, b"")
    found += [
        ("gzip of many members", GZIP, small * 2_000),
        ("gzip of empty members", GZIP, nothing * 2_000),
        ("gzip of many members, the last cut", GZIP, small * 500 + small[:-3]),
        ("zstd of many frames", ZSTD, frame * 500),
        ("zstd behind frames to skip", ZSTD, (b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip") * 200 + frame),
        ("zstd behind a frame to skip that looks like one", ZSTD, _disguised(compress(ZSTD, big))),
        ("zstd with a huge window", ZSTD, b"\x28\xb5\x2f\xfd\x00\xff" + b"\x03\x00\x10" + b"a" * 9),
        ("zstd that claims 2^62 bytes", ZSTD, b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 62) + b"\x01\x00\x00"),
        ("zstd runs", ZSTD, b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10a" * 300 + b"\x03\x00\x10a"),
        ("snappy that claims 4 GiB", SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\x00" * 20),
        ("snappy that claims 1 MiB", SNAPPY, b"\x80\x80\x40" + b"\x00" * 20),
        ("xerial blocks that claim 1 MiB", SNAPPY, _XERIAL + (struct.pack(">i", 5) + b"\x80\x80\x40\x00a") * 300),
        ("xerial blocks of nothing", SNAPPY, _XERIAL + bytes(4) * 2_000),
        ("xerial blocks of a byte", SNAPPY, _XERIAL + (struct.pack(">i", 3) + b"\x01\x00a") * 2_000),
        ("xerial block of negative length", SNAPPY, _XERIAL + struct.pack(">i", -1) + b"abc"),
        ("lz4 that claims 2^60 bytes", LZ4, _lz4_claim(1 << 60)),
        ("lz4 of many frames", LZ4, compress(LZ4, b"x" * 100) * 500),
    ]
    return found


def _disguised(frame: bytes) -> bytes:
    """A frame behind one to skip, which in turn looks like a frame whose only block reaches to the end of all."""
    flags = 0xE3  # a dictionary's id and a length of eight bytes: the block's head stands at byte 17
    skipped = bytearray(flags)
    size = 8 + len(skipped) + len(frame) - 20
    skipped[9:12] = (size << 3 | 1).to_bytes(3, "little")
    return b"\x50\x2a\x4d\x18" + struct.pack("<I", flags) + bytes(skipped) + frame


def _lz4_claim(size: int) -> bytes:
    from headrace.records.legacy.message_set import resum_lz4

    head = b"\x04\x22\x4d\x18" + bytes([0x68, 0x40]) + struct.pack("<Q", size) + b"\x00"
    return resum_lz4(head) + struct.pack("<I", 4) + b"\x30abc" + bytes(4)


def bomb(chance: Random) -> tuple[str, bytes]:
    """A bomb in a batch or in an old message set, mutated half of the time."""
    name, codec, packed = chance.choice(_by_size(chance.random() < 0.03))
    if chance.random() < 0.5:
        packed = mutate(chance, packed)
    if chance.random() < 0.3:
        magic = chance.randrange(2)
        return name, bytes(message(chance, magic, 7, packed, codec))
    draft = Draft(chance)
    draft.codec = codec
    draft.count = chance.choice((1, 3, 2_000_000, 2**31 - 1))
    return name, bytes(draft.seal(packed=packed))


@cache
def _by_size(large: bool) -> list[Any]:
    """Those that cost milliseconds to look into are tried less often than the others."""
    return [each for each in payloads() if large or len(each[2]) < 30_000]
