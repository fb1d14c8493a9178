"""Parquet into the sink: Arrow columns with a role each. No Python object is made for a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.buffers.arrow_rows import Rows
from headrace.cli.producing.sink import Constants, RecordSink
from headrace.cli.producing.slices import Headers, Places, Slice
from headrace.client.producer.column_feed import ColumnMapping, records_of
from headrace.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["parquet_rows", "send_parquet"]

_BATCH_ROWS = 8_192


def _open(name: str) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ConfigError("Parquet needs pyarrow: pip install 'headrace[arrow]'") from None
    try:
        return parquet.ParquetFile(name)
    except pa.ArrowException as error:
        raise ConfigError(f"{name} is no Parquet file: {error}") from None


def parquet_rows(names: list[str]) -> int:
    """Rows of all files.

    Raises:
        ConfigError: pyarrow is missing, or a file is no Parquet file.
        OSError: a file cannot be read.
    """
    total = 0
    for name in names:
        with _open(name) as file:
            total += file.metadata.num_rows
    return total


def send_parquet(name: str, roles: dict[str, str], constants: Constants, places: Places, sink: RecordSink,
                 advance: Callable[[int], None], *, by_record: bool) -> None:
    """Send the rows of a file.

    Args:
        name: the file.
        roles: names of columns by role; a role that is not named takes the column that is called like it.
        constants: what is the same for all rows; it replaces the columns.
        places: learns how many rows there are.
        sink: takes them.
        advance: called with the count of rows that are on their way.
        by_record: rows must become records one by one, for interceptors.

    Raises:
        ConfigError: a column is missing, has a wrong type, or the file is damaged.
    """
    import pyarrow as pa

    with _open(name) as file:
        base = places.begin(name)
        places.reached(base + file.metadata.num_rows)
        try:
            indexes = ColumnMapping(**roles).resolve(file.schema_arrow)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{name}: {_as_options(str(error))}") from None
        wanted = {role: file.schema_arrow.names[index] for role, index in indexes.items()}
        first = base + 1
        try:
            for batch in file.iter_batches(_BATCH_ROWS, columns=sorted(set(wanted.values()))):
                arrays = {role: batch.column(column) for role, column in wanted.items()}
                _send(arrays, first, batch.num_rows, constants, sink, by_record)
                first += batch.num_rows
                advance(batch.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"{places.where(first)}: the file is damaged: {error}") from None


def _send(
    arrays: dict[str, Any], first: int, count: int, constants: Constants, sink: RecordSink, by_record: bool
) -> None:
    done = 0
    while done < count:
        length = sink.allowed(count - done)
        part = _with_constants({role: array.slice(done, length) for role, array in arrays.items()}, length, constants)
        if by_record:
            sink.send(_slice(part, first + done))
        else:
            rows = Rows(part.get("key"), part.get("value"), part.get("partition"), part.get("timestamp"),
                        part.get("headers"))
            size = sum(_size(part[role]) for role in ("key", "value") if role in part)
            sink.send_rows(rows, first + done, size)
        done += length


def _with_constants(arrays: dict[str, Any], count: int, constants: Constants) -> dict[str, Any]:
    import pyarrow as pa

    made = dict(arrays)
    if constants.key is not None:
        made["key"] = pa.repeat(pa.scalar(constants.key, pa.binary()), count)
    if constants.partition is not None:
        made["partition"] = pa.repeat(pa.scalar(constants.partition, pa.int32()), count)
    if constants.timestamp is not None:
        made["timestamp"] = pa.repeat(pa.scalar(constants.timestamp, pa.int64()), count)
    if constants.empty_is_null:
        for role in ("key", "value"):
            if role in made:
                made[role] = _emptied(made[role])
    if constants.headers:
        made["headers"] = _headers(constants, count)
    return made


def _size(array: Any) -> int:
    import pyarrow.compute as pc

    return pc.sum(pc.binary_length(array)).as_py() or 0


def _emptied(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(pc.binary_length(array), 0), pa.scalar(None, array.type), array)


def _headers(constants: Constants, count: int) -> pyarrow.Array:
    import pyarrow as pa

    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    row = [{"key": name, "value": value} for name, value in constants.headers or ()]
    return pa.repeat(pa.scalar(row, kind), count)


def _slice(arrays: dict[str, Any], first: int) -> Slice:
    records = list(records_of("", arrays))
    return Slice(
        range(first, first + len(records)), [_plain(record.value) for record in records],
        [_plain(record.key) for record in records], [-1 if r.partition is None else r.partition for r in records],
        [record.timestamp_ms or 0 for record in records], [_pairs(record.headers) for record in records])


def _pairs(headers: Any) -> Headers:
    return headers or []


def _plain(content: Any) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _as_options(text: str) -> str:
    """An error text of `produce_arrow` with the option names of the command line."""
    for role in ("value", "key", "headers", "timestamp", "partition"):
        text = text.replace(f"with {role}=...", f"with --{role}-column NAME").replace(
            f", or none with {role}=None", "")
    return text
