"""From records to columns and back: what a pipeline does with the rows of a source before its steps, and of a sink
behind them.

This module reads and writes nothing. Read next: `headrace.spark.pipeline.run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from headrace.spark.pipeline.declared import REGISTERED, Input, Sink, Write, key_format
from headrace.spark.pipeline.progress import MALFORMED_METRIC, PARSED_METRIC
from headrace.values.value_format import ValueFormat

__all__ = ["as_records", "parsed", "writes_of"]

_OWN = ("key", "topic", "partition", "offset", "timestamp")
_OF_RECORD = ("partition", "headers")
"""Columns of a step that are no part of the value: they say where a record goes, and what stands beside it."""


def parsed(frame: DataFrame, source: Input) -> DataFrame:
    """The columns of the value, then Kafka's own with an underscore before their names."""
    if source.format == "raw":
        return frame
    own = [F.col(name).alias(f"_{name}") for name in _OWN]
    if source.is_decoded:
        return _decoded(frame, source, own)
    text = F.col("value").cast("string")
    if source.format == "text":
        return frame.select(text.alias("value"), *own)
    parse = F.from_json if source.format == "json" else F.from_csv
    mode = {"mode": "FAILFAST"} if source.malformed == "fail" else {"columnNameOfCorruptRecord": "_corrupt"}
    mode["timeZone"] = "UTC"  # of times that have none, as where the source decodes
    schema = source.schema if source.malformed == "fail" else f"{source.schema}, _corrupt STRING"
    rows = frame.select(parse(text, schema, mode).alias("_parsed"), *own)
    rows = rows.select("_parsed.*", *(f"_{name}" for name in _OWN))
    if source.streaming:
        # A count between parsing and all that follows: Spark would else move conditions on columns, those too that a
        # join or a window brings, before the parsing, where each of them parses the value once more.
        rows = (rows.observe(f"{PARSED_METRIC}_{source.name}", F.count(F.lit(1)).alias("rows"))
                if source.malformed == "fail" else
                rows.observe(f"{MALFORMED_METRIC}_{source.name}", F.count("_corrupt").alias("rows")))
    if source.malformed == "fail":
        return rows
    return rows.where("_corrupt IS NULL").drop("_corrupt") if source.malformed == "drop" else rows


def _decoded(frame: DataFrame, source: Input, own: list[object]) -> DataFrame:
    """The columns of a value that the source has decoded; of one that is no record, the column `value`."""
    rows = frame.where("value IS NOT NULL") if source.malformed == "drop" else frame
    is_record = frame.schema["value"].dataType.typeName() == "struct"
    return rows.select("value.*" if is_record else "value", *own)


def writes_of(sink: Sink, tell: Callable[[int, int], None]) -> Callable[[DataFrame, int, Any], None]:
    """What `headrace.spark.transactional` calls with each micro-batch of a transaction.

    Args:
        sink: one with writes.
        tell: called with the number of a micro-batch and the records that it wrote.
    """
    def write(rows: DataFrame, batch: int, out: Any) -> None:
        rows.persist()  # each write is a query of its own over them
        try:
            rows.createOrReplaceTempView(sink.source)  # in the query's session, which is its own
            tell(batch, sum(out.write(_records_of(rows, sink, each), topic=each.topic) for each in sink.writes))
        finally:
            rows.unpersist()

    return write


def _records_of(rows: DataFrame, sink: Sink, write: Write) -> DataFrame:
    return as_records(rows.sparkSession.sql(write.sql) if write.sql else rows, sink, write.key)


def as_records(frame: DataFrame, sink: Sink, key: str) -> DataFrame:
    """Key and value of each row: the column `value` when there is one, else all columns, as the format wants.

    Partition and headers are the record's.

    Args:
        frame: rows of a step.
        sink: which says what is written.
        key: SQL expression for the key; empty for the column `key`, if there is one.
    """
    if "value" in frame.columns:
        value = F.col("value")
    else:
        row = F.struct(*(_column(name) for name in frame.columns if name not in _OF_RECORD))
        value = row if sink.format in REGISTERED else F.to_json(row, {"ignoreNullFields": "false"})
    columns = [value.alias("value")]
    if key:
        is_typed = ValueFormat("key", key_format(sink.options)).has_schema
        columns.append((F.expr(key) if is_typed else F.expr(key).cast("string")).alias("key"))
    elif "key" in frame.columns:
        columns.append(F.col("key"))
    return frame.select(*columns, *(name for name in _OF_RECORD if name in frame.columns))


def _column(name: str) -> Column:
    """The column of a name, whatever is in it: a dot would else lead into a struct."""
    return F.col("`" + name.replace("`", "``") + "`")
