"""The small files beside a segment: indexes of offsets, times and aborted transactions, producer states, checkpoints.

An index that lies beside its segment is compared with it. Sources: Java's `OffsetIndex`, `TimeIndex`,
`TransactionIndex`, `ProducerStateManager`, `CheckpointFile`. Read next: `headrace.cli.decode`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from headrace.decode.output.nodes import Item, TreeNode, moment, value
from headrace.errors import ProtocolError
from headrace.records import crc32c
from headrace.wire.codec import decode
from headrace.wire.messages.controllers.control import AbortedTxn
from headrace.wire.schema import ApiMessage, Array, Int16, Int32, Int64, Struct, field

__all__ = ["SIDECARS", "sidecar_of"]

Show = Callable[[bytes, Path | None], Iterator[Item]]
_ABORTED_BYTES: Final = 34
_SNAPSHOT_HEAD: Final = 6


class ProducerEntry(Struct):
    """What a broker remembers of one producer."""

    producer_id: Int64 = field()
    producer_epoch: Int16 = field()
    last_sequence: Int32 = field()
    last_offset: Int64 = field()
    offset_delta: Int32 = field()
    timestamp: Int64 = field()
    coordinator_epoch: Int32 = field()
    current_txn_first_offset: Int64 = field()


class ProducerSnapshot(ApiMessage, versions="1"):
    """A snapshot of the producers' states, behind its version and checksum."""

    entries: Array[ProducerEntry] = field()


def sidecar_of(name: str) -> str:
    """What the name of a file says that it is; empty when it says nothing."""
    if name.endswith("-checkpoint"):
        return "checkpoint"
    ending = Path(name).suffix[1:]
    return ending if ending in SIDECARS and ending != "checkpoint" else ""  # NNN.checkpoint holds batches


def _entry(text: str, parts: list[TreeNode]) -> Item:
    return Item("entry", text, {}, parts, label="")


def _trouble(text: str, position: int) -> Item:
    return Item("damage", f"damaged at byte {position}: {text}", {"damage": text, "position": position}, damaged=True)


def _base_offset(path: Path | None) -> int:
    """The segment's first offset, which is its name."""
    return int(path.stem) if path is not None and path.stem.isdigit() else 0


