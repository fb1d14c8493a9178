"""Record batches -> Arrow columns, without a Python object per record where the native code is there.

The schema is the one that Spark's Kafka source has and that Spark's Python sources compare strictly. pyarrow is
imported inside the functions only. It must not know Spark. The way back is `headrace.buffers.arrow_rows`.
Read next: `headrace.records.columns.columns`.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from headrace import records
from headrace.records.columns.columns import BinaryColumn, Columns, HeaderColumn
from headrace.records.compression import MAX_COLUMN_BYTES

if TYPE_CHECKING:
    import pyarrow

__all__ = ["schema", "to_arrow"]


def schema(headers: bool = False, columns: Collection[str] | None = None) -> pyarrow.Schema:
    """The columns' names and types.

    Args:
        headers: with the headers.
        columns: only these, in the schema's own order; all with None.
    """
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
    ]
    if headers:
        fields.append(pa.field("headers", pa.list_(pa.field("element", header))))
    return pa.schema([field for field in fields if columns is None or field.name in columns])


def to_arrow(
    data: Any,
    topic: str,
    partition: int,
    fetch_offset: int,
    end_offset: int | None = None,
    *,
    headers: bool = False,
    check_crcs: bool = True,
    aborted: Sequence[tuple[int, int]] | None = None,
    columns: Collection[str] | None = None,
    max_rows: int | None = None,
    max_column_bytes: int = MAX_COLUMN_BYTES,
) -> tuple[pyarrow.RecordBatch, int]:
    """CompletedFetch bytes as a record batch.

    Args:
        data: whole Kafka batches; a part of one at the end is left out. Or a cursor over them, which knows all that is
            said of them here and goes on where it is.
        topic: name for the column.
        partition: number for the column.
        fetch_offset: first offset wanted.
        end_offset: offset behind the last one wanted; None for all.
        headers: with the headers, as a list of structs; null where a record has none.
        check_crcs: compare checksums.
        aborted: (producer id, first offset) of aborted transactions, for read_committed.
        columns: only these columns; all with None.
        max_rows: most rows.
        max_column_bytes: of all columns, unless one record has more.

    Returns:
        The batch, and the offset to go on from. That is less than what the bytes hold after `max_rows`, or when the
        columns take as much memory as one call may: call again then.

    Raises:
        CorruptRecordError: the bytes are damaged.
    """
    import pyarrow as pa

    wanted = schema(headers, columns)
    read = records.read_columns(
        data,
        topic,
        partition,
        fetch_offset,
        (1 << 63) - 1 if end_offset is None else end_offset,
        want_key="key" in wanted.names,
        want_value="value" in wanted.names,
        want_headers="headers" in wanted.names,
        max_rows=1 << 31 if max_rows is None else max_rows,
        check_crcs=check_crcs,
        aborted=aborted,
        max_column_bytes=max_column_bytes,
    )
    arrays = [_array(field, read, topic, partition) for field in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted), read.next_offset


def _array(field: pyarrow.Field, read: Columns, topic: str, partition: int) -> pyarrow.Array:
    import pyarrow as pa

    name, rows = field.name, read.rows
    if name == "topic":
        raw = topic.encode()
        return _repeated(field.type, rows, [array("i", [0, len(raw)]), raw])
    if name == "partition":
        return _repeated(field.type, rows, [array("i", [partition])])
    if name == "headers":
        assert read.headers is not None
        return _header_array(field.type, read.headers, rows)
    if name in ("key", "value"):
        column = read.key if name == "key" else read.value
        assert column is not None
        return _binary_array(field.type, column, rows)
    numbers = {"offset": read.offsets, "timestamp": read.timestamps, "timestampType": read.timestamp_types}[name]
    return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(numbers)])


def _repeated(kind: pyarrow.DataType, rows: int, buffers: list[Any]) -> pyarrow.Array:
    """One value, again and again. `pyarrow.scalar` would import pandas, if it is there, to see if the value is its."""
    import pyarrow as pa

    one = pa.Array.from_buffers(kind, 1, [None, *map(pa.py_buffer, buffers)])
    return pa.repeat(one[0], rows)


def _binary_array(kind: pyarrow.DataType, column: BinaryColumn, rows: int) -> pyarrow.Array:
    import pyarrow as pa

    validity = None if column.validity is None else pa.py_buffer(column.validity)
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)])


def _header_array(kind: pyarrow.DataType, column: HeaderColumn, rows: int) -> pyarrow.Array:
    import pyarrow as pa

    names = _binary_array(pa.string(), column.names, column.total)
    values = _binary_array(pa.binary(), column.values, column.total)
    entries = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(column.offsets)], children=[entries])
