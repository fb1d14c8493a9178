"""`headrace consume`: the records of topics as lines, JSON, CSV, Parquet or Arrow, and where to begin and to end.

This module owns the order of things and how they end. Read next: `headrace.cli.consuming`, which lists the parts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.cli.consuming.consume_options import ConsumeOptions, make_parser, read_options
from headrace.cli.shared.exits import (
    DONE,
    INTERRUPTED,
    complain,
    guarded,
    leave_echo,
    needing,
    status_of,
    text_of,
    text_with_right,
)
from headrace.cli.shared.signals import InterruptedReadingError, SignalStop, told_of_signals
from headrace.errors import CorruptRecordError, KafkaError, KafkaException, SchemaRegistryError

if TYPE_CHECKING:
    from headrace.cli.consuming.portions import Portion
    from headrace.cli.consuming.record_outputs import RecordOutput
    from headrace.cli.consuming.record_sources import RecordSource
    from headrace.cli.consuming.schema_values import ValueReader

__all__ = ["main", "make_parser"]

_PROGRAM = "headrace consume"
_ENOUGH_FOR_RATES = 1_000


def main(argv: list[str]) -> int:
    """Write records.

    Args:
        argv: arguments after the command's name.

    Returns:
        Exit status, see `cli.shared.exits.MEANINGS`.
    """
    return guarded(_PROGRAM, lambda: _Run(read_options(argv)).run())


class _Run:
    """One run of the command.

    Args:
        options: the command line.
    """

    def __init__(self, options: ConsumeOptions) -> None:
        from headrace.cli.consuming.record_outputs import open_records

        self._options = options
        self._stop = SignalStop()
        self._note_trouble: Callable[[str], None] | None = None  # before the first record, one line tells all
        self._left = options.count
        self.written = self.seen = 0
        self._decoders = self._make_decoders()
        self._output: RecordOutput = open_records(options)

    def _make_decoders(self) -> tuple[ValueReader | None, ValueReader | None]:
        options = self._options
        if options.key_format == options.value_format == "bytes":
            return None, None
        from headrace.cli.consuming.schema_values import value_reader

        return (value_reader(options.key_format, options.registry, is_key=True),
                value_reader(options.value_format, options.registry, is_key=False))

    def run(self) -> int:
        """Read and write until the end. Returns the exit status."""
        from headrace.cli.consuming.record_outputs import ClosedOutputError

        began_at = time.monotonic()
        trouble: Exception | None = None
        source: RecordSource | None = None
        try:
            with told_of_signals(self._stop.told):
                try:
                    with needing("READ", self._options.topics):
                        self._stop.reading = True
                        source, total = self._open()
                        self._stop.reading = False
                        self._copy(source, total)
                except InterruptedReadingError:
                    pass
                except ClosedOutputError:
                    return DONE
                except (KafkaException, CorruptRecordError, SchemaRegistryError, OSError) as error:
                    trouble = error
                unfinished = self._finish()
                trouble = trouble or unfinished
        except KeyboardInterrupt:
            complain(_PROGRAM, "stopped at once by a second Ctrl-C: the output may be incomplete")
            return INTERRUPTED
        finally:
            if source is not None:
                source.close()
        return self._end(trouble, time.monotonic() - began_at)

    def _finish(self) -> Exception | None:
        """Complete the output, after trouble too; gives what went wrong."""
        from headrace.cli.consuming.record_outputs import ClosedOutputError

        try:
            self._output.close()
        except ClosedOutputError:
            pass
        except OSError as error:
            return error
        return None

    def _on_error(self, error: KafkaError) -> None:
        if self._note_trouble is not None:
            self._note_trouble(text_with_right(error, "READ", self._options.topics))

    # Records

    def _open(self) -> tuple[RecordSource, int | None]:
        """The source, and how many offsets there are to read, None when there is no end."""
        from headrace.cli.consuming.beginnings import open_source

        return open_source(self._options, {**self._options.properties, "error_cb": self._on_error})

    def _copy(self, source: RecordSource, total: int | None) -> None:
        from headrace.cli.producing.progress import Progress

        options = self._options
        shown = sys.stderr.isatty() and not options.quiet and not (
            sys.stdout.isatty() and (options.file is None or options.tee))
        with Progress(", ".join(options.topics), total, shown, "records", "consume", None) as progress:
            self._note_trouble = progress.note_trouble
            records = source.read()
            while not self._stop.number:
                self._stop.reading = True
                portions = next(records, None)
                self._stop.reading = False
                if portions is None or not self._write(source, portions):
                    return
                progress.update(self.seen, 0)

    def _write(self, source: RecordSource, portions: Sequence[Portion]) -> bool:
        """Write what is wanted of these; False when that was enough."""
        for portion in portions:
            wanted, passed = self._wanted(portion)
            if wanted:
                self._output.write(self._readable(wanted))
                self.written += len(wanted)
            self.seen += len(passed)
            if passed:
                self._output.flush()
                source.done(passed)
            if self._left == 0:
                return False
        return True

    def _wanted(self, portion: Portion) -> tuple[Portion | None, Portion]:
        """The records to write, and those that are done then."""
        options, wanted = self._options, portion
        rows: Sequence[int] = range(len(portion))
        if options.filters:
            judged = self._readable(portion)
            for each in options.filters:
                rows = [row for row, good in zip(rows, each(judged.picked(rows)), strict=True) if good]
            wanted = portion.picked(rows)
        if self._left is not None:
            if len(rows) >= self._left:
                wanted, portion = wanted.head(self._left), portion.head(rows[self._left - 1] + 1)
            self._left -= len(wanted)
        return wanted if len(wanted) else None, portion

    def _readable(self, portion: Portion) -> Portion:
        """With texts of JSON for keys and values that have schemas."""
        keys, values = self._decoders
        if keys is None and values is None:
            return portion
        return portion.in_json(None if keys is None else keys(portion), None if values is None else values(portion))

    # The end

    def _end(self, trouble: Exception | None, seconds: float) -> int:
        """Say what happened; returns the exit status."""
        if self._stop.number:
            leave_echo()
        if trouble is not None:
            where = f"{self._options.file or 'standard output'}: " if isinstance(trouble, OSError) else ""
            complain(_PROGRAM, where + text_of(trouble))
        if not self._options.quiet and (self.seen or not trouble):
            print(self._summary(seconds), file=sys.stderr, flush=True)
        if self._stop.number:
            return self._stop.status
        return DONE if trouble is None else status_of(trouble)

    def _summary(self, seconds: float) -> str:
        options = self._options
        count = f"{self.written:,} record{'' if self.written == 1 else 's'}"
        of = f" of {self.seen:,}" if options.filters else ""
        rate = f" ({self.seen / seconds:,.0f} records/s)" if self.seen >= _ENOUGH_FOR_RATES else ""
        verb = f"written to {options.file}" if options.file else "read"
        stopped = f", stopped by {self._stop.name}" if self._stop.number else ""
        return f"{count}{of} {verb} from {', '.join(options.topics)} in {seconds:.2f} s{rate}{stopped}"
