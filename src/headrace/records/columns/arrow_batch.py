"""`ArrowBatch`: records as columns that other libraries take without a copy, and what makes it. Needs no pyarrow.

It must not know where the records come from. Read next: `headrace.records.columns.columns`, which decodes, and
`headrace.records.columns.capsules`, which hands out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from headrace import records
from headrace.records.columns.columns import BinaryColumn, Columns, HeaderColumn
from headrace.records.compression import MAX_COLUMN_BYTES
from headrace.types.records import TIMESTAMP_NOT_AVAILABLE

if TYPE_CHECKING or records.implementation == "plain":
    from headrace.records.columns.capsules import array_capsule, schema_capsule, stream_capsule
else:
    from headrace.records._batch import array_capsule, schema_capsule, stream_capsule

__all__ = ["ArrowBatch", "ArrowBatchBuilder", "Run", "columns_of"]

_Node = tuple[Any, ...]
Run = tuple[str, int, int]
"""Rows in a row of one partition: topic, partition, how many."""


def _type(name: bytes, text: bytes, nullable: bool, *children: _Node, dictionary: _Node | None = None) -> _Node:
    return (text + b"\0", name + b"\0", nullable, children, dictionary)


_SCHEMA = _type(
    b"", b"+s", False,
    _type(b"topic", b"i", False, dictionary=_type(b"", b"u", False)),
    _type(b"partition", b"i", False),
    _type(b"offset", b"l", False),
    _type(b"timestamp", b"tsm:UTC", True),
    _type(b"timestamp_type", b"c", False),
    _type(b"key", b"z", True),
    _type(b"value", b"z", True),
    _type(b"headers", b"+l", True, _type(
        b"item", b"+s", False, _type(b"name", b"u", False), _type(b"value", b"z", True))),
)
_NAMES = tuple(child[1][:-1].decode() for child in _SCHEMA[3])


class ArrowBatch:
    """Records as Arrow columns: what `consume_arrow()` returns.

    Polars, pandas, DuckDB, pyarrow and others take it as it is, by Arrow's PyCapsule protocol, and share its memory:
    `polars.DataFrame(batch)`, `pandas.DataFrame.from_arrow(batch)`, `pyarrow.record_batch(batch)`. Its length is the
    number of records.

    The columns: `topic` (a dictionary of strings), `partition` (32 bits), `offset` (64 bits), `timestamp` (UTC, in
    milliseconds; null where the record has none), `timestamp_type` (8 bits: the `TIMESTAMP_` constants of `headrace`),
    `key` and `value` (binary; null where the record's is None), `headers` (lists of structs of `name` and `value`; null
    where the record has none).

    Args:
        columns: all but topic and partition, of all rows. Consumers make batches; programs do not.
        runs: topic, partition and number of rows, one after the other.
    """

    __slots__ = ("_columns", "_runs")

    def __init__(self, columns: Columns, runs: list[Run]) -> None:
        self._columns = columns
        self._runs = runs

    def __len__(self) -> int:
        return self._columns.rows

    @property
    def num_rows(self) -> int:
        """The number of records."""
        return self._columns.rows

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(_NAMES)

    def __repr__(self) -> str:
        partitions = len({run[:2] for run in self._runs})
        return f"ArrowBatch({len(self)} records of {partitions} partitions)"

    def __arrow_c_schema__(self) -> Any:
        """The columns' names and types, as a capsule of Arrow's PyCapsule protocol."""
        return schema_capsule(_SCHEMA)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The types and the columns, as capsules of Arrow's PyCapsule protocol.

        Args:
            requested_schema: other types; there are none, so that the caller converts.
        """
        return schema_capsule(_SCHEMA), array_capsule(self._array())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The batch as a stream of one, as a capsule of Arrow's PyCapsule protocol.

        Args:
            requested_schema: as for `__arrow_c_array__`.
        """
        return stream_capsule(_SCHEMA, self._array())

    def _array(self) -> _Node:
        columns, rows = self._columns, self._columns.rows
        assert columns.key is not None
        assert columns.value is not None
        assert columns.headers is not None
        return rows, 0, (None,), (
            self._topics(),
            (rows, 0, (None, b"".join([_INT32(partition) * count for _, partition, count in self._runs])), (), None),
            (rows, 0, (None, columns.offsets), (), None),
            _timestamps(rows, columns.timestamps, columns.timestamp_types),
            (rows, 0, (None, columns.timestamp_types), (), None),
            _binary(rows, columns.key),
            _binary(rows, columns.value),
            _headers(rows, columns.headers),
        ), None

    def _topics(self) -> _Node:
        numbers: dict[str, int] = {}
        for topic, _, _ in self._runs:
            numbers.setdefault(topic, len(numbers))
        names, ends = [topic.encode() for topic in numbers], [0]
        for name in names:
            ends.append(ends[-1] + len(name))
        values = (len(names), 0, (None, struct.pack(f"<{len(ends)}i", *ends), b"".join(names)), (), None)
        indices = b"".join([_INT32(numbers[topic]) * count for topic, _, count in self._runs])
        return self._columns.rows, 0, (None, indices), (), values


_INT32 = struct.Struct("<i").pack


def _timestamps(rows: int, times: Any, types: Any) -> _Node:
    """Only brokers before 0.10 have records without one."""
    if TIMESTAMP_NOT_AVAILABLE not in bytes(types):
        return rows, 0, (None, times), (), None
    known = [kind != TIMESTAMP_NOT_AVAILABLE for kind in bytes(types)]
    bits = sum(1 << row for row, is_known in enumerate(known) if is_known)
    return rows, rows - sum(known), (bits.to_bytes((rows + 7) // 8, "little"), times), (), None


def _binary(rows: int, column: BinaryColumn) -> _Node:
    nulls = 0 if column.validity is None else -1  # so many as the bitmap says
    return rows, nulls, (column.validity, column.offsets, column.data), (), None


def _headers(rows: int, column: HeaderColumn) -> _Node:
    names, values = _binary(column.total, column.names), _binary(column.total, column.values)
    nulls = 0 if column.validity is None else -1
    return rows, nulls, (column.validity, column.offsets), ((column.total, 0, (None,), (names, values), None),), None


class ArrowBatchBuilder:
    """The rows of one `ArrowBatch` to be, out of the fetched bytes of several partitions.

    Args:
        max_bytes: of all columns; what is full before takes no more rows.
        likely_rows: how many there will be, as far as one knows.

    Attributes:
        starts: the first offset that was read of each partition.
    """

    def __init__(self, max_bytes: int = MAX_COLUMN_BYTES, likely_rows: int = 0) -> None:
        self._builder = records.ColumnBuilder(
            want_headers=True, max_column_bytes=max_bytes, likely_rows=likely_rows)
        self._runs: list[Run] = []
        self.starts: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return self._builder.rows

    @property
    def full(self) -> bool:
        """The next record does not fit."""
        return self._builder.full

    def append(
        self, cursor: records.Cursor, topic: str, partition: int, max_rows: int, waiting_bytes: int = 0,
        end_offset: int = (1 << 63) - 1,
    ) -> None:
        """Add what a cursor hands out, up to so many rows.

        Args:
            cursor: over fetched bytes of one partition.
            topic: of these bytes.
            partition: of these bytes.
            max_rows: most rows to add.
            waiting_bytes: of all fetched bytes that wait to be added, these included.
            end_offset: offset behind the last one wanted.

        Raises:
            CorruptRecordError: the next record is damaged; nothing was added.
        """
        at = cursor.position
        added = self._builder.append(cursor, max_rows, end_offset, waiting_bytes)
        if added:
            self.starts.setdefault((topic, partition), at)
            self._runs.append((topic, partition, added))

    def finish(self) -> ArrowBatch:
        """The batch. Nothing can be added any more."""
        return ArrowBatch(self._builder.finish(), self._runs)


def columns_of(batch: ArrowBatch) -> tuple[Columns, list[Run]]:
    """The buffers of a batch and its runs, for those who read them without Arrow: the command line does."""
    return batch._columns, batch._runs
