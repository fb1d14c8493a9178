"""Closed producers leave nothing behind: a short run of `python -m tests.leaks`."""

import subprocess
import sys


def test_a_hundred_producers_leave_no_thread_socket_timer_or_megabyte() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.leaks", "--producers", "100"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing left" in done.stdout
