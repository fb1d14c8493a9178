"""A standalone cluster of Spark: a master and workers, each a process."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from headrace.spark.java import prepare_java
from tools.jvm_options import SHORT_LIVED
from tools.kafka.cluster import free_ports

from .driver import SPARK, kill, parent_of
from .site import until

WORKERS: Final = 2


class Standalone:
    """A context manager.

    Attributes:
        url: for `SparkSession.builder.master`.
        workers: processes of the workers.
    """

    def __init__(self) -> None:
        self._port, self._ui = free_ports(2)
        self.url = f"spark://127.0.0.1:{self._port}"
        self._stack = ExitStack()
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        prepare_java()
        self._home = Path(self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._ui))
        until(lambda: _listens(self._port), "the master does not listen")
        for _ in range(WORKERS):
            self.add_worker()
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self.workers:
            self.kill_worker(worker)
        self._stack.close()

    def add_worker(self) -> None:
        """One worker more, with one core."""
        place = self._home / f"worker-{len(self.workers)}"
        self.workers.append(self._start(
            "worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(place),
            "--webui-port", str(free_ports(1)[0]), self.url))

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker and its executors, as a power cut would."""
        executors = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent_of(pid) == worker.pid]
        for pid in (worker.pid, *executors):
            kill(pid)
        worker.wait()

    def worker_of(self, executor: int) -> subprocess.Popen[bytes]:
        """The worker that has started an executor."""
        [found] = [worker for worker in self.workers if worker.pid == parent_of(executor)]
        return found

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self._home / f"{name}-{len(self.workers)}.log").open("wb"))
        environment = {**os.environ, "PYTHONPATH": "", "SPARK_HOME": str(SPARK), "SPARK_DAEMON_MEMORY": "256m",
                       "SPARK_DAEMON_JAVA_OPTS": " ".join(SHORT_LIVED)}
        popen = subprocess.Popen(
            [str(SPARK / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *arguments], env=environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self._stack.callback(popen.wait)
        self._stack.callback(popen.kill)
        return popen


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
