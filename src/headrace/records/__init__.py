"""Record batches: bytes <-> records. Native where it was compiled, the plain twin of the same names elsewhere.

`implementation` says which one is used; the environment variable HEADRACE_PURE=1 asks for the plain one.
It must not know connections or partitions' state. Read next: `headrace.records.batch`.
"""

from __future__ import annotations

from headrace.records.batch import (
    MAX_DECOMPRESSED_BYTES,
    BatchInfo,
    Cursor,
    scan,
    set_base_offset,
    set_log_append_time,
    verify,
)
from headrace.records.builder import Batch, BatchBuilder
from headrace.records.columns import append_columns, read_columns
from headrace.records.compression import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress
from headrace.records.hashing import crc32c, fnv1a, murmur2
from headrace.records.message import Message
from headrace.records.topic_buffer import OVERHEAD_BYTES, WAKE, Budget, OpenBatch, TopicBuffer

__all__ = [
    "CODEC_NAMES", "GZIP", "LZ4", "MAX_DECOMPRESSED_BYTES", "NONE", "OVERHEAD_BYTES", "SNAPPY", "WAKE", "ZSTD",
    "Batch", "BatchBuilder", "BatchInfo", "Budget", "Cursor", "Message", "OpenBatch", "TopicBuffer", "append_columns",
    "compress", "crc32c", "decompress", "fnv1a", "implementation", "murmur2", "read_columns", "scan",
    "set_base_offset", "set_log_append_time", "verify",
]

implementation = "plain"
