"""Columns into a topic: anything with the Arrow PyCapsule protocol, without a Python object for each row.

`ColumnFeed` turns tables into runs of `Rows`; `RowsResult` counts what became of them. Interceptors, and partitioners
written in Python, must see records: with them rows become `ProducerRecord`s one by one, at the cost of the columns'
speed. It must not wait: `client.producer.producer_calls` does. pyarrow is imported inside the functions only.
Read next: `buffers.arrow_rows.Rows`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

from headrace.buffers import RecordAccumulator
from headrace.buffers.arrow_rows import NAMELESS_HEADER, Rows
from headrace.client.producer.interception import InterceptedSend, MetadataReport, check_topic
from headrace.client.producer.reports import IoThreadCallback
from headrace.client.producer.topics import TopicAccumulators
from headrace.client.waits import SteadyFuture
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.interpreter import SteadyLock
from headrace.slotted import slotted
from headrace.types.records import ProducerRecord, RecordMetadata

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "ColumnFeed", "ColumnMapping", "ColumnRole", "RowRange", "RowReport", "RowsResult", "StoredRows",
    "record_batches", "records_of",
]

ColumnRole = str | EllipsisType | None
"""A column's name; `...` for the column that is called like the role, if there is one; None for none."""

_PART_ROWS: Final = 65_536
"""Most rows at a time: bounds what layouts that must be converted take, and how long the loop waits for its turn."""

_log = logging.getLogger("headrace")


@slotted(frozen=True)
class ColumnMapping:
    """Which column is what."""

    value: str = "value"
    key: ColumnRole = ...
    headers: ColumnRole = ...
    timestamp: ColumnRole = ...
    partition: ColumnRole = ...

    def resolve(self, schema: pyarrow.Schema) -> dict[str, int]:
        """Index of the column of each role that has one.

        Raises:
            TypeError: a column has a type that its role cannot take, or a name is no string.
            ValueError: there is no such column, or more than one of its name.
        """
        found = {}
        for role in ("value", "key", "headers", "timestamp", "partition"):
            name = getattr(self, role)
            if name is None and role != "value":
                continue
            if not isinstance(name, (str, EllipsisType)):
                raise TypeError(f"{role} takes the name of a column, not {name!r}")
            wanted = role if name is ... else name
            indexes = schema.get_all_field_indices(wanted)
            if not indexes and name is ...:
                continue
            if len(indexes) != 1:
                raise ValueError(f"there is {'more than one' if indexes else 'no'} column {wanted!r} for {role}: name "
                                 f"the right one with {role}=...; the columns are {', '.join(schema.names) or 'none'}")
            _check(role, wanted, schema.field(indexes[0]).type)
            found[role] = indexes[0]
        return found


def _check(role: str, name: str, kind: pyarrow.DataType) -> None:
    import pyarrow as pa

    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(plain):
        return
    if role in ("value", "key"):
        fits, wanted = _is_binary(plain), "binary or string: cast or serialise it first"
    elif role == "partition":
        fits, wanted = pa.types.is_integer(plain), "integers: cast it first"
    elif role == "timestamp":
        fits = pa.types.is_timestamp(plain) or pa.types.is_integer(plain)
        wanted = "a timestamp, or integers in milliseconds since the epoch: cast it first"
    else:
        fits, wanted = _is_headers(plain), "a list of structs (key: string, value: binary), or a map of these"
    if not fits:
        raise TypeError(f"column {name!r} cannot be the {role}: it is {kind}, and must be {wanted}, or name another "
                        f"column with {role}=...{'' if role == 'value' else f', or none with {role}=None'}")


