"""The same source and sink in Spark Declarative Pipelines: `spark-pipelines run` over a project of two files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(800)]

PROJECT = """
name: sales
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "2"
"""
FLOWS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
kafka = {{"kafka.bootstrap.servers": "{brokers}"}}
dp.create_sink("large", "headrace", {{**kafka, "topic": "{target}"}})


@dp.append_flow(target="large")
def large_sales():
    sales = spark.readStream.format("headrace").options(**kafka).option("subscribe", "{source}")
    return sales.option("startingOffsets", "earliest").load().where("STRING(key) >= '40'").select("key", "value")
"""


@pytest.fixture
def run(java, brokers, tmp_path):
    """Runs the project over two topics, as often as it is called; gives what the program told."""
    for package in ("grpc_status", "yaml", "pandas"):
        pytest.importorskip(package)  # what the extra pyspark[pipelines] brings

    def run(source, target):
        (tmp_path / "transformations").mkdir(exist_ok=True)
        (tmp_path / "spark-pipeline.yml").write_text(PROJECT.format(storage=(tmp_path / "storage").as_uri()))
        flows = FLOWS.format(brokers=brokers, source=source, target=target)
        (tmp_path / "transformations/flows.py").write_text(flows)
        program = Path(sys.executable).with_name("spark-pipelines")
        done = subprocess.run([str(program), "run"], cwd=tmp_path, capture_output=True, text=True, timeout=380,
                              env={**os.environ, "PYSPARK_PYTHON": sys.executable})
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout + done.stderr

    return run


def test_a_flow_reads_a_topic_into_a_sink_and_goes_on_where_it_was(run, make_topic, produce, values_of):
    source, target = make_topic(2), make_topic(2)
    produce(source, [{"key": f"{number:02}", "value": f"v{number}"} for number in range(60)])
    assert "COMPLETED" in run(source, target)
    assert sorted(values_of(target)) == [f"v{number}" for number in range(40, 60)]
    produce(source, [{"key": "99", "value": "v99"}])
    run(source, target)
    assert sorted(values_of(target)) == [*(f"v{number}" for number in range(40, 60)), "v99"]
