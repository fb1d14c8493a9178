"""`headrace produce`: lines, JSON lines, CSV and Parquet into a topic, and nothing dropped silently.

This module owns the order of things and how they end. Read next: `headrace.cli.producing`, which lists the parts.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

from headrace.cli.producing.ledger import Ledger, complain
from headrace.cli.producing.produce_options import ProduceOptions, make_parser, read_options
from headrace.cli.producing.slices import Places, Slice
from headrace.cli.shared.exits import (
    DONE,
    FAILED,
    INTERRUPTED,
    UNREACHABLE,
    USAGE,
    leave_echo,
    status_of,
    text_with_right,
)
from headrace.cli.shared.output import amount
from headrace.cli.shared.signals import SignalStop, told_of_signals
from headrace.errors import ConfigError, KafkaError, KafkaException

__all__ = ["main", "make_parser"]

_ENOUGH_FOR_RATES = 1_000
_LINE_FACTOR = 4  # hex is twice as long as the bytes, and a value may come with a key


def main(argv: list[str]) -> int:
    """Send the inputs.

    Args:
        argv: arguments after the command's name.

    Returns:
        0 when all records are stored, 1 when some are not, another one where that has a reason with a number of its
        own; see `cli.shared.exits.MEANINGS`.
    """
    try:
        options = read_options(argv)
        return _Run(options).run()
    except ConfigError as error:
        complain(str(error))
        return USAGE


class _Run:
    """One run of the command.

    Args:
        options: the command line.
    """

    def __init__(self, options: ProduceOptions) -> None:
        from headrace import Producer
        from headrace.cli.producing.progress import Progress
        from headrace.cli.producing.sink import RecordSink
        from headrace.client.producer.producer import calls_of
        from headrace.client.producer.topics import SOON

        self._options = options
        self._stop = SignalStop((signal.SIGINT,))
        self._done = 0  # bytes, or rows of Parquet
        self._tee_broken = False
        self._unreachable = False
        self._places = Places()
        total, self._terminal = _total(options)
        shown = sys.stderr.isatty() and not options.quiet and not self._terminal and not (
            options.tee and sys.stdout.isatty())
        self._progress = Progress(options.topic, total, shown, "rows" if options.form == "parquet" else "bytes")
        self._ledger = Ledger(self._places, options.show_errors, self._progress.note)
        self._producer = Producer({**SOON, **options.properties, "delivery.report.only.error": True,
                                   "error_cb": self._on_error})
        self._config = calls_of(self._producer).engine.config
        self._limit = _LINE_FACTOR * self._config["message.max.bytes"]
        self._sink = RecordSink(self._producer, options.topic, options.constants, self._ledger, self._idle,
                          rate=options.rate, limit=options.count, per_transaction=options.per_transaction)

    def run(self) -> int:
        """Send everything, and print what became of it. Returns the exit status."""
        from headrace.cli.producing.sink import Enough, Stopped

        began_at = time.monotonic()
        trouble, aborted, status = "", "", FAILED
        try:
            with told_of_signals(self._stop.told), self._progress:
                try:
                    self._sink.begin()
                    self._greet()
                    try:
                        self._send_all()
                    except Enough:
                        pass
                    self._sink.finish()
                except Stopped:
                    trouble = f"stopped by {self._stop.name}"
                except ConfigError as error:
                    if not self._ledger.accepted:
                        raise
                    trouble = str(error)
                except KafkaException as error:
                    # A topic is not known, either, where nobody can be asked for it.
                    unasked = self._unreachable and error.error == KafkaError._UNKNOWN_TOPIC
                    trouble = text_with_right(error.error, "WRITE", [self._options.topic])
                    status = UNREACHABLE if unasked else status_of(error)
                except OSError as error:
                    trouble = f"{error.filename}: {error.strerror}" if error.filename else str(error)
                self._ledger.settle()
                if trouble:
                    if self._stop.number:
                        leave_echo()
                    self._progress.note_trouble(trouble)
                if len(self._producer) or self._sink.in_transaction:
                    aborted = self._sink.give_up()
            failed = self._end(trouble, aborted, time.monotonic() - began_at)
            return self._stop.status if self._stop.number else status if failed else DONE
        except KeyboardInterrupt:
            self._producer.purge(blocking=False)
            complain("stopped at once by a second Ctrl-C: which records are stored is not known")
            return INTERRUPTED
        finally:
            if not self._sink.in_transaction:  # one that could not be aborted would hold up the end
                self._producer.close()

    def _greet(self) -> None:
        if self._terminal and not self._options.quiet:
            complain("each line is a record; Ctrl-D ends, Ctrl-C stops")

    # While it runs

    def _on_error(self, error: KafkaError) -> None:
        if not error.fatal():  # the next call says so
            self._unreachable = status_of(KafkaException(error)) == UNREACHABLE
            self._progress.note_trouble(error.str())

    def _idle(self) -> None:
        """Between two slices and in every wait."""
        from headrace.cli.producing.sink import Stopped

        if self._stop.number:
            raise Stopped
        self._producer.poll(0)
        ledger = self._ledger
        ledger.settle()
        self._progress.update(self._done, ledger.stored(self._producer))
        if ledger.hopeless is not None:
            raise KafkaException(ledger.hopeless)

    def _malformed(self, line: int, why: str) -> bool:
        """Report what is no record; True when nothing behind it is to be read."""
        skip = self._options.skip_malformed
        self._ledger.is_malformed(line, why, skip)
        return not skip

    def _send_all(self) -> None:
        options = self._options
        for name in options.files:
            if options.form == "parquet":
                self._send_parquet(name)
                continue
            for part in self._slices(name):
                if len(part):
                    self._send(part)
            if self._ledger.malformed:
                return

    def _send_parquet(self, name: str) -> None:
        from headrace.cli.producing.parquet import send_parquet

        send_parquet(name, self._options.roles, self._options.constants, self._places, self._sink, self._advance,
                     by_record=bool(self._options.properties.get("interceptor.classes")))

    def _advance(self, amount: int) -> None:
        self._done += amount

    def _send(self, part: Slice) -> None:
        before = self._ledger.accepted
        try:
            self._sink.send(part)
        finally:
            if part.raw is not None and not self._tee_broken:
                self._tee(part.raw[: self._ledger.accepted - before])

    def _slices(self, name: str) -> Iterator[Slice]:
        """The records of an input, up to what is malformed."""
        from headrace.cli.producing.inputs import open_input
        from headrace.cli.producing.lines import split_lines

        options = self._options
        try:
            source = open_input(name)
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from None
        base = self._places.begin(source.name)

        def chunks() -> Iterator[bytes]:
            for chunk in source.chunks(self._idle):
                self._done += len(chunk)
                yield chunk

        try:
            delimiter = b"\n" if options.form in ("csv", "jsonl") else options.delimiter
            yield from self._parsed(split_lines(chunks(), delimiter, self._limit, base, self._malformed))
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from None
        finally:
            source.close()

    def _parsed(self, lines: Iterator[tuple[int, list[bytes]]]) -> Iterator[Slice]:
        options, places, malformed = self._options, self._places, self._malformed
        if options.form == "lines":
            from headrace.cli.producing.lines import line_slices

            return line_slices(lines, places, malformed, key_delimiter=options.key_delimiter,
                               encoding=options.encoding, raw=options.tee)
        if options.form == "csv":
            from headrace.cli.producing.csvrows import CsvForm, csv_slices

            form = CsvForm(options.delimiter.decode("latin-1"), options.header, options.roles, options.encoding,
                           self._limit)
            return csv_slices(lines, places, malformed, form)
        from headrace.cli.producing.jsonlines import envelope_slices, value_slices

        if options.values:
            return value_slices(lines, places, malformed, options.roles.get("key"), options.tee)
        return envelope_slices(lines, places, malformed, options.tee)

    def _tee(self, lines: list[bytes]) -> None:
        end = self._options.delimiter
        try:
            sys.stdout.buffer.write(end.join(lines) + end)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self._tee_broken = True
            # Python must not complain when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._progress.note("nobody reads standard output any more: --tee ends, sending goes on")

    # The end

    def _end(self, trouble: str, aborted: str, seconds: float) -> bool:
        """Say what happened; True when something is not stored, or was no record."""
        ledger, sink = self._ledger, self._sink
        stored = ledger.stored(self._producer) if self._options.per_transaction is None else sink.committed
        lost = sum(ledger.left.values())
        if aborted:
            complain(aborted)
        elif ledger.accepted and (trouble or lost):
            complain(self._left(stored))
        if ledger.malformed:
            complain("nothing behind the malformed record was read; --skip-malformed passes over such")
        if not self._options.quiet and (self._tried or ledger.malformed or ledger.skipped or not trouble):
            print(self._summary(stored, seconds), file=sys.stderr, flush=True)
        return bool(trouble or aborted or lost or ledger.failed or ledger.malformed)

    @property
    def _tried(self) -> int:
        """Records that were read, the refused ones too."""
        return self._ledger.accepted + self._ledger.refusals

    def _left(self, stored: int) -> str:
        """What is acknowledged and what is not, when the end came early."""
        ledger = self._ledger
        never, under_way = ledger.left.values()
        text = f"{stored:,} of {amount(self._tried, 'record')} that were read are acknowledged"
        if ledger.first_left is None:
            return text
        return (f"{text}, {never + under_way:,} are not: {never:,} never left, {under_way:,} were on their way and may "
                f"be stored; the first is {ledger.places.where(ledger.first_left)}")

    def _summary(self, stored: int, seconds: float) -> str:
        ledger, options = self._ledger, self._options
        whole = stored == ledger.accepted and not ledger.failed
        count = amount(stored, "record") if whole else f"{stored:,} of {amount(self._tried, 'record')}"
        verb = "stored in" if self._config["acks"] else "sent, without acknowledgement, to"
        if options.per_transaction is not None:
            verb = f"committed in {amount(self._sink.commits, 'transaction')} to"
        size = f", {_size(ledger.accepted_bytes)}," if whole else ""
        rates = f" ({stored / seconds:,.0f} records/s" if stored >= _ENOUGH_FOR_RATES else ""
        if rates:
            rates += f", {ledger.accepted_bytes / seconds / 1e6:,.1f} MB/s)" if whole else ")"
        skipped = f", {ledger.skipped:,} malformed passed over" if ledger.skipped else ""
        malformed = f", {ledger.malformed:,} malformed" if ledger.malformed else ""
        return (f"{count}{size} {verb} {options.topic} in {seconds:.2f} s{rates}, {ledger.failed:,} failed"
                f"{malformed}{skipped}")


def _size(count: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count} B"


def _total(options: ProduceOptions) -> tuple[int | None, bool]:
    """Bytes or rows of all inputs, None when that is not known; and whether somebody types.

    Raises:
        ConfigError: an input cannot be opened: then nothing is sent.
    """
    from headrace.cli.producing.inputs import open_input

    sizes, terminal = list[int | None](), False
    for name in options.files:
        try:
            source = open_input(name)
        except OSError as error:
            raise ConfigError(f"{name}: {error.strerror}") from None
        sizes.append(source.size)
        terminal |= source.is_terminal
        source.close()
    if options.form == "parquet":
        from headrace.cli.producing.parquet import parquet_rows

        return parquet_rows(options.files), False
    return None if None in sizes else sum(filter(None, sizes)), terminal
