"""One case: a query that is hurt, started again until its input is finished, and compared with it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .driver import Driver, Job, Points
from .site import PARTITIONS, OnceSite, until
from .standalone import Standalone
from .verdict import Verdict, together, verdict_of
from .wheel import wheel_python

EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"
FOREACH_BATCH: Final = "foreach_batch"
_FINISH_S: Final = 600.0
_MOST_STARTS: Final = 60


@dataclass
class Result:
    """One row of the table.

    Attributes:
        name: of the case.
        kafka: version of the brokers.
        master: where its tasks ran.
        how: `EXACTLY_ONCE`, `AT_LEAST_ONCE` or `FOREACH_BATCH`.
        verdict: what came out; None when it was not finished.
        restarts: how often the driver was started again.
        seconds: how long it took.
        notes: why it is not finished, and other things to know.
    """

    name: str
    kafka: str
    master: str
    how: str
    verdict: Verdict | None = None
    restarts: int = 0
    seconds: float = 0.0
    notes: str = ""

    @property
    def findings(self) -> int:
        return 1 if self.verdict is None else self.verdict.findings


class Case:
    """A query from one topic to another, and what a fault needs to hurt it; a context manager.

    Args:
        site: the cluster.
        master: where tasks run, a name of Spark's.
        how: `EXACTLY_ONCE` or `AT_LEAST_ONCE` by the sink, or `FOREACH_BATCH`.
        standalone: the cluster to which the master belongs.
        mutation: the rule of the protocol that is left out.
        rows_a_batch: how many records a micro-batch has at most.

    Attributes:
        points: where processes are stopped.
        outputs: the topics that are written; `output` is the first.
        job: what each start is told; a fault may change it before it starts the query.
        drivers: all starts.
        notes: of the fault.
    """

    def __init__(
        self, site: OnceSite, master: str, how: str, *, standalone: Standalone | None = None,
        mutation: str = "", rows_a_batch: int = 400,
    ) -> None:
        self.site, self.standalone = site, standalone
        self._home = Path(tempfile.mkdtemp(prefix="headrace-once-"))
        self.points = Points(self._home / "points")
        self.outputs = [site.make_topic() for _ in range(2 if how == FOREACH_BATCH else 1)]
        self.output = self.outputs[0]
        self.drivers: list[Driver] = []
        self._kept = False
        self.notes: list[str] = []
        sink = {"kafka.bootstrap.servers": site.servers, "topic": self.output}
        if how != AT_LEAST_ONCE:
            sink |= {"delivery.guarantee": EXACTLY_ONCE, "sinkId": self.output}
        if how == FOREACH_BATCH:
            sink |= {"groupId": self.group}
        self.job = Job(
            str(self._home), str(self._home / "checkpoint"), PARTITIONS, master,
            {"kafka.bootstrap.servers": site.servers, "subscribe": site.input, "startingOffsets": "earliest",
             "maxOffsetsPerTrigger": str(rows_a_batch)}, sink, self.outputs if how == FOREACH_BATCH else [],
            mutation=mutation, python=str(wheel_python()) if standalone else "")

    def __enter__(self) -> Case:
        return self

    def __exit__(self, *exception: object) -> None:
        for driver in self.drivers:
            driver.kill_all()
        if not self._kept:
            shutil.rmtree(self._home, ignore_errors=True)

    def keep(self) -> None:
        """Leave logs and checkpoint behind, for who wants to know why."""
        self._kept = True

    @property
    def transactional_id(self) -> str:
        """Of the sink."""
        return f"headrace-sink-{self.output}"

    @property
    def group(self) -> str:
        """For which `foreachBatch` commits the offsets of the input."""
        return f"group-{self.output}"

    def attempts(self) -> list[str]:
        """What is to be said of task attempts: how many were of a stage that ran again, and how many were retries."""
        tasks = self.points.attempts()
        again = sum(count - 1 for count in Counter(tasks).values())
        retries = sum(attempt > 0 for *_, attempt in tasks)
        return [f"{count} {what}" for count, what in (
            (again, "attempts in a stage that ran again"), (retries, "task retries")) if count]

    @property
    def restarts(self) -> int:
        return max(len(self.drivers) - 1, 0)

    def start(self) -> Driver:
        """Start the query, again if it ran before."""
        assert len(self.drivers) < _MOST_STARTS, "the query is started again and again"
        self.drivers.append(Driver(self.job, self.points, len(self.drivers)))
        return self.drivers[-1]

    def finish(self) -> None:
        """Start the query again until its input is finished.

        Raises:
            TimeoutError: it takes too long, or fails again and again.
        """
        driver = self.drivers[-1]
        give_up_at = time.monotonic() + _FINISH_S
        failures = 0
        while True:
            until(driver.ended, f"the query did not end; {driver.log}", max(give_up_at - time.monotonic(), 0.1))
            if driver.popen.returncode == 0:
                return
            failures += 1
            if failures > 5:
                raise TimeoutError(f"the query failed {failures} times; {driver.log}")
            driver.kill_all()
            driver = self.start()

    def batches(self) -> int:
        """How many micro-batches Spark has finished."""
        return len([path for path in Path(self.job.checkpoint, "commits").glob("*") if path.name.isdigit()])

    def wait(self, condition: Callable[[], bool], driver: Driver) -> None:
        """Wait for something that a driver brings about, or for its end."""
        until(lambda: condition() or driver.ended(), f"the query does not go on; {driver.log}")

    def wait_for_batches(self, count: int, driver: Driver) -> None:
        """Wait until so many micro-batches are finished, or the driver ended."""
        self.wait(lambda: self.batches() >= count, driver)

    def catch(self, point: str, driver: Driver) -> int:
        """Stop a process at a point behind the first micro-batch; its id."""
        self.wait_for_batches(1, driver)
        self.points.arm(point)
        return self.points.caught(point, driver)

    def verdict(self) -> Verdict:
        """Compare the output with the input.

        Raises:
            TimeoutError: a transaction stays open.
        """
        found = together(
            verdict_of(self.site.sent, self.site.committed(topic), self.site.uncommitted(topic),
                       ordered=not self.job.shuffle) for topic in self.outputs)
        if self.job.topics:
            ends = {partition: len(numbers) for partition, numbers in self.site.sent.items()}
            assert self.site.group_offsets(self.group) == ends, "the group has other offsets than the input's ends"
        if self.job.python:
            home = str(Path(self.job.python).parents[1])
            found_in = self.points.packages()
            assert all(place.startswith(home) for place in found_in), f"executors have imported from {found_in}"
        return found
