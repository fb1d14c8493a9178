"""Nanoseconds of CPU per record for batches in and out: ours, kafka-python, aiokafka.

    python -m benchmarks.records --rounds 9

One batch of about 1 MB of records of one size, each with a key of 8 bytes; values are text that packs to about a
third. Peers do the same with the fastest that they have: aiokafka its Cython classes, both without the partitioner and
the accumulator around them. All compare checksums when they parse, and compress at their own default level. Only ours
reads and writes Arrow's columns. confluent-kafka is not here: librdkafka has no call that writes or parses a batch
without a broker; `benchmarks.clients` measures it.
"""

from __future__ import annotations

import argparse
import importlib
import math
import random
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from benchmarks.loops import OURS, PEERS, Action, Case, about, arguments_of, effort_of, measure, show, write
from headrace import buffers, records
from headrace.buffers import arrow_rows, buffer_pool, record_accumulator
from headrace.records import batch, builder, hashing
from headrace.records.columns import arrow
from headrace.records.compression import CODEC_NAMES

COUNTS = {100: 8_000, 1_000: 900}
"""Records of a batch by size of a value in bytes."""
TIME_MS = 1_700_000_000_000
HEADERS = [("trace", b"0123456789abcdef")]
BAR_PER_S = 10e6
"""Records a second and core that columns of 100 B must reach in both directions, uncompressed."""
PLAIN = "headrace (plain)"
BUILDERS = {"kafka-python": "kafka.record.default_records", "aiokafka": "aiokafka.record.default_records"}
READERS = {"kafka-python": "kafka.record.memory_records", "aiokafka": "aiokafka.record.memory_records"}


class Plain:
    """The plain twin's names in one place."""

    BufferPool, RecordAccumulator = buffer_pool.BufferPool, record_accumulator.RecordAccumulator
    BatchBuilder, Cursor = builder.BatchBuilder, batch.Cursor
    crc32c = staticmethod(hashing.crc32c)


class Native:
    """The native twin's."""

    BufferPool, RecordAccumulator = buffers.BufferPool, buffers.RecordAccumulator
    BatchBuilder, Cursor = records.BatchBuilder, records.Cursor
    crc32c = staticmethod(records.crc32c)


