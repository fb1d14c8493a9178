"""The session of a run: what its start leaves as it was."""

import logging
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from headrace.spark.pipeline import session
from headrace.spark.pipeline.session import (
    java_has_ended,
    quiet_analysis,
    running_session,
    setting,
    start_session,
)
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


@pytest.fixture
def settings(monkeypatch, start):
    """What Spark is started with."""
    given = {}

    def config(builder, name, value):
        given[name] = value
        return builder

    monkeypatch.setattr(SparkSession.Builder, "config", config)
    start(lambda: None)
    return given


def test_plans_hide_what_is_secret_unless_the_file_says_how(settings):
    """Spark's own expression knows of fewer options than there are secrets."""
    hidden = re.compile(settings["spark.sql.redaction.options.regex"])
    for name in ("kafka.sasl.password", "kafka.sasl.jaas.config", "kafka.ssl.key.pem", "kafka.sasl.oauthbearer.config",
                 "schema.registry.basic.auth.user.info", "schema.registry.url", "kafka.ssl.key.password",
                 "kafka.sasl.oauthbearer.client.secret", "kafka.aws.access.key"):
        assert hidden.search(name), name
    assert not hidden.search("subscribe")


def test_settings_of_the_file_go_before_ours(settings, start, monkeypatch):
    assert settings["spark.sql.session.timeZone"] == "UTC"
    text = TEXT + '[spark]\n"spark.sql.session.timeZone" = "Asia/Tokyo"\n"spark.driver.host" = "here"\n'
    monkeypatch.setitem(globals(), "TEXT", text)
    start(lambda: None)
    assert (settings["spark.sql.session.timeZone"], settings["spark.driver.host"]) == ("Asia/Tokyo", "here")


class Conf(dict):
    def isModifiable(self, name):
        return not name.startswith("spark.ui")

    def set(self, name, value):
        self[name] = value


def test_beside_a_session_that_runs_a_new_one_gets_what_may_still_be_set(monkeypatch):
    beside = SimpleNamespace(conf=Conf())
    running = SimpleNamespace(newSession=lambda: beside)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: running)
    found = running_session(parse_pipeline(TEXT + '[spark]\n"spark.sql.shuffle.partitions" = 3\n'))
    assert found is beside
    assert beside.conf["spark.sql.session.timeZone"] == "UTC"
    assert beside.conf["spark.sql.shuffle.partitions"] == "3"
    assert "spark.sql.redaction.options.regex" in beside.conf
    assert "spark.ui.enabled" not in beside.conf
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    assert running_session(parse_pipeline(TEXT)) is None


def test_a_setting_is_put_back_whatever_happens_meanwhile():
    spark = SimpleNamespace(conf=Conf({"a": "before"}))
    with suppress(KeyError), setting(spark, "a", "meanwhile"):
        assert spark.conf["a"] == "meanwhile"
        raise KeyError
    assert spark.conf["a"] == "before"


def test_java_has_ended_when_the_process_that_this_one_has_started_is_gone(monkeypatch):
    def spark(proc):
        return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=proc)))

    monkeypatch.setattr(session, "_LAST_BREATH_S", 0.01)
    assert not java_has_ended(spark(None))  # the JVM has started this process
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        assert not java_has_ended(spark(java))
        java.kill()
        monkeypatch.setattr(session, "_LAST_BREATH_S", 30.0)
        assert java_has_ended(spark(java))


def test_what_spark_s_processes_write_to_standard_error_goes_to_the_log_while_it_starts(start, tmp_path, capfd):
    open_before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    start(lambda: os.write(2, b"a warning of Java\n"))
    os.write(2, b"ours\n")
    assert (tmp_path / "log").read_text() == "a warning of Java\n"
    assert capfd.readouterr().err == "ours\n"
    assert not open_before or len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize("java_ends", [True, False])
def test_a_traceback_of_py4j_is_not_logged_meanwhile_nor_behind_the_end_of_java_and_all_else_is(
    java_ends, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger(), "filters", [])

    def log():
        for module in ("java_gateway", "other"):
            record = logging.LogRecord("root", logging.ERROR, f"/x/{module}.py", 1, f"said by {module}", None, None)
            logging.getLogger().handle(record)

    with quiet_analysis(java_ends=java_ends):
        log()
    assert [record.getMessage() for record in caplog.records] == ["said by other"]
    log()
    assert ("said by java_gateway" in caplog.text) is not java_ends


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
    with quiet_analysis(java_ends=False):
        Failed(kind)._log_exception()
    assert capsys.readouterr().err == ""
    assert logging.getLogger(f"{kind}QueryContextLogger").level < logging.CRITICAL
