"""A task's part of exactly-once writes: write into the driver's transaction, and report what went where.

This module does not import pyspark. Read next: `headrace.client.joint.joining_producer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from headrace.client.joint.joining_producer import JoiningProducer, KeptJoiningProducers
from headrace.client.producer.kept_producers import KeptProducers
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.spark.column_writer import ColumnWriter
from headrace.spark.exactly_once.batch_marker import BatchMarker, BatchVerdict, verdict
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport

if TYPE_CHECKING:
    import pyarrow

    from headrace.spark.exactly_once.spark_task import TaskIdentity

__all__ = ["JoinedColumnWriter", "begins", "check_attempt", "check_speculation", "write", "written"]

_PRODUCERS: Final = KeptJoiningProducers()
_SHUT_OUT: Final = (KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_MOST_AT_FIRST: Final = 127
"""Prime, so that attempts of one task seldom agree: their ids differ by the number of tasks, or by some of it."""


class JoinedColumnWriter(ColumnWriter):
    """Writes columns into a transaction that the driver has begun; a context manager.

    Two attempts of a task that claim a partition at the same moment are told apart by their leader if their first
    batches differ in their number of records: it refuses the second. So that number depends on the attempt.

    Args:
        client: a producer's properties.
        begun: the transaction.
        before: records that are in it already, by topic and partition, of tasks that have ended.
        attempt_id: unique among the attempts of all tasks; None where something else sees to it that only one writes.
    """

    def __init__(
        self, client: Mapping[str, str], begun: BegunBatch, before: Mapping[tuple[str, int], int] | None = None, *,
        attempt_id: int | None = None,
    ) -> None:
        self._first = 0 if attempt_id is None else 1 + attempt_id % _MOST_AT_FIRST
        super().__init__({**client, "enable.idempotence": "true"})
        assert isinstance(self._producer, JoiningProducer)
        self._joining: JoiningProducer = self._producer
        self._joining.join(begun.transaction, dict(before or {}))

    def _producers(self) -> KeptProducers:
        return _PRODUCERS

    def append(self, topic: str, key: Any, value: Any, partition: Any = None, headers: Any = None) -> None:
        """As of every writer; some of the first rows go ahead by themselves."""
        arrays = (key, value, partition, headers)
        ahead = min(self._first, len(value))
        if ahead:
            super().append(topic, *(each if each is None else each.slice(0, ahead) for each in arrays))
            self._first -= ahead
            if self._first:
                return
            self._producer.flush()  # the leader has to know them before more can be sent, anyway
        if ahead < len(value):
            super().append(topic, *(each if each is None else each.slice(ahead) for each in arrays))

    def written(self) -> dict[tuple[str, int], int]:
        """Records by topic and partition, after `finish()`."""
        return self._joining.written()


def begins(begun: BegunBatch, task: TaskIdentity) -> bool:
    """Whether the task has to write anything.

    Raises:
        ConfigError: Spark may run two attempts of a task at once.
        KafkaException: the checkpoint was taken back.
    """
    check_speculation(task.speculative)
    if begun.group is None or task.batch is None:
        return True
    last = None if begun.last is None else BatchMarker.read(begun.last.text)
    return verdict(last, task.batch) is BatchVerdict.WRITE


def check_speculation(speculative: bool) -> None:
    """Refuse to write where Spark may run a second attempt of a task beside the first.

    Raises:
        ConfigError: it may.
    """
    if speculative:
        raise ConfigError("delivery.guarantee=exactly_once needs spark.speculation=false: two attempts of a task at "
                          "once would write the same sequences")


def check_attempt(task: TaskIdentity) -> None:
    """Refuse to write a second time into one transaction.

    Raises:
        KafkaException: the task was tried before.
    """
    if task.attempt > 0:
        raise KafkaException(KafkaError(
            KafkaError._STATE, f"attempt {task.attempt} of task {task.partition}: what the attempt before has written "
            "is in the same transaction. The micro-batch is written again as a whole when the query restarts"))


def written(begun: BegunBatch, task: TaskIdentity, rows: int, found: dict[tuple[str, int], int]) -> TaskReport:
    """The report of a task that has written all its rows.

    Raises:
        KafkaException: not all of them are in the transaction.
    """
    if sum(found.values()) != rows:
        raise KafkaException(KafkaError(
            KafkaError._INCONSISTENT, f"{rows} rows were written, and {sum(found.values())} records are in the "
            "transaction: they were written twice or not at all"))
    return TaskReport(begun, task.batch, False, found)


def _work(begun: BegunBatch, task: TaskIdentity) -> str:
    transaction = begun.transaction
    return (f"task {task.partition} of {transaction.transactional_id}, producer {transaction.producer_id}, epoch "
            f"{transaction.epoch}")


@contextmanager
def _with_remedy(begun: BegunBatch) -> Iterator[None]:
    """Leaders that shut a producer out speak of its epoch, or of others in its partitions: say what is to be done."""
    try:
        yield
    except KafkaException as failed:
        error = failed.error
        if error.code() in _SHUT_OUT:
            text = (f"the transaction of {begun.transaction.transactional_id} was taken over or has expired: give each "
                    "query a sinkId of its own, or raise kafka.transaction.timeout.ms if a micro-batch takes longer "
                    f"({error.str()})")
        elif error.code() == KafkaError._CONFLICT:
            text = f"{error.str()}, as headrace.spark.by_partition() arranges the rows"
        else:
            raise
        raise KafkaException(KafkaError(
            error.code(), text, error.fatal(), error.retriable(), error.txn_requires_abort())) from failed


def write(
    begun: BegunBatch, task: TaskIdentity, client: Mapping[str, str], batches: Iterable[pyarrow.RecordBatch],
    append: Callable[[ColumnWriter, pyarrow.RecordBatch], None], before: Mapping[tuple[str, int], int] | None = None,
) -> TaskReport:
    """Write the rows of one task, or read them only where the micro-batch is in the topics already.

    Args:
        begun: the transaction.
        task: which task this is.
        client: a producer's properties.
        batches: the rows.
        append: hands rows to a writer.
        before: records that are in the transaction already, by topic and partition, of tasks that have ended.

    Raises:
        ConfigError: Spark may run two attempts of a task at once.
        KafkaException: a record was refused or not delivered in time, or something else has written to a partition.
    """
    if not begins(begun, task):
        return TaskReport(begun, task.batch, True, passed_over=sum(batch.num_rows for batch in batches))
    rows = 0
    attempt_id = task.attempt_id if begun.claims is None else None
    with _with_remedy(begun), JoinedColumnWriter(client, begun, before, attempt_id=attempt_id) as out:
        for batch in batches:
            if batch.num_rows and not rows:
                check_attempt(task)
                if begun.claims is not None:
                    begun.claims.take(client, _work(begun, task))
            rows += batch.num_rows
            append(out, batch)
        out.finish()
        found = out.written()
    return written(begun, task, rows, found)
