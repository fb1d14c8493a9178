"""A function for `foreachBatch` whose micro-batches are transactions, tried again in the process when one fails.

For each micro-batch: begin a transaction, which ends what another attempt or another driver has left open, and learn by
the marker whether the micro-batch is in the topics already; let the handler write; commit marker, offsets and records
together. If a task, a broker, the registry or the handler's own Spark job fails, all of it is aborted and tried again,
under a new epoch that shuts out whatever is late of the attempt before (decision 0041).

Read next: `headrace.spark.foreach_batch.transaction_sink`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from headrace.errors import ConfigError, KafkaError, KafkaException, SchemaRegistryError
from headrace.spark.exactly_once import driver_transaction
from headrace.spark.exactly_once.batch_marker import BatchMarker, BatchVerdict, verdict
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport
from headrace.spark.foreach_batch.claims import ClaimsServer
from headrace.spark.foreach_batch.stream_of_batch import StreamOfBatch
from headrace.spark.foreach_batch.transaction_sink import TransactionSink
from headrace.spark.options import SinkOptions

__all__ = ["Handler", "TransactionalBatches", "TransactionalOptions"]

Handler = Callable[[DataFrame, int, TransactionSink], None]
"""What a program does with a micro-batch: its rows, its number, and what to write with."""

_ATTEMPTS: Final = 3
_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 30.0
_FAILURES: Final = (KafkaException, Py4JError, PySparkException, SchemaRegistryError)
_MISTAKES: Final = (ConfigError, AnalysisException)
"""Errors that the next attempt would meet again."""
_log = logging.getLogger("headrace")


@dataclass(frozen=True, slots=True)
class TransactionalOptions:
    """What `transactional` is told.

    Attributes:
        sink: of all writes.
        group: for which the offsets of the query's sources are committed; empty for none.
        attempts: how often a micro-batch is tried before the query fails.
    """

    sink: SinkOptions
    group: str = ""
    attempts: int = _ATTEMPTS

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> TransactionalOptions:
        """Check options: those of the sink, `groupId` and `maxAttempts`.

        Raises:
            ConfigError: an unknown option, a malformed value, or no name for the stream.
        """
        rest = {name.lower(): str(value) for name, value in given.items()}
        group, attempts = rest.pop("groupid", "").strip(), rest.pop("maxattempts", str(_ATTEMPTS)).strip()
        if not attempts.isdigit() or int(attempts) < 1:
            raise ConfigError(f"option maxAttempts must be a whole number of at least 1, not {attempts!r}")
        guarantee = rest.setdefault("delivery.guarantee", "exactly_once")
        if guarantee.strip().lower() != "exactly_once":
            raise ConfigError(f"option delivery.guarantee is exactly_once here, not {guarantee!r}")
        sink = SinkOptions.parse(rest)
        if sink.claims_topic:
            raise ConfigError("option exactlyOnce.claims has no use here: tasks claim their work from the driver")
        driver_transaction.sink_name(sink)
        return cls(sink, group, int(attempts))


class TransactionalBatches:
    """The function: `writeStream.foreachBatch` takes it.

    Args:
        options: checked.
        handler: of the program. It is called again when an attempt fails, with the same rows and number.
        sleep: waits so many seconds between two attempts.
    """

    def __init__(
        self, options: TransactionalOptions, handler: Handler, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._options, self._handler, self._sleep = options, handler, sleep

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write one micro-batch, unless it is in the topics already.

        Raises:
            ConfigError: the frame belongs to no streaming query, or an option or a column is wrong.
            KafkaException: the transaction failed each time, or the checkpoint is older than what is in the topics.
            PySparkException: a job failed each time.
            RuntimeError: the handler ended with SystemExit or KeyboardInterrupt, or the query was stopped meanwhile.
        """
        stream = StreamOfBatch(frame)
        try:
            self._transact(frame, batch_id, stream)
        except Exception as failed:
            if stream.is_active:
                raise
            raise RuntimeError(stream.stopped_text(batch_id, _first_line(failed))) from None

    def _transact(self, frame: DataFrame, batch_id: int, stream: StreamOfBatch) -> None:
        wanted = BatchMarker(stream.query_id, batch_id, offsets=stream.digest(batch_id))
        for attempt in range(1, self._options.attempts + 1):
            try:
                begun = driver_transaction.begin(self._options.sink)
            except KafkaException as failed:
                self._await_next(attempt, stream, batch_id, failed)
                continue
            last = None if begun.last is None else BatchMarker.read(begun.last.text)
            if verdict(last, wanted) is BatchVerdict.SKIP:
                return
            try:
                self._write(frame, stream, begun, wanted)
            except _FAILURES as failed:
                self._await_next(attempt, stream, batch_id, failed)
            else:
                return

    def _await_next(self, attempt: int, stream: StreamOfBatch, batch_id: int, failed: Exception) -> None:
        """Wait until the next attempt; raise what has failed if there is none."""
        if isinstance(failed, _MISTAKES) or attempt == self._options.attempts or not stream.is_active:
            raise failed
        wait_s = min(_WAIT_S * 2 ** (attempt - 1), _LONGEST_WAIT_S)
        _log.warning("micro-batch %d is tried again in %.0f s, attempt %d of %d: %s", batch_id, wait_s, attempt + 1,
                     self._options.attempts, _first_line(failed))
        self._sleep(wait_s)

    def _write(self, frame: DataFrame, stream: StreamOfBatch, begun: BegunBatch, wanted: BatchMarker) -> None:
        try:
            with _claims(frame) as server:
                sink = TransactionSink(self._options.sink, begun, server)
                self._handler(frame, wanted.batch, sink)
                sink.close()
            if self._options.group:
                sink.commit_offsets(self._options.group, stream.end_offsets(wanted.batch))
            self._commit(begun, wanted, sink)
        except BaseException as failed:
            driver_transaction.abort(self._options.sink, begun)
            if isinstance(failed, Exception):
                raise
            # Whoever calls this for Spark answers it for an Exception only: it would wait for ever.
            raise RuntimeError(f"the handler of micro-batch {wanted.batch} ended with {failed!r}: nothing of it is "
                               "committed. To end the query call its stop(), from another thread") from failed

    def _commit(self, begun: BegunBatch, wanted: BatchMarker, sink: TransactionSink) -> None:
        options = self._options.sink
        if sink.failed:
            raise KafkaException(KafkaError(
                KafkaError._STATE, "a write of the micro-batch has failed, and the handler went on: nothing of it is "
                "committed. Let the error leave the handler"))
        if sink.written:
            driver_transaction.mark(options, TaskReport(begun, wanted, False, sink.written), set(sink.written))
        for group, offsets in sink.offsets.items():
            driver_transaction.commit_offsets(options, begun, group, offsets)
        if sink.written or any(sink.offsets.values()):  # what is not open cannot be committed
            driver_transaction.end(options, begun)


def _claims(frame: DataFrame) -> ClaimsServer:
    settings = frame.sparkSession.sparkContext.getConf()
    host = settings.get("spark.driver.host") or "127.0.0.1"
    return ClaimsServer(host, settings.get("spark.driver.bindAddress"))


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
