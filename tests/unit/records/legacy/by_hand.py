"""Messages of the formats 0 and 1, written out by hand."""

from __future__ import annotations

import struct
import zlib

from headrace.records.compression import GZIP, compress


def message(offset: int, value: bytes | None, key: bytes | None = None, *, magic: int = 1, attributes: int = 0,
            timestamp: int = 7) -> bytes:
    """One message, written out by hand from the protocol's description."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(
    inner: bytes, offset: int, *, codec: int = GZIP, magic: int = 1, timestamp: int = 7, by_broker: bool = False
) -> bytes:
    """A message that wraps others."""
    return message(offset, compress(codec, inner), magic=magic, attributes=codec | 8 * by_broker, timestamp=timestamp)
