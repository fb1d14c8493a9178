"""What one measurement is, and how to take it in a process of its own.

A measured process does its imports, opens its connections and moves a few records first; then the clock starts. CPU is
user plus system time of that process, all its threads included.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHILD_TIMEOUT_S = 900
ROOT = Path(__file__).parents[1]


class ChildError(RuntimeError):
    """A measured process failed; the text is the end of what it wrote."""


@dataclass(slots=True)
class Sample:
    """One measured run: `records` moved in `wall_s`, for `cpu_s` of the client and `broker_cpu_s` of the broker."""

    records: int
    wall_s: float
    cpu_s: float
    broker_cpu_s: float | None = None

    @property
    def rows_per_s(self) -> float:
        return self.records / self.wall_s

    @property
    def cpu_s_per_million(self) -> float:
        return self.cpu_s / self.records * 1e6

    @property
    def broker_cpu_s_per_million(self) -> float | None:
        return None if self.broker_cpu_s is None else self.broker_cpu_s / self.records * 1e6


class Stopwatch:
    """Measures wall and CPU time of a `with` block in this process."""

    def __enter__(self) -> Self:
        self._cpu_s, self._wall_s = _cpu_s(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wall_s = time.perf_counter() - self._wall_s
        self.cpu_s = _cpu_s() - self._cpu_s

    def sample(self, records: int) -> Sample:
        return Sample(records, self.wall_s, self.cpu_s)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run_child(
    module: str, request: dict[str, Any], *, show: bool = False, source: Path = ROOT / "src"
) -> dict[str, Any]:
    """Run `python -m module REQUEST` in a fresh process; the last line it prints is its answer, in JSON.

    Args:
        module: module whose `__main__` part reads the request from its first argument.
        request: anything that JSON can carry.
        show: pass on what the process prints before its answer.
        source: the folder that holds the package that is measured.

    Raises:
        ChildError: it failed or took too long.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(source)])}
    command = [sys.executable, "-m", module, json.dumps(request)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False,
                              timeout=CHILD_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ChildError(f"{module} {request} took longer than {CHILD_TIMEOUT_S} s") from None
    *before, answer = done.stdout.strip().splitlines() or [""]
    if done.returncode or not answer.startswith("{"):
        raise ChildError(f"{module} {request}:\n" + "\n".join((done.stderr or done.stdout).splitlines()[-15:]))
    if show:
        print("\n".join(before))
    return dict(json.loads(answer))


def answer(**parts: Any) -> None:
    """Print the answer of a measured process."""
    print(json.dumps(parts), flush=True)


def machine() -> dict[str, Any]:
    """What the figures depend on beside the code."""
    model = ""
    if os.path.exists("/proc/cpuinfo"):
        rows = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), "")
    return {
        "cpu": model or platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": platform.platform(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def version_of(package: str) -> str | None:
    """Version of an installed package, for ours with what reads its records; None when it is not installed."""
    if package == "headrace":
        import headrace
        from headrace import records

        return f"{headrace.__version__} ({records.implementation} records)"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
