"""The query under test, in a process of its own: one topic copied to another in micro-batches, until all is there.

`python -m tests.campaigns.spark_once.query JOB` with a job as JSON: see `tests.campaigns.spark_once.driver.Job`. Ends
with status 0 when the input is finished, and with another one when the query failed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import headrace.spark
from headrace.spark.java import prepare_java

_SETTINGS = {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "WARN", "spark.sql.session.timeZone": "UTC",
    # Several Arrow batches for each task, so that one can fail between two of them.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "25",
}


def main(job: dict[str, Any]) -> None:
    prepare_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(job["master"]).appName("once")
    settings = {**_SETTINGS, "spark.sql.shuffle.partitions": str(job["partitions"]),
                "spark.driver.extraJavaOptions": job["jvm_options"],
                "spark.executor.extraJavaOptions": job["jvm_options"],
                "spark.sql.warehouse.dir": f"{job['directory']}/warehouse", **job["settings"]}
    for name in ("PYTHONPATH", "HEADRACE_ONCE_POINTS", "HEADRACE_ONCE_RUN", "HEADRACE_ONCE_MUTATION"):
        settings[f"spark.executorEnv.{name}"] = os.environ.get(name, "")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    Path(job["pid_file"]).write_text(str(jvm))
    writer = _rows(spark, job).writeStream.option("checkpointLocation", job["checkpoint"])
    writer = writer.trigger(availableNow=True)
    if job["topics"]:
        writer = writer.foreachBatch(headrace.spark.transactional(job["sink"], _copying(job["topics"])))
    else:
        writer = writer.format("headrace").options(**job["sink"])
    writer.start().awaitTermination()


def _copying(topics: list[str]) -> Any:
    """Each row goes to each of the topics."""
    def write(frame: Any, batch_id: int, sink: Any) -> None:
        for topic in topics:
            sink.write(frame, topic=topic)

    return write


def _rows(spark: Any, job: dict[str, Any]) -> Any:
    """Rows go to the partition with the number of the one that they come from."""
    rows = spark.readStream.format("headrace").options(**job["source"]).load().select("value", "partition")
    return rows.repartitionById(job["partitions"], rows["partition"]) if job["shuffle"] else rows


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
