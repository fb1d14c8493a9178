"""The session of a run: what its start leaves as it was."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from headrace.spark.pipeline.session import start_session
from headrace.spark.pipeline.spec import parse_pipeline

TEXT = """
[pipeline]
name = "shop"
checkpoint = "cp"
[[source]]
name = "sales"
topic = "sales"
[[sink]]
from = "sales"
path = "files"
"""


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts a session that is none."""
    def run(meanwhile):
        monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: meanwhile())
        return start_session(parse_pipeline(TEXT), "local[1]", tmp_path / "log")

    return run


def test_ctrl_c_is_answered_as_before_once_spark_has_started(start):
    before = signal.getsignal(signal.SIGINT)
    try:
        start(lambda: signal.signal(signal.SIGINT, lambda *_: None))  # as PySpark does
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)


def test_spark_may_be_started_on_another_thread(start):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(start, lambda: "a session").result(30) == "a session"
