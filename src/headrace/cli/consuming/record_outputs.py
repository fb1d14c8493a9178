"""Where records go: standard output or a file; as bytes, or as Parquet and Arrow, which take columns as they came."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from headrace.cli.consuming.envelopes import CSV_HEADER, csv_rows, json_lines
from headrace.cli.consuming.line_formats import LineFormat, TokenFormat
from headrace.cli.consuming.portions import Portion
from headrace.errors import ConfigError
from headrace.records.columns.arrow_batch import ArrowBatch
from headrace.records.columns.columns import Buffer

if TYPE_CHECKING:
    import pyarrow

    from headrace.cli.consuming.consume_options import ConsumeOptions

__all__ = ["ByteOutput", "ClosedOutputError", "ColumnOutput", "RecordOutput", "open_output", "open_records"]

_GROUP_ROWS = 131_072
"""Rows of a row group of Parquet, and of a record batch of a file of Arrow, at least."""


class ClosedOutputError(Exception):
    """Nobody reads standard output any more."""


class RecordOutput(Protocol):
    """Takes portions."""

    def write(self, portion: Portion) -> None:
        """Write a portion. Raises OSError when it cannot be written."""
        ...

    def flush(self) -> None:
        """What was written is in other hands, as far as the format allows."""
        ...

    def close(self) -> None:
        """Complete the file."""
        ...


def open_output(name: str | None) -> BinaryIO:
    """A file that is made anew, or standard output for None.

    Raises:
        ConfigError: the file cannot be written.
    """
    if name is None:
        if sys.stdout is None:
            raise ConfigError("standard output is closed")
        return open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)
    try:
        return open(name, "wb", buffering=0)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}") from None


class ByteOutput:
    """Portions as bytes.

    Args:
        files: where to; all get the same.
        form: makes the bytes, piece by piece.
        head: the first bytes.
    """

    def __init__(
        self, files: Sequence[BinaryIO], form: Callable[[Portion], Iterable[Buffer]], head: bytes = b""
    ) -> None:
        self._files = files
        self._form = form
        self._head = head

    def write(self, portion: Portion) -> None:
        """Write all records of a portion. Raises ClosedOutputError and OSError."""
        head, self._head = self._head, b""
        for piece in chain((head,) if head else (), self._form(portion)):
            for file in self._files:
                _write(file, piece)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The head is there even if no record is."""
        for file in self._files:
            if self._head:
                _write(file, self._head)
            file.close()
        self._head = b""


def _write(file: BinaryIO, data: Buffer) -> None:
    """Everything; a pipe takes what it has room for."""
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except BrokenPipeError:
        # Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
        raise ClosedOutputError from None


class ColumnOutput:
    """Portions as Parquet or Arrow; small ones are collected.

    Args:
        file: where to.
        form: "parquet", "arrow" for a file, or "arrow-stream".
        codec: compression of Parquet's columns.

    Raises:
        ConfigError: pyarrow is missing.
    """

    def __init__(self, file: BinaryIO, form: str, codec: str) -> None:
        try:
            self._schema = _schema()
        except ImportError:
            file.close()
            raise ConfigError(f"{form} needs pyarrow: pip install 'headrace[arrow]'") from None
        self._file = file
        self._form, self._codec = form, codec
        self._held: list[pyarrow.RecordBatch] = []
        self._rows = 0
        self._last: tuple[ArrowBatch, pyarrow.RecordBatch] | None = None
        self._opened: Any = None

    def _writer(self) -> Any:
        """Writes the first bytes when it is made."""
        if self._opened is None:
            if self._form == "parquet":
                from pyarrow import parquet

                self._opened = parquet.ParquetWriter(self._file, self._schema, compression=self._codec)
            else:
                import pyarrow as pa

                make = pa.ipc.new_stream if self._form == "arrow-stream" else pa.ipc.new_file
                self._opened = make(self._file, self._schema)
        return self._opened

    def write(self, portion: Portion) -> None:
        """Take the records of a portion. Raises ClosedOutputError and OSError."""
        self._held.append(self._columns(portion))
        self._rows += len(portion)
        if self._rows >= _GROUP_ROWS:
            self._put()

    def _columns(self, portion: Portion) -> pyarrow.RecordBatch:
        import pyarrow as pa

        if portion.batch is None:
            return _made(portion, self._schema)
        if self._last is None or self._last[0] is not portion.batch:
            whole = pa.record_batch(portion.batch)
            topic = whole.schema.get_field_index("topic")
            whole = whole.set_column(topic, "topic", whole.column(topic).dictionary_decode())
            self._last = portion.batch, pa.RecordBatch.from_arrays(whole.columns, schema=self._schema)
        return self._last[1].slice(portion.first, len(portion))

    def _put(self) -> None:
        import pyarrow as pa

        if not self._held:
            return
        table = pa.Table.from_batches(self._held, self._schema)
        self._held, self._rows = [], 0
        try:
            self._writer().write_table(table)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            raise ClosedOutputError from None

    def flush(self) -> None:
        """A stream gives away what it holds; a file keeps its row groups large."""
        if self._form == "arrow-stream":
            self._put()

    def close(self) -> None:
        """Write what is held, and the end of the file: it can be read, however the reading ended."""
        try:
            self._put()
            self._writer().close()
        finally:
            self._file.close()


def _schema() -> pyarrow.Schema:
    """That of `ArrowBatch`, with topics as strings, which every reader of Parquet knows."""
    import pyarrow as pa

    header = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())])
    return pa.schema([
        pa.field("topic", pa.string(), nullable=False), pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False), pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_type", pa.int8(), nullable=False), pa.field("key", pa.binary()),
        pa.field("value", pa.binary()), pa.field("headers", pa.list_(pa.field("item", header, nullable=False)))])


def _made(portion: Portion, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Columns of records that were picked, changed, or did not come as columns."""
    import pyarrow as pa

    count = len(portion)
    headers = [[{"name": name, "value": value} for name, value in each] or None for each in portion.headers]
    columns = [[portion.topic] * count, [portion.partition] * count, list(portion.offsets), portion.times(),
               list(portion.timestamp_types), list(portion.keys), list(portion.values), headers]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def open_records(options: ConsumeOptions) -> RecordOutput:
    """The output that the command line asks for.

    Raises:
        ConfigError: the file cannot be written, or pyarrow is missing.
    """
    form = options.form
    if form in ("parquet", "arrow"):
        codec = "none" if form == "arrow" else options.codec
        kind = "arrow-stream" if form == "arrow" and options.file is None else form
        return ColumnOutput(open_output(options.file), kind, codec)
    files = [open_output(options.file), *([open_output(None)] if options.tee else [])]
    if form == "csv":
        return ByteOutput(files, lambda portion: (csv_rows(portion, options.encoding),),
                          ",".join(CSV_HEADER).encode() + b"\n")
    if form == "json":
        return ByteOutput(files, json_lines)
    if options.template is not None:
        return ByteOutput(files, TokenFormat(options.template, options.null))
    return ByteOutput(files, LineFormat(options.delimiter, options.key_delimiter, options.encoding, options.null))
