"""Rows arranged so that one task has all rows of a Kafka partition, as exactly-once writes need it (decision 0037).

A row without a partition gets the one that the sink's partitioner would choose, so keys stay where they are. That one
looks at bytes: a key with a format is looked at as the bytes that it becomes. This module runs in the user's driver.
Read next: `headrace.spark.sink`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

import pyarrow
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses
from pyspark.sql.types import IntegerType, StructType

from headrace.admin import AdminClient
from headrace.config import PRODUCER, Config
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.records.hashing import PARTITIONERS
from headrace.spark.exactly_once.task_transaction import check_speculation
from headrace.spark.options import SinkOptions
from headrace.values.value_format import ValueFormat

__all__ = ["PartitionCounts", "arranged", "schema_of"]

_CRC32: Final = ("consistent", "consistent_random")
_PATIENCE_S: Final = 60.0
_IN_A_FLOW: Final = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


class PartitionCounts:
    """How many partitions topics have; each topic is asked for once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, options: SinkOptions) -> int:
        """That of the topic of a write.

        Raises:
            ConfigError: the topic does not exist.
            KafkaException: the brokers did not answer within a minute, or do not let the user see the topic.
        """
        if options.topic not in self._known:
            self._known[options.topic] = _partition_count(options)
        return self._known[options.topic]


def schema_of(frame: DataFrame) -> StructType | None:
    """The columns of a frame; None where Spark does not tell them: in a flow of Declarative Pipelines."""
    try:
        return frame.schema
    except AnalysisException as error:
        if error.getCondition() != _IN_A_FLOW:
            raise
        return None


def arranged(frame: DataFrame, options: SinkOptions, counts: PartitionCounts | None = None) -> DataFrame:
    """The rows with a column partition, all rows of a partition in one task.

    Args:
        frame: columns as the sink takes them (`check_columns`), batch or streaming.
        options: those of the write, with a topic.
        counts: what is known of topics from writes before, which were arranged by the same counts.

    Raises:
        ConfigError: the topic is missing, its partitioner is a function, or Spark may run a task twice at once
            (speculation) and rows are to be written once.
        KafkaException: the brokers did not answer within a minute, or do not let the user see the topic.
    """
    if options.exactly_once:
        check_speculation(frame.sparkSession.conf.get("spark.speculation", "false").lower() == "true")
    if not options.topic:
        raise ConfigError("option topic is missing: rows are arranged by the partitions of one topic; write each topic "
                          "by itself")
    count = (counts or PartitionCounts()).of(options)
    chosen = _chosen(frame, options, count)
    return frame.withColumn("partition", chosen).repartitionById(count, F.col("partition"))


def _partition_count(options: SinkOptions) -> int:
    with AdminClient(dict(options.client)) as admin:
        found = admin.list_topics(options.topic, timeout=_PATIENCE_S).topics[options.topic]
    if found.error is not None and found.error != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(found.error)
    if not found.partitions:
        raise ConfigError(f"topic {options.topic} does not exist: create it or check its name")
    return len(found.partitions)


def _chosen(frame: DataFrame, options: SinkOptions, count: int) -> Column:
    name: Any = Config(PRODUCER, options.client)["partitioner"]
    if name not in PARTITIONERS:
        raise ConfigError(f"kafka.partitioner {name!r} cannot be known before rows are written: add a column partition")
    hashed, lot = PARTITIONERS[name]
    schema = schema_of(frame)
    if schema is None:
        return F.arrow_udf(_choosing(options, count, hashed, lot), IntegerType()).asNondeterministic()(F.struct("*"))
    anywhere = F.floor(F.rand() * count).cast("int")
    chosen = anywhere
    if "key" in schema.names and hashed is not None:
        given = F.col("key")
        if options.key.has_schema:
            given = F.arrow_udf(_encoded(options.key, options.topic), "binary")(given)
        key = F.coalesce(given.cast("binary"), F.lit(b""))
        number = F.crc32(key) if name in _CRC32 else F.arrow_udf(_hashes(hashed), "bigint")(key)
        by_key = F.pmod(number, F.lit(count)).cast("int")
        no_key = {"null": given.isNull(), "empty": F.length(key) == 0}.get(lot)
        chosen = by_key if no_key is None else F.when(no_key, anywhere).otherwise(by_key)
    return F.coalesce(F.col("partition"), chosen) if "partition" in schema.names else chosen


def _choosing(
    options: SinkOptions, count: int, hashed: Callable[[Any], int] | None, lot: str
) -> Callable[[pyarrow.Array], pyarrow.Array]:
    """The same in a task, for rows whose columns are not known before: each of them is looked at there."""
    def one(key: bytes | None, given: int | None) -> int:
        if given is not None:
            return given
        if hashed is None or (lot == "null" and key is None) or (lot == "empty" and not key):
            return random.randrange(count)
        return hashed(key or b"") % count

    def choose(rows: pyarrow.Array) -> pyarrow.Array:  # types by which Spark knows its kind
        columns = dict(zip((each.name for each in rows.type), rows.flatten(), strict=True))
        keys = columns.get("key", pyarrow.nulls(len(rows)))
        if options.key.has_schema and "key" in columns:
            keys = _encoded(options.key, options.topic)(keys)
        given = columns.get("partition", pyarrow.nulls(len(rows)))
        return pyarrow.array(map(one, keys.cast(pyarrow.binary()).to_pylist(), given.to_pylist()), pyarrow.int32())

    return choose


def _encoded(of: ValueFormat, topic: str) -> Callable[[pyarrow.Array], pyarrow.Array]:
    def encode(keys: pyarrow.Array) -> pyarrow.Array:  # types by which Spark knows its kind
        from headrace.values.value_encoder import encoder_of

        return encoder_of(of, topic, keys.type).encode(keys)

    return encode


def _hashes(hashed: Callable[[Any], int]) -> Callable[[pyarrow.Array], pyarrow.Array]:
    def hash_keys(keys: pyarrow.Array) -> pyarrow.Array:  # types by which Spark knows its kind
        return pyarrow.array([hashed(key) for key in keys.to_pylist()], pyarrow.int64())

    return hash_keys
