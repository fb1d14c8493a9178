"""Rows of fetched columns on their way into a producer, without a Python object for each, and where each was read."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import chain, repeat
from typing import Any

from headrace.buffers import RecordAccumulator, append_columns
from headrace.buffers.column_input import BinaryInput
from headrace.cli.consuming.portions import Portion
from headrace.cli.producing.slices import Places
from headrace.records.columns.arrow_batch import ArrowBatch, columns_of
from headrace.records.columns.columns import BinaryColumn, Columns
from headrace.types.records import TIMESTAMP_NOT_AVAILABLE

__all__ = ["CopiedRows", "CopyPlaces", "RowInputs"]


class RowInputs:
    """The columns of a batch as a producer takes them.

    Args:
        batch: the records.
        keeps_partitions: each goes into the partition with the number of its own; else the partitioner chooses.
    """

    def __init__(self, batch: ArrowBatch, keeps_partitions: bool) -> None:
        columns, runs = columns_of(batch)
        self.batch = batch
        self.columns = columns
        numbers = None
        if keeps_partitions:
            numbers = memoryview(array("i", chain.from_iterable(
                repeat(partition, count) for _, partition, count in runs))).cast("B")
        assert columns.headers is not None
        lists = BinaryInput(columns.headers.validity, columns.headers.offsets, None, 0, False)
        headers = (lists, _input(columns.headers.names), _input(columns.headers.values))
        self.inputs = (_input(columns.key), _input(columns.value), numbers, _timestamps(columns),
                       headers if columns.headers.total else None)

    def size(self, first: int, end: int) -> int:
        """Bytes of the keys and values of some rows."""
        return sum(offsets[end] - offsets[first] for offsets in (
            memoryview(column.offsets).cast("B").cast("i") for column in (self.columns.key, self.columns.value)
            if column is not None))


def _input(column: BinaryColumn | None) -> BinaryInput:
    assert column is not None
    return BinaryInput(column.validity, column.offsets, column.data, 0, False)


def _timestamps(columns: Columns) -> Any:
    """Milliseconds by row; 0, for now, of records that have none: only brokers before 0.10 have such."""
    times = memoryview(columns.timestamps).cast("B")
    kinds = bytes(memoryview(columns.timestamp_types).cast("B"))
    if TIMESTAMP_NOT_AVAILABLE not in kinds:
        return times
    return memoryview(array("q", [time if kind != TIMESTAMP_NOT_AVAILABLE else 0
                                  for time, kind in zip(times.cast("q"), kinds, strict=True)])).cast("B")


class CopiedRows:
    """Rows of a batch that follow each other (`producing.sink.ArrowRows`)."""

    def __init__(self, inputs: RowInputs, first: int, count: int) -> None:
        self._inputs = inputs
        self._first = first
        self._count = count

    def __len__(self) -> int:
        return self._count

    def append_to(self, accumulator: RecordAccumulator, start: int = 0, listener: object = None) -> int:
        """Append rows from `start` on, as many as there is room for."""
        return append_columns(accumulator, self._first + start, self._first + self._count, *self._inputs.inputs,
                              listener)


class CopyPlaces(Places):
    """Numbers of records in the order in which they were read, and where that was."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: list[int] = []
        self._portions: list[tuple[str, int, int]] = []
        self.next = 1

    def read(self, portion: Portion) -> int:
        """Records were read; gives the number of the first."""
        number = self.next
        self._numbers.append(number)
        self._portions.append((portion.topic, portion.partition, portion.offsets[0]))
        self.next += len(portion)
        return number

    def where(self, first: int, end: int | None = None) -> str:
        """Topic, partition, and about which offset: between two records of a compacted topic some may be missing."""
        at = bisect_right(self._numbers, first) - 1
        topic, partition, offset = self._portions[at]
        behind = first - self._numbers[at]
        return f"{topic} [{partition}] offset {offset}" + (f", {behind} records on" if behind else "")