class Content:
    """The records of one size that everybody handles."""

    def __init__(self, size: int, count: int) -> None:
        chance, words = random.Random(size), [f"word{number}" for number in range(500)]
        self.count = count
        self.keys = [f"{row:08}".encode() for row in range(self.count)]
        self.values = [" ".join(chance.choices(words, k=size // 4))[:size].encode() for _ in range(self.count)]

    def sealed(self, codec: int, headers: bool = False) -> bytes:
        """The batch that everybody reads."""
        made = records.BatchBuilder(1 << 30, 1 << 30)
        pairs = [(name.encode(), value) for name, value in HEADERS] if headers else []
        for key, value in zip(self.keys, self.values, strict=True):
            made.append(TIME_MS, key, value, pairs)
        return bytes(made.seal(codec).data)


def main(argv: list[str]) -> int:
    """Measure all sizes and codecs; 1 when columns are slower than they must be."""
    arguments = arguments_of("records", __doc__, argv, _extend)
    effort = effort_of(arguments)
    twins = _twins(arguments.plain)
    tables: dict[str, list[Case]] = {}
    bars: list[Case] = []
    for size, count in COUNTS.items():
        content = Content(size, count // 20 if arguments.quick else count)
        for codec, name in enumerate(CODEC_NAMES):
            columns = _column_cases(content, codec)
            tables[f"{size:,} B, {name}"] = [*_record_cases(content, codec, twins), *columns]
            bars = bars or columns
        tables[f"{size:,} B, other"] = _other_cases(content, twins)
    measure([case for cases in tables.values() for case in cases], effort)
    about(effort, ", per record")
    for title, cases in tables.items():
        show(title, cases, "ns")
    speeds = {case.name: 1e9 / (case.best_ns(OURS) or math.inf) for case in bars}
    write("records", tables, effort.rounds, arguments.json, columns_per_s=speeds, bar_per_s=BAR_PER_S)
    reached = _judge(speeds)
    return 0 if reached or arguments.quick else 1


def _extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plain", action="store_true", help="our plain twin as well (slow)")


def _twins(plain: bool) -> dict[str, Any]:
    return {OURS: Native, PLAIN: Plain} if plain else {OURS: Native}


def _judge(speeds: dict[str, float]) -> bool:
    print(f"\ncolumns of 100 B, uncompressed, on one core (bar: {BAR_PER_S / 1e6:.0f} M records/s)")
    for name, speed in speeds.items():
        print(f"  {name:40} {speed / 1e6:6.1f} M records/s{'' if speed >= BAR_PER_S else '   BELOW THE BAR'}")
    return all(speed >= BAR_PER_S for speed in speeds.values())


def _record_cases(content: Content, codec: int, twins: dict[str, Any]) -> list[Case]:
    """Cases that ours and the peers have in common."""
    append: dict[str, Action] = {who: _appending(twin, content, None) for who, twin in twins.items()}
    seal: dict[str, Action] = {who: _appending(twin, content, codec) for who, twin in twins.items()}
    data = content.sealed(codec)
    take: dict[str, Action] = {who: _taking(twin, data, content.count) for who, twin in twins.items()}
    touch: dict[str, Action] = {who: _touching(twin, data, content.count) for who, twin in twins.items()}
    notes = {}
    for peer in PEERS:
        try:
            made = _peer_appending(peer, content, codec)
            _check(peer, content, bytes(made()), data)
        except Exception as error:  # a codec that it lacks the library for, or no such package
            notes[peer] = f"{CODEC_NAMES[codec]}: {error}"
            continue
        append[peer], seal[peer] = _peer_appending(peer, content, None), made
        take[peer], touch[peer] = _peer_taking(peer, data), _peer_touching(peer, data)
    cases = [Case("append and seal", seal, content.count, notes),
             Case("parse to messages", take, content.count, notes),
             Case("parse, and look at key and value", touch, content.count, notes)]
    return cases if codec else [Case("append", append, content.count, notes), *cases]


def _check(peer: str, content: Content, made: bytes, data: bytes) -> None:
    """Both sides read what the other one writes."""
    rows = list(zip(content.keys, content.values, strict=True))
    if [(m.key(), m.value()) for m in batch.Cursor(made, "t", 0, 0).take(content.count + 1)] != rows:
        raise ValueError("it writes other records")
    if [(record.key, record.value) for record in _peer_taking(peer, data)()] != rows:
        raise ValueError("it reads other records")


def _buffer(twin: Any) -> Any:
    pool = twin.BufferPool(1 << 40, 1 << 50)
    return twin.RecordAccumulator("topic", 1, pool, batch_bytes=1 << 30, batch_count=1 << 30)


def _appending(twin: Any, content: Content, codec: int | None, headers: Any = None, callback: Any = None) -> Action:
    def run() -> object:
        buffer = _buffer(twin)
        append = buffer.append
        for key, value in zip(content.keys, content.values, strict=True):
            append(value, key, 0, TIME_MS, headers, callback)
        return buffer if codec is None else [opened.seal(codec).data for opened in buffer.open_batches.ready(math.inf)]
    return run


def _taking(twin: Any, data: bytes, count: int) -> Action:
    return lambda: twin.Cursor(data, "topic", 0, 0).take(count)


def _touching(twin: Any, data: bytes, count: int) -> Action:
    def run() -> None:
        for message in twin.Cursor(data, "topic", 0, 0).take(count):
            message.key()
            message.value()
    return run


def _peer_appending(peer: str, content: Content, codec: int | None, headers: Any = None) -> Callable[[], Any]:
    made = importlib.import_module(BUILDERS[peer]).DefaultRecordBatchBuilder
    pairs = headers or []

    def run() -> Any:
        new = made(magic=2, compression_type=codec or 0, is_transactional=0, producer_id=-1, producer_epoch=-1,
                   base_sequence=-1, batch_size=1 << 30)
        append = new.append
        for offset, (key, value) in enumerate(zip(content.keys, content.values, strict=True)):
            append(offset, TIME_MS, key, value, pairs)
        return new if codec is None else new.build()
    return run


def _peer_taking(peer: str, data: bytes) -> Callable[[], list[Any]]:
    read = importlib.import_module(READERS[peer]).MemoryRecords

    def run() -> list[Any]:
        found = read(data).next_batch()
        if not found.validate_crc():
            raise ValueError("the checksum is wrong")
        return list(found)
    return run


def _peer_touching(peer: str, data: bytes) -> Action:
    take = _peer_taking(peer, data)

    def run() -> None:
        for record in take():
            record.key  # noqa: B018
            record.value  # noqa: B018
    return run


def _column_cases(content: Content, codec: int) -> list[Case]:
    """Arrow in and out; nobody else has that."""
    plain, headed = content.sealed(codec), content.sealed(codec, headers=True)
    keys, values = pa.array(content.keys, pa.binary()), pa.array(content.values, pa.binary())
    partitions = pa.array([0] * content.count, pa.int32())
    times = pa.array([TIME_MS] * content.count, pa.int64())

    def columns_in() -> object:
        buffer = _buffer(Native)
        arrow_rows.append_columns(buffer, keys, values, partitions, times)
        return [opened.seal(codec).data for opened in buffer.open_batches.ready(math.inf)]

    return [
        Case("parse to Arrow, 7 columns", {OURS: lambda: arrow.to_arrow(plain, "topic", 0, 0)}, content.count),
        Case("parse to Arrow, with headers", {OURS: lambda: arrow.to_arrow(headed, "topic", 0, 0, headers=True)},
             content.count),
        Case("Arrow to a sealed batch", {OURS: columns_in}, content.count),
    ]


def _other_cases(content: Content, twins: dict[str, Any]) -> list[Case]:
    """Records with a header, reports, small batches, checksums."""
    headed = content.sealed(0, headers=True)
    small = b"".join(_single(twins[OURS], value) for value in content.values[:1000])
    megabyte = bytes(1 << 20)
    append: dict[str, Action] = {who: _appending(twin, content, None, HEADERS) for who, twin in twins.items()}
    take: dict[str, Action] = {who: _taking(twin, headed, content.count) for who, twin in twins.items()}
    notes = {}
    for peer in PEERS:
        try:
            append[peer], take[peer] = _peer_appending(peer, content, None, HEADERS), _peer_taking(peer, headed)
            take[peer]()
        except ImportError as error:
            notes[peer] = str(error)
    return [
        Case("append, a header each", append, content.count, notes),
        Case("parse to messages, a header each", take, content.count, notes),
        Case("append, a callback each",
             {who: _appending(twin, content, None, callback=print) for who, twin in twins.items()}, content.count),
        Case("expand delivery reports", {who: _reporting(twin, content) for who, twin in twins.items()}, content.count),
        Case("parse to messages, batches of one record",
             {who: _taking(twin, small, 1000) for who, twin in twins.items()}, 1000),
        Case("CRC-32C, per KiB",
             {who: lambda twin=twin: twin.crc32c(megabyte) for who, twin in twins.items()}, 1024),  # type: ignore[misc]
    ]


def _single(twin: Any, value: bytes) -> bytes:
    made = twin.BatchBuilder(1 << 20, 1)
    made.append(TIME_MS, None, value, ())
    return bytes(made.seal().data)


def _reporting(twin: Any, content: Content) -> Action:
    buffer = _buffer(twin)
    for value in content.values:
        buffer.append(value, callback=print)
    opened = buffer.open_batches.ready(math.inf)[0]
    opened.seal()
    return lambda: opened.messages(0, 1, 0, None, 0.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
