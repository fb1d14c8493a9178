"""Ctrl-C ends a command at once, whatever it waits for.

What is measured ends with the exit status: how long Python takes to leave is for its makers.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker

AT_ONCE_S = 0.1
COMMAND = [sys.executable, "-c", """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from headrace.cli import main
status = main()
print(time.monotonic())
sys.exit(status)"""]


@pytest.fixture
def silent() -> Iterator[tuple[str, socket.socket]]:
    """The address of a server that takes connections and never answers, and its socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        yield f"127.0.0.1:{server.getsockname()[1]}", server


def interrupted(process: subprocess.Popen[str]) -> tuple[float, str]:
    """Seconds from Ctrl-C to the end, and what was said."""
    sent = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    return float(out.split()[-1]) - sent, err


def test_ctrl_c_ends_a_wait_for_a_broker_that_says_nothing(silent: tuple[str, socket.socket]) -> None:
    took_s = []
    for _ in range(5):  # a busy machine makes it longer, never shorter
        with subprocess.Popen([*COMMAND, "topics", "list", "-b", silent[0]], text=True, stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            connection, _ = silent[1].accept()
            with connection:
                assert connection.recv(4)  # now it waits for an answer
                spent, err = interrupted(process)
            assert (process.returncode, err) == (130, "")
        took_s.append(spent)
        if spent < AT_ONCE_S:
            break
    assert min(took_s) < AT_ONCE_S


def test_ctrl_c_ends_a_watch(broker: EmbeddedBroker) -> None:
    broker.create_topic("watched", 1)
    with subprocess.Popen([*COMMAND, "groups", "lag", "--watch", "--interval", "1h", "-o", "tsv"], text=True,
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("group\t")
        _, err = interrupted(process)
        assert (process.returncode, err) == (130, "")
