"""Run a pipeline: inputs and steps become Spark views, each sink a streaming query.

`Pipeline` is a context manager. It starts what the file asks for (embedded broker, Spark session, queries) and takes
it down again. The caller polls it: `cli.run` draws a live display and writes the report.

A clean stop does not interrupt a micro-batch: a stop file tells our source to plan no further batch, and the query is
stopped when it is idle. So it is with tables that are read anew: then the queries begin again where they were.

Read next: `headrace.spark.source` and `headrace.spark.sink`, which Spark loads in its own processes.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses
from pyspark.sql.streaming.query import StreamingQuery

from headrace.errors import ConfigError
from headrace.spark.inline_sink import written
from headrace.spark.java import prepare_java
from headrace.spark.pipeline.progress import MALFORMED_METRIC, PARSED_METRIC, ROWS_METRIC, History, Sample
from headrace.spark.pipeline.spec import EMBEDDED, Input, PipelineSpec, Sink
from headrace.spark.pipeline.tables import HeldTables

__all__ = ["Pipeline", "PipelineError"]

_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Reports of finished batches are polled, and each costs calls into the JVM: a short ring is enough.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}
_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


class PipelineError(RuntimeError):
    """A query of the pipeline failed while it ran. One line; the whole story is in Spark's log."""


