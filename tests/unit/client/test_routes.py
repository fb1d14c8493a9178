"""The three routes of ARCHITECTURE.md are those that a record takes.

The tests lie in `alone/routes.py` and run in a process to themselves: clients that other tests have left
share the loop.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_record_takes_the_routes_of_the_page():
    file = Path(__file__).parent / "alone" / "routes.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout or "2 skipped" in done.stdout
