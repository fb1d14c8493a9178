"""The pipeline of the demo, three times in one session: plain PySpark with each connector, and `headrace run`.

Plain PySpark is what one writes by hand from the documentation: two queries over the same views, `foreachBatch` for
rows that are written again when they grow. `headrace run` is its `Pipeline`, with nothing on the screen.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.brokers import Broker
from benchmarks.measure import ROOT
from benchmarks.spark_session import FORMATS, OURS, THEIRS, Session

RUN = "headrace run"
WAYS = (THEIRS, OURS, RUN)
_PIPELINE = ROOT / "benchmarks" / "flights.toml"
_OUTPUT = "nyc-hourly"


class Flights:
    """The flights in their topics, and the ways to work on them.

    Args:
        session: runs the queries.
        broker: has the topics.
    """

    def __init__(self, session: Session, broker: Broker) -> None:
        from headrace.cli.shared import flights as _flights
        from headrace.spark.pipeline.spec import load_pipeline

        self._session = session
        self._broker = broker
        self._data = _flights
        self._tables = _flights.read_tables()
        self._spec = load_pipeline(_PIPELINE)
        _flights.create_topics(broker.bootstrap_servers, recreate=False)
        for topic, table in self._tables.items():
            _flights.load_topic(broker.bootstrap_servers, "", topic, table, lambda rows: None)

    def run(self, way: str, *, check: bool) -> float:
        """Take all flights through; seconds that it took.

        Raises:
            RuntimeError: a total is wrong.
        """
        directory = Path(tempfile.mkdtemp(prefix="headrace-flights-"))
        try:
            begin = time.perf_counter()
            if way == RUN:
                self._declared(directory)
            else:
                self._plain(FORMATS[way], directory)
            took_s = time.perf_counter() - begin
            if check:
                self._check(way, directory / "enriched")
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        self._broker.delete_topic(_OUTPUT)
        self._broker.create_topic(_OUTPUT, 4)
        return took_s

    def _check(self, way: str, parquet: Path) -> None:
        checks = self._data.compare(self._broker.bootstrap_servers, "", parquet, self._tables)
        wrong = [f"{each.name}: {each.found} for {each.expected}" for each in checks if not each.equal]
        if wrong:
            raise RuntimeError(f"{way}: {'; '.join(wrong)}")

    def _declared(self, directory: Path) -> None:
        from headrace.cli.run import POLL_S
        from headrace.spark.pipeline.endpoints import Endpoints
        from headrace.spark.pipeline.run import Pipeline

        endpoints = Endpoints(self._spec, directory, bootstrap=self._broker.bootstrap_servers)
        with Pipeline(endpoints, master="", spark=self._session.spark) as pipeline:
            while pipeline.running:
                pipeline.poll()
                time.sleep(POLL_S)
            pipeline.poll()

    def _plain(self, connector: str, directory: Path) -> None:
        from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

        spark = self._session.spark
        servers = {"kafka.bootstrap.servers": self._broker.bootstrap_servers}

        def read(reader: Any, each: Any) -> Any:
            frame = reader.format(connector).options(**servers, startingOffsets="earliest", **each.options)
            parsed = F.from_json(F.col("value").cast("string"), each.schema).alias("parsed")
            return frame.option("subscribe", each.topic).load().select(parsed).select("parsed.*")

        for each in self._spec.inputs:
            if each.streaming:
                frame = read(spark.readStream, each).withWatermark(each.event_time, each.watermark)
            else:
                frame = read(spark.read, each)
            frame.createOrReplaceTempView(each.name)
        for step in self._spec.steps:
            spark.sql(step.sql).createOrReplaceTempView(step.name)

        def write(batch: Any, _number: int) -> None:
            batch.write.format(connector).options(**servers).option("topic", _OUTPUT).mode("append").save()

        hourly = spark.table("hourly").selectExpr(
            "to_json(struct(*), map('ignoreNullFields', 'false')) AS value", "concat(origin, ' ', hour) AS key")
        queries = [
            hourly.writeStream.outputMode("update").foreachBatch(write)
            .option("checkpointLocation", str(directory / "checkpoint" / "hourly")).trigger(availableNow=True).start(),
            spark.table("enriched").writeStream.format("parquet")
            .option("checkpointLocation", str(directory / "checkpoint" / "enriched"))
            .trigger(availableNow=True).start(str(directory / "enriched")),
        ]
        for query in queries:
            query.awaitTermination()
