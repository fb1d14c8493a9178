"""`headrace copy`: records from topic to topic as columns, from cluster to cluster, exactly once on request.

This module owns the order of things and how they end. Read next: `headrace.cli.copying`, which lists the parts.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from headrace.cli.copying.copy_options import CopyOptions, make_parser, read_options
from headrace.cli.shared.exits import (
    DONE,
    FAILED,
    INTERRUPTED,
    RefusedError,
    complain,
    guarded,
    leave_echo,
    needing,
    status_of,
    text_of,
)
from headrace.cli.shared.signals import InterruptedReadingError, SignalStop, told_of_signals
from headrace.errors import ConfigError, CorruptRecordError, KafkaError, KafkaException
from headrace.types.records import ConsumerGroupMetadata

if TYPE_CHECKING:
    from headrace.cli.consuming.portions import Portion
    from headrace.cli.copying.copied_rows import RowInputs
    from headrace.cli.copying.copy_plan import CopyPlan

__all__ = ["main", "make_parser"]

_PROGRAM = "headrace copy"
_SETTLE_S = 1.0  # how long records that are copied may wait for their offsets to be committed


def main(argv: list[str]) -> int:
    """Copy records.

    Args:
        argv: arguments after the command's name.

    Returns:
        Exit status, see `cli.shared.exits.MEANINGS`.
    """
    return guarded(_PROGRAM, lambda: _copy(read_options(argv)))


def _copy(options: CopyOptions) -> int:
    from headrace.cli.copying.copy_plan import CopyPlan

    with CopyPlan(options) as plan:
        return _Run(options, plan).run()


class _Run:
    """One run of the command.

    Args:
        options: the command line.
        plan: what is to be copied.
    """

    def __init__(self, options: CopyOptions, plan: CopyPlan) -> None:
        from headrace import Producer
        from headrace.cli.copying.copied_rows import CopyPlaces
        from headrace.cli.producing.ledger import Ledger
        from headrace.cli.producing.progress import Progress
        from headrace.cli.producing.sink import Constants, RecordSink

        self._options = options
        self._stop = SignalStop()
        self._plan = plan
        shown = sys.stderr.isatty() and not options.quiet
        self._progress = Progress(f"{options.source} to {options.target}", None, shown, "records", "copy")
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

    def run(self) -> int:
        """Copy until the end. Returns the exit status."""
        from headrace.cli.producing.sink import Enough, Stopped

        began_at = time.monotonic()
        trouble: Exception | None = None
        try:
            with told_of_signals(self._stop.told):
                try:
                    with needing("WRITE", [self._options.target]):
                        self._sink.begin()  # from here on, no copy of before writes any more
                    self._stop.reading = True
                    self._plan.find_offsets()
                    self._stop.reading = False
                    self._progress.total = self._plan.total
                    with self._progress:
                        self._copy()
                        self._settle()
                except (InterruptedReadingError, Stopped, Enough):
                    pass  # enough: a transaction of which a record failed is given up
                except (KafkaException, CorruptRecordError, ConfigError, RefusedError) as error:
                    trouble = error
                self._ledger.settle()
                outcome = self._sink.give_up() if len(self._producer) or self._sink.in_transaction else ""
                if self._sink.committed == self._ledger.accepted:
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
        if not error.fatal():  # the next call says so
            self._progress.note_trouble(error.str())

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
                    with needing("READ", [self._options.source]):
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
        from headrace.cli.copying.copy_plan import COMMIT_S

        assert self._options.group is not None
        self._producer.send_offsets_to_transaction(
            self._plan.committable(self._positions), ConsumerGroupMetadata(self._options.group), COMMIT_S)
        self._positions.clear()

    def _settle(self) -> None:
        """All that was read is stored, and the group's offsets are behind it."""
        self._settled_at = time.monotonic()
        if not self._positions:
            return
        self._sink.finish()
        self._idle()
        if self._positions and not self._ledger.failed:
            self._plan.keep(self._positions)
        self._positions.clear()

    # The end

    def _end(self, trouble: Exception | None, outcome: str, seconds: float) -> int:
        """Say what happened; returns the exit status."""
        if self._stop.number:
            leave_echo()
        told = isinstance(trouble, KafkaException) and trouble.error is self._ledger.hopeless
        if trouble is not None and not told and (text := text_of(trouble)) not in outcome:
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
            return self._stop.status
        return status_of(trouble) if trouble is not None else FAILED if outcome or ledger.failed else DONE
