"""Codecs of record batches: gzip, snappy (in xerial's frame), lz4 and zstd, with a limit on what comes out.

A few bytes can decompress to gigabytes, so every `decompress` has a limit and stops near it. All codecs release the
GIL. This module knows nothing of batches. Read next: `headrace.records.batch`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from headrace.errors import CorruptRecordError, DependencyError

__all__ = [
    "CODEC_NAMES", "GZIP", "LZ4", "MAX_COLUMN_BYTES", "MAX_DECOMPRESSED_BYTES", "NONE", "SNAPPY", "ZSTD", "compress",
    "decompress",
]

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

MAX_DECOMPRESSED_BYTES = 1 << 28  # of one batch, unless the caller sets another limit
MAX_COLUMN_BYTES = 1 << 28  # of all columns of one call; Arrow's 32-bit offsets would allow eight times as much

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 128 * 1024
_FIRST_STEP = 512
_SMALL_ROOM = 65_536


def compress(codec: int, data: bytes | bytearray | memoryview, level: int = -1) -> bytes:
    """Compress the records of a batch.

    Args:
        codec: `NONE`, `GZIP`, `SNAPPY`, `LZ4` or `ZSTD`.
        data: the records.
        level: the codec's own scale; -1 takes its default. Snappy has no levels.

    Raises:
        ValueError: no such codec.
    """
    if not 0 <= codec <= ZSTD:
        raise ValueError(f"unknown compression codec {codec}")
    return _COMPRESS[codec](data, level)


def decompress(codec: int, data: bytes | bytearray | memoryview, limit: int) -> bytes:
    """Decompress the records of a batch.

    Args:
        codec: as in the batch's attributes.
        data: compressed bytes.
        limit: most bytes that may come out.

    Raises:
        CorruptRecordError: the bytes are damaged, or more than `limit` bytes come out.
    """
    if not 0 <= codec <= ZSTD:
        raise CorruptRecordError(f"unknown compression codec {codec}")
    try:
        plain = _DECOMPRESS[codec](data, limit)
    except (CorruptRecordError, DependencyError):
        raise
    except Exception as error:  # each library raises its own class, some only Exception
        raise CorruptRecordError(f"cannot decompress {CODEC_NAMES[codec]} data: {error}") from None
    if len(plain) > limit:
        raise _too_large(limit)
    return plain


def _too_large(limit: int) -> CorruptRecordError:
    return CorruptRecordError(f"a batch decompresses to more than {limit} bytes")


def _cramjam() -> Any:
    try:
        import cramjam
    except ImportError as error:
        raise DependencyError("snappy, lz4 and zstd need the package cramjam: pip install cramjam") from error
    return cramjam


def _gzip(data: Any, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, 31)
    return deflate.compress(data) + deflate.flush()


def _gunzip(data: Any, limit: int) -> bytes:
    view = memoryview(data)
    parts, left, at = [], limit, 0
    while at < len(view):
        inflate = zlib.decompressobj(31)
        # What zlib does not use it copies, so a member of unknown length is given in steps that grow.
        step = _FIRST_STEP
        while at < len(view) and not inflate.eof:
            parts.append(inflate.decompress(view[at : at + step], left + 1))
            left -= len(parts[-1])
            if left < 0:
                raise _too_large(limit)
            at += min(step, len(view) - at) - len(inflate.unused_data)
            step *= 2
        if not inflate.eof:
            raise CorruptRecordError("gzip data ends too early")
    return b"".join(parts)


def _snappy(data: Any, level: int) -> bytes:
    pack = _cramjam().snappy.compress_raw
    view = memoryview(data)
    parts = [_XERIAL]
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(pack(view[at : at + _XERIAL_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _unsnappy(data: Any, limit: int) -> bytes:
    view = memoryview(data)
    if view[:8] != _XERIAL[:8]:
        return _unsnappy_block(view, limit)
    parts = []
    at = len(_XERIAL)
    while at < len(view):
        size = int.from_bytes(view[at : at + 4], "big")
        at += 4
        if at + size > len(view):
            raise CorruptRecordError("snappy data ends too early")
        parts.append(_unsnappy_block(view[at : at + size], limit))
        limit -= len(parts[-1])
        at += size
    return b"".join(parts)


def _unsnappy_block(view: memoryview, limit: int) -> bytes:
    """One raw snappy block. Its length stands in front, so a bomb is seen before it goes off."""
    size = shift = 0
    for byte in view[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise _too_large(limit)
    return bytes(_cramjam().snappy.decompress_raw(view))


def _lz4(data: Any, level: int) -> bytes:
    # Java refuses linked blocks, which are cramjam's default.
    packer = _cramjam().lz4.Compressor(level=max(level, 0), content_checksum=False, block_linked=False)
    packer.compress(bytes(data))
    return bytes(packer.finish())


def _unlz4(data: Any, limit: int) -> bytes:
    lz4 = _cramjam().lz4
    if len(data) * 255 <= limit:  # lz4 cannot do better than 1 : 255
        return bytes(lz4.decompress(data))
    return _into(lz4, data, limit)


def _zstd(data: Any, level: int) -> bytes:
    return bytes(_cramjam().zstd.compress(data, level=3 if level == -1 else level))


def _unzstd(data: Any, limit: int) -> bytes:
    zstd = _cramjam().zstd
    if _zstd_bound(data) <= limit:
        return bytes(zstd.decompress(data))
    return _into(zstd, data, limit)


def _zstd_bound(data: Any) -> int:
    """Most bytes that one zstd frame can make, from the headers of its blocks; huge when in doubt.

    Frames to skip are in doubt: what is in them may look like anything, and more frames follow them.
    """
    if len(data) < 6 or data[:4] != _ZSTD_MAGIC:
        return 1 << 62
    flags = data[4]
    single = flags >> 5 & 1
    at = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    bound = 0
    while at + 3 <= len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        kind, size = header >> 1 & 3, header >> 3
        bound += size if kind < 2 else _ZSTD_BLOCK
        at += 3 + (1 if kind == 1 else size)
        if header & 1:
            at += 4 * (flags >> 2 & 1)
            return bound if at == len(data) else 1 << 62
    return 1 << 62


def _into(codec: Any, data: Any, limit: int) -> bytes:
    """Decompress into memory of the limit's size; what is not written to is never really taken, if it is much."""
    from mmap import mmap

    room = mmap(-1, limit) if limit > _SMALL_ROOM else bytearray(max(limit, 1))
    try:
        size = codec.decompress_into(data, room)
    except Exception as error:
        if "whole buffer" in str(error):  # cramjam's only sign that the room was too small
            raise _too_large(limit) from None
        raise
    return bytes(room[:size])


_COMPRESS: tuple[Callable[[Any, int], bytes], ...] = (lambda data, level: bytes(data), _gzip, _snappy, _lz4, _zstd)
_DECOMPRESS: tuple[Callable[[Any, int], bytes], ...] = (
    lambda data, limit: bytes(data), _gunzip, _unsnappy, _unlz4, _unzstd)
