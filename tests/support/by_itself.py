"""Runs tests in a process to themselves: clients that other tests have left share one loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def passes_by_itself(file: str, tests: int = 2) -> None:
    """Run the tests of a file, named from the root."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", file]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout or f"{tests} skipped" in done.stdout
