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

from headrace.spark.java import prepare_java

_SETTINGS = {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "WARN", "spark.sql.session.timeZone": "UTC",
    # A started JVM lives for seconds.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Several Arrow batches for each task, so that one can fail between two of them.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "25",
}


def main(job: dict[str, Any]) -> None:
    prepare_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(job["master"]).appName("once")
    settings = {**_SETTINGS, "spark.sql.shuffle.partitions": str(job["partitions"]),
                "spark.sql.warehouse.dir": f"{job['directory']}/warehouse", **job["settings"]}
    for name in ("PYTHONPATH", "HEADRACE_ONCE_POINTS", "HEADRACE_ONCE_RUN"):
        settings[f"spark.executorEnv.{name}"] = os.environ[name]
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    Path(job["pid_file"]).write_text(str(jvm))
    rows = _rows(spark, job)
    writer = rows.writeStream.format("headrace").options(**job["sink"])
    query = writer.option("checkpointLocation", job["checkpoint"]).trigger(availableNow=True).start()
    query.awaitTermination()


def _rows(spark: Any, job: dict[str, Any]) -> Any:
    """Rows go to the partition with the number of the one that they come from."""
    rows = spark.readStream.format("headrace").options(**job["source"]).load().select("value", "partition")
    return rows.repartitionById(job["partitions"], rows["partition"]) if job["shuffle"] else rows


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
