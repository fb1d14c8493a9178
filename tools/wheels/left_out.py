"""A plugin for pytest: tests that need a package which is not there are left out, and counted by package.

`tools.wheels` loads it for Pythons that some packages of the tests have no wheel for. A test that fails for any other
reason fails. What a test runs in another process says in its output what is missing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Generator
from typing import Any, TypeAlias

import pytest

_MISSING = re.compile(r"No module named '(\w+)|not installed: pip install (\w+)|pip install '?headrace\[(\w+)")
_OURS = frozenset(("headrace", "tests", "tools", "benchmarks"))
_left_out: Counter[str] = Counter()
_Collected: TypeAlias = Generator[None, pytest.CollectReport, pytest.CollectReport]
_Ran: TypeAlias = Generator[None, pytest.TestReport, pytest.TestReport]


def _missing(text: str) -> str | None:
    """The package that a failure is about; None if it is about something else."""
    for module, package, extra in _MISSING.findall(text):
        if package or extra or (module not in _OURS and module not in sys.stdlib_module_names):
            return str(module or package or f"headrace[{extra}]")
    return None


def _judge(report: Any) -> None:
    if report.failed and (name := _missing(report.longreprtext)) is not None:
        report.outcome, report.longrepr = "skipped", (str(report.nodeid), 0, f"{name} is not there")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> _Collected:
    """A module that cannot be imported."""
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> _Ran:
    """A test that has run."""
    report = yield
    _judge(report)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what was left out, also by other processes of the run."""
    if report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[2].endswith(" is not there"):
        _left_out[report.longrepr[2].removesuffix(" is not there")] += 1


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """As above, for whole modules."""
    pytest_runtest_logreport(report)  # type: ignore[arg-type]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was left out, on the line before the last."""
    if _left_out:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(_left_out.items()))
        terminalreporter.write_line(f"left out for want of: {counts}")
