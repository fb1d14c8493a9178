"""Kafka as a PySpark data source and sink, and declared pipelines over it.

`spark.read.format("headrace")`, `readStream`, `write` and `writeStream` work as soon as the package is installed: Spark
finds `pyspark_headrace` by itself. `options` and `plan` are pure; `source` and `sink` are Spark's two faces; `pipeline`
runs a file that `spec` has checked. Only `source`, `sink`, `pipeline` and what arranges rows import pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from headrace.errors import DependencyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.spark.foreach_batch.transaction_sink import TransactionSink

__all__ = ["by_partition", "lag", "require_spark", "transactional"]


def by_partition(frame: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Arrange rows so that each Kafka partition is written by one task, as `delivery.guarantee=exactly_once` needs it.

    Args:
        frame: columns as the sink takes them; batch or streaming.
        options: those of the write, with `topic`.

    Returns:
        The rows, with the column partition as the sink's partitioner would choose it where it is missing or null.

    Raises:
        ConfigError: an option is unknown or malformed, the topic is missing, or the rows are to be written exactly once
            and speculation is on.
        KafkaException: the brokers did not answer within a minute.
    """
    from headrace.spark.options import SinkOptions
    from headrace.spark.partition_owners import arranged, schema_of
    from headrace.spark.sink import check_columns

    parsed, schema = SinkOptions.parse(options), schema_of(frame)
    if schema is not None:
        check_columns(parsed, schema)
    return arranged(frame, parsed)


def lag(progress: Any) -> dict[tuple[str, int], int]:
    """How far a streaming query is behind its topics, from a progress report of Spark's.

        sum(lag(query.lastProgress).values())

    Args:
        progress: `query.lastProgress`, an entry of `query.recentProgress`, `event.progress` of a listener, or its JSON.

    Returns:
        Records that were not read yet when the micro-batch ended, by topic and partition, over all sources of the
        format headrace; empty for a report without such a source, and for None.
    """
    import json

    from headrace.spark.plan import lag_in_progress

    text = progress if isinstance(progress, str) else getattr(progress, "json", None)
    report = json.loads(text) if isinstance(text, str) else progress
    return lag_in_progress(report["sources"]) if report else {}


def require_spark() -> None:
    """Check that the packages of the extra are installed, before anything imports them.

    Raises:
        DependencyError: one is missing; the text says what to install.
    """
    missing = [name for name in ("pyspark", "pyarrow", "matplotlib") if find_spec(name) is None]
    if missing:
        raise DependencyError(f"this needs {' and '.join(missing)}: pip install headrace[spark]")


def transactional(
    options: Mapping[str, str], handler: Callable[[Any, int, TransactionSink], None]
) -> Callable[[Any, int], None]:
    """A function for `writeStream.foreachBatch` that writes each micro-batch as one transaction, exactly once.

        def write(rows, batch_id, sink):
            sink.write(rows.where("amount >= 0"), topic="orders")
            sink.write(rows.where("amount < 0"), topic="orders-rejected")

        options = {"kafka.bootstrap.servers": "broker:9092", "sinkId": "orders", "groupId": "orders-job"}
        rows.writeStream.foreachBatch(headrace.spark.transactional(options, write)).start()

    Args:
        options: of the sink, as `writeStream` takes them; `groupId`, for which the offsets of the query's sources are
            committed with the records; and `maxAttempts`, how often a micro-batch is tried before the query fails
            (three times).
        handler: is called with the rows of a micro-batch, its number, and what writes them. It is called again when an
            attempt fails: what it does elsewhere happens again, what it wrote here does not. Rows that are written
            twice are computed twice, unless it persists them.

    Raises:
        ConfigError: an unknown option, a malformed value, or no `sinkId`.
    """
    from headrace.spark.foreach_batch.batches import TransactionalBatches, TransactionalOptions

    return TransactionalBatches(TransactionalOptions.parse(options), handler)
