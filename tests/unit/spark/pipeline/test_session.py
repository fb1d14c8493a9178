"""The session of a run: what its start leaves as it was."""

import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from headrace.spark.pipeline.session import quiet_analysis, start_session
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


class Failed(AnalysisException):
    """An error of Spark, which knows where in the program it was made."""

    def __init__(self, kind):
        super().__init__("no such column")
        self._contexts = [SimpleNamespace(contextType=lambda: SimpleNamespace(name=kind),
                                          callSite=lambda: "shop.py:1", fragment=lambda: "col")]

    def getQueryContext(self):
        """Where it was made."""
        return self._contexts


@pytest.mark.parametrize("kind", ["SQL", "DataFrame"])
def test_what_spark_logs_of_failed_analysis_is_not_on_the_terminal_beside_our_line(kind, capsys):
    with quiet_analysis():
        Failed(kind)._log_exception()
    assert capsys.readouterr().err == ""
    assert logging.getLogger(f"{kind}QueryContextLogger").level < logging.CRITICAL
