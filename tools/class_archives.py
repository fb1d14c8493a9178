"""Make the archives of classes that `tools.jvm_options` gives to JVMs: each is written by a program that starts, does
a little of what tests do, and stops in good order.

`python -m tools.class_archives` makes those that are missing, side by side, in about half a minute. It is a help: what
cannot be made is told, and the status is 0.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tools.jvm_options import SHORT_LIVED, archive
from tools.kafka import NEWEST, KafkaCluster

_TIMEOUT_S: Final = 300
_KAFKA: Final = f"kafka-{NEWEST}"
_SPARK: Final = """
import headrace.spark
from headrace.spark.java import prepare_java
from headrace.testing import EmbeddedBroker
prepare_java()
from pyspark.sql import SparkSession
with EmbeddedBroker(topics={"words": 2}) as broker:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
        "spark.sql.shuffle.partitions", "2").getOrCreate()
    kafka = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    words = spark.range(1000).selectExpr("cast(id % 7 as string) as key", "to_json(struct(id)) as value")
    words.write.mode("append").format("headrace").options(topic="words", **kafka).save()
    read = spark.readStream.format("headrace").options(subscribe="words", startingOffsets="earliest", **kafka).load()
    for rows, mode in ((read, "append"), (read.groupBy("key").count(), "complete")):
        rows.writeStream.format("noop").outputMode(mode).trigger(availableNow=True).start().awaitTermination(120)
    gateway = spark.sparkContext._gateway.proc
    spark.stop()
    gateway.stdin.close()
    gateway.wait(120)
"""


def main() -> int:
    """Make what is missing."""
    missing = [program for program in ("spark", _KAFKA) if not archive(program).exists()]
    with ThreadPoolExecutor() as pool:
        for line in pool.map(_made, missing):
            print(line)
    return 0


def _made(program: str) -> str:
    """Make one; a line that says how it went."""
    finished = archive(program)
    finished.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=finished.parent, prefix="draft-") as directory:
        draft = Path(directory, "classes.jsa")
        try:
            (_run_kafka if program == _KAFKA else _run_spark)((*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={draft}"))
            draft.rename(finished)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            return f"{program} starts without an archive of its classes: {error}"
    return f"{program}: {finished.stat().st_size >> 20} MiB of classes in {time.monotonic() - began:.0f} s"


def _run_kafka(options: tuple[str, ...]) -> None:
    with KafkaCluster(NEWEST, quick=True, jvm_options=options) as cluster:
        cluster.stop(1)


def _run_spark(options: tuple[str, ...]) -> None:
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": shlex.join(options)}
    done = subprocess.run([sys.executable, "-c", _SPARK], env=environment, capture_output=True, text=True, check=False,
                          timeout=_TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])


if __name__ == "__main__":
    sys.exit(main())
