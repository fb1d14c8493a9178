"""Record batches: bytes <-> records. Native where it was compiled, the plain twin of the same names elsewhere.

`implementation` says which one is used; the environment variable HEADRACE_PURE=1 asks for the plain one.
It must not know connections or partitions' state, nor `headrace.buffers`, where batches are filled. Read next:
`headrace.records.batch`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from headrace.records.compression import (
    CODEC_NAMES,
    GZIP,
    LZ4,
    MAX_DECOMPRESSED_BYTES,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)
from headrace.records.header import BatchInfo

_PLAIN = os.environ.get("HEADRACE_PURE", "") not in ("", "0") or find_spec("headrace.records._batch") is None

# The twins have the same names and types; for a type checker they are the plain one's.
if TYPE_CHECKING or _PLAIN:
    from headrace.records.batch import Cursor, FrameMemory, PollFastPath, ReadPosition
    from headrace.records.builder import Batch, BatchBuilder, set_base_offset, set_log_append_time
    from headrace.records.columns.columns import ColumnBuilder, read_columns
    from headrace.records.hashing import crc32c, fnv1a, murmur2
    from headrace.records.header import scan, verify
    from headrace.records.message import Message, acquired
else:
    from headrace.records._batch import (
        Batch,
        BatchBuilder,
        ColumnBuilder,
        Cursor,
        FrameMemory,
        Message,
        PollFastPath,
        ReadPosition,
        acquired,
        crc32c,
        fnv1a,
        murmur2,
        read_columns,
        scan,
        set_base_offset,
        set_log_append_time,
        verify,
    )

__all__ = [
    "CODEC_NAMES",
    "GZIP",
    "LZ4",
    "MAX_DECOMPRESSED_BYTES",
    "NONE",
    "SNAPPY",
    "ZSTD",
    "Batch",
    "BatchBuilder",
    "BatchInfo",
    "ColumnBuilder",
    "Cursor",
    "FrameMemory",
    "Message",
    "PollFastPath",
    "ReadPosition",
    "acquired",
    "compress",
    "crc32c",
    "decompress",
    "fnv1a",
    "implementation",
    "murmur2",
    "read_columns",
    "scan",
    "set_base_offset",
    "set_log_append_time",
    "verify",
]

implementation = "plain" if _PLAIN else "native"
"""Which one is used: "native" or "plain"."""
