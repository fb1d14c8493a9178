"""What a task learns from Spark: its micro-batch, its attempt, and settings that exactly-once writes cannot bear."""

from __future__ import annotations

from dataclasses import dataclass

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark import TaskContext

from headrace.spark.exactly_once.batch_marker import BatchMarker

__all__ = ["TaskIdentity", "task_identity"]


@dataclass(frozen=True)
class TaskIdentity:
    """One attempt of one task.

    Attributes:
        batch: its micro-batch; None in a batch write.
        partition: the number of the task in its stage.
        attempt: 0 unless the task was tried before.
        attempt_id: unique in the application.
        speculative: Spark may run a second attempt beside the first.
    """

    batch: BatchMarker | None
    partition: int
    attempt: int
    attempt_id: int
    speculative: bool


def task_identity() -> TaskIdentity:
    """Of the task that runs in this process."""
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    query, batch = context.getLocalProperty("sql.streaming.queryId"), context.getLocalProperty("streaming.sql.batchId")
    speculation = context.getLocalProperty("spark.speculation") or ""
    return TaskIdentity(
        BatchMarker(query, int(batch)) if query and batch else None,
        context.partitionId(), context.attemptNumber(), context.taskAttemptId(), speculation.lower() == "true")