def _rows(data: bytes, layout: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The entries of an index with their positions. A broker sets room aside: zeros behind the last entry are none."""
    for at in range(0, len(data) - layout.size + 1, layout.size):
        entry = layout.unpack_from(data, at)
        if at and not any(entry):
            return
        yield at, entry


def _rest(data: bytes, size: int) -> Iterator[Item]:
    left = len(data) % size
    if left:
        yield _trouble(f"an entry of {size} bytes is cut after {left}", len(data) - left)


def show_index(data: bytes, path: Path | None) -> Iterator[Item]:
    """Entries of an offset index; each is looked up in the segment beside it."""
    base, layout = _base_offset(path), struct.Struct(">ii")
    log = path.with_suffix(".log") if path is not None else None
    last = (-1, -1)
    for at, (relative, position) in _rows(data, layout):
        if not any((relative, position)) and not at:
            return
        offset = base + relative
        yield _entry("index entry", [value("offset", offset), value("position", position)])
        if (relative, position) <= last:
            yield _trouble(f"offset {offset} at {position} follows on {base + last[0]} at {last[1]}", at)
        last = (relative, position)
        if log is not None and log.exists():
            problem = _compared(log, offset, position)
            if problem:
                yield _trouble(problem, at)
    yield from _rest(data, layout.size)


def _compared(log: Path, offset: int, position: int) -> str:
    """What is wrong about an entry of an offset index; empty when the segment agrees."""
    with log.open("rb") as file:
        file.seek(position)
        head = file.read(27)
    if len(head) < 27:
        return f"{log.name} has no batch at byte {position}"
    first = int.from_bytes(head[:8], "big")
    if first > offset:
        return f"the batch at byte {position} of {log.name} begins with offset {first}, not with {offset} or before"
    return ""


def show_timeindex(data: bytes, path: Path | None) -> Iterator[Item]:
    """Entries of a time index."""
    base, layout, last = _base_offset(path), struct.Struct(">qi"), -1
    for at, (timestamp, relative) in _rows(data, layout):
        if not timestamp and not relative and not at:
            return
        yield _entry("time index entry", [moment("timestamp", timestamp), value("offset", base + relative)])
        if timestamp < last:
            yield _trouble(f"timestamp {timestamp} follows on {last}", at)
        last = timestamp
    yield from _rest(data, layout.size)


def show_txnindex(data: bytes, path: Path | None) -> Iterator[Item]:
    """Entries of a transaction index: what was aborted."""
    for at in range(0, len(data) - _ABORTED_BYTES + 1, _ABORTED_BYTES):
        version = int.from_bytes(data[at:at + 2], "big", signed=True)
        if version != 0:
            yield _trouble(f"an entry has version {version}; 0 is known", at)
            return
        entry = decode(AbortedTxn, data[at + 2:at + _ABORTED_BYTES], 0)
        yield _entry("aborted transaction", [
            value("producer_id", entry.producer_id), value("first_offset", entry.first_offset),
            value("last_offset", entry.last_offset), value("last_stable_offset", entry.last_stable_offset),
        ])
    yield from _rest(data, _ABORTED_BYTES)


def show_snapshot(data: bytes, path: Path | None) -> Iterator[Item]:
    """Producers of a producer state snapshot."""
    if len(data) < _SNAPSHOT_HEAD:
        yield _trouble(f"{len(data)} bytes are too short for a producer snapshot", 0)
        return
    version, checksum = struct.unpack_from(">hI", data)
    found = crc32c(data[_SNAPSHOT_HEAD:])
    if found != checksum:
        yield _trouble(f"the checksum is {checksum:#010x} and the bytes have {found:#010x}", 2)
    try:
        snapshot = decode(ProducerSnapshot, data[_SNAPSHOT_HEAD:], version)
    except ProtocolError as error:
        yield _trouble(str(error), _SNAPSHOT_HEAD)
        return
    for entry in snapshot.entries:
        started = entry.current_txn_first_offset
        yield _entry("producer", [
            value("producer_id", entry.producer_id), value("producer_epoch", entry.producer_epoch),
            value("first_sequence", entry.last_sequence - entry.offset_delta if entry.last_sequence >= 0 else -1),
            value("last_sequence", entry.last_sequence), value("last_offset", entry.last_offset),
            value("offset_delta", entry.offset_delta), moment("timestamp", entry.timestamp),
            value("coordinator_epoch", entry.coordinator_epoch),
            value("current_txn_first_offset", started, "none" if started < 0 else ""),
        ])


def show_checkpoint(data: bytes, path: Path | None) -> Iterator[Item]:
    """Lines of a checkpoint: a version, a count, then so many lines of numbers, the topic's name before some."""
    if not data:
        return
    lines = data.decode(errors="replace").splitlines()
    if len(lines) < 2 or not lines[1].strip().isdigit():
        yield _trouble("a checkpoint begins with its version and its count of lines", 0)
        return
    names = ["epoch", "start_offset"] if path is not None and "epoch" in path.name else []
    for number, line in enumerate(lines[2:]):
        words = line.split()
        labels = names if len(words) == len(names) else ["topic", "partition", "offset"][-len(words):]
        if not 2 <= len(words) <= 3 or not all(re.fullmatch(r"-?\d+", word) for word in words[-2:]):
            before = sum(len(earlier) + 1 for earlier in lines[:number + 2])
            yield _trouble(f"line {number + 3} is no entry of a checkpoint", before)
            return
        content: list[str | int] = [word if len(words) - index == 3 else int(word) for index, word in enumerate(words)]
        yield _entry("checkpoint entry", [value(name, one) for name, one in zip(labels, content, strict=True)])
    if len(lines) - 2 != int(lines[1]):
        yield _trouble(f"{lines[1]} entries should follow and {len(lines) - 2} are there", 0)


SIDECARS: Final[dict[str, Show]] = {
    "index": show_index, "timeindex": show_timeindex, "txnindex": show_txnindex, "snapshot": show_snapshot,
    "checkpoint": show_checkpoint,
}
"""How each kind of file is shown, by the end of its name."""
