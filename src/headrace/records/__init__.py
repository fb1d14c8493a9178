"""Record batches: bytes <-> records. Native where it was compiled, the plain twin of the same names elsewhere.

`implementation` says which one is used; the environment variable HEADRACE_PURE=1 asks for the plain one. Where the
native one is missing and nobody asked for the plain one, the logger `headrace` says so, once in a process.
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

_IS_MEANT = os.environ.get("HEADRACE_PURE", "") not in ("", "0")
_PLAIN = _IS_MEANT or find_spec("headrace.records._batch") is None

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

if _PLAIN and not _IS_MEANT:
    import logging  # a warning of Python's could be made an error, which would stop the import

    logging.getLogger("headrace").warning(
        "headrace runs in plain Python, at a fraction of its speed: its native modules are missing. Install a wheel, "
        "or with a C compiler on the machine: pip install --force-reinstall --no-cache-dir headrace. HEADRACE_PURE=1 "
        "says that this is meant")
