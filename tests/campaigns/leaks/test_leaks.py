"""Closed clients leave nothing behind: a short run of `python -m tests.campaigns.leaks`."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["producers", "consumers"])
def test_a_hundred_clients_leave_no_thread_socket_timer_or_megabyte(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaigns.leaks", f"--{kind}", "100"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"100 {kind}" in done.stdout
    assert "nothing left" in done.stdout


@pytest.mark.parametrize("kind", ["eager", "cooperative", "planned"])
def test_twenty_rebalances_leave_no_thread_socket_timer_or_megabyte(kind: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.campaigns.leaks", "--rebalances", "20", "--groups", kind],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"20 {kind} rebalances" in done.stdout
    assert "nothing left" in done.stdout
