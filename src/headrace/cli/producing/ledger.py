"""What became of the records: counts, the first failures in detail, and the last words.

Two threads report to it: reports of rows come on the client's own thread and wait in a queue until `settle()`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.cli.producing.slices import Places
from headrace.cli.shared.output import amount
from headrace.errors import KafkaError

__all__ = ["Ledger", "RowsListener", "complain"]

_NOT_SENT, _NOT_ACKNOWLEDGED = KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT
_HOPELESS = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError._UNKNOWN_TOPIC,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION,
})
"""Errors that would fail every other record as well."""


class Ledger:
    """Counts records, and shows those that failed.

    Args:
        places: knows where records stood.
        details: how many failures to show one by one.
        note: shows one line.

    Attributes:
        accepted: records that the producer took.
        accepted_bytes: their keys and values.
        refusals: records that it did not take.
        failed: these, and those that were reported as not stored.
        skipped: malformed records that were passed over.
        malformed: malformed records that ended the reading: 0 or 1.
        left: what `give_up` found: records that never left, and those on the way.
        given_up: the producer gives up what is left: reports of that are no failures.
        hopeless: an error that no further record can escape.
    """

    def __init__(self, places: Places, details: int, note: Callable[[str], None]) -> None:
        self.places = places
        self.accepted = self.accepted_bytes = 0
        self.failed = self.refusals = self.skipped = self.malformed = 0
        self.left = {_NOT_SENT: 0, _NOT_ACKNOWLEDGED: 0}
        self.first_left: int | None = None
        self.given_up = False
        self.hopeless: KafkaError | None = None
        self._failed_later = 0
        self._details = details
        self._shown = 0
        self._note = note
        self._reported: deque[tuple[RowsListener, KafkaError, int]] = deque()
        ledger = self

        class Line(int):
            """The number of a line, and the callback of its record."""

            __slots__ = ()

            def __call__(self, error: KafkaError | None, _message: object) -> None:
                if error is not None:
                    ledger.lost(self, self + 1, 1, error)

        self.line: type[int] = Line

    def lost(self, first: int, end: int, count: int, error: KafkaError) -> None:
        """Some of the records on these lines were accepted and not stored."""
        if self.given_up and error.code() in self.left:
            self.left[error.code()] += count
            self.first_left = first if self.first_left is None else min(self.first_left, first)
            return
        self._failed_later += count
        self._fail(first, end, count, error)

    def refused(self, line: int, error: KafkaError) -> None:
        """The producer did not take a record."""
        self.refusals += 1
        self._fail(line, line + 1, 1, error)

    def _fail(self, first: int, end: int, count: int, error: KafkaError) -> None:
        self.failed += count
        if error.fatal() or error.code() in _HOPELESS:
            self.hopeless = self.hopeless or error
        where = self.places.where(first, end)
        many = "" if end == first + 1 else f"{amount(count, 'record')} not stored: "
        self._show(f"{where}: {many}{error.str()}")

    def is_malformed(self, line: int, why: str, skip: bool) -> None:
        """What stands at a line is no record."""
        if skip:
            self.skipped += 1
        else:
            self.malformed += 1
        self._show(f"{self.places.where(line)}: {'passed over: ' if skip else ''}{why}")

    def _show(self, text: str) -> None:
        self._shown += 1
        if self._shown <= self._details:
            self._note(text)
        elif self._shown == self._details + 1:
            self._note("further failures are counted only; --show-errors N shows more")

    def queue(self, rows: RowsListener, error: KafkaError, count: int) -> None:
        """Rows were not stored. On the client's thread."""
        self._reported.append((rows, error, count))

    def settle(self) -> None:
        """Count what came on the client's thread."""
        while self._reported:
            rows, error, count = self._reported.popleft()
            self.lost(rows.first, rows.end, count, error)

    def stored(self, producer: Any) -> int:
        """Records that were acknowledged. What the producer still holds is neither stored nor failed."""
        return max(self.accepted - self._failed_later - len(producer) - sum(self.left.values()), 0)


class RowsListener:
    """Takes the reports of rows that were appended as columns (`client.producer.reports.ReportListener`).

    Args:
        ledger: counts.
        first: line of the first row.
        end: the line behind the last one.
    """

    __slots__ = ("_ledger", "end", "first")

    def __init__(self, ledger: Ledger, first: int, end: int) -> None:
        self._ledger = ledger
        self.first = first
        self.end = end

    def on_rows_done(self, error: KafkaError | None, rows: int) -> None:
        """So many rows are stored, or given up. On the client's thread."""
        if error is not None:
            self._ledger.queue(self, error, rows)


def complain(text: str) -> None:
    """One line on standard error."""
    print(f"headrace produce: {text}", file=sys.stderr, flush=True)