class Pipeline:
    """A pipeline that runs from `__enter__` to `__exit__`.

    Args:
        spec: the checked file.
        master: Spark master, for example ``local[2]``.
        bootstrap: brokers as host:port instead of the ones in the file; empty takes the file's.
        directory: where relative paths of the file start, and where Spark's log goes.
        spark: a session that runs already and goes on afterwards; None starts one as the file asks for it.

    Raises:
        ConfigError: from `__enter__`, when a step's SQL, a schema or an option is wrong.
        MissingJavaError: from `__enter__`, when there is no Java.
    """

    def __init__(
        self, spec: PipelineSpec, *, master: str, bootstrap: str = "", directory: Path,
        spark: SparkSession | None = None,
    ) -> None:
        self.spec = spec
        self.master = master
        self.directory = directory
        self.history = History()
        self.java = ""
        self.kafka = dict(spec.kafka)
        if bootstrap:
            self.kafka["bootstrap.servers"] = bootstrap
        self.queries: dict[str, StreamingQuery] = {}
        self._marks: dict[str, Any] = {}
        self._given = spark
        self._stack = ExitStack()
        self._stop_file = Path()
        self._stopping = False

    @property
    def log_file(self) -> Path:
        """The log of Spark's processes."""
        return self.directory / "spark.log"

    def __enter__(self) -> Pipeline:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def _start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="headrace-"))
        self._stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        self._stop_file = scratch / "stop"
        if self.kafka["bootstrap.servers"] == EMBEDDED:
            from headrace.testing import EmbeddedBroker

            broker = self._stack.enter_context(EmbeddedBroker())
            self.kafka["bootstrap.servers"] = broker.bootstrap_servers
        self.java = prepare_java()
        self._spark = self._given or self._session()
        if self._given is None:
            self._stack.callback(self._spark.stop)
        self._tables = HeldTables(self._read)
        self._stack.callback(self._tables.close)
        self._stack.callback(self._stop_queries)
        self._start_queries()

    def _start_queries(self) -> None:
        self._make_views(self._spark)
        for sink in self.spec.sinks:
            self.queries[sink.name] = self._start_sink(self._spark, sink)

    def _stop_queries(self) -> None:
        for query in reversed(self.queries.values()):
            query.stop()

    def _session(self) -> SparkSession:
        builder = SparkSession.builder.master(self.master).appName(self.spec.name)
        local = _LOCAL_DEFAULTS if self.master.startswith("local") else {}
        for name, value in {**_DEFAULTS, **local, **self.spec.spark}.items():
            builder = builder.config(name, value)
        # PySpark logs failed analysis as JSON on the terminal; the error itself is shown in one line.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        with _stderr_to(self.log_file):
            return builder.getOrCreate()

    def _make_views(self, spark: SparkSession) -> None:
        self._tables.read_ahead(each for each in self.spec.inputs if not each.streaming)
        for each in self.spec.inputs:
            with _named(f"{'source' if each.streaming else 'table'} {each.name}"):
                frame = self._read(each) if each.streaming else self._tables.frame(each)
                frame.createOrReplaceTempView(each.name)
        for step in self.spec.steps:
            with _named(f"step {step.name}"):
                spark.sql(step.sql).createOrReplaceTempView(step.name)

    def _read(self, each: Input) -> DataFrame:
        return self._read_topic(self._spark, each) if each.topic else self._read_file(self._spark, each)

    def _read_file(self, spark: SparkSession, table: Input) -> DataFrame:
        reader = spark.read.format(table.format).options(**table.options)
        if table.schema:
            reader = reader.schema(table.schema)
        return reader.load(self._path(table.file))

    def _read_topic(self, spark: SparkSession, source: Input) -> DataFrame:
        options = {"startingOffsets": "earliest", **self._kafka_options(), "subscribe": source.topic}
        if source.streaming:
            options["stopFile"] = str(self._stop_file)
            frame = spark.readStream.format("headrace").options(**{**options, **source.options}).load()
        else:
            frame = spark.read.format("headrace").options(**{**options, **source.options}).load()
        frame = _parse(frame, source)
        return frame.withWatermark(source.event_time, source.watermark) if source.watermark else frame

    def _start_sink(self, spark: SparkSession, sink: Sink) -> StreamingQuery:
        frame = spark.table(sink.source)
        if not frame.isStreaming:
            raise ConfigError(f"sink {sink.name}: {sink.source} is made of tables only; a sink needs a source's rows")
        with _named(f"sink {sink.name}"):
            rows = _as_records(frame, sink) if sink.topic else frame
            rows = rows.observe(ROWS_METRIC, F.count(F.lit(1)).alias("rows"))
            options = {**self._kafka_options(), "topic": sink.topic, **sink.options}
            is_inline = sink.topic and sink.mode == "update"
            writer = (written(rows, options) if is_inline else rows).writeStream
            writer = writer.queryName(sink.name).outputMode(sink.mode)
            writer = writer.option("checkpointLocation", self._path(f"{self.spec.checkpoint}/{sink.name}"))
            trigger = self.spec.trigger.interval
            writer = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
            if is_inline:
                with _setting(spark, _EMPTY_BATCHES, "false"):  # none can change what is written in this mode
                    return writer.format("noop").start()
            if sink.path:
                return writer.format("parquet").options(**sink.options).start(self._path(sink.path))
            return writer.format("headrace").options(**options).start()

    def _kafka_options(self) -> dict[str, str]:
        return {f"kafka.{name}": value for name, value in self.kafka.items()}

    def _path(self, path: str) -> str:
        return path if "://" in path or path.startswith("file:") else str(self.directory / path)

    def poll(self) -> list[Sample]:
        """Take the batches that ended since the last call.

        Raises:
            PipelineError: a query failed.
        """
        fresh = self._fresh()
        for name, query in self.queries.items():
            failure = None if query.isActive else query.exception()
            if failure is not None:
                raise PipelineError(f"sink {name} failed: {_first_line(failure)} (more in {self.log_file})")
        if self._tables.due and not self._stopping:
            fresh += self._refresh()
        return fresh

    def _fresh(self) -> list[Sample]:
        return [sample for name in self.queries for report in self._reports(name)
                if (sample := self.history.add(report)) is not None]

    def _refresh(self) -> list[Sample]:
        """Read tables anew as soon as no micro-batch runs; gives the batches that ended just before."""
        self._stop_file.touch()
        if any(query.status["isTriggerActive"] for query in self.queries.values()):
            return []  # the next poll looks again
        self._stop_queries()
        fresh = self._fresh()
        self._stop_file.unlink()
        try:
            self._start_queries()
        except ConfigError as error:
            raise PipelineError(f"{error}, when it was read anew (more in {self.log_file})") from None
        return fresh

    def _reports(self, name: str) -> list[dict[str, Any]]:
        last = self.queries[name].lastProgress
        mark = None if last is None else (last.batchId, last.timestamp)
        if mark == self._marks.get(name):
            return []
        self._marks[name] = mark
        return [json.loads(report.json) for report in self.queries[name].recentProgress]

    def request_stop(self) -> None:
        """Let the running micro-batches end and begin no more. Returns at once; `running` turns False later."""
        self._stop_file.touch()
        self._stopping = True

    @property
    def running(self) -> bool:
        """True while a query works: for ever with a processing-time trigger, until a stop was asked for."""
        return any(self._works(query) for query in self.queries.values())

    def _works(self, query: StreamingQuery) -> bool:
        return bool(query.isActive and not (self._stopping and not query.status["isTriggerActive"]))


