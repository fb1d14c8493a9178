"""Which twin runs, and what is said when it is the plain one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headrace import records

NOTICE = "headrace runs in plain Python"
MISSING = "import importlib.util\nimportlib.util.find_spec = lambda name, package=None: None\n"
"""As if no native module had been built."""
SHOW = "from headrace import records, buffers\nprint(records.implementation, buffers.implementation)"


def run(code: str, **environment: str) -> tuple[str, str]:
    """What a fresh process prints, and what it complains about."""
    inherited = {key: value for key, value in os.environ.items() if key != "HEADRACE_PURE"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env={**inherited, **environment},
                          capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr


def test_missing_native_modules_are_said_once_with_the_remedy_and_stop_nothing() -> None:
    shown, complaint = run(MISSING + SHOW)
    assert shown == "plain plain"
    assert complaint.count(NOTICE) == 1
    assert "pip install --force-reinstall" in complaint


@pytest.mark.parametrize("code", [SHOW, MISSING + SHOW], ids=["native modules are there", "they are missing"])
def test_who_asks_for_the_plain_twin_is_told_nothing(code: str) -> None:
    assert run(code, HEADRACE_PURE="1") == ("plain plain", "")


@pytest.mark.skipif(records.implementation == "plain", reason="the plain twin is what runs here")
def test_nothing_is_said_where_the_native_twin_runs() -> None:
    assert run(SHOW) == ("native native", "")
    assert run(SHOW, HEADRACE_PURE="0") == ("native native", "")
