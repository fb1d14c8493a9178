"""A task's ranges of offsets as Arrow batches: what the source does in executors.

The connections stay open for the next task of the process (decision 0014). This module does not import pyspark.
Read next: `client.consumer.range_reader`, `records.columns.arrow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow

from headrace.client.consumer.kept_readers import KeptReaders
from headrace.client.consumer.range_reader import FetchedRange, OffsetRange, RangeReader
from headrace.errors import KafkaError, KafkaException
from headrace.records.columns.arrow import to_arrow
from headrace.spark.options import SourceOptions
from headrace.spark.plan import DataLossError, Range

__all__ = ["read_columns"]

_ROWS: Final = 20_000
"""Rows of one Arrow batch at most: Spark is quickest between 5,000 and 50,000 and does not cut batches itself."""
_PATIENCE_S: Final = 120.0
"""How long a task waits for data: brokers may restart meanwhile. Spark's connector waits as long."""
_GONE: Final = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION)
_DEFAULTS: Final = {"isolation.level": "read_committed"}
_READERS: Final = KeptReaders()


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
        KafkaException: the brokers did not answer in time, or refused.
    """
    reader = _READERS.take({**_DEFAULTS, **options.client})
    reached: dict[tuple[str, int], int] = {}
    try:
        yield from _read(reader, options, columns, wanted, reached)
    except KafkaException as failed:
        if failed.error.code() not in _GONE:
            raise
        left = [Range(each.topic, each.partition, reached.get((each.topic, each.partition), each.start), each.end)
                for each in wanted]
        if options.fail_on_data_loss:
            raise DataLossError(
                f"records of {', '.join(map(str, left))} are gone: {failed.error.str()}. Set failOnDataLoss to false "
                "to go on with what there is, or keep records longer (retention.ms)"
            ) from failed
        yield from _read(reader, options, columns, _what_is_left(options, left), {})
    finally:
        # A reader that was left in the middle of its ranges is closed there.
        _READERS.give_back(reader)


def _what_is_left(options: SourceOptions, wanted: Sequence[Range]) -> list[Range]:
    from headrace.spark.cluster import ClusterView

    view = ClusterView(options.client, options.subscription)
    tps = [(each.topic, each.partition) for each in wanted]
    earliest, latest = view.earliest(tps), view.latest(tps)
    cut = [Range(topic, p, max(each.start, earliest[topic, p]), min(each.end, latest[topic, p]))
           for each, (topic, p) in zip(wanted, tps, strict=True)]
    return [each for each in cut if each.size > 0]


def _read(
    reader: RangeReader, options: SourceOptions, columns: list[str], wanted: Sequence[Range],
    reached: dict[tuple[str, int], int],
) -> Iterator[pyarrow.RecordBatch]:
    """The batches of ranges; `reached` gets where each one is."""
    ends = {(each.topic, each.partition): each.end for each in wanted}
    asked = [OffsetRange(each.topic, each.partition, each.start, each.end) for each in wanted]
    for fetched in reader.read(asked, _PATIENCE_S):
        tp = fetched.topic, fetched.partition
        yield from _decoded(fetched, ends[tp], columns)
        reached[tp] = fetched.next_offset


def _decoded(fetched: FetchedRange, stop: int, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
    at, end = fetched.fetch_offset, min(fetched.next_offset, stop)
    while at < end:  # as a rule once: twice only where a column is too large for one Arrow batch
        batch, after = to_arrow(
            fetched.data, fetched.topic, fetched.partition, at, stop, headers="headers" in columns,
            aborted=fetched.aborted, columns=columns,
        )
        batch = batch.select(columns)
        for row in range(0, batch.num_rows, _ROWS):
            yield batch.slice(row, _ROWS)
        at = max(after, at + 1)
