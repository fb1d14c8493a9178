"""Control batches: what a transaction's end, or a KRaft leader, writes between the records.

A control record's key has its version and type, two bytes each. A transaction's marker has a value: version,
two bytes, and the coordinator's epoch, four bytes. Consumers never see them.

It must not know cursors. `headrace.records.batch_writer` writes markers.
Source: KIP-98, KIP-595, Java's `ControlRecordType` and `EndTransactionMarker`. Read next: `headrace.records.batch`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headrace.errors import CorruptRecordError
from headrace.records.compression import decompress
from headrace.records.header import HEADER_BYTES, BatchInfo, check_sum, read_info
from headrace.records.record import read_all, wrapped

__all__ = ["ABORT", "COMMIT", "CONTROL_NAMES", "MARKER_KEY", "MARKER_VALUE", "ControlRecord", "aborts",
           "control_records"]

ABORT, COMMIT = 0, 1
CONTROL_NAMES: Final = ("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
                        "KRAFT_VOTERS")
"""Names of the types, by number; there may be newer ones."""

MARKER_KEY = struct.Struct(">hh")
MARKER_VALUE = struct.Struct(">hi")
_MAX_BYTES = 1 << 20  # decompressed, of one control batch: real ones have some hundred bytes and are not compressed


class ControlRecord(NamedTuple):
    """A control record, and of its batch what belongs to it."""

    offset: int
    timestamp_ms: int
    version: int  # of the key
    type: int  # index in `CONTROL_NAMES`, or higher
    coordinator_epoch: int  # of a transaction's marker; -1 otherwise
    value: bytes | None
    producer_id: int
    epoch: int


def control_records(data: Any, topic: str = "", partition: int = -1) -> Iterator[ControlRecord]:
    """The control records of all whole batches, in order; what applications write is passed over.

    Args:
        data: whole batches; a part of a batch at the end is left out.
        topic: for errors.
        partition: for errors.

    Raises:
        CorruptRecordError: a header, or a control batch, is damaged.
    """
    view, position = memoryview(data), 0
    while (info := read_info(view, position, topic, partition)) is not None:
        if info.is_control:
            check_sum(view, info, topic, partition)
            yield from _read(view, info)
        position += info.size


def aborts(batch: memoryview) -> bool:
    """Whether a control batch ends a transaction by aborting it. Its checksum is not compared.

    Raises:
        CorruptRecordError: it is damaged.
    """
    info = read_info(batch, 0)
    first = None if info is None else next(_read(batch, info), None)
    return first is not None and first.type == ABORT


def _read(view: memoryview, info: BatchInfo) -> Iterator[ControlRecord]:
    plain = view[info.position + HEADER_BYTES : info.position + info.size]
    if info.codec:
        plain = memoryview(decompress(info.codec, plain, _MAX_BYTES))
    for record in read_all(plain, info.count):
        offset = info.base_offset + record.offset_delta
        version, kind = _numbers(MARKER_KEY, record.key, "key", offset)
        epoch = _numbers(MARKER_VALUE, record.value, "value", offset)[1] if kind in (ABORT, COMMIT) else -1
        timestamp = info.max_timestamp if info.is_log_append_time else wrapped(
            info.base_timestamp + record.timestamp_delta)
        yield ControlRecord(offset, timestamp, version, kind, epoch, record.value, info.producer_id, info.epoch)


def _numbers(layout: struct.Struct, data: bytes | None, name: str, offset: int) -> tuple[int, int]:
    """Version and number of a key or value; newer versions may have more behind them."""
    if data is None or len(data) < layout.size:
        raise CorruptRecordError(f"the {name} of the control record at offset {offset} is too short")
    version, number = layout.unpack_from(data)
    if version < 0:
        raise CorruptRecordError(f"the {name} of the control record at offset {offset} has version {version}")
    return version, number
