"""What tasks report, and whether all reports together may be committed.

It knows neither Spark nor Kafka. Read next: `headrace.spark.exactly_once.driver_transaction`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.client.joint.transaction_owner import CommittedMark, JointTransaction
from headrace.errors import KafkaError, KafkaException
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.claims_topic import ClaimsTopic

__all__ = ["BegunBatch", "TaskReport", "common_work", "written_partitions"]


@dataclass(frozen=True)
class BegunBatch:
    """What the driver has begun, for tasks and for the process that commits.

    Attributes:
        transaction: that all tasks write into.
        last: the mark that was committed last; None for none.
        group: where marks are; None for a batch write, which has none.
        claims: where tasks claim their work; None where they ask the leaders of partitions.
    """

    transaction: JointTransaction
    last: CommittedMark | None = None
    group: str | None = None
    claims: ClaimsTopic | None = None


@dataclass(frozen=True)
class TaskReport:
    """What one task did.

    Attributes:
        begun: the transaction that it was told to write into.
        batch: the micro-batch as the task knows it; None in a batch write.
        skipped: the micro-batch is in the topics already, and the task has written nothing.
        written: records by topic and partition.
        passed_over: rows that a task has read and not written, as the micro-batch was skipped.
    """

    begun: BegunBatch
    batch: BatchMarker | None
    skipped: bool = False
    written: dict[tuple[str, int], int] = field(default_factory=dict)
    passed_over: int = 0


def common_work(reports: Iterable[TaskReport | None]) -> TaskReport | None:
    """One report that stands for all; None if there are none.

    Raises:
        KafkaException: a task has not reported, or they did not do the same work.
    """
    found = list(reports)
    if not found:
        return None
    first = found[0]
    for each in found:
        if each is None or first is None:
            raise _refused("a task has not reported")
        if (each.begun, each.batch, each.skipped) != (first.begun, first.batch, first.skipped):
            raise _refused(f"tasks worked for {_work(first)} and for {_work(each)}")
    return first


def _work(report: TaskReport) -> str:
    transaction = report.begun.transaction
    what = "a batch write" if report.batch is None else f"micro-batch {report.batch.batch} of {report.batch.query}"
    return f"{what} under epoch {transaction.epoch} of producer {transaction.producer_id}"


def written_partitions(reports: Iterable[TaskReport | None]) -> set[tuple[str, int]]:
    """The partitions that were written.

    Raises:
        KafkaException: two tasks have written the same one: they share sequences, and records may be missing.
    """
    owners: dict[tuple[str, int], int] = {}
    for number, report in enumerate(reports):
        for topic, partition in report.written if report is not None else ():
            if (topic, partition) in owners:
                raise _refused(
                    f"tasks {owners[topic, partition]} and {number} have both written {topic}[{partition}]. Let each "
                    "partition be written by one task: headrace.spark.by_partition() arranges the rows so")
            owners[topic, partition] = number
    return set(owners)


def _refused(why: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._INCONSISTENT, f"the transaction cannot be committed: {why}"))
