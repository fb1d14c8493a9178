"""A Spark session with all sinks that are compared, and what is timed in it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT
from tools.kafka import spark_connector_jars

OURS, ONCE, THEIRS, NOTHING, MEMORY = "headrace", "headrace, exactly once", "JVM connector", "nothing", "memory"
RECEIVED = "memory, bytes received"
FORMATS = {OURS: "headrace", ONCE: "headrace", THEIRS: "kafka", NOTHING: "nothing", MEMORY: "memory-source"}
"""Name in the report and the format's name in Spark. Those of `benchmarks/nothing` are a Python sink that does nothing
and a Python source that yields rows from memory."""
SINK_OPTIONS = {ONCE: {"delivery.guarantee": "exactly_once", "sinkId": "benchmark"}}
SMALL_ROWS = 500


class Session:
    """A Spark session with both connectors.

    Args:
        master: Spark master.
        bootstrap: brokers as host:port.
        size: bytes of a value.
        jars: beside those of the JVM connector.
    """

    def __init__(self, master: str, bootstrap: str, size: int, jars: Sequence[Path] = ()) -> None:
        import headrace
        from headrace.spark.java import prepare_java

        print(prepare_java(), file=sys.stderr)
        # Spark's workers import the source, and the sink that does nothing, from there.
        source = Path(headrace.__file__).parents[1]
        paths = [str(ROOT), str(source), str(ROOT / "benchmarks" / "nothing"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        from pyspark.sql import SparkSession

        self.bootstrap = bootstrap
        self.size = size
        settings = {
            "spark.jars": ",".join(map(str, (*spark_connector_jars(), *jars))), "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "2g", "spark.log.level": "ERROR",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "4",
        }
        builder = SparkSession.builder.master(master).appName("benchmark")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()

    def read(self, name: str, topic: str, records: int, *, check: bool) -> float:
        """Read a topic into nothing; seconds that it took. Counts first, if that is to be checked."""
        frame = (
            self.spark.read.format(FORMATS[name]).option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", topic).option("startingOffsets", "earliest").load()
        )
        if check and (found := frame.count()) != records:
            raise RuntimeError(f"{name} reads {found:,} rows of {records:,}")
        begin = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - begin

    def read_memory(self, records: int, tasks: int, received: str | None = None) -> float:
        """Read as many rows of the same size from the memory of Spark's workers into nothing; seconds that it took.

        Args:
            records: rows.
            tasks: partitions of the topic.
            received: a topic whose bytes are received and checked meanwhile, in each task those of its partition.
        """
        given = {} if received is None else {
            "topic": received, "bootstrap": self.bootstrap, "counts": " ".join(map(str, self._counts(received, tasks)))}
        rows = self.spark.read.format(FORMATS[MEMORY]).options(rows=records, tasks=tasks, size=self.size, **given)
        frame = rows.load()
        begin = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - begin

    def _counts(self, topic: str, partitions: int) -> list[int]:
        """Records in each partition."""
        from headrace import Consumer, TopicPartition

        with Consumer({"bootstrap.servers": self.bootstrap, "group.id": "counts"}) as consumer:
            return [consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(partitions)]

    def write(self, name: str, topic: str, records: int, tasks: int, *, owned: bool = False) -> float:
        """Write a range as values of the right size; seconds that it took. `owned`: each task has a partition."""
        values = self._values(records, tasks)
        if owned:
            values = values.selectExpr("value", "spark_partition_id() AS partition")
        begin = time.perf_counter()
        (
            values.write.format(FORMATS[name]).option("kafka.bootstrap.servers", self.bootstrap)
            .option("topic", topic).options(**SINK_OPTIONS.get(name, {})).mode("append").save()
        )
        return time.perf_counter() - begin

    def _values(self, records: int, tasks: int) -> Any:
        # lpad() to the whole size goes by characters: 7.5 of the 8.2 seconds that 1,000,000 rows of 1 KB took.
        number = min(self.size, 20)
        return self.spark.range(records, numPartitions=tasks).selectExpr(
            f"cast(concat(lpad(cast(id as string), {number}, '0'), '{'x' * (self.size - number)}') as binary) as value")


def cpu_of_all_s(*, but_own: bool = False) -> float:
    """CPU seconds of this process and all that it has started: Spark's JVM and its workers (Linux).

    Args:
        but_own: without this process.
    """
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            stats[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    ours, found = [os.getpid()], -stats[os.getpid()][1] if but_own else 0
    while ours:
        parent = ours.pop()
        found += stats[parent][1]
        ours += [pid for pid, (of, _) in stats.items() if of == parent]
    return found / os.sysconf("SC_CLK_TCK")
