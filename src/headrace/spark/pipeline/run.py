"""Run a pipeline: inputs and steps become Spark views, each sink a streaming query.

`Pipeline` is a context manager. It starts what the file asks for (embedded broker, Spark session, queries) and takes
it down again. The caller polls it: `cli.run` draws a live display and writes the report. What can be known before Spark
runs, options and topics, is checked before: a JVM takes seconds to start.

A clean stop does not interrupt a micro-batch: a stop file tells our source to plan no further batch, and the query is
stopped when it is idle. So it is with tables that are read anew: then the queries begin again where they were.

Read next: `headrace.spark.source` and `headrace.spark.sink`, which Spark loads in its own processes.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses
from pyspark.sql.streaming.query import StreamingQuery

from headrace.errors import ConfigError
from headrace.spark import by_partition, transactional
from headrace.spark.inline_sink import written
from headrace.spark.java import prepare_java
from headrace.spark.pipeline.declared import EMBEDDED, EXACTLY_ONCE, Input, Sink
from headrace.spark.pipeline.endpoints import Endpoints
from headrace.spark.pipeline.preflight.topics import check_sinks, check_sources, check_tables
from headrace.spark.pipeline.progress import ROWS_METRIC, History, Sample
from headrace.spark.pipeline.session import java_has_ended, quiet_analysis, setting, start_session
from headrace.spark.pipeline.supervisor import JavaEndedError, NotNowError, PipelineError, Supervisor, first_line
from headrace.spark.pipeline.tables import HeldTables
from headrace.spark.pipeline.views import as_records, parsed, writes_of

__all__ = ["JavaEndedError", "Pipeline", "PipelineError"]

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_OF_NO_JAVA = (Py4JError, ConnectionError)
"""What calls to a JVM that is gone raise."""
_OF_JSON = ("com.fasterxml.jackson.", "org.json4s.")


class Pipeline:
    """A pipeline that runs from `__enter__` to `__exit__`.

    Args:
        endpoints: the checked file, and the options of its reads and writes; Spark's log goes to its directory.
        master: Spark master, for example ``local[2]``.
        spark: a session that runs already and goes on afterwards; None starts one as the file asks for it.

    Attributes:
        history: the micro-batches so far.
        notes: lines for people that nobody has taken yet.

    Raises:
        ConfigError: from `__enter__`, when a step's SQL, a schema or an option is wrong, or a table's topic is missing.
        PipelineError: from `__enter__`, when a source's topic is missing.
        JavaEndedError: from `__enter__` and `__exit__`, when the JVM is gone.
        MissingJavaError: from `__enter__`, when there is no Java.
    """

    def __init__(self, endpoints: Endpoints, *, master: str, spark: SparkSession | None = None) -> None:
        self.endpoints = endpoints
        self.spec = spec = endpoints.spec
        self.master = master
        self.directory = endpoints.directory
        self.history = History()
        self.java = ""
        self.notes: list[str] = []
        self._sinks = {sink.name: sink for sink in spec.sinks}
        self._supervisor = Supervisor(self._start_sink, spec.restart, self.notes.append)
        self._marks: dict[str, Any] = {}
        self._written: dict[tuple[str, int], int] = {}
        self._given = spark
        self._stack = ExitStack()
        self._stop_file = Path()
        self._stopping = False
        self._is_outdated = False  # the views are to be made anew before the next query begins

    @property
    def log_file(self) -> Path:
        """The log of Spark's processes."""
        return self.directory / "spark.log"

    @property
    def queries(self) -> dict[str, StreamingQuery]:
        """The queries by the names of their sinks."""
        return self._supervisor.queries

    @property
    def restarts(self) -> dict[str, int]:
        """How often each query was started again after a failure; those that were."""
        return self._supervisor.restarts

    def __enter__(self) -> Pipeline:
        try:
            self._start()
        except BaseException as error:
            self._end(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Take all down. Where the JVM has ended, what came of that is told by its cause."""
        # A JVM that is asked to end, as by who stops all of a run's processes, fails the queries first.
        doubtful = isinstance(error, _OF_NO_JAVA) or (self._stopping and isinstance(error, PipelineError))
        try:
            self._stack.close()
        except _OF_NO_JAVA:
            if not java_has_ended(self._spark):
                raise
            doubtful = True
        if doubtful and java_has_ended(self._spark):
            raise JavaEndedError(f"Spark's Java process has ended: it was killed, as by a system without memory, or "
                                 f"has crashed (more in {self.log_file})") from None

    def _start(self) -> None:
        self.endpoints.check()
        self.directory.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="headrace-"))
        self._stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        self._stop_file = scratch / "stop"
        if self.endpoints.embedded:
            self._start_broker()
        check_tables(self.endpoints)
        check_sinks(self.endpoints)
        check_sources(self.endpoints)
        self.java = prepare_java()
        self._stack.enter_context(quiet_analysis(java_ends=self._given is None))
        self._spark = self._given or start_session(self.spec, self.master, self.log_file)
        if self._given is None:
            self._stack.callback(self._spark.stop)
        self._tables = HeldTables(self._read)
        self._stack.callback(self._tables.close)
        self._stack.callback(self._supervisor.stop)
        if not self._stopping:
            self._make_views(self._spark)
            self._supervisor.begin(self._sinks)

    def _start_broker(self) -> None:
        from headrace.testing import EmbeddedBroker

        with_registry = self.endpoints.registry.get("url") == EMBEDDED
        broker = self._stack.enter_context(EmbeddedBroker(registry=with_registry))
        self.endpoints.kafka["bootstrap.servers"] = broker.bootstrap_servers
        if with_registry:
            self.endpoints.registry["url"] = broker.registry_url

    def _make_views(self, spark: SparkSession) -> None:
        self._tables.read_ahead(each for each in self.spec.inputs if not each.streaming)
        for each in self.spec.inputs:
            with _named(each.title):
                frame = self._read(each) if each.streaming else self._tables.frame(each)
                frame.createOrReplaceTempView(each.name)
        for step in self.spec.steps:
            with _named(f"step {step.name}"):
                spark.sql(step.sql).createOrReplaceTempView(step.name)
        self._is_outdated = False

    def _read(self, each: Input) -> DataFrame:
        return self._read_topic(self._spark, each) if each.topic else self._read_file(self._spark, each)

    def _read_file(self, spark: SparkSession, table: Input) -> DataFrame:
        reader = spark.read.format(table.format).options(**table.options)
        if table.schema:
            reader = reader.schema(table.schema)
        return reader.load(self._path(table.file))

    def _read_topic(self, spark: SparkSession, source: Input) -> DataFrame:
        options = self.endpoints.reading(source)
        if source.streaming:
            reader: Any = spark.readStream
            options = {"stopFile": str(self._stop_file), **options}
        else:
            reader = spark.read
        frame = parsed(reader.format("headrace").options(**options).load(), source)
        return frame.withWatermark(source.event_time, source.watermark) if source.watermark else frame

    def _start_sink(self, name: str) -> StreamingQuery:
        spark, sink = self._spark, self._sinks[name]
        if self._is_outdated:
            try:
                self._make_views(spark)
            except ConfigError as error:  # they could be made before: it is where the tables come from
                raise NotNowError(f"{error}, when it was read anew") from None
        frame = spark.table(sink.source)
        if not frame.isStreaming:
            raise ConfigError(f"sink {sink.name}: {sink.source} is made of tables only; a sink needs a source's rows")
        checkpoint = self._path(f"{self.spec.checkpoint}/{sink.name}")
        with _named(f"sink {sink.name}", checkpoint):
            options = self.endpoints.writing(sink)
            rows = frame if sink.writes else _rows(frame, sink, options)
            is_inline = sink.topic and sink.mode == "update"
            writer = (written(rows, options) if is_inline else rows).writeStream
            writer = writer.queryName(sink.name).outputMode(sink.mode)
            writer = writer.option("checkpointLocation", checkpoint)
            trigger = self.spec.trigger.interval
            writer = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
            if sink.writes:
                return writer.foreachBatch(transactional(options, writes_of(sink, self._counter(name)))).start()
            if is_inline:
                with setting(spark, _EMPTY_BATCHES, "false"):  # none can change what is written in this mode
                    return writer.format("noop").start()
            if sink.path:
                return writer.format("parquet").options(**sink.options).start(self._path(sink.path))
            return writer.format("headrace").options(**options).start()

    def _counter(self, name: str) -> Callable[[int, int], None]:
        """Notes what a micro-batch of a transaction has written: no observation survives its several queries."""
        def count(batch: int, records: int) -> None:
            self._written[name, batch] = records

        return count

    def _path(self, path: str) -> str:
        return path if "://" in path or path.startswith("file:") else str(self.directory / path)

    def poll(self) -> list[Sample]:
        """Take the batches that ended since the last call, and see to queries that failed.

        Raises:
            PipelineError: a query failed, and no restart is left or of use.
        """
        fresh = self._fresh()
        try:
            self._supervisor.look(restart=not self._stopping)
            if not self._stopping and self._tables.due and self._supervisor.settled:
                fresh += self._refresh()
        except PipelineError as error:
            raise PipelineError(f"{error} (more in {self.log_file})") from None
        return fresh

    def _fresh(self) -> list[Sample]:
        return [sample for name in self.queries for report in self._reports(name)
                if (sample := self.history.add(report)) is not None]

    def _refresh(self) -> list[Sample]:
        """Read tables anew as soon as no micro-batch runs; gives the batches that ended just before.

        Where a table cannot be read the queries have failed, and it is read when the first of them begins again.
        """
        self._stop_file.touch()
        if any(query.status["isTriggerActive"] for query in self.queries.values()):
            return []  # the next poll looks again
        self._supervisor.stop()
        fresh = self._fresh()
        self._stop_file.unlink()
        if self._stopping:  # asked for meanwhile, by the file that is gone now
            self._stop_file.touch()
            return fresh
        self._is_outdated = True
        self._supervisor.begin(self._sinks)
        return fresh

    def _reports(self, name: str) -> list[dict[str, Any]]:
        last = self.queries[name].lastProgress
        mark = None if last is None else (last.batchId, last.timestamp)
        if mark == self._marks.get(name):
            return []
        self._marks[name] = mark
        reports = [json.loads(report.json) for report in self.queries[name].recentProgress]
        for report in reports:
            records = self._written.get((name, report["batchId"]))
            if records is not None:
                report["observedMetrics"] = {**report.get("observedMetrics", {}), ROWS_METRIC: {"rows": records}}
        return reports

    def request_stop(self) -> None:
        """Let the running micro-batches end and begin no more; before there are any, begin none.

        Returns at once, in any thread; `running` turns False later.
        """
        self._stopping = True
        if self._stop_file.name:
            self._stop_file.touch()

    @property
    def running(self) -> bool:
        """True while a query works: for ever with a processing-time trigger, until a stop was asked for."""
        if self._stopping:
            return any(query.isActive and query.status["isTriggerActive"] for query in self.queries.values())
        return self._supervisor.running


def _rows(frame: DataFrame, sink: Sink, options: dict[str, str]) -> DataFrame:
    """What goes to the sink, counted; where it must be so, each partition's rows in one task."""
    rows = as_records(frame, sink, sink.key) if sink.topic else frame
    rows = rows.observe(ROWS_METRIC, F.count(F.lit(1)).alias("rows"))
    return by_partition(rows, options) if sink.topic and sink.guarantee == EXACTLY_ONCE else rows


@contextmanager
def _named(what: str, checkpoint: str = "") -> Iterator[None]:
    """Turn an error of Spark into one line that names the part of the file, and what of the checkpoint is damaged."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = first_line(error)
        if checkpoint and said.startswith(_OF_JSON):  # Spark names no file, and reads only one before a query runs
            said = (f"{checkpoint}/metadata is damaged: restore it, or name another checkpoint, and the query begins "
                    f"anew ({said})")
        raise ConfigError(f"{what}: {said}") from None
