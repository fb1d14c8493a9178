"""`headrace copy`: records from topic to topic as columns, from cluster to cluster, exactly once on request.

This module owns the order of things and how they end. Read next: `headrace.cli.copying`, which lists the parts.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from headrace.cli.copying.copy_options import CopyOptions, make_parser, read_options
from headrace.cli.shared.exits import DONE, FAILED, INTERRUPTED, complain, guarded, lacking, status_of, text_of
from headrace.cli.shared.signals import InterruptedReadingError, SignalStop, told_of_signals
from headrace.errors import CorruptRecordError, KafkaError, KafkaException
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from headrace.cli.consuming.portions import Portion
    from headrace.cli.copying.copied_rows import RowInputs

__all__ = ["main", "make_parser"]

_PROGRAM = "headrace copy"
_SETTLE_S = 1.0  # how long records that are copied may wait for their offsets to be committed
_COMMIT_S = 30.0


def main(argv: list[str]) -> int:
    """Copy records.

    Args:
        argv: arguments after the command's name.

    Returns:
        Exit status, see `cli.shared.exits.MEANINGS`.
    """
    return guarded(_PROGRAM, lambda: _copied(read_options(argv)))


def _copied(options: CopyOptions) -> int:
    try:
        return _Run(options).run()
    except KafkaException as error:
        complain(_PROGRAM, _told(error, options))
        return status_of(error)


def _told(error: Exception, options: CopyOptions) -> str:
    """The text of an error, with what the user must be allowed to do where that is what is missing."""
    if not isinstance(error, KafkaException) or error.error != KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return text_of(error)
    return lacking(text_of(error), f'READ on topic "{options.source}" and WRITE on topic "{options.target}"')


class _Run:
    """One run of the command.

    Args:
        options: the command line.
    """

    def __init__(self, options: CopyOptions) -> None:
        from headrace import Producer
        from headrace.cli.copying.copied_rows import CopyPlaces
        from headrace.cli.copying.copy_plan import plan_copy
        from headrace.cli.producing.ledger import Ledger
        from headrace.cli.producing.progress import Progress
        from headrace.cli.producing.sink import Constants, RecordSink

        self._options = options
        self._stop = SignalStop()
        self._plan = plan_copy(options)
        shown = sys.stderr.isatty() and not options.quiet
        self._progress = Progress(f"{options.source} to {options.target}", self._plan.total, shown, "records", "copy")
        self._places = CopyPlaces()
        self._ledger = Ledger(self._places, 10, self._progress.note)
        self._producer = Producer({"linger.ms": 20, "batch.size": 1_000_000, **options.writing,
                                   "delivery.report.only.error": True, "error_cb": self._on_error})
        self._sink = RecordSink(
            self._producer, options.target, Constants(), self._ledger, self._idle,
            per_transaction=options.per_transaction if options.exactly_once else None,
            before_commit=self._add_offsets if options.exactly_once else None)
        self._inputs: RowInputs | None = None
        self._left = options.count
        self._positions: dict[tuple[str, int], int] = {}
        self._settled_at = time.monotonic()
        self._last_error = ""

    def run(self) -> int:
        """Copy until the end. Returns the exit status."""
        from headrace.cli.producing.sink import Stopped

        began_at = time.monotonic()
        trouble: Exception | None = None
        try:
            with told_of_signals(self._stop.told), self._progress:
                try:
                    self._sink.begin()
                    self._copy()
                    self._settle()
                except (InterruptedReadingError, Stopped):
                    pass
                except (KafkaException, CorruptRecordError) as error:
                    trouble = error
                self._ledger.settle()
                outcome = self._sink.give_up() if len(self._producer) or self._sink.in_transaction else ""
                if trouble is None and self._sink.committed == self._ledger.accepted:
                    outcome = ""  # there was nothing in it
            return self._end(trouble, outcome, time.monotonic() - began_at)
        except KeyboardInterrupt:
            self._producer.purge(blocking=False)
            complain(_PROGRAM, "stopped at once by a second Ctrl-C: which records are stored is not known")
            return INTERRUPTED
        finally:
            if not self._sink.in_transaction:
                self._producer.close()

    # While it runs

    def _on_error(self, error: KafkaError) -> None:
        if (text := error.str()) != self._last_error and not error.fatal():  # what is fatal ends it, and is told there
            self._last_error = text
            self._progress.note(text)

    def _idle(self) -> None:
        """In every wait for the producer."""
        from headrace.cli.producing.sink import Stopped

        if self._stop.number and not self._ledger.accepted:
            raise Stopped
        self._ledger.settle()
        self._progress.update(self._ledger.accepted, self._ledger.stored(self._producer))
        if self._ledger.hopeless is not None:
            raise KafkaException(self._ledger.hopeless)

    def _copy(self) -> None:
        source = self._plan.source()
        try:
            records = source.read()
            while not self._stop.number and self._left != 0:
                try:
                    self._stop.reading = True
                    portions = next(records, None)
                    self._stop.reading = False
                except InterruptedReadingError:
                    return
                if portions is None:
                    return
                for portion in portions:
                    self._send(portion.head(len(portion) if self._left is None else self._left))
                if time.monotonic() - self._settled_at > _SETTLE_S:
                    self._settle()
        finally:
            source.close()

    def _send(self, portion: Portion) -> None:
        from headrace.cli.copying.copied_rows import CopiedRows, RowInputs

        assert portion.batch is not None
        if self._inputs is None or self._inputs.batch is not portion.batch:
            self._inputs = RowInputs(portion.batch, not self._options.repartition)
        line, done = self._places.read(portion), 0
        while done < len(portion):
            count = self._sink.allowed(len(portion) - done)
            first = portion.first + done
            self._positions[portion.topic, portion.partition] = portion.offsets[done + count - 1] + 1
            self._sink.send_rows(CopiedRows(self._inputs, first, count), line + done,
                                 self._inputs.size(first, first + count))
            done += count
        if self._left is not None:
            self._left -= len(portion)

    def _add_offsets(self) -> None:
        """What is copied becomes part of the transaction."""
        assert self._options.group is not None
        self._producer.send_offsets_to_transaction(self._committable(), ConsumerGroupMetadata(self._options.group),
                                                   _COMMIT_S)
        self._positions.clear()

    def _settle(self) -> None:
        """All that was read is stored, and the group's offsets are behind it."""
        self._settled_at = time.monotonic()
        if not self._positions:
            return
        self._sink.finish()
        self._idle()
        if self._options.group is not None and self._positions and not self._ledger.failed:
            from headrace.client.consumer.log_view import LogView

            with LogView(self._options.reading, [self._options.source]) as view:
                offsets = {(tp.topic, tp.partition): tp.offset for tp in self._committable()}
                view.commit(self._options.group, offsets, _COMMIT_S)(_COMMIT_S)
        self._positions.clear()

    def _committable(self) -> list[TopicPartition]:
        return [TopicPartition(*key, offset) for key, offset in self._positions.items()]

    # The end

    def _end(self, trouble: Exception | None, outcome: str, seconds: float) -> int:
        """Say what happened; returns the exit status."""
        if self._stop.number and sys.stderr.isatty():
            print(file=sys.stderr)  # the terminal has written ^C
        if trouble is not None and (text := _told(trouble, self._options)) != self._last_error:
            complain(_PROGRAM, text)
        if outcome:
            complain(_PROGRAM, outcome)
        ledger, options = self._ledger, self._options
        stored = self._sink.committed if options.exactly_once else ledger.stored(self._producer)
        if not options.quiet and (ledger.accepted or trouble is None):
            whole = f"{stored:,}" if stored == ledger.accepted else f"{stored:,} of {ledger.accepted:,}"
            rate = f" ({stored / seconds:,.0f} records/s)" if stored >= 1_000 else ""
            stopped = f", stopped by {self._stop.name}" if self._stop.number else ""
            print(f"{whole} record{'' if stored == 1 else 's'} copied from {options.source} to {options.target} in "
                  f"{seconds:.2f} s{rate}, {ledger.failed:,} failed{stopped}", file=sys.stderr, flush=True)
        if self._stop.number:
            return 128 + self._stop.number
        return status_of(trouble) if trouble is not None else FAILED if outcome or ledger.failed else DONE
