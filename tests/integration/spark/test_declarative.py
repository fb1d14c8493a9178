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

from headrace.spark import by_partition

spark = SparkSession.active()
kafka = {{"kafka.bootstrap.servers": "{brokers}"}}
once = {{**kafka, "topic": "{once}", "delivery.guarantee": "exactly_once", "sinkId": "small"}}
dp.create_sink("large", "headrace", {{**kafka, "topic": "{target}"}})
dp.create_sink("small", "headrace", once)


@dp.append_flow(target="large")
def large_sales():
    sales = spark.readStream.format("headrace").options(**kafka).option("subscribe", "{source}")
    return sales.option("startingOffsets", "earliest").load().where("STRING(key) >= '40'").select("key", "value")


@dp.append_flow(target="small")
def small_sales():
    sales = spark.readStream.format("headrace").options(**kafka).option("subscribe", "{source}")
    sales = sales.option("startingOffsets", "earliest").load().where("STRING(key) < '40'").select("key", "value")
    return by_partition(sales, once)
"""


@pytest.fixture
def run(java, brokers, tmp_path):
    """Runs the project over two topics, as often as it is called; gives what the program told."""
    for package in ("grpc_status", "yaml", "pandas"):
        pytest.importorskip(package)  # what the extra pyspark[pipelines] brings

    def run(source, target, once):
        (tmp_path / "transformations").mkdir(exist_ok=True)
        (tmp_path / "spark-pipeline.yml").write_text(PROJECT.format(storage=(tmp_path / "storage").as_uri()))
        flows = FLOWS.format(brokers=brokers, source=source, target=target, once=once)
        (tmp_path / "transformations/flows.py").write_text(flows)
        program = Path(sys.executable).with_name("spark-pipelines")
        done = subprocess.run([str(program), "run"], cwd=tmp_path, capture_output=True, text=True, timeout=380,
                              env={**os.environ, "PYSPARK_PYTHON": sys.executable})
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout + done.stderr

    return run


def test_flows_read_a_topic_into_sinks_and_go_on_where_they_were(run, make_topic, produce, values_of):
    source, target, once = make_topic(2), make_topic(2), make_topic(3)
    produce(source, [{"key": f"{number:02}", "value": f"v{number}"} for number in range(60)])
    assert "COMPLETED" in run(source, target, once)
    assert sorted(values_of(target)) == [f"v{number}" for number in range(40, 60)]
    assert sorted(values_of(once)) == sorted(f"v{number}" for number in range(40))
    produce(source, [{"key": "99", "value": "v99"}, {"key": "00", "value": "v00"}])
    run(source, target, once)
    assert sorted(values_of(once)) == sorted(["v00", *(f"v{number}" for number in range(40))])
    assert sorted(values_of(target)) == [*(f"v{number}" for number in range(40, 60)), "v99"]
