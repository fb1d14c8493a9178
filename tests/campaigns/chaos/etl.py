"""A pipeline of three groups, one behind the other, whose workers are processes that come, go, freeze and die.

Each worker reads a batch, writes it on, and commits both in one transaction (`etl_worker`). A feeder writes numbered
records at the one end; at the other each must be there once. With faults of the brokers on top the same holds.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from headrace import Producer

from .faults import Injector
from .ledger import value_of
from .progress import Backpressure, listed
from .reader import read_again
from .site import Site

STRATEGIES: Final = {"eager": "range", "cooperative": "cooperative-sticky"}
WORKERS: Final = "workers"
"""The name of the faults that hurt no broker."""
_FEEDER: Final = "feeder"
_STAGES: Final = 3
_AT_LEAST, _AT_MOST = 2, 3
_FROZEN_S: Final = 9.0
_END_S: Final = 20.0
_LATE_S: Final = 90.0
_SHOW_EVERY_S: Final = 10.0


class Process:
    """One worker.

    Args:
        stage: which of the groups it is in.
        job: see `etl_worker`.
        log: where its counts go.
    """

    def __init__(self, stage: int, job: dict[str, Any], log: Path) -> None:
        self.stage = stage
        self._log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.campaigns.chaos.etl_worker", json.dumps(job)], stdout=out,
                stderr=sys.stderr)

    def counts(self) -> Counter[str]:
        """What happened to it, by name, as far as it could tell."""
        lines = [line for line in self._log.read_text().splitlines() if line.endswith("}")]
        return Counter(json.loads(lines[-1])) if lines else Counter()


class Pipeline:
    """One kind of fault and one way to rebalance.

    Args:
        site: the cluster.
        fault: `WORKERS` for faults of workers alone, else one of `FAULTS` on top of them.
        strategy: of `STRATEGIES`.
        rate: records per second.
        seed: of what is left to chance.
        client: the module whose consumers and producers the workers use.

    Attributes:
        violations: by kind, once `run` has returned.
        faults: what was done, by name.
    """

    def __init__(self, site: Site, fault: str, strategy: str, rate: float, seed: object,
                 client: str = "headrace") -> None:
        self.violations: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.sent = 0
        self._site, self._client, self._rate = site, client, rate
        self._name = f"{fault} / etl, {strategy}{'' if client == 'headrace' else f', {client}'}"
        self._strategy = STRATEGIES[strategy]
        self._topics = [site.make_topic() for _ in range(_STAGES + 1)]
        servers, properties = site.way_in(fault)
        self._way_in = {"bootstrap.servers": servers, **properties}
        self._injector = None if fault == WORKERS else Injector(site, self._topics[0], fault, seed)
        self._random = random.Random(f"pipeline {seed}")
        self._workers: list[Process] = []
        self._frozen: dict[Process, float] = {}
        self._gone: Counter[str] = Counter()
        self._started = 0
        self._end = threading.Event()

    def run(self, seconds: float) -> bool:
        """Feed and hurt for so long, heal, wait for the end, check, and print. True when nothing is wrong."""
        feeder = threading.Thread(target=self._feed, daemon=True)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="etl-") as logs:
            self._logs = Path(logs)
            for stage in range(_STAGES):
                for _ in range(_AT_LEAST):
                    self._start(stage)
            feeder.start()
            try:
                if self._injector is not None:
                    self._injector.start()
                self._hurt(began + seconds)
                self._end.set()
                self._thaw(float("inf"))
                if self._injector is not None:
                    self._injector.stop()
                    if self._injector.failure is not None:
                        self._broken("the faults could not go on", self._injector.failure)
                feeder.join()
                self._check()
            finally:
                self._end.set()
                self._stop_all()
        self._print(time.monotonic() - began)
        return not self.violations

    # The feeder and the workers

    def _feed(self) -> None:
        pace = Backpressure(self._rate)
        with Producer({**self._way_in, "enable.idempotence": True, "linger.ms": 5}) as producer:
            while not self._end.wait(0.02):
                for _ in range(pace.due()):
                    producer.produce(self._topics[0], value_of(_FEEDER, self.sent), _FEEDER)
                    self.sent += 1
                producer.poll(0)
            left = producer.flush(_LATE_S)
            if left:
                self._broken("the feeder", TimeoutError(f"{left} records are not delivered"))

    def _start(self, stage: int, transactional_id: str = "") -> None:
        self._started += 1
        job = {
            "client": self._client, "way_in": self._way_in, "source": self._topics[stage],
            "target": self._topics[stage + 1], "group": f"{self._topics[0]}-stage-{stage}", "strategy": self._strategy,
            "transactional_id": f"{self._topics[0]}-worker-{self._started}"}
        self._workers.append(Process(stage, job, self._logs / f"{self._started}.jsonl"))

    def _remove(self, worker: Process) -> None:
        self._workers.remove(worker)
        if self._frozen.pop(worker, None) is not None:
            worker.process.send_signal(signal.SIGCONT)
        worker.process.wait(_END_S)
        self._gone += worker.counts()

    def _hurt(self, until: float) -> None:
        """Something happens to a worker every second or two. Each stage keeps at least two."""
        shown = time.monotonic()
        while time.monotonic() < until:
            time.sleep(self._random.uniform(0.5, 2.0))
            self._replace_those_that_ended()
            self._thaw(time.monotonic())
            victim = self._random.choice(self._workers)
            self._random.choice((self._kill, self._terminate, self._freeze, self._add))(victim)
            if time.monotonic() > shown + _SHOW_EVERY_S:
                shown = time.monotonic()
                print(f"{self._name}: {max(until - shown, 0):.0f} s left, {self.sent} records sent, "
                      f"{self.faults.total()} faults of workers, {len(self._workers)} workers", flush=True)

    def _replace_those_that_ended(self) -> None:
        for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
            self.faults["ended by themselves"] += 1
            self._remove(worker)
            self._start(worker.stage)

    def _kill(self, victim: Process) -> None:
        self.faults["killed"] += 1
        victim.process.kill()
        self._remove(victim)
        self._start(victim.stage)

    def _terminate(self, victim: Process) -> None:
        if sum(worker.stage == victim.stage for worker in self._workers) <= _AT_LEAST:
            self._start(victim.stage)
        self.faults["ended"] += 1
        victim.process.terminate()
        self._remove(victim)

    def _freeze(self, victim: Process) -> None:
        """Longer than its session lasts: the group goes on without it, and it does not know when it wakes."""
        if victim not in self._frozen:
            self.faults["frozen"] += 1
            victim.process.send_signal(signal.SIGSTOP)
            self._frozen[victim] = time.monotonic() + _FROZEN_S

    def _thaw(self, by: float) -> None:
        for worker in [worker for worker, until in self._frozen.items() if until <= by]:
            del self._frozen[worker]
            worker.process.send_signal(signal.SIGCONT)

    def _add(self, like: Process) -> None:
        if sum(worker.stage == like.stage for worker in self._workers) < _AT_MOST:
            self.faults["added"] += 1
            self._start(like.stage)

    def _stop_all(self) -> None:
        self._thaw(float("inf"))
        for worker in self._workers:
            worker.process.terminate()
        for worker in list(self._workers):
            try:
                self._remove(worker)
            except subprocess.TimeoutExpired:
                self._broken("a worker does not end", TimeoutError(f"of stage {worker.stage}"))
                worker.process.kill()
                worker.process.wait()

    # What came of it

    def _numbers(self, topic: str) -> Counter[int]:
        """How often each record is in a topic, by its number; -1 for what the feeder has not sent."""
        log = read_again(self._site.servers, topic)
        return Counter(each.number if each.name == _FEEDER else -1 for partition in log.values() for each in partition)

    def _wait_for_the_last(self) -> None:
        """Until all have come out at the end, or nothing moves any more."""
        give_up_at, most = time.monotonic() + _LATE_S, -1
        while (count := self._numbers(self._topics[-1]).total()) < self.sent and time.monotonic() < give_up_at:
            if count > most:
                most, give_up_at = count, time.monotonic() + _LATE_S
            self._replace_those_that_ended()
            time.sleep(1.0)

    def _check(self) -> None:
        try:
            self._wait_for_the_last()
            found = [self._numbers(topic) for topic in self._topics[1:]]
        except TimeoutError as late:
            self._broken("reading again", late)
            return
        self._found = [numbers.total() for numbers in found]
        for numbers in found:
            self.violations["damaged"] += numbers.pop(-1, 0)
            self.violations["twice"] += numbers.total() - len(numbers)
        self.violations["missing"] += self.sent - len(found[-1])
        self.violations = +self.violations

    _found: list[int] = []

    def _broken(self, what: str, why: BaseException) -> None:
        self.violations["not over"] += 1
        print(f"{what}: {why!r}", file=sys.stderr, flush=True)

    def _print(self, seconds: float) -> None:
        brokers = self._injector.counts if self._injector is not None else Counter[str]()
        print(f"{self._name}: {seconds:.0f} s; workers: {listed(self.faults)}; brokers: {listed(brokers)}")
        print(f"  records: {self.sent} sent, {' / '.join(map(str, self._found))} behind the stages")
        print(f"  transactions: {listed(self._gone)}")
        print(f"  violations: {self.violations['missing']} missing, {self.violations['twice']} twice, "
              f"{self.violations['damaged']} damaged, {self.violations['not over']} not over", flush=True)
