"""The target `compression`: every codec with a limit, and the old LZ4 frames with the wrong sum."""

from __future__ import annotations

from headrace.errors import CorruptRecordError
from headrace.records import ZSTD, compress, decompress
from headrace.records.legacy.message_set import resum_lz4

_LIMITS = (0, 1, 100, 4096, 1 << 17, 1 << 22)


def run(data: bytes) -> None:
    """One input. Returns, or raises what must never be raised."""
    if len(data) < 2:
        return
    codec, limit, body = data[0] % 7, _LIMITS[data[1] % len(_LIMITS)], data[2:]
    if codec == 5:
        resum_lz4(body, with_magic=bool(data[1] & 0x80))
        return
    try:
        plain = decompress(codec, memoryview(body), limit)
        assert len(plain) <= limit
    except CorruptRecordError:
        pass
    if codec <= ZSTD:
        assert decompress(codec, compress(codec, body), len(body)) == body
