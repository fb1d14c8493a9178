"""Valid batches and message sets of every format and codec, and hostile ones made of them.

A change behind a checksum is followed by the right checksum most of the time, so that the readers behind it are
reached. `Draft` is a batch of format 2 with its parts apart; old messages are packed here by hand.
"""

from __future__ import annotations

import struct
import zlib
from random import Random

from headrace.records import compress, crc32c
from headrace.records.record import encode_record

from .mutations import Place, mutate

HEADER = struct.Struct(">qiibIhiqqqhii")
FIELDS: tuple[Place, ...] = ((0, 8), (8, 4), (12, 4), (16, 1), (17, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8),
                             (51, 2), (53, 4), (57, 4))
_CONTENTS = (None, b"", b"k", b"x" * 63, b"y" * 64, b"z" * 300, bytes(100))


class Draft:
    """A batch of format 2 whose records are not compressed and not summed yet."""

    def __init__(self, chance: Random, base_offset: int = 0) -> None:
        self.codec = chance.choice((0, 0, 0, 1, 2, 3, 4))
        self.count = chance.choice((1, 1, 2, 3, 12))
        self.places: list[Place] = []
        self.records = bytearray()
        for index in range(self.count):
            self._add(chance, index)
        marks = chance.choice((0, 0, 0, 0x08, 0x10, 0x20, 0x30, 0x40))
        self._head = (base_offset, chance.randrange(9), marks, chance.choice((-1, 7)))

    def _add(self, chance: Random, index: int) -> None:
        headers = [(chance.choice((b"", b"h", b"n\xc3\xa4me", b"\xff")), chance.choice(_CONTENTS))
                   for _ in range(chance.choice((0, 0, 1, 3)))]
        record = encode_record(chance.choice((0, 1, -5, 2**40)), index, chance.choice(_CONTENTS),
                               chance.choice(_CONTENTS), headers)
        start = len(self.records)
        self.places += [(start, 0), (start + 2, 0), (start + 3, 0), (start + 4, 0), (start + len(record) - 1, 0)]
        self.places += [(start + at, 0) for at in range(len(record)) if record[at] in (0x7E, 0x80, 0xD8)]
        self.records += record

    def seal(self, records: bytes | None = None, packed: bytes | None = None) -> bytearray:
        """The batch's bytes, with other records, or with other bytes in the place of the compressed ones."""
        base_offset, epoch, marks, producer_id = self._head
        if packed is None:
            packed = compress(self.codec, bytes(self.records if records is None else records))
        data = bytearray(HEADER.pack(
            base_offset, 49 + len(packed), epoch, 2, 0, marks | self.codec, self.count - 1, 1_000, 2_000, producer_id,
            0 if producer_id >= 0 else -1, 0 if producer_id >= 0 else -1, self.count))
        data += packed
        resum(data)
        return data


def resum(data: bytearray) -> None:
    """Make the first batch's checksum right."""
    if len(data) >= 61:
        size = int.from_bytes(data[8:12], "big", signed=True) + 12
        stop = size if 61 <= size <= len(data) else len(data)
        struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:stop]))


def message(chance: Random, magic: int, offset: int, value: bytes | None, attributes: int = 0) -> bytearray:
    """One message of format 0 or 1."""
    data = bytearray(struct.pack(">qiIbb", offset, 0, 0, magic, attributes))
    if magic:
        data += struct.pack(">q", chance.choice((-1, 0, 1_000)))
    for part in (chance.choice((None, b"", b"key")), value):
        data += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    struct.pack_into(">i", data, 8, len(data) - 12)
    return sum_message(data)


def sum_message(data: bytearray) -> bytearray:
    """Make the first message's checksum right."""
    if len(data) >= 26:
        size = int.from_bytes(data[8:12], "big", signed=True) + 12
        stop = size if 26 <= size <= len(data) else len(data)
        struct.pack_into(">I", data, 12, zlib.crc32(memoryview(data)[16:stop]))
    return data


def message_places(magic: int) -> list[Place]:
    """Where the numbers of a message are; its value's length is left to luck."""
    return [(0, 8), (8, 4), (12, 4), (16, 1), (17, 1), *([(18, 8)] if magic else []), (18 + 8 * magic, 4),
            (22 + 8 * magic, 4)]


def message_set(chance: Random) -> bytes:
    """Messages of an old format, plain or wrapped, and hostile ones among them."""
    magic = chance.randrange(2)
    count = chance.choice((1, 2, 5))
    inner = [message(chance, magic, index, chance.choice(_CONTENTS)) for index in range(count)]
    if chance.random() < 0.4:
        return hurt_message(chance, magic, b"".join(inner))
    codec = chance.choice((1, 2, 3, 3, 4))
    plain = b"".join(inner)
    if chance.random() < 0.5:
        plain = hurt_message(chance, magic, plain)
    elif chance.random() < 0.3:  # a wrapper in a wrapper
        plain = bytes(message(chance, magic, count, compress(codec, plain), codec))
    packed = compress(codec, plain)
    if chance.random() < 0.3:
        packed = mutate(chance, packed)
    outer = message(chance, magic, chance.choice((0, count - 1, 100, 2**63 - 1, -1)), packed,
                    codec | chance.choice((0, 0, 8)))
    return hurt_message(chance, magic, bytes(outer)) if chance.random() < 0.4 else bytes(outer)


def hurt_message(chance: Random, magic: int, data: bytes) -> bytes:
    """A message with something changed, its checksum right most of the time."""
    changed = bytearray(mutate(chance, data, message_places(magic)))
    return bytes(sum_message(changed) if chance.random() < 0.8 else changed)


def batches(chance: Random) -> bytes:
    """Hostile bytes where batches of format 2 are expected."""
    draft = Draft(chance)
    what = chance.randrange(10)
    if what < 4:
        data = draft.seal(records=mutate(chance, bytes(draft.records), draft.places))
    elif what < 6:
        whole = draft.seal()
        data = draft.seal(packed=mutate(chance, bytes(whole[61:])))
    else:
        data = bytearray(mutate(chance, bytes(draft.seal()), FIELDS, other=bytes(Draft(chance, 50).seal())))
        if chance.random() < 0.8:
            resum(data)
    if chance.random() < 0.3:
        data += Draft(chance, 100).seal()
    if chance.random() < 0.1:
        data += message_set(chance)
    if chance.random() < 0.1:
        del data[chance.randrange(len(data) + 1):]
    return bytes(data)
