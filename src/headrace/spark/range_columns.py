"""A task's ranges of offsets as Arrow batches: what the source does in executors.

The connections stay open for the next task of the process (decision 0014). This module does not import pyspark.
Read next: `client.consumer.range_reader`, `records.columns.arrow`.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

import headrace.values.arrow_required  # noqa: F401 - the check is what it is for

import pyarrow

from headrace.client.consumer.kept_readers import KeptReaders
from headrace.client.consumer.range_reader import FetchedRange, OffsetRange, RangeReader
from headrace.errors import KafkaError, KafkaException, SerializationError
from headrace.records import Cursor
from headrace.records.columns.arrow import to_arrow
from headrace.spark.options import SourceOptions
from headrace.spark.plan import DataLossError, Range

__all__ = ["read_columns", "rows_of"]

_ROWS: Final = 20_000
"""Rows of one Arrow batch at most: Spark is quickest between 5,000 and 50,000 and does not cut batches itself."""
_BYTES: Final = 16 << 20
"""About so many bytes at most, twice what a leader gives at once: compressed records may become fifty times as many,
and Spark has a whole batch of each task in memory. No more is decoded at once, for tasks have memory as well."""
_GONE: Final = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION)
_ANOTHER: Final = (KafkaError.UNKNOWN_TOPIC_ID, KafkaError.UNKNOWN_TOPIC_OR_PART)
"""The topic or partition is gone, says a broker; it may lag behind, so nothing is lost unless others say so too."""
_ATTEMPTS: Final = 3
"""What is left may be lost as well, while it is read."""
_BOUNDS: Final = ((1 << 63) - 1, -(1 << 63))
"""What `to_arrow` has in the place of a timestamp beyond them; no whole milliseconds make these microseconds."""
_BEYOND: Final = [struct.pack("=q", bound) for bound in _BOUNDS]
_READERS: Final = KeptReaders()
_log = logging.getLogger("headrace")


def read_columns(
    options: SourceOptions, columns: list[str], wanted: Sequence[Range]
) -> Iterator[pyarrow.RecordBatch]:
    """Read ranges, in their order.

    Args:
        options: of the read.
        columns: which to read, in their order.
        wanted: ranges of offsets, at most one of each partition.

    Raises:
        DataLossError: records are gone, and failOnDataLoss is set.
        SerializationError: a timestamp is to be read that Spark's type cannot have.
        KafkaException: the brokers did not answer in time, or refused.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        reader = _READERS.take(options.client)
        reached: dict[tuple[str, int], int] = {}
        try:
            yield from _read(reader, options, columns, wanted, reached)
            return
        except KafkaException as failed:
            if failed.error.code() not in (*_GONE, *_ANOTHER) or not attempts_left:
                raise
            unread = [replace(each, start=reached.get((each.topic, each.partition), each.start)) for each in wanted]
            wanted = _after_loss(options, [each for each in unread if each.size > 0], failed)
        finally:
            # A reader that was left in the middle of its ranges is closed there.
            _READERS.give_back(reader)


def _after_loss(options: SourceOptions, unread: Sequence[Range], failed: KafkaException) -> list[Range]:
    """What there still is to read when records may be gone.

    Raises:
        DataLossError: they are, and failOnDataLoss is set.
    """
    left = _what_is_left(options, unread)
    lost = _missing(unread, left)
    if not lost and failed.error.code() in _ANOTHER:
        return left
    text = f"records of {', '.join(map(str, lost or unread))} are gone: {failed.error.str()}"
    if options.fail_on_data_loss:
        raise DataLossError(f"{text}. Set failOnDataLoss to false to go on with what there is, or keep records longer "
                            "(retention.ms)") from failed
    _log.warning("%s. The query goes on with what there is, as failOnDataLoss is false", text)
    return left


