"""The processes of a query under test, and the points at which they are stopped."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import pyspark

from tools.jvm_options import short_lived

from .site import until

SPARK: Final = Path(pyspark.__file__).parent
_ROOT: Final = Path(__file__).parents[3]
_RUN: Final = "HEADRACE_ONCE_RUN"
"""Set in the environment of all processes of a driver, by which they are found again."""


@dataclass
class Job:
    """What a driver is told.

    Attributes:
        directory: for all that a case leaves behind.
        checkpoint: Spark's.
        partitions: of the input and of the output.
        master: where tasks run.
        source: options of the read.
        sink: options of the write.
        topics: written by `foreachBatch`, each with all rows; none where the sink writes.
        shuffle: the rows go through a shuffle on their way.
        settings: further ones of the session.
        mutation: the rule of the protocol that is left out; see `points/sitecustomize.py`.
        python: the interpreter of all processes, which has the package by itself; empty for this one and these
            sources.
    """

    directory: str
    checkpoint: str
    partitions: int
    master: str
    source: dict[str, str]
    sink: dict[str, str]
    topics: list[str] = field(default_factory=list)
    shuffle: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    mutation: str = ""
    python: str = ""


class Driver:
    """One start of a query.

    Args:
        job: what it does.
        points: where the points lie.
        number: of the start, for its log.

    Attributes:
        run: a name of this start alone.
        log: what it says.
    """

    def __init__(self, job: Job, points: Points, number: int) -> None:
        self.log = Path(job.directory, f"driver-{number}.log")
        self.run, self._pid_file = uuid.uuid4().hex, Path(job.directory, f"driver-{number}.pid")
        given = json.dumps({**asdict(job), "pid_file": str(self._pid_file),
                            "jvm_options": shlex.join(short_lived("spark"))})
        # Executors get the path of the driver: it must not lead to the sources where the package is installed.
        sources = sorted((SPARK / "python/lib").glob("*.zip")) if job.python else [_ROOT / "src", _ROOT]
        python = job.python or sys.executable
        environment = {
            **os.environ, _RUN: self.run, "HEADRACE_ONCE_POINTS": str(points.directory),
            "HEADRACE_ONCE_MUTATION": job.mutation, "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parent / "points", *sources)))}
        with self.log.open("w") as out:
            self.popen = subprocess.Popen(
                [python, "-m", "tests.campaigns.spark_once.query", given], cwd=_ROOT, env=environment,
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def processes(self) -> dict[int, str]:
        """All that came of it and still runs: names by process id."""
        return marked(_RUN, self.run)

    def ended(self) -> bool:
        return self.popen.poll() is not None

    def kill(self) -> None:
        """Kill the driver at once. Its Python workers go on until they notice."""
        for pid in (int(self._pid_file.read_text()), self.popen.pid):
            kill(pid)
        self.popen.wait()

    def kill_all(self) -> None:
        """Kill all its processes at once, as a power cut would."""
        while found := self.processes():
            for pid in found:
                kill(pid)
            self.popen.poll()
        self.popen.wait()

    def freeze(self) -> None:
        """Stop all its processes."""
        for pid in self.processes():
            kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for pid in self.processes():
            kill(pid, signal.SIGCONT)

    def executors(self) -> list[int]:
        """The JVMs that run tasks beside the driver."""
        return [pid for pid in self.processes() if "CoarseGrainedExecutorBackend" in command_of(pid)]


class Points:
    """Where the campaign stops the processes of a query; see `points/sitecustomize.py`.

    Args:
        directory: of their files.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory

    def arm(self, point: str) -> None:
        """The next process that comes to the point shall stay there."""
        (self.directory / f"armed-{point}").touch()

    def caught(self, point: str, driver: Driver) -> int:
        """Wait until a process is there; its id.

        Raises:
            TimeoutError: none came, or the driver ended.
        """
        until(lambda: self.holds(point) or driver.ended(), f"nobody came to {point}; {driver.log}")
        if not self.holds(point):
            raise TimeoutError(f"the driver ended before it came to {point}; {driver.log}")
        path = self._caught(point)[0]
        path.unlink()
        return int(path.name.rpartition("-")[2])

    def holds(self, point: str) -> bool:
        """Whether a process is at the point."""
        return bool(self._caught(point))

    def _caught(self, point: str) -> list[Path]:
        return list(self.directory.glob(f"caught-{point}-*"))

    def let_go(self, point: str, how: str = "on") -> None:
        """The process at the point shall go on, or raise an error ("raise")."""
        draft = self.directory / "draft"
        draft.write_text(how)
        draft.rename(self.directory / f"go-{point}")

    def attempts(self) -> list[tuple[str, int, int, int]]:
        """Task attempts that came to the sink: start of the query, stage, partition, and attempt number."""
        return [(run, int(stage), int(part), int(attempt)) for run, stage, part, attempt, _ in self._tasks()]

    def packages(self) -> set[str]:
        """Where tasks have taken the package from."""
        return {package for *_, package in self._tasks()}

    def _tasks(self) -> list[list[str]]:
        log = self.directory / "tasks"
        return [row.split(maxsplit=4) for row in log.read_text().splitlines()] if log.exists() else []


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process that may have ended."""
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def marked(name: str, value: str) -> dict[int, str]:
    """Processes with a value in their environment: the first words of their commands by process id."""
    wanted, found = f"{name}={value}".encode(), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = command_of(int(entry.name))[:80]
            except OSError:  # it has ended, or is not ours
                continue
    return {pid: command for pid, command in found.items() if command}


def command_of(pid: int) -> str:
    """The command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def parent_of(pid: int) -> int:
    """The process that started a process; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[1])


def executor_of(worker: int) -> int:
    """The JVM for which a Python worker computes; 0 when there is none any more."""
    pid = worker
    while pid > 1 and "/java " not in command_of(pid).split(" ", 1)[0] + " ":
        pid = parent_of(pid)
    return pid if pid > 1 else 0


