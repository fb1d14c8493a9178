"""What record batches cost: nanoseconds of CPU per record, native and plain.

    python benchmarks/records.py [--plain]

Only loops of this process are timed (CPU time, best of several rounds); the targets are those of the design.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

from headrace.records import batch, builder, columns, compression, hashing, topic_buffer

COUNT = 10_000
VALUE = b"v" * 100


class Plain:
    """The plain twin's names in one place, as the native module has them."""

    Budget, TopicBuffer = topic_buffer.Budget, topic_buffer.TopicBuffer
    BatchBuilder, Cursor = builder.BatchBuilder, batch.Cursor
    read_columns, append_columns = staticmethod(columns.read_columns), staticmethod(columns.append_columns)
    crc32c, scan = staticmethod(hashing.crc32c), staticmethod(batch.scan)


def best_ns(action: Callable[[], Any], per: int, rounds: int = 9) -> float:
    """CPU nanoseconds per item of the fastest round."""
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        kept = action()
        times.append(time.process_time_ns() - start)
        del kept
    return min(times) / per


def sealed(twin: Any, codec: int = 0, count: int = COUNT, value: bytes = VALUE) -> bytes:
    """A batch of records without keys."""
    builder = twin.BatchBuilder(1 << 30, 1 << 30)
    for _ in range(count):
        builder.append(1_700_000_000_000, None, value, ())
    return bytes(builder.seal(codec).data)


def fill(twin: Any, times: int, **fields: Any) -> list[Any]:
    """Append to four partitions, taking batches out as they become full."""
    buffer = twin.TopicBuffer("topic", 4, twin.Budget(1 << 40, 1 << 50), batch_bytes=1_000_000)
    append, value, key, callback = buffer.append, VALUE, fields.get("key"), fields.get("callback")
    headers = fields.get("headers")
    for _ in range(times * COUNT):
        if append(value, key, -1, 0, headers, callback):
            buffer.ready()
    return []


def seal_all(twin: Any) -> Callable[[], Any]:
    """Append, seal and stamp: all that the producer's path costs here."""
    def run() -> list[Any]:
        buffer = twin.TopicBuffer("topic", 4, twin.Budget(1 << 40, 1 << 50), batch_bytes=1_000_000)
        append, done = buffer.append, []
        for _ in range(10 * COUNT):
            append(VALUE)
        for opened in buffer.ready(math.inf):
            batch = opened.seal()
            batch.stamp(1, 0, 0)
            done.append(batch.data)
        return done
    return run


def reports(twin: Any) -> Callable[[], Any]:
    """Expand the delivery reports of one batch."""
    buffer = twin.TopicBuffer("topic", 1, twin.Budget(1 << 40, 1 << 50), batch_bytes=1 << 30)
    for _ in range(COUNT):
        buffer.append(VALUE, callback=print)
    opened = buffer.ready(math.inf)[0]
    opened.seal()
    return lambda: opened.messages(0, 1, 0, None, 0.0)


def arrow_rows(twin: Any) -> Callable[[], Any]:
    """Append rows of buffers in Arrow's layout."""
    offsets = memoryview(b"".join((100 * row).to_bytes(4, "little") for row in range(COUNT + 1)))
    value = columns.BinaryInput(None, offsets, VALUE * COUNT, 0, False)
    buffer = twin.TopicBuffer("topic", 4, twin.Budget(1 << 40, 1 << 50), batch_bytes=1_000_000)

    def run() -> None:
        buffer.ready(math.inf)
        twin.append_columns(buffer, 0, COUNT, None, value, None, None, None)
    return run


def measure(twin: Any, times: int) -> None:
    """Print a line for each operation."""
    plain = sealed(twin)
    lines: list[tuple[str, Callable[[], Any], int]] = [
        ("append, 100 B", lambda: fill(twin, times), times * COUNT),
        ("append with a key of 16 B", lambda: fill(twin, times, key=b"k" * 16), times * COUNT),
        ("append with a callback", lambda: fill(twin, times, callback=print), times * COUNT),
        ("append with one header", lambda: fill(twin, times, headers=[("name", b"value")]), times * COUNT),
        ("append, seal, stamp, sum", seal_all(twin), 10 * COUNT),
        ("expand delivery reports", reports(twin), COUNT),
        ("take", lambda: twin.Cursor(plain, "topic", 0, 0).take(COUNT), COUNT),
        ("take, and its value", lambda: [m.value() for m in twin.Cursor(plain, "topic", 0, 0).take(COUNT)], COUNT),
        ("columns out", lambda: twin.read_columns(plain, "topic", 0, 0, COUNT), COUNT),
        ("columns in", arrow_rows(twin), COUNT),
    ]
    for codec in range(1, 5):
        packed = sealed(twin, codec)
        lines.append((f"columns out, {compression.CODEC_NAMES[codec]}",
                      lambda packed=packed: twin.read_columns(packed, "topic", 0, 0, COUNT), COUNT))  # type: ignore[misc]
    small = b"".join(sealed(twin, count=1) for _ in range(1000))
    lines.append(("take from batches of 1", lambda: twin.Cursor(small, "topic", 0, -1).take(COUNT), 1000))
    lines.append(("scan, a batch", lambda: twin.scan(small), 1000))
    for name, action, per in lines:
        print(f"{name:32}{best_ns(action, per):10.1f} ns")
    size = 1 << 20
    data = bytes(size)
    print(f"{'CRC-32C of 1 MiB':32}{size / best_ns(lambda: twin.crc32c(data), 1):10.2f} GB/s")


def main() -> None:
    """Measure the native module, and the plain twin when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain", action="store_true", help="the plain twin as well (slow)")
    arguments = parser.parse_args()
    from headrace.records import _native

    print("native")
    measure(_native, 20)
    if arguments.plain:
        print("plain")
        measure(Plain, 1)


if __name__ == "__main__":
    main()
