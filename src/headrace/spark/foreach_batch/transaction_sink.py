"""What a handler of micro-batches writes with: any number of frames, to any number of topics, in one transaction.

A write is a Spark job of the handler's own: a function of the rows, and Spark's `noop` sink behind it, as
`headrace.spark.inline_sink` has it. Its tasks join the driver's transaction and report what went where. Each Kafka
partition belongs to one task of a write; a second write to the same partition goes on where the first one ended.

Read next: `headrace.spark.exactly_once.task_transaction`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from headrace.errors import ConfigError
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport, written_partitions
from headrace.spark.foreach_batch.claims import Claims, ClaimsServer
from headrace.spark.inline_sink import true_for_each
from headrace.spark.options import SinkOptions
from headrace.spark.partition_owners import PartitionCounts, arranged
from headrace.spark.plan import Offsets, Tp
from headrace.spark.sink import append_rows, check_columns
from headrace.spark.worker import acknowledge_at_once, spare_collections

__all__ = ["TransactionSink"]


class TransactionSink:
    """Writes into the transaction of one micro-batch. Only the handler's own thread may use it, while it runs.

    Args:
        options: of all writes, unless a write has its own.
        begun: the transaction.
        server: which answers and hears the tasks.

    Attributes:
        written: records of the transaction so far, by topic and partition.
        offsets: what is to be committed for groups, by group.
        failed: a write has failed, and may have left records in the transaction, whatever the handler makes of it.
    """

    def __init__(self, options: SinkOptions, begun: BegunBatch, server: ClaimsServer) -> None:
        self.written = Counter[Tp]()
        self.offsets: dict[str, Offsets] = {}
        self._options, self._begun, self._server = options, begun, server
        self.failed = False
        self._writes, self._counts = 0, PartitionCounts()
        self._over = False

    def write(self, frame: DataFrame, topic: str = "") -> int:
        """Write the rows of a frame, and wait until brokers have stored them. Readers see them after the commit.

        Args:
            frame: columns as the sink takes them: `value`, and perhaps `key`, `partition` and `headers`.
            topic: where all rows go; the topic of the options, if empty.

        Returns:
            How many records were written.

        Raises:
            ConfigError: a column is missing, unknown or of a wrong type, Spark may run a task twice at once
                (speculation), or the handler has returned before.
            PySparkException: a task failed; the whole micro-batch is to be tried again.
        """
        if self._over:
            raise ConfigError("a TransactionSink writes while its handler runs, and this one has returned")
        options = replace(self._options, topic=topic or self._options.topic)
        check_columns(options, frame.schema)
        try:
            return self._write(frame, options)
        except BaseException:
            self.failed = True
            raise

    def _write(self, frame: DataFrame, options: SinkOptions) -> int:
        number = self._writes
        self._writes += 1
        work = _Work(options, BegunBatch(self._begun.transaction), self._server.claims, number, dict(self.written))
        write = F.arrow_udf(_writing(work), "boolean").asNondeterministic()
        rows = arranged(frame, options, self._counts)
        rows.select(write(F.struct(*rows.columns)).alias("written")).write.format("noop").mode("overwrite").save()
        reports = [TaskReport(work.begun, None, False, found) for found in self._server.reports(number)]
        written_partitions(reports)  # refuses one that two tasks have written
        found = Counter[Tp]()
        for report in reports:
            found.update(report.written)
        self.written += found
        return found.total()

    def commit_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets of a consumer group with the transaction.

        Args:
            group: id of the group, which needs no members.
            offsets: the next offset to read, by topic and partition.
        """
        self.offsets.setdefault(group, {}).update(offsets)

    def close(self) -> None:
        """The handler has returned: refuse what a thread of its own may still write."""
        self._over = True


@dataclass(frozen=True)
class _Work:
    """What the tasks of one write are told."""

    options: SinkOptions
    begun: BegunBatch
    claims: Claims
    number: int
    before: dict[Tp, int]


def _writing(work: _Work) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What each task does. It takes its work before it writes a record, and so no second attempt does."""
    def write(batches: Iterator[pyarrow.Array]) -> Iterator[pyarrow.Array]:  # types by which Spark knows its kind
        acknowledge_at_once()
        from headrace.spark.exactly_once import task_transaction
        from headrace.spark.exactly_once.spark_task import task_identity

        spare_collections()
        task, rows = task_identity(), 0
        task_transaction.begins(work.begun, task)
        work.claims.take(work.number, task.partition, task.attempt_id)
        with task_transaction.JoinedColumnWriter(work.options.client, work.begun, work.before) as out:
            for batch in batches:
                append_rows(out, pyarrow.RecordBatch.from_struct_array(batch), work.options)
                rows += len(batch)
                yield true_for_each(batch)
            out.finish()
            report = task_transaction.written(work.begun, task, rows, out.written())
        work.claims.report(work.number, task.partition, task.attempt_id, report.written)

    return write
