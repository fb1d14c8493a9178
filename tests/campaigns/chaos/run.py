"""The long run: `python -m tests.campaigns.chaos --minutes 3`. Numbers at the end of each run; status 1 on a violation.

Real Apache Kafka, three brokers, replication factor 3, min.insync.replicas 2. Each kind of fault meets each kind of
load: idempotent producers, and transactional ones; a read_committed reader of ours is beside them. In the end all is
read again by somebody else's client and compared with what was acknowledged, committed and aborted. The third load is a
chain of groups (`etl`), whose workers are hurt as well as the brokers.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tools.kafka import KafkaStartError

from .etl.pipeline import AT_LEAST_ONCE, EXACTLY_ONCE, MODES, SHARE, WORKERS, Pipeline
from .etl.report import Result, show_all, write_json
from .faults import FAULTS, Injector
from .ledger import VIOLATIONS, Fate, Ledger, Outcome
from .loads import FLUSH_S, IDEMPOTENT, TRANSACTIONAL, group_of, writer_of
from .progress import listed
from .reader import GroupReader, Reader, committed_offset, read_again
from .site import Site

LOADS = ("idempotent", "transactional")
ETL = "etl"
_STALL_S = 120.0
_CALM_S = 1.0
_MORE_S = 60.0
_SHOW_EVERY_S = 0.5
_TELL_EVERY_S = 30.0


class Run:
    """One kind of fault and one kind of load at a site.

    Args:
        site: the cluster.
        fault: of `FAULTS`.
        load: of `LOADS`.
        rate: records per second of all writers together.
        seed: of what is left to chance.

    Attributes:
        violations: by kind, once `run` has returned.
    """

    def __init__(self, site: Site, fault: str, load: str, rate: float, seed: object) -> None:
        self.violations: Counter[str] = Counter()
        self._name = f"{fault} / {load}"
        self._site, self._fault = site, fault
        topic = site.make_topic()
        servers, properties = site.way_in(fault)
        self._topic, self._end = topic, threading.Event()
        self._ledger = Ledger(load == "transactional")
        configs = TRANSACTIONAL if self._ledger.transactional else IDEMPOTENT
        self._writers = [
            writer_of(name, self._ledger.transactional)(
                servers, topic, name, {**properties, **config}, rate / len(configs), self._ledger, self._end, seed)
            for name, config in configs.items()]
        self._reader = Reader(servers, topic, properties)
        self._readers = [self._reader, *([GroupReader(servers, topic, properties)] if fault == "garble" else [])]
        self._injector = Injector(site, topic, fault, seed)
        self._began = self._told = time.monotonic()
        self._notes: list[str] = []

    def run(self, seconds: float, faults: Collection[str] = ()) -> bool:
        """Hurt for so long, heal, check, and print what came of it. True when nothing is wrong.

        Args:
            seconds: how long to hurt it.
            faults: what has to have been done by then, by the names that are counted; it is hurt for up to
                `_MORE_S` longer for it.
        """
        for thread in (*self._readers, *self._writers):
            thread.start()
        # A cluster makes its internal topics when they are first needed, and only while all brokers are there.
        healthy = self._watch(
            lambda: any(writer.is_alive() and not writer.progress.begun for writer in self._writers), seconds)
        self._began = time.monotonic()
        if healthy:
            self._injector.start()
            healthy = self._watch(lambda: time.monotonic() < self._began + seconds or (
                not self._injector.counts.keys() >= set(faults)
                and time.monotonic() < self._began + seconds + _MORE_S), seconds)
            self._injector.stop()
        if self._injector.failure is not None:
            self._broken("the faults could not go on", self._injector.failure)
        calm_until = time.monotonic() + _CALM_S
        self._end_writers(healthy and self._watch(lambda: time.monotonic() < calm_until, seconds))
        self._check()
        self._print()
        return not self.violations

    def _watch(self, going: Callable[[], bool], seconds: float) -> bool:
        """Show how it goes; False when something makes no progress any more."""
        while going():
            time.sleep(_SHOW_EVERY_S)
            self._show(seconds)
            stuck = [each.name for each in self._writers if each.is_alive() and each.progress.idle_s > _STALL_S]
            if stuck:
                self._stuck(f"no progress of {', '.join(stuck)} for {_STALL_S:.0f} s")
                return False
        return True

    def _end_writers(self, healthy: bool) -> None:
        self._end.set()
        give_up_at = time.monotonic() + FLUSH_S + 60
        while healthy and any(writer.is_alive() for writer in self._writers):
            if time.monotonic() > give_up_at:
                self._stuck("writers do not end: " + ", ".join(w.name for w in self._writers if w.is_alive()))
                break
            time.sleep(0.05)
        for writer in self._writers:
            if writer.failure is not None:
                self._broken(f"{writer.name} could not go on", writer.failure)
            for kind in ("unfenced", "defects"):
                self.violations[kind] += writer.counts.pop(kind, 0)

    def _check(self) -> None:
        try:
            log = read_again(self._site.servers, self._topic)
            if self._ledger.transactional:
                self._check_offsets()
        except TimeoutError as late:
            self._broken("reading again", late)
            return
        self.violations += self._ledger.check(log)
        for reader in self._readers:
            reader.read_up_to(sum(map(len, log.values())))
            self.violations["readers differ"] += reader.differs(log)
            self.violations["reader error"] += len(reader.errors)
            self._notes += [f"{reader.name}: {error}" for error in reader.errors[:5]]
        self._found = sum(map(len, log.values()))
        self.violations = +self.violations

    def _check_offsets(self) -> None:
        for name in TRANSACTIONAL:
            offset = committed_offset(self._site.servers, self._topic, group_of(name))
            self.violations["wrong offset"] += not self._ledger.check_offset(name, offset)

    _found = 0

    # What is printed

    def _show(self, seconds: float) -> None:
        now = time.monotonic()
        if not sys.stdout.isatty() and now - self._told < _TELL_EVERY_S:
            return
        self._told = now
        done = min((now - self._began) / seconds, 1.0)
        fates, bar = self._ledger.fates(), "#" * int(20 * done)
        idle_s = max(writer.progress.idle_s for writer in self._writers)
        line = (f"[{bar:<20}] {self._name}: {now - self._began:.0f} of {seconds:.0f} s, {self._ledger.sent()} "
                f"records, {fates[Fate.STORED]} acknowledged, {self._reader.count} read, "
                f"{self._injector.counts.total()} faults, no progress for {idle_s:.1f} s ")
        print(f"\r{line:<130}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)

    def _print(self) -> None:
        fates, outcomes = self._ledger.fates(), self._ledger.outcomes()
        if sys.stdout.isatty():
            print(f"\r{'':<130}\r", end="")
        print(f"{self._name}: {time.monotonic() - self._began:.0f} s, {self._injector.counts.total()} faults "
              f"({listed(self._injector.counts)})")
        print(f"  records: {self._ledger.sent()} sent, {fates[Fate.STORED]} acknowledged, "
              f"{fates[Fate.DENIED]} failed, {fates[Fate.UNKNOWN]} failed that may be stored, {self._found} found")
        if self._ledger.transactional:
            print(f"  transactions: {outcomes[Outcome.COMMITTED]} committed, {outcomes[Outcome.ABORTED]} aborted, "
                  f"{outcomes[Outcome.UNKNOWN]} unknown")
        print("  longest time without progress: " + "; ".join(
            f"{each.progress.longest_s:.1f} s {each.name}" for each in (*self._writers, self._reader)))
        for writer in self._writers:
            if writer.counts:
                print(f"  {writer.name}: {listed(writer.counts)}")
        for note in self._notes:
            print(f"  {note}")
        print("  violations: " + ", ".join(f"{self.violations[kind]} {kind}" for kind in VIOLATIONS), flush=True)

    def _broken(self, what: str, why: BaseException) -> None:
        self.violations["not over"] += 1
        self._notes.append(f"{what}: {why!r}")

    def _stuck(self, what: str) -> None:
        """Say all that helps to find out why."""
        self.violations["not over"] += 1
        self._notes.append(what)
        print(f"\n{what}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(all_threads=True)
        for writer in self._writers:
            print(f"{writer.name}: {_state_of(writer.producer)}", file=sys.stderr, flush=True)


def _state_of(producer: Any) -> dict[str, Any]:
    if producer is None:  # it is being made
        return {}
    engine = producer._engine
    metadata, sender = engine.client.metadata, engine._sender
    state = {
        "undelivered": len(engine), "in flight per broker": sender._load.requests, "failed": sender.failed,
        "waiting": [(b.queue.partition, b.attempts, b.last_error) for b in sender._batch_queues.waiting()][:12],
        "in flight": [(b.queue.partition, b.attempts) for b in sender._batch_queues.in_flight()][:12],
        "nodes": sorted(metadata.cluster.nodes), "metadata in flight": metadata._in_flight,
    }
    if engine.transactions is not None:
        machine = engine.transactions.machine
        state |= {name.strip("_"): getattr(machine, name) for name in (
            "state", "error", "version", "_identity", "_contents", "_offsets", "_flying", "_failures", "_recovering")}
        state["coordinator"] = machine._finder.node_id
    return state


Start = Callable[[Site], tuple[Counter[str], Result | None]]
"""Runs something at a site: what was wrong with it, and what is told of a pipeline."""


def _producers(options: argparse.Namespace) -> list[tuple[str, Start]]:
    """The kind of fault of each run with producers, and what makes it."""

    def start(site: Site, fault: str, load: str) -> tuple[Counter[str], None]:
        run = Run(site, fault, load, options.rate, options.seed)
        run.run(options.minutes * 60)
        return run.violations, None

    faults = [fault for fault in options.faults or FAULTS if fault != WORKERS]
    return [(fault, partial(start, fault=fault, load=load))
            for fault, load in itertools.product(faults, options.load) if load != ETL]


def _pipelines(options: argparse.Namespace) -> list[tuple[str, Start]]:
    """The same of pipelines."""

    def start(site: Site, fault: str, mode: str, guarantee: str) -> tuple[Counter[str], Result]:
        pipeline = Pipeline(site, fault, mode, options.rate, options.seed, options.client, guarantee,
                            options.pause)
        pipeline.run(float("inf") if options.records else options.minutes * 60, options.records)
        return pipeline.violations, pipeline.result

    kinds = [(mode, guarantee) for mode in options.modes for guarantee in options.guarantees
             if mode != SHARE or guarantee == AT_LEAST_ONCE]
    return [(fault, partial(start, fault=fault, mode=mode, guarantee=guarantee))
            for fault in options.faults or (WORKERS, "kill") for mode, guarantee in kinds if ETL in options.load]


def _options(argv: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="of each run")
    parser.add_argument("--faults", nargs="+", choices=(*FAULTS, WORKERS), default=None,
                        help=f"all, if none is given; {WORKERS}: those of the pipeline alone")
    parser.add_argument("--load", nargs="+", choices=(*LOADS, ETL), default=(*LOADS, ETL))
    parser.add_argument("--rate", type=float, default=1000.0, help="records per second of all writers together")
    parser.add_argument("--seed", default=str(random.randrange(10**6)), help="of what chance decides; printed")
    parser.add_argument("--modes", nargs="+", choices=tuple(MODES), default=tuple(MODES),
                        help="the kinds of groups of the pipeline")
    parser.add_argument("--guarantees", nargs="+", choices=(EXACTLY_ONCE, AT_LEAST_ONCE),
                        default=(EXACTLY_ONCE, AT_LEAST_ONCE), help="of the pipeline; share groups have the latter")
    parser.add_argument("--records", type=int, help="of each pipeline, however long it takes, in place of --minutes")
    parser.add_argument("--pause", type=float, default=1.25,
                        help="seconds from one fault of a pipeline's workers to the next; brokers have twice as long")
    parser.add_argument("--client", default="headrace", help="whose clients the pipeline's workers use; to compare")
    parser.add_argument("--json", type=Path, help="where to write what is told of the pipelines")
    return parser.parse_args(None if argv is None else list(argv))


def main(argv: Iterable[str] | None = None) -> int:
    """Run all that is asked for; the exit status says whether there was a violation."""
    options = _options(argv)
    length = f"{options.records} records" if options.records else f"{options.minutes:g} minutes"
    print(f"seed {options.seed}, {options.rate:g} records/s, {length} each", flush=True)
    violations: Counter[str] = Counter()
    results: list[Result] = []
    runs = [*_producers(options), *_pipelines(options)]
    for fault, start in runs:
        try:
            with Site(3, options.seed, sasl=fault == "garble") as site:
                wrong, result = start(site)
                violations += wrong
                results += [] if result is None else [result]
        except KafkaStartError as broken:
            print(broken, file=sys.stderr, flush=True)
            violations["not over"] += 1
    show_all(results)
    if options.json is not None:
        write_json(options.json, results)
    print(f"{len(runs)} runs, {violations.total()} violations")
    return 1 if violations else 0
