"""A chain of three groups, one behind the other, whose workers are processes that come, go, freeze and die.

Each worker reads a batch, writes it on, and commits: both in one transaction, or the one after the other (`worker`); of
a share group it acknowledges what is written (`share_worker`). A feeder writes numbered records at the one end; at the
other each must be there, and with transactions once. With faults of the brokers on top the same holds. In the end the
journals of the workers, the topics and the commits are compared (`verdict`, `share_verdict`).
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from headrace import ShareConsumer
from tests.campaigns.chaos.faults import Injector
from tests.campaigns.chaos.progress import Progress
from tests.campaigns.chaos.reader import Log, read_again
from tests.campaigns.chaos.site import Site
from tests.support.share_groups import prepare

from .commit_log import Commits, commits_of
from .crew import Crew
from .feeder import NAME, Feeder, Tail
from .journal import COMMIT, DONE, READ, Story
from .report import Result, Stage
from .share_verdict import LOCK_S, Faults, ShareCheck
from .spans import Offsets
from .verdict import GroupCheck, check_copies, check_order

WORKERS: Final = "workers"
"""The name of the faults that hurt no broker."""
SHARE: Final = "share"
_CLASSIC: Final = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
MODES: Final[dict[str, list[dict[str, Any]]]] = {
    "eager": [{**_CLASSIC, "partition.assignment.strategy": name} for name in ("range", "roundrobin", "range")],
    "cooperative": [{**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}] * 3,
    "consumer": [{"group.protocol": "consumer"}] * 3,
    SHARE: [{}] * 3,
}
"""How groups are joined: properties of the consumers of each stage."""
EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"
_STAGES: Final = 3
_LATE_S: Final = 90.0
_STALL_S: Final = 180.0
_SHOW_EVERY_S: Final = 10.0
_PACKAGE: Final = __name__.rpartition(".")[0]


class Pipeline:
    """One kind of fault, one kind of groups, one guarantee.

    Args:
        site: the cluster.
        fault: `WORKERS` for faults of workers alone, else one of `FAULTS` on top of them.
        mode: of `MODES`.
        rate: records per second.
        seed: of what is left to chance.
        client: the module whose consumers and producers the workers use.
        guarantee: `EXACTLY_ONCE` or `AT_LEAST_ONCE`; share groups have the latter.
        pause_s: from one fault of a worker to the next, on average; brokers have twice as long.

    Attributes:
        result: numbers and violations, once `run` has returned.
    """

    def __init__(
        self, site: Site, fault: str, mode: str, rate: float, seed: object, client: str = "headrace",
        guarantee: str = EXACTLY_ONCE, pause_s: float = 1.25,
    ) -> None:
        self._guarantee = AT_LEAST_ONCE if mode == SHARE else guarantee
        self.result = Result(f"{fault} / etl, {mode}, {self._guarantee}{'' if client == 'headrace' else f', {client}'}")
        self._site, self._client, self._rate, self._mode, self._seed = site, client, rate, mode, seed
        self._pause_s = pause_s
        self._frozen_s = 9.0 if mode != SHARE else LOCK_S + 3  # longer than a session lasts, and a lock
        self._topics = [site.make_topic() for _ in range(_STAGES + 1)]
        self._groups = [f"{self._topics[0]}-stage-{stage}" for stage in range(_STAGES)]
        servers, properties = site.way_in(fault)
        self._way_in = {"bootstrap.servers": servers, **properties}
        self._injector = None if fault == WORKERS else Injector(site, self._topics[0], fault, seed, 2 * pause_s)
        self._tail = Tail(site.servers, self._topics[-1])
        self._leaders = LeaderWatch(site, self._topics)

    @property
    def violations(self) -> Counter[str]:
        """By kind, once `run` has returned."""
        return self.result.violations

    @property
    def sent(self) -> int:
        """How many records were written into the chain."""
        return self.result.sent

    @property
    def faults(self) -> Counter[str]:
        """What was done to workers, by name."""
        return self.result.workers

    def run(self, seconds: float = float("inf"), records: int | None = None) -> bool:
        """Feed and hurt for so long, or until there are so many records; heal, wait for the end, check, and print.

        Returns:
            Whether nothing is wrong.
        """
        began = time.monotonic()
        if self._mode == SHARE:
            for group in self._groups:
                prepare(self._site.cluster, group, record_lock_duration_ms=str(int(LOCK_S * 1000)),
                        session_timeout_ms="6000", heartbeat_interval_ms="1000")
        self._progress, self._most = Progress(), 0
        self._feeder = Feeder(self._way_in, self._topics[0], self._rate, records, lambda: self._tail.count)
        with tempfile.TemporaryDirectory(prefix="etl-") as logs:
            self._crew = Crew(_STAGES, self._job, Path(logs), self._seed, self._pause_s, self._frozen_s)
            self._crew.start()
            for thread in (self._tail, self._leaders, self._feeder):
                thread.start()
            try:
                self._hurt_for(seconds)
                self._drain()
            finally:
                self._feeder.stop()
                self._crew.stop()
                for name in self._crew.hanging:
                    self._broken("the end", TimeoutError(f"worker {name} does not end"))
                self._tail.stop()
                self._leaders.stop()
        self._conclude()
        self.result.seconds = time.monotonic() - began
        self.result.show()
        return not self.violations

    def _job(self, stage: int, number: int) -> tuple[str, dict[str, Any]]:
        job = {
            "client": self._client, "way_in": self._way_in, "source": self._topics[stage],
            "target": self._topics[stage + 1], "group": self._groups[stage]}
        if self._mode == SHARE:
            return f"{_PACKAGE}.share_worker", {**job, "mode": "explicit" if number % 2 else "implicit"}
        return f"{_PACKAGE}.worker", {
            **job, "guarantee": self._guarantee, "membership": MODES[self._mode][stage], "stores": number % 2 == 0,
            "transactional_id": f"{self._topics[0]}-worker-{number}"}

    # The time of the faults, and the time until all is out

    def _hurt_for(self, seconds: float) -> None:
        """Something happens to a worker now and then, until time is up, or nearly all records have come out."""
        shown = time.monotonic()
        until = shown + seconds
        if self._injector is not None:
            self._injector.start()
        while time.monotonic() < until and self._is_working():
            time.sleep(self._crew.pause())
            self._crew.attend()
            self._crew.hurt()
            if time.monotonic() > shown + _SHOW_EVERY_S:
                shown = time.monotonic()
                self._show()
        self._feeder.stop()
        self._crew.heal()
        if self._injector is not None:
            self._injector.stop()
            if self._injector.failure is not None:
                self._broken("the faults could not go on", self._injector.failure)
        self._feeder.join()
        if self._feeder.failure is not None:
            self._broken("the feeder", self._feeder.failure)

    def _is_working(self) -> bool:
        """Whether there is something left to hurt, and it goes on."""
        return self._moves(_STALL_S) and (self._feeder.is_alive() or self._tail.count < 0.9 * self._feeder.sent)

    def _moves(self, patience_s: float) -> bool:
        """Whether records still come out."""
        if self._tail.count > self._most:
            self._most = self._tail.count
            self._progress.moved()
        return self._progress.idle_s < patience_s

    def _drain(self) -> None:
        """Until all have come out at the end, or nothing moves any more."""
        self._progress.moved()
        while self._tail.count < self._feeder.sent and self._moves(_LATE_S):
            self._crew.attend()
            time.sleep(0.2)
        if self._mode == SHARE:  # what was read by somebody who is gone comes again when its lock is over
            time.sleep(2.5 * LOCK_S)

    def _show(self) -> None:
        brokers = 0 if self._injector is None else self._injector.counts.total()
        print(f"{self.result.name}: {self._feeder.sent} records sent, {self._tail.count} out, {len(self._crew)} "
              f"workers, {self._crew.counts.total()} faults of workers, {brokers} of brokers", flush=True)

    # What came of it

    def _conclude(self) -> None:
        result = self.result
        result.sent, result.workers = self._feeder.sent, self._crew.counts
        result.brokers = Counter() if self._injector is None else self._injector.counts
        try:
            logs = [read_again(self._site.servers, topic) for topic in self._topics]
            sources = dict(zip(self._groups, self._topics[:-1], strict=True))
            commits = {} if self._mode == SHARE else commits_of(self._site.servers, sources)
        except TimeoutError as late:
            self._broken("reading again", late)
            return
        for stage, group in enumerate(self._groups):
            self._check(stage, logs[stage], logs[stage + 1], commits.get(group, {}))
        numbers = _numbers(logs[-1])
        result.out, result.copies = len(numbers), numbers.total() - len(numbers)
        result.violations = +result.violations

    def _check(self, stage: int, before: Log, behind: Log, commits: Commits) -> None:
        stories = self._crew.stories[stage]
        source = {partition: Offsets(found.offset for found in log) for partition, log in before.items()}
        numbers = _numbers(behind)
        told: Stage = {"workers": len(stories), "records before": sum(map(len, before.values()))}
        self.violations.update(check_copies(numbers, self.sent, once=self._guarantee == EXACTLY_ONCE))
        if self._mode == SHARE:
            told |= self._check_share(stage, stories, source)
        else:
            check = GroupCheck(stories, source, commits, once=self._guarantee == EXACTLY_ONCE)
            self.violations.update(check.run())
            self.result.notes += [f"group {stage + 1}: {detail}" for detail in check.details]
            if self._guarantee == EXACTLY_ONCE:
                self.violations.update(check_order((each.number for each in log) for log in behind.values()))
            told |= _told_by(stories) | {"commits that brokers have": sum(map(len, commits.values()))}
        self.result.stages.append({
            **told, "records behind": numbers.total(), "copies behind": numbers.total() - len(numbers)})

    def _check_share(self, stage: int, stories: list[Story], source: dict[int, Offsets]) -> Stage:
        brokers = [] if self._injector is None else self._injector.spans
        workers = [(at, at) for at in self._crew.faults[stage]] + [span for story in stories for span in story.frozen]
        moves = [(at, at) for at in self._leaders.moves]
        check = ShareCheck(stories, source, Faults(workers), Faults([*brokers, *moves]))
        self.violations.update(check.run())
        left = left_over(self._site, self._groups[stage], self._topics[stage])
        self.violations["never accepted"] += left
        return {**_told_by(stories), **check.numbers, "handed out in the end": left}

    def _broken(self, what: str, why: BaseException) -> None:
        self.violations["not over"] += 1
        self.result.notes.append(f"{what}: {why!r}")


class LeaderWatch(threading.Thread):
    """Notes when a partition gets another leader.

    Args:
        site: the cluster.
        topics: whose partitions.

    Attributes:
        moves: when.
    """

    def __init__(self, site: Site, topics: Iterable[str]) -> None:
        super().__init__(name="leaders", daemon=True)
        self.moves: list[float] = []
        self._site, self._topics, self._end = site, list(topics), threading.Event()

    def stop(self) -> None:
        self._end.set()
        self.join()

    def run(self) -> None:
        known: dict[tuple[str, int], int] = {}
        while not self._end.wait(0.3):
            now = {key: leader for topic in self._topics for key, leader in self._site.leaders(topic).items()}
            if any(known.get(key, leader) != leader for key, leader in now.items()):
                self.moves.append(time.monotonic())
            known |= now


def left_over(site: Site, group: str, topic: str) -> int:
    """How many records a share group still hands out, for as long as a few polls take. They are accepted."""
    count = 0
    with ShareConsumer({"bootstrap.servers": site.servers, "group.id": group, "log_level": 0}) as consumer:
        consumer.subscribe([topic])
        for _ in range(6):
            count += sum(message.error() is None for message in consumer.poll(0.5))
        consumer.commit_sync(10)
    return count


def _numbers(log: Log) -> Counter[int]:
    """How often each record is in a topic, by its number; -1 for what the feeder has not sent."""
    return Counter(each.number if each.name == NAME else -1 for partition in log.values() for each in partition)


def _told_by(stories: Iterable[Story]) -> Stage:
    """What the workers of a stage have written down, counted."""
    counts: Counter[str] = Counter()
    for event in (event for story in stories for event in story.events):
        what = event["what"]
        if what == READ:
            counts["reads"] += 1
        elif what == "assign":
            counts["assignments met"] += bool(event["partitions"])
        elif what in ("revoke", "lost"):
            counts[f"partitions {'revoked' if what == 'revoke' else what}"] += len(event["partitions"])
        elif what == COMMIT:
            counts["commits asked for"] += 1
        elif what == DONE:
            counts[f"commits {event['outcome']}"] += 1
        elif what in ("told", "failed"):
            counts[f"{what} {event['error']}"] += 1
    return dict(counts)
