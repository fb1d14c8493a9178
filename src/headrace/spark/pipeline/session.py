"""The Spark session of a run: the one that is there, or a new one with the settings of the file.

Read next: `headrace.spark.pipeline.run`.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.sql import SparkSession

from headrace.spark.pipeline.declared import PipelineSpec

__all__ = ["java_has_ended", "quiet_analysis", "running_session", "setting", "start_session"]

_DEFAULTS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    # Plans of streams show the options of their sources; without this Spark hides fewer of them than there are secrets.
    "spark.sql.redaction.options.regex":
        "(?i)password|passphrase|secret|token|access[.]?key|user[.]info|jaas|oauthbearer[.]config|[.]pem|url",
    "spark.ui.showConsoleProgress": "false",
    # Reports of finished batches are polled, and each costs calls into the JVM: a short ring is enough.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}
_ANALYSIS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark for what fails in a text of SQL, and in a call on a frame."""
_LAST_BREATH_S: Final = 1.0
_LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


def running_session(spec: PipelineSpec) -> SparkSession | None:
    """A new session beside the one that runs in this process already, as in a notebook; None when none runs.

    Views and settings are its own, so the pipeline changes nothing there. What is set once for all sessions stays.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        return None
    found = running.newSession()
    for name, value in {**_DEFAULTS, **spec.spark}.items():
        if found.conf.isModifiable(name):
            found.conf.set(name, value)
    return found


def start_session(spec: PipelineSpec, master: str, log_file: Path) -> SparkSession:
    """Start Spark.

    Args:
        spec: the pipeline; its settings go before ours.
        master: Spark master.
        log_file: where Spark's processes write their log.
    """
    builder = SparkSession.builder.master(master).appName(spec.name)
    local = _LOCAL_DEFAULTS if master.startswith("local") else {}
    for name, value in {**_DEFAULTS, **local, **spec.spark}.items():
        builder = builder.config(name, value)
    with _stderr_to(log_file), _no_java_left_behind(), _ctrl_c_as_it_was():
        return builder.getOrCreate()


def java_has_ended(spark: SparkSession) -> bool:
    """Whether the JVM of a session is gone, or goes within a moment: it was killed, or has crashed."""
    process = getattr(attrgetter("_gateway")(spark.sparkContext), "proc", None)
    if process is None:  # the JVM has started this process
        return False
    try:
        process.wait(_LAST_BREATH_S)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def quiet_analysis(*, java_ends: bool) -> Iterator[None]:
    """PySpark logs failed analysis as JSON on the terminal, and Py4J a traceback when the JVM has ended, but not
    meanwhile: the error is shown in one line.

    Args:
        java_ends: the JVM ends with this. Python lets go of the JVM's objects whenever it does: Py4J stays quiet.
    """
    loggers, root = [logging.getLogger(name) for name in _ANALYSIS], logging.getLogger()
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    root.addFilter(_is_not_of_py4j)
    try:
        yield
    finally:
        if not java_ends:
            root.removeFilter(_is_not_of_py4j)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"  # which logs as root


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of the session for what begins meanwhile: a query takes the session's settings along when it starts."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@contextmanager
def _no_java_left_behind() -> Iterator[None]:
    """Whoever interrupts the start of the JVM ends the JVM with it.

    PySpark's start knows the process, and takes away the directory in which the JVM is to say that it listens. The JVM
    fails at that when it comes so far, and its other threads go on for ever.
    """
    try:
        yield
    except BaseException as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for begun in frame.f_locals.values():
                if isinstance(begun, subprocess.Popen) and getattr(begun, "pid", None):
                    begun.kill()
        raise


@contextmanager
def _ctrl_c_as_it_was() -> Iterator[None]:
    """PySpark takes Ctrl-C when it starts, and calls the JVM there, amid whatever call is under way: a traceback."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Processes started meanwhile write their standard error to a file: Spark's warnings would tear the display."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