def _is_binary(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    tests = ("binary", "large_binary", "string", "large_string", "binary_view", "string_view", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{test}", _never)(kind) for test in tests)


def _is_headers(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_map(kind):
        parts = [kind.key_type, kind.item_type]
    elif any(getattr(pa.types, f"is_{test}", _never)(kind)
             for test in ("list", "large_list", "list_view", "large_list_view", "fixed_size_list")):
        if not pa.types.is_struct(kind.value_type):
            return False
        parts = [field.type for field in kind.value_type]
    else:
        return False
    return len(parts) == 2 and all(_is_binary(part) or pa.types.is_null(part) for part in parts)


def _never(_kind: object) -> bool:
    """A type that this pyarrow does not know yet."""
    return False


class RowsResult:
    """What became of the rows of one call; resolves once all are stored or given up.

    Args:
        topic: for the texts.
        resolve: called once, on any thread, as resolve(rows stored, None) or resolve(rows stored, error).
    """

    def __init__(self, topic: str, resolve: Callable[[int, KafkaException | None], None]) -> None:
        self._topic = topic
        self._resolve = resolve
        self._lock = SteadyLock()
        self._total: int | None = None
        self._given_up = False
        self._stored = self._failed = 0
        self._error: KafkaError | None = None

    def on_rows_done(self, error: KafkaError | None, rows: int) -> None:
        """Rows are stored, or given up."""
        with self._lock:
            if error is None:
                self._stored += rows
            else:
                self._failed += rows
                self._error = self._error or error
            settled = self._stored + self._failed == self._total
        if settled:
            self._settle()
        elif error is not None and self._given_up:
            _log.error("%d rows for %s, accepted before their call failed, were not stored: %s", rows, self._topic,
                       error)

    def expect(self, total: int) -> None:
        """Every row was accepted; sets their count."""
        with self._lock:
            self._total = total
            settled = self._stored + self._failed == total
        if settled:
            self._settle()

    def give_up(self) -> None:
        """The call failed half way: no future stands for the rows that were accepted, so losses are logged."""
        with self._lock:
            self._given_up = True
        if self._failed:
            _log.error("%d rows for %s, accepted before their call failed, were not stored: %s", self._failed,
                       self._topic, self._error)

    def _settle(self) -> None:
        if self._error is None:
            self._resolve(self._stored, None)
            return
        text = (f"{self._failed} of {self._total} rows for {self._topic} were not stored, {self._stored} were; the "
                f"first error: {self._error.str()}")
        self._resolve(self._stored, KafkaException(KafkaError(self._error.code(), text, self._error.fatal())))


class StoredRows(SteadyFuture[int]):
    """How many rows of a call were stored. An error that is never retrieved is logged.

    Args:
        topic: for the log.
    """

    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._asked = False
        self.set_running_or_notify_cancel()  # what was sent cannot be taken back

    def resolve(self, rows: int, error: KafkaException | None) -> None:
        """All rows are stored or given up."""
        if error is None:
            self.set_result(rows)
        else:
            self.set_exception(error)

    def result(self, timeout: float | None = None) -> int:
        """Wait until all rows are stored or given up.

        Args:
            timeout: seconds; None waits as long as it takes.

        Raises:
            KafkaException: some are not stored.
            TimeoutError: it took longer.
        """
        self._asked = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Why some rows are not stored, None if all are; waits as `result`."""
        self._asked = True
        return super().exception(timeout)

    def __del__(self) -> None:
        if not self._asked and self.done() and (error := super().exception(0)) is not None:
            _log.error("nobody asked what became of the rows: %s", error)


class RowReport(MetadataReport, IoThreadCallback):
    """One row that went as a record."""

    __slots__ = ("_rows",)

    def __init__(self, intercepted: InterceptedSend, record: ProducerRecord, rows: RowsResult) -> None:
        super().__init__(intercepted.chain, record, None)
        self._rows = rows

    def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """Count the row."""
        self._rows.on_rows_done(error, 1)


class RowRange:
    """Some rows on their way into a topic's accumulator."""

    def __init__(self, arrays: dict[str, pyarrow.Array]) -> None:
        self._rows = Rows(arrays.get("key"), arrays.get("value"), arrays.get("partition"), arrays.get("timestamp"),
                          arrays.get("headers"))
        self.done = 0

    @property
    def left(self) -> int:
        """Rows that are still to be appended."""
        return len(self._rows) - self.done

    def append_to(self, accumulator: RecordAccumulator, listener: object = None) -> int:
        """Append what there is room for, after what came before; returns how many rows."""
        try:
            appended = self._rows.append_to(accumulator, self.done, listener)
        except Exception as refused:
            self.done += getattr(refused, "appended", 0)
            raise
        self.done += appended
        return appended


def records_of(topic: str, arrays: dict[str, pyarrow.Array]) -> Iterator[ProducerRecord]:
    """Rows as records."""
    import pyarrow as pa

    columns = dict(arrays)
    if "timestamp" in columns and pa.types.is_timestamp(columns["timestamp"].type):
        stamps = columns["timestamp"]
        columns["timestamp"] = stamps.cast(pa.timestamp("ms", tz=stamps.type.tz), safe=False).cast(pa.int64())
    names = list(columns)
    for cells in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        row = dict(zip(names, cells, strict=True))
        yield ProducerRecord(topic, row.get("value"), row.get("key"), row.get("partition"),
                             _pairs(row.get("headers")), row.get("timestamp"))


def _pairs(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs = []
    for entry in headers or ():
        name, content = entry if isinstance(entry, tuple) else _pair(entry)
        if name is None:
            raise ValueError(NAMELESS_HEADER)
        pairs.append((name.decode() if isinstance(name, bytes) else name, content))
    return pairs


def _pair(entry: dict[str, Any] | None) -> tuple[Any, Any]:
    if entry is None:
        return None, None
    first, second = entry
    return (entry[second], entry[first]) if (first, second) == ("value", "key") else (entry[first], entry[second])


class ColumnFeed:
    """The rows of one call.

    Args:
        topic: topic name.
        roles: which column is what.
        report: counts the rows.

    Attributes:
        accepted: rows that are on their way.
    """

    def __init__(self, topic: str, roles: ColumnMapping, report: RowsResult) -> None:
        check_topic(topic)
        self.topic = topic
        self.report = report
        self.accepted = 0
        self._roles = roles

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """Around everything that reads and appends: afterwards the report knows how many rows there are."""
        try:
            yield
        except BaseException as failed:
            self.report.give_up()
            if self.accepted:
                failed.add_note(f"at row {self.accepted}, counted from 0: the {self.accepted} rows for {self.topic} "
                                "before it were accepted and are on their way")
            raise
        self.report.expect(self.accepted)

    def arrays(self, tables: Iterable[Any]) -> Iterator[dict[str, pyarrow.Array]]:
        """The columns of all tables, some rows at a time, by role."""
        schema = found = None
        for table in tables:
            reader = record_batches(table)
            if schema is None or not reader.schema.equals(schema):
                schema, found = reader.schema, self._roles.resolve(reader.schema)
            assert found is not None
            for batch in reader:
                for first in range(0, batch.num_rows, _PART_ROWS):
                    part = batch.slice(first, _PART_ROWS)
                    yield {role: part.column(index) for role, index in found.items()}

    def append(self, part: RowRange, accumulators: TopicAccumulators) -> int:
        """Append what there is room for; returns how many rows.

        Raises:
            KafkaException: a row cannot be stored, or no records are taken: the producer was closed.
            ValueError: a timestamp is negative.
        """
        before = part.done
        try:
            return part.append_to(accumulators.accumulator_of(self.topic), self.report)
        finally:
            self.accepted += part.done - before


def record_batches(table: Any) -> Any:
    """A stream of record batches, of anything that has the Arrow PyCapsule protocol.

    Raises:
        ConfigError: pyarrow is not installed.
        TypeError: it is no table.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise ConfigError("columns need pyarrow: pip install 'headrace[arrow]'") from None
    try:
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        if hasattr(table, "__arrow_c_array__"):
            batch = pa.record_batch(table)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as refused:
        raise TypeError(f"{type(table).__name__} is no table of named columns: {refused}. Give a table or a data "
                        "frame, not one of its columns") from None
    raise TypeError(f"{type(table).__name__} has no __arrow_c_stream__ or __arrow_c_array__: give a Polars, pandas "
                    "(2.2 or newer) or DuckDB table, or what pyarrow.table() makes of it")
