"""Slices and columns into the producer: room, rate, transactions, and an end that nothing can delay.

Nothing here waits longer than a twentieth of a second at a time, and every wait serves reports, moves the progress bar
and looks whether to stop. Slices of some size go as columns, without a Python call for each record; small ones go
record by record, so that what fails is known by its very line.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import Any, Protocol, TypeVar

from headrace import Producer
from headrace.buffers import RecordAccumulator, append_columns
from headrace.buffers.column_input import BinaryInput
from headrace.cli.producing.ledger import Ledger, RowsListener
from headrace.cli.producing.slices import Headers, Slice
from headrace.client.producer.producer import calls_of
from headrace.client.waits import Steps
from headrace.errors import KafkaError, KafkaException

__all__ = ["ArrowRows", "Constants", "Enough", "RecordSink", "Stopped"]

T = TypeVar("T")
_SLICE_S = 0.05
_COLUMNS_FROM = 256  # records of a slice
_INIT_S = 60.0
_ABORT_S = 2.0


class Stopped(Exception):
    """Somebody wants an end: Ctrl-C, or SIGTERM."""


class Enough(Exception):
    """As many records as were asked for."""


class ArrowRows(Protocol):
    """Rows of Arrow columns (`buffers.arrow_rows.Rows`)."""

    def __len__(self) -> int: ...

    def append_to(self, accumulator: RecordAccumulator, start: int = 0, listener: object = None) -> int:
        """Append rows from `start` on, as many as there is room for."""
        ...


@dataclass(frozen=True, slots=True)
class Constants:
    """What the options say about all records; None leaves it to each record.

    Attributes:
        key: key of all records.
        partition: partition of all records, -1 for the partitioner's choice.
        timestamp: milliseconds, 0 for now.
        headers: for all records, before their own.
        empty_is_null: an empty value is a tombstone, an empty key is no key.
    """

    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers | None = None
    empty_is_null: bool = False


class RecordSink:
    """Sends what it is given.

    Args:
        producer: sends it; made with `delivery.report.only.error`.
        topic: where to.
        constants: what is the same for all records.
        ledger: counts.
        idle: called during every wait.
        rate: most records per second; 0 for no bound.
        limit: most records; None for all.
        per_transaction: records in a transaction; 0 for all in one, None for no transactions.
        before_commit: called when all records of a transaction are stored.

    Attributes:
        committed: records of committed transactions.
        commits: transactions that were committed.
    """

    def __init__(
        self, producer: Producer, topic: str, constants: Constants, ledger: Ledger, idle: Callable[[], None], *,
        rate: float = 0.0, limit: int | None = None, per_transaction: int | None = None,
        before_commit: Callable[[], None] | None = None,
    ) -> None:
        self._producer = producer
        self._calls = calls_of(producer)
        self._topic = topic
        self._constants = constants
        self._ledger = ledger
        self._idle = idle
        self._rate = rate
        self._left = limit
        self._per_transaction = per_transaction
        self._before_commit = before_commit
        self._in_transaction = 0
        self._open = self._committing = False
        self._began_at = self._paced = 0.0
        self._by_record = bool(self._calls.engine.config["interceptor.classes"])
        self.committed = self.commits = 0

    @property
    def in_transaction(self) -> bool:
        """A transaction is open."""
        return self._open

    # Beginning and end

    def begin(self) -> None:
        """Begin the first transaction, if there are any, and wait until the topic is known.

        Raises:
            KafkaException: the topic cannot be used, or no broker answers.
        """
        if self._per_transaction is not None:
            self._run(self._calls.init_transactions(_INIT_S))
            self._begin_transaction()
        self._run(self._calls.topic_answered(self._topic))
        self._began_at = time.monotonic()

    def finish(self) -> None:
        """Wait for all reports, and commit.

        Raises:
            KafkaException: the transaction was not committed.
            Stopped: somebody does not want to wait.
        """
        if self._open:
            self._commit()
        self._run(self._calls.flush(math.inf))

    def give_up(self) -> str:
        """Send no more, and settle all reports; returns a line about an open transaction, empty when there is none."""
        self._ledger.given_up = True
        outcome = ""
        if self._committing:
            outcome = "the commit was under way: whether readers see the last transaction is not known"
        elif self._open:
            try:
                self._producer.abort_transaction(_ABORT_S)
                self._open = False
                outcome = "the transaction was aborted: nobody sees its records"
            except KafkaException as error:
                self._open = not error.error.fatal()
                why = ("the transaction is lost to this producer" if error.error.fatal() else "the transaction could "
                       "not be aborted yet, the brokers do it after transaction.timeout.ms")
                outcome = f"{why}: {error.error.str()}"
        else:
            self._producer.purge()
        self._producer.poll(0)
        self._ledger.settle()
        return outcome

    def _begin_transaction(self) -> None:
        self._producer.begin_transaction()
        self._open = True

    def _commit(self) -> None:
        self._run(self._calls.flush(math.inf))
        self._ledger.settle()
        if self._ledger.failed or self._ledger.malformed:
            return  # the whole transaction is given up
        if self._before_commit is not None:
            self._before_commit()
        self._committing = True
        try:
            self._run(self._calls.commit_transaction(-1))
        except KafkaException as error:
            self._committing = error.error.maybe_applied
            raise
        self._open = self._committing = False
        self.commits += self._in_transaction > 0
        self.committed = self._ledger.accepted
        self._in_transaction = 0

    def _run(self, steps: Steps[T]) -> T:
        """Make a call of the producer; every wait notices Ctrl-C and serves reports."""
        return self._calls.waits.run(steps, self._between)

    def _between(self) -> None:
        self._producer.poll(0)
        self._idle()

    # Sending

    def send(self, given: Slice) -> None:
        """Send the records of a slice.

        Raises:
            Enough: the limit is reached, and all up to it is sent.
            KafkaException: the producer takes no records any more.
            Stopped: from `idle`.
        """
        first = 0
        while first < len(given):
            end = first + self._allowed(len(given) - first)
            part = given.part(first, end)
            if self._by_record or len(part) < _COLUMNS_FROM or not self._send_columns(part):
                self._send_records(part)
            self._sent(end - first)
            first = end

    def send_rows(self, rows: ArrowRows, line: int, size: int) -> None:
        """Send Arrow columns; the first row is row `line`, and all have `size` bytes. Raises as `send`."""
        self._append(rows, line, range(line, line + len(rows)), size)
        self._sent(len(rows))

    def allowed(self, count: int) -> int:
        """How many of the next records may go in one piece, now."""
        return self._allowed(count)

    def _allowed(self, count: int) -> int:
        self._idle()
        if self._per_transaction is not None and not self._open:
            self._begin_transaction()
        if self._per_transaction:
            count = min(count, self._per_transaction - self._in_transaction)
        if self._left is not None:
            count = min(count, self._left)
        if self._rate:
            while (due := (time.monotonic() - self._began_at) * self._rate + 1 - self._paced) < 1:
                self._producer.poll(min(_SLICE_S, (1 - due) / self._rate))
                self._idle()
            count = min(count, int(due))
        return count

    def _sent(self, count: int) -> None:
        self._paced += count
        self._in_transaction += count
        if self._rate:  # a pause is not made up for by a burst of more than a second
            self._paced = max(self._paced, (time.monotonic() - self._began_at - 1) * self._rate)
        if self._left is not None:
            self._left -= count
        enough = self._left == 0
        if self._per_transaction and self._in_transaction >= self._per_transaction and not enough:
            self._commit()
            if self._ledger.failed or self._ledger.malformed:
                raise Enough
        if enough:
            raise Enough

    # Record by record

    def _send_records(self, part: Slice) -> None:
        constants, ledger, produce, line = self._constants, self._ledger, self._producer.produce, self._ledger.line
        values, keys = part.values, part.keys
        if constants.empty_is_null:
            values = [value or None for value in values]
            keys = keys and [key or None for key in keys]
        rows = zip(
            values, repeat(constants.key) if constants.key is not None or keys is None else keys,
            repeat(constants.partition) if constants.partition is not None else part.partitions or repeat(-1),
            repeat(constants.timestamp) if constants.timestamp is not None else part.timestamps or repeat(0),
            self._headers(part.headers), map(line, part.lines), strict=False)
        for value, key, partition, timestamp, headers, at in rows:
            while True:
                try:
                    produce(self._topic, value, key, partition, at, None, timestamp, headers)
                except BufferError:
                    self._producer.poll(_SLICE_S)  # until there is room
                    self._idle()
                    continue
                except KafkaException as error:
                    self._refused(at, error.error)
                else:
                    ledger.accepted += 1
                    ledger.accepted_bytes += len(value or b"") + len(key or b"")
                break

    def _headers(self, own: list[Headers] | None) -> Any:
        fixed = self._constants.headers
        if own is None:
            return repeat(fixed)
        return [fixed + headers for headers in own] if fixed else own

    def _refused(self, line: int, error: KafkaError) -> None:
        self._ledger.refused(line, error)
        if error.fatal() or error.code() in (KafkaError._STATE, KafkaError._DESTROY):
            raise KafkaException(error)  # there is no use in trying the next one
        if self._open:
            raise KafkaException(KafkaError(error.code(), "a record of the transaction was not accepted"))

    # As columns

    def _send_columns(self, part: Slice) -> bool:
        """Send a slice without a call for each record; False when it has something that needs one."""
        constants = self._constants
        keys = None if constants.key is not None else part.keys
        if part.headers is not None or constants.headers or constants.key is not None:
            return False
        if None in part.values or (keys is not None and None in keys):
            return False
        if constants.empty_is_null and (b"" in part.values or (keys is not None and b"" in keys)):
            return False
        rows = _Columns(
            keys, part.values,
            _numbers("i", constants.partition, part.partitions, len(part)),
            _numbers("q", constants.timestamp, part.timestamps, len(part)))
        self._append(rows, part.lines[0], part.lines, part.size_bytes)
        return True

    def _append(self, rows: ArrowRows, first: int, lines: Any, size: int) -> None:
        """Append all rows; those that are refused are reported and left out."""
        calls, ledger, count = self._calls, self._ledger, len(rows)
        listener = RowsListener(ledger, first, lines[-1] + 1 if count else first)
        done = 0
        errors: list[KafkaError] = []

        def append() -> int:
            try:
                return rows.append_to(calls.engine.accumulators.accumulator_of(self._topic), done, listener)
            except (KafkaException, ValueError) as error:
                errors.append(error.error if isinstance(error, KafkaException) else KafkaError(
                    KafkaError._INVALID_ARG, str(error)))
                return getattr(error, "appended", 0) + 1  # the refused row is done as well

        while done < count:
            passed = self._run(calls.append_rows(append, math.inf))
            done += passed
            ledger.accepted += passed - len(errors)
            if errors:
                self._refused(lines[done - 1], errors.pop())
        ledger.accepted_bytes += size


class _Columns:
    """Keys and values as they are, next to each other, and where each one begins."""

    def __init__(self, keys: list[Any] | None, values: list[Any], partitions: Any, timestamps: Any) -> None:
        self._count = len(values)
        self._inputs = (None if keys is None else _binary(keys), _binary(values), partitions, timestamps, None)

    def __len__(self) -> int:
        return self._count

    def append_to(self, accumulator: RecordAccumulator, start: int = 0, listener: object = None) -> int:
        """Append rows from `start` on, as many as there is room for."""
        return append_columns(accumulator, start, self._count, *self._inputs, listener)


def _binary(column: list[bytes]) -> BinaryInput:
    starts = array("q", accumulate(map(len, column), initial=0))
    return BinaryInput(None, memoryview(starts).cast("B"), b"".join(column), 0, True)


def _numbers(kind: str, constant: int | None, column: list[int] | None, count: int) -> Any:
    if constant is not None:
        return memoryview(array(kind, [constant]) * count).cast("B")
    return None if column is None else memoryview(array(kind, column)).cast("B")