def _missing(unread: Sequence[Range], left: Sequence[Range]) -> list[Range]:
    """What of ranges is not left; of each partition there is at most one range, and one that is left."""
    kept = {(each.topic, each.partition): each for each in left}
    found: list[Range] = []
    for each in unread:
        there = kept.get((each.topic, each.partition), replace(each, start=each.end))
        found += (replace(each, end=there.start), replace(each, start=there.end))
    return [each for each in found if each.size > 0]


def _what_is_left(options: SourceOptions, wanted: Sequence[Range]) -> list[Range]:
    """What the topics still have of ranges: nothing where they are gone, or others have their names."""
    from headrace.spark.cluster import ClusterView

    with ClusterView(options.client, options.subscription, options.retries) as view:
        latest = view.ends()
        ids = view.topic_ids
        there = [each for each in wanted if (each.topic, each.partition) in latest
                 and each.topic_id in ("", ids.get(each.topic, each.topic_id))]
        earliest = view.earliest((each.topic, each.partition) for each in there)
    cut = [replace(each, start=max(each.start, earliest[each.topic, each.partition]),
                   end=min(each.end, latest[each.topic, each.partition])) for each in there]
    return [each for each in cut if each.size > 0]


def _read(
    reader: RangeReader, options: SourceOptions, columns: list[str], wanted: Sequence[Range],
    reached: dict[tuple[str, int], int],
) -> Iterator[pyarrow.RecordBatch]:
    """The batches of ranges; `reached` gets where each one is."""
    ends = {(each.topic, each.partition): each.end for each in wanted}
    asked = [OffsetRange(each.topic, each.partition, each.start, each.end, _id(each)) for each in wanted]
    for fetched in reader.read(asked, options.poll_timeout_s):
        tp = fetched.topic, fetched.partition
        yield from rows_of(fetched, ends[tp], columns)
        reached[tp] = fetched.next_offset


def _id(wanted: Range) -> UUID | None:
    return UUID(wanted.topic_id) if wanted.topic_id else None


def rows_of(fetched: FetchedRange, stop: int, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
    """Columns of what a leader gave, up to an offset."""
    at, end = fetched.fetch_offset, min(fetched.next_offset, stop)
    cursor = Cursor(fetched.data, fetched.topic, fetched.partition, at, aborted=fetched.aborted)
    while at < end and not cursor.exhausted:  # as a rule once, more often where records were compressed to little
        batch, after = to_arrow(
            cursor, fetched.topic, fetched.partition, at, stop, headers="headers" in columns, columns=columns,
            max_column_bytes=_BYTES,
        )
        batch = batch.select(columns)
        if "timestamp" in columns:
            _check_timestamps(batch.column("timestamp"), fetched, at, stop)
        # Equal parts: what is a little more than one would leave a few rows, which cost Spark as much as many.
        parts = max(1, -(-batch.num_rows // _ROWS), round(batch.nbytes / _BYTES))
        rows = max(1, -(-batch.num_rows // parts))
        for row in range(0, batch.num_rows, rows):
            yield batch.slice(row, rows)
        at = after


def _check_timestamps(column: pyarrow.Array, fetched: FetchedRange, at: int, stop: int) -> None:
    """Refuse a timestamp that would be shown as another one. Numbers are compared only if there are bytes like theirs.

    Raises:
        SerializationError: a timestamp has more than 64 bits in microseconds.
    """
    raw = column.buffers()[1].to_pybytes()
    if not any(each in raw for each in _BEYOND) or not any(number in _BOUNDS for number in memoryview(raw).cast("q")):
        return
    cursor = Cursor(fetched.data, fetched.topic, fetched.partition, at, aborted=fetched.aborted)
    while (message := next(iter(cursor.take(1)), None)) is not None and (message.offset() or 0) < stop:
        _, milliseconds = message.timestamp()
        if not _BOUNDS[1] <= milliseconds * 1000 <= _BOUNDS[0]:
            raise SerializationError(
                f"the timestamp of {fetched.topic}[{fetched.partition}]@{message.offset()} cannot be read: "
                f"{milliseconds} ms have more than 64 bits in microseconds, as Spark counts them. Leave the column "
                "timestamp out (option columns) to read such records")
