"""What holds for all tests: how they are shared out between processes, and which failures get a second try."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tools.jvm_options import SHORT_LIVED, short_lived

_HERE = Path(__file__).parent
_TOGETHER = {
    "integration/spark/": "Spark",
    "integration/spark/test_pipeline": "pipelines in Spark",
    "integration/spark/test_run_command": "pipelines in Spark",
    "integration/spark/test_tutorial": "pipelines in Spark",
    "integration/kafka/": "Kafka",
    "integration/kafka/test_kafka_admin_rights": "Kafka with rules",
    "integration/kafka/test_kafka_command_rights": "Kafka with rules",
    "integration/kafka/test_kafka_group_rights": "Kafka with rules",
    "integration/foreign/": "foreign clients",
    "unit/broker/": "embedded broker beside Kafka",
    "unit/decode/": "decoded traffic",
    # Files with clusters of their own.
    **{f"integration/kafka/test_kafka_{name}": name for name in (
        "command_line", "consumer_groups", "direct_fetches", "joint_transactions", "produce_errors", "sasl")},
}
"""What shares a cluster or a Spark session, by how the path begins; the longest counts. One process has all of it."""
_ACCIDENTS = 3
"""So many failures may be a moment for which the machine stood still: `make test` runs each of them once more."""

_crashes: list[str] = []


settings.register_profile(
    "on any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # it may be busy with other things
settings.load_profile("on any machine")


def _scope(path: str) -> str:
    """What is not divided between processes: what shares something dear, else a file."""
    begins = max((start for start in _TOGETHER if path.startswith(start)), key=len, default="")
    return _TOGETHER.get(begins, path)


def pytest_configure() -> None:
    """Take Ctrl-C also in a shell's background job, which has it ignored: tests send it to themselves and to others."""
    gc.disable()  # tens of thousands of tests are found now, and all of them stay
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", shlex.join(SHORT_LIVED))
    os.environ.setdefault("SPARK_SUBMIT_OPTS", shlex.join(short_lived("spark")))
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process is left alone with it in the end."""
    if hasattr(config, "workerinput"):
        order = {scope: place for place, scope in enumerate(dict.fromkeys(_TOGETHER.values()))}
        items.sort(key=lambda item: order.get(_scope(item.path.relative_to(_HERE).as_posix()), len(order)))


def pytest_collection_finish() -> None:
    """Spare each collection of garbage the way through all tests that were found."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests out by what they share."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatTheyShare(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid.partition("::")[0].removeprefix("tests/"))

    return ByWhatTheyShare(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str) -> None:
    """A process that dies is no accident."""
    _crashes.append(crashitem)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Status 1 allows a second try, and 3 does not."""
    if exitstatus == pytest.ExitCode.TESTS_FAILED and (_crashes or session.testsfailed > _ACCIDENTS):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Let the tests of the next file, many of which collect garbage, have what they make themselves to look through."""
    outcome = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return outcome


@pytest.fixture
def kafka_python_let_go() -> Iterator[None]:
    """What it leaves to the garbage collector is collected here: a later test would be blamed for its sockets."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test leaves Ctrl-C to the next one as it found it; so may PySpark, which takes it when a session begins."""
    found = signal.getsignal(signal.SIGINT)
    if getattr(found, "__module__", "").startswith("pyspark"):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGINT)
    outcome = yield
    after = signal.getsignal(signal.SIGINT)
    if after != before:  # a bound method is another object each time
        signal.signal(signal.SIGINT, before)
        if not getattr(after, "__module__", "").startswith("pyspark"):
            pytest.fail(f"SIGINT goes to {after} now, it went to {before}")
    return outcome
