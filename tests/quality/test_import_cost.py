"""Imports are cheap: nothing heavy is loaded before it is used, and all messages together cost a few milliseconds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"asyncio", "ssl", "pyarrow", "pyspark", "cramjam", "headrace.wire.messages.fetch", "headrace.client.producer"}
ALL_MESSAGES = "from headrace.wire.api import API; len(API)"


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, headrace; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize(("before", "statement", "limit_ms"), [
    ("pass", "import headrace", 5),
    ("import headrace.errors", ALL_MESSAGES, 15),
])
def test_importing_takes_little_cpu(before: str, statement: str, limit_ms: int, tmp_path: Path) -> None:
    code = f"import time; {before}; a = time.process_time(); {statement}; print(time.process_time() - a)"
    # Compiled once into a folder of our own: what a test runner forbids or has compiled already does not count.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    seconds = [float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                                    check=True).stdout) for _ in range(8)]
    assert any(tmp_path.rglob("*.pyc"))
    assert min(seconds) * 1000 <= limit_ms
