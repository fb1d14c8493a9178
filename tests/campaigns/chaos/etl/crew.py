"""The workers of all stages, and what is done to them: they are killed, frozen, ended and added, and replaced."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from .journal import Story, read_journal

AT_LEAST: Final = 2
"""So many workers a stage has at any time, frozen ones included."""
_AT_MOST: Final = 3
_END_S: Final = 30.0
"""An application that is told to end, ends in this time, and says where it is otherwise."""
_LATE_S: Final = 90.0
"""Then it is killed, and that is a violation."""

Job = Callable[[int, int], tuple[str, dict[str, Any]]]
"""The module that a worker runs, and its job: of a stage, and the number of the worker."""


class Process:
    """One worker.

    Args:
        stage: which of the groups it is in.
        name: of its journal.
        module: what it runs.
        job: what the module takes.
        log: where its journal goes.
    """

    def __init__(self, stage: int, name: str, module: str, job: dict[str, Any], log: Path) -> None:
        self.stage, self.name, self._log = stage, name, log
        self.frozen: list[tuple[float, float]] = []
        self.killed_at: float | None = None
        with log.open("w") as out:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps(job)], stdout=out, stderr=sys.stderr)

    def kill(self) -> None:
        self.killed_at = time.monotonic()
        self.popen.kill()

    def freeze(self) -> None:
        self.frozen.append((time.monotonic(), float("inf")))
        self.popen.send_signal(signal.SIGSTOP)

    def wake_up(self) -> None:
        self.popen.send_signal(signal.SIGCONT)
        self.frozen[-1] = (self.frozen[-1][0], time.monotonic())

    def ends_within(self, seconds: float) -> bool:
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def story(self) -> Story:
        """What it did."""
        return Story(self.name, read_journal(self._log), self.frozen, self.killed_at)


class Crew:
    """All workers.

    Args:
        stages: how many groups there are.
        job: says what a worker does.
        logs: where journals go.
        seed: of what is left to chance.
        pause_s: from one fault to the next, on average.
        frozen_s: how long a worker is frozen.

    Attributes:
        counts: what was done, by name.
        stories: of those that are gone, by stage.
        faults: when something was done to workers of a stage.
        hanging: those that had to be killed in the end.
    """

    def __init__(self, stages: int, job: Job, logs: Path, seed: object, pause_s: float, frozen_s: float) -> None:
        self.counts: Counter[str] = Counter()
        self.stories: dict[int, list[Story]] = {stage: [] for stage in range(stages)}
        self.faults: dict[int, list[float]] = {stage: [] for stage in range(stages)}
        self.hanging: list[str] = []
        self._job, self._logs, self._random = job, logs, random.Random(f"crew {seed}")
        self._workers: list[Process] = []
        self._waking: dict[Process, float] = {}
        self._pause_s, self._frozen_s = pause_s, frozen_s
        self._started = 0

    def __len__(self) -> int:
        return len(self._workers)

    def start(self) -> None:
        """As many as each stage has at least."""
        for stage in self.stories:
            for _ in range(AT_LEAST):
                self._start(stage)

    def pause(self) -> float:
        """How long to wait until the next fault."""
        return self._random.uniform(0.4, 1.6) * self._pause_s

    def hurt(self) -> None:
        """Do something to one of them."""
        victim = self._random.choice(self._workers)
        self._random.choice((self._kill, self._end, self._freeze, self._add))(victim)
        self.faults[victim.stage].append(time.monotonic())

    def attend(self) -> None:
        """Wake those up that were frozen for long enough, and replace those that ended by themselves."""
        self._wake(time.monotonic())
        for worker in [worker for worker in self._workers if worker.popen.poll() is not None]:
            self.counts["ended by themselves"] += 1
            self._remove(worker)
            self._start(worker.stage)

    def heal(self) -> None:
        """Wake all."""
        self._wake(float("inf"))

    def stop(self) -> None:
        """End all."""
        self.heal()
        for worker in self._workers:
            worker.popen.terminate()
        for worker in list(self._workers):
            self._remove(worker)

    # What is done to one

    def _start(self, stage: int) -> None:
        self._started += 1
        name = f"{stage}-{self._started}"
        self._workers.append(Process(stage, name, *self._job(stage, self._started), self._logs / f"{name}.jsonl"))

    def _remove(self, worker: Process) -> None:
        if self._waking.pop(worker, None) is not None:
            worker.wake_up()
        if not worker.ends_within(_END_S):
            self.counts["late to end"] += 1
            worker.popen.send_signal(signal.SIGUSR1)
            if not worker.ends_within(_LATE_S):
                self.hanging.append(worker.name)
                worker.kill()
                worker.popen.wait()
        self._workers.remove(worker)
        self.stories[worker.stage].append(worker.story())
        self.faults[worker.stage].append(time.monotonic())

    def _kill(self, victim: Process) -> None:
        self.counts["killed"] += 1
        victim.kill()
        self._remove(victim)
        self._start(victim.stage)

    def _end(self, victim: Process) -> None:
        if self._count(victim.stage) <= AT_LEAST:
            self._start(victim.stage)
        self.counts["ended"] += 1
        victim.popen.terminate()
        self._remove(victim)

    def _freeze(self, victim: Process) -> None:
        """The group goes on without it, and it does not know when it wakes."""
        if victim not in self._waking:
            self.counts["frozen"] += 1
            victim.freeze()
            self._waking[victim] = time.monotonic() + self._frozen_s

    def _wake(self, by: float) -> None:
        for worker in [worker for worker, until in self._waking.items() if until <= by]:
            del self._waking[worker]
            worker.wake_up()
            self.faults[worker.stage].append(time.monotonic())

    def _add(self, like: Process) -> None:
        if self._count(like.stage) < _AT_MOST:
            self.counts["added"] += 1
            self._start(like.stage)

    def _count(self, stage: int) -> int:
        return sum(worker.stage == stage for worker in self._workers)