def _parse(frame: DataFrame, source: Input) -> DataFrame:
    """The columns of the value, then Kafka's own with an underscore before their names."""
    if source.format == "raw":
        return frame
    text = F.col("value").cast("string")
    own = [F.col(name).alias(f"_{name}") for name in ("key", "topic", "partition", "offset", "timestamp")]
    if source.format == "text":
        return frame.select(text.alias("value"), *own)
    parse = F.from_json if source.format == "json" else F.from_csv
    mode = {"mode": "FAILFAST"} if source.malformed == "fail" else {"columnNameOfCorruptRecord": "_corrupt"}
    schema = source.schema if source.malformed == "fail" else f"{source.schema}, _corrupt STRING"
    rows = frame.select(parse(text, schema, mode).alias("_parsed"), *own)
    rows = rows.select("_parsed.*", *(f"_{name}" for name in ("key", "topic", "partition", "offset", "timestamp")))
    if source.streaming:
        # A count between parsing and all that follows: Spark would else move conditions on columns, those too that a
        # join or a window brings, before the parsing, where each of them parses the value once more.
        rows = (rows.observe(f"{PARSED_METRIC}_{source.name}", F.count(F.lit(1)).alias("rows"))
                if source.malformed == "fail" else
                rows.observe(f"{MALFORMED_METRIC}_{source.name}", F.count("_corrupt").alias("rows")))
    if source.malformed == "fail":
        return rows
    return rows.where("_corrupt IS NULL").drop("_corrupt") if source.malformed == "drop" else rows


def _as_records(frame: DataFrame, sink: Sink) -> DataFrame:
    """Key and value of each row: the column `value` when there is one, else all columns as a JSON object."""
    if "value" in frame.columns:
        value = F.col("value")
    else:
        rest = [name for name in frame.columns if name not in ("topic", "partition", "headers")]
        value = F.to_json(F.struct(*rest), {"ignoreNullFields": "false"})
    columns = [value.alias("value")]
    if sink.key:
        columns.append(F.expr(sink.key).cast("string").alias("key"))
    elif "key" in frame.columns:
        columns.append(F.col("key"))
    return frame.select(*columns, *(name for name in ("partition", "headers") if name in frame.columns))


@contextmanager
def _setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of the session for what begins meanwhile: a query takes the session's settings along when it starts."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Turn an error of Spark into one line that names the part of the file."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"{what}: {_first_line(error)}") from None


def _first_line(error: Any) -> str:
    """The line that explains: of a failed Python data source the error itself, not the Java frames round it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)(: |$)", line) and "org.apache." not in line]
    return (errors or lines or [type(error).__name__])[-1 if errors else 0]


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Processes started meanwhile write their standard error to a file: Spark's warnings would tear the display."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


