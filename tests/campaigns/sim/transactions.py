"""Seeded simulation of transactions: the producer's machines against a model of coordinators and leaders.

One seed is one schedule: an application that writes, commits offsets, commits, aborts, purges or crashes; others that
take its transactional id over; lost, late and repeated requests and replies; coordinators and leaders that move or are
missing; groups whose members are replaced; transactions that time out; refusals that doom a transaction or a producer;
batches that are too large; producers that are forgotten; a cluster that changes between transactions versions 1 and 2.
Afterwards everything heals. Checked are safety (a committed transaction is seen whole, once and in order, with its
offsets; any other not at all; what was reported is true) and progress (the healed cluster commits).

    python -m tests.campaigns.sim.transactions --schedules 100000 --jobs 2
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections import Counter
from typing import Any

from headrace.errors import KafkaError as K
from headrace.machines.machine import Machine, Send
from headrace.testing.simulated_clock import SimulatedClock
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest

from .campaign import Violation, run_campaign
from .model_batches import ModelSealed
from .model_transactions import ModelTransactions
from .transactional_producer import Producer, Txn
from .transactional_replies import NEWEST, OLDER, answer, ends_well, says_fenced

GROUPS = ("g1", "g2")


class Simulation:
    """One schedule. `run` raises `Violation` if a property does not hold.

    Attributes:
        counts: how often what happened.
        timeout_ms: that the producers ask for.
    """

    timeout_ms = 60_000

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.clock = SimulatedClock()
        self.at = self.clock.after
        self.heal_at = 100.0 + rng.choice([0.5, 2.0, 5.0])
        self.faults = rng.choice([0.0, 0.02, 0.1, 0.3])
        self.bounded = rng.random() < 0.1
        self.partitions = rng.choice([1, 2, 3])
        self.request_timeout_s = rng.choice([0.2, 1.0])
        self.offsets_rate = rng.choice([0.0, 0.0, 0.2])
        self.level = rng.choice([0, 2])
        self.newest = NEWEST if self.level or rng.random() < 0.7 else OLDER
        self._refused: tuple[float, float] | None = None  # from when to when
        self._records = itertools.count()
        self._links: dict[tuple[Producer, int], _Link] = {}
        self._slowest_s = rng.choice([0.05, 0.4, 1.5])
        timeout_s = rng.choice([0.7, 60.0, 60.0, 60.0])
        self.cluster = self._make_cluster(rng.choice([1, 2, 3]), rng.choice([4, 32_767, 32_767]), timeout_s)
        self.cluster.counts = self.counts
        self._slow_markers = rng.random() < 0.3
        self.cluster.marker_delay_s = self._marker_delay_s
        self.owner: Producer | None = None  # who took the transactional id over last
        self._under_way = 0  # produce requests that may still arrive
        self._trouble()
        self.producers: list[Producer] = []
        self._start()

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock.now

    def _make_cluster(self, nodes: int, max_epoch: int, timeout_s: float) -> Any:
        return ModelTransactions(self.random, self.at, nodes, self.partitions, GROUPS, max_epoch, timeout_s)

    def sealed(self, records: list[int]) -> Any:
        """The bytes of a batch, or what stands for them."""
        return ModelSealed(records)

    def _answer(self, producer: Producer, node: int, send: Send, late: bool) -> Any:
        sim = producer.sim
        sim.cluster.late = late
        return answer(sim, producer, node, send, late=late)

    def _start(self) -> None:
        """The producers: one, and those that take its transactional id over."""
        rng = self.random
        rivals = rng.choice([0, 0, 0, 0, 0, 0, 1, 1, 2])
        self.producers = [Producer(self, rng.choice([1, 3, 6]), last=not rivals)]
        moments = sorted(rng.uniform(0, self.heal_at - 100.0) for _ in range(rivals))
        for place, moment in enumerate(moments, 1):
            self.at(moment, lambda last=place == rivals: self._take_over(last))

    def _trouble(self) -> None:
        """What is rarer."""
        rng, span, cluster = self.random, self.heal_at - 100.0, self.cluster
        if rng.random() < 0.1:
            begin = self.now + rng.uniform(0, span)
            self._refused = (begin, begin + rng.uniform(0, 2.0))
        if rng.random() < 0.15:
            cluster.largest = rng.choice([1, 2, 3])
        if rng.random() < 0.1:
            cluster.poison = {rng.randrange(40) for _ in range(3)}
            self.at(span, cluster.poison.clear)
        if rng.random() < 0.1:
            self.at(rng.uniform(0, span), self._lose_leader)
        for _ in range(rng.choice([0, 0, 1, 3]) if self.offsets_rate else 0):
            self.at(rng.uniform(0, span), self._rebalance)
        self.forgetful = self.newest is OLDER and rng.random() < 0.4
        if self.forgetful:
            for partition in cluster.partitions.values():
                partition.forgetful = True
            for _ in range(4):
                self.at(rng.uniform(0, span), self._forget)

    def _take_over(self, last: bool) -> None:
        if self.random.random() < 0.4:
            self.producers[-1].crash()
        self.counts["producers that took over"] += 1
        self.producers.append(Producer(self, self.random.choice([0, 2]), last=last))

    def _rebalance(self) -> None:
        self.cluster.rebalance()

    def _lose_leader(self) -> None:
        partition = self.cluster.lose_leader()
        self.at(self.random.uniform(0.01, 0.5), lambda: self.cluster.elect(partition))

    def _forget(self) -> None:
        """Retention: what is deleted is hours old, so no request can be on the way from before."""
        if not self._under_way and not any(producer.sender.unresolved() for producer in self.producers):
            self.counts["producers forgotten after retention"] += 1
            self.random.choice([p for (topic, _), p in self.cluster.partitions.items() if topic == "t"]).forget()

    def refuses(self, rate: float) -> bool:
        """Is a request refused for a reason that time does not heal?"""
        begin, end = self._refused or (math.inf, math.inf)
        return begin <= self.now < end and self.random.random() < rate

    def backoff(self, attempt: int) -> float:
        return float(min(0.01 * 2**attempt, 0.2) * (0.8 + 0.4 * self.random.random()))

    def new_record(self) -> int:
        return next(self._records)

    def _marker_delay_s(self) -> float:
        slow = self.faulty or (self._slow_markers and self.now < self.heal_at)
        return self.random.uniform(0, min(self._slowest_s, 0.4)) if slow else 0.0005

    def hold(self, holds: bool, text: str) -> None:
        if not holds:
            raise Violation(f"seed {self.seed}: {text}")

    # Time

    @property
    def faulty(self) -> bool:
        return self.now < self.heal_at and self.random.random() < self.faults

    def run(self) -> Counter[str]:
        """Run the schedule; returns how often what happened."""
        rng, span = self.random, self.heal_at - 100.0
        for _ in range(rng.choice([0, 1, 3]) if self.faults else 0):
            self.at(rng.uniform(0, span), self.cluster.move_coordinator)
            self.at(rng.uniform(0, span), self.cluster.move_leader)
            self.at(rng.uniform(0, span), self._restart_broker)
            self.at(rng.uniform(0, span), self._cut_any)
        for _ in range(rng.choice([0, 0, 1, 2]) if self.newest is NEWEST else 0):
            self.at(rng.uniform(0, span), self._change_level)
        self._loop()
        self.counts["events"] += self.clock.happened
        self._check()
        return self.counts

    def _change_level(self) -> None:
        self.level = 2 - self.level
        self.counts["changes of the transactions' version"] += 1

    def _loop(self) -> None:
        polled_for, clock = -1.0, self.clock
        for _ in range(50_000):
            deadline = self._step()
            event_at = clock.next()
            if event_at == math.inf and all(p.finished for p in self.producers):
                return
            self.hold(deadline > self.now or polled_for != self.now, "a deadline stays in the past: a loop would spin")
            moment = min(event_at, deadline)
            if moment == math.inf or moment > self.heal_at + 90:
                break
            polled_for = self.now
            clock.go_to(moment)
        self.hold(all(p.finished for p in self.producers), "no progress: an operation never ended")

    def _step(self) -> float:
        deadlines = []
        for producer in self.producers:
            if producer.crashed:
                continue
            going = True
            while going:  # the application may have changed something
                before = (producer.waits_for, len(producer.machines))
                for machine in list(producer.machines):
                    for send in list(machine.poll(self.now)):
                        self._transmit(producer, machine, send)
                events = [event for machine in producer.machines for event in machine.events()]
                for event in events:
                    producer.on_event(event)
                producer.resume()
                going = bool(events) or (producer.waits_for, len(producer.machines)) != before
            deadlines += [d for machine in producer.machines if (d := machine.deadline()) is not None]
        return min(deadlines, default=math.inf)

    # The network

    def _transmit(self, producer: Producer, machine: Machine, send: Send) -> None:
        if producer.fenced and isinstance(send.request, InitProducerIdRequest):  # it would end the other's transaction
            self.hold(send.request.producer_id != producer.sim.cluster.transaction.producer_id,
                      "a new epoch was asked for although the coordinator said that another producer took over")
        node = send.destination if send.destination >= 0 else self.random.choice(self.cluster.nodes)
        if node in self.cluster.down:
            self.counts["connections refused"] += 1
            refused = K(K._TRANSPORT, "refused")
            self.at(0.005, lambda: machine.on_error(send, refused, self.now))
            return
        link = self._links.get((producer, node))
        if link is None or link.cut:
            link = self._links[producer, node] = _Link(producer)
        link.outstanding[id(send)] = (machine, send)
        link.arrives_at = max(self.now + self._delay_s("requests late", 0.02), link.arrives_at)
        self._arrives(link.arrives_at - self.now, node, link, send)
        self.at(send.timeout_s, lambda: self._time_out(link, send))
        if self.faulty:
            self.at(self.random.uniform(0, 0.05), lambda: self._cut(link))
        if self.faulty:  # the connection breaks at once, and the request lingers somewhere
            self.counts["requests repeated"] += 1
            self.at(0.0001, lambda: self._cut(link))
            self._arrives(self.random.uniform(0.002, self.random.choice([0.2, 2.0])), node, link, send)

    def _delay_s(self, what: str, short: float) -> float:
        if not self.faulty:
            return 0.0005
        self.counts[what] += 1
        return self.random.choice([0.0005, short, self._slowest_s])

    def _arrives(self, delay_s: float, node: int, link: _Link, send: Send) -> None:
        produce = isinstance(send.request, ProduceRequest)
        self._under_way += produce

        def arrive() -> None:
            self._under_way -= produce
            self._arrive(node, link, send)

        self.at(delay_s, arrive)

    def _arrive(self, node: int, link: _Link, send: Send) -> None:
        late = id(send) not in link.outstanding or link.producer.crashed
        if node in self.cluster.down or (late and self.random.random() < 0.4):
            self.counts["requests lost"] += 1
            return
        self.counts["requests that arrived when nobody waited for them"] += late
        reply = self._answer(link.producer, node, send, late)
        if late:
            self.counts["replies lost"] += 1
            return
        link.answers_at = max(self.now + self._delay_s("replies late", 0.05), link.answers_at)
        self.at(link.answers_at - self.now, lambda: self._deliver(link, send, reply))
        if self.faulty:  # nothing awaits the second one: the stream is broken (`machines.cluster.in_flight`)
            self.counts["replies repeated"] += 1
            self.at(link.answers_at - self.now, lambda: self._cut(link))

    def _deliver(self, link: _Link, send: Send, reply: Any) -> None:
        if id(send) in link.outstanding and not link.producer.crashed:
            machine, _ = link.outstanding.pop(id(send))
            link.producer.fenced = says_fenced(reply) or (link.producer.fenced and not ends_well(reply))
            machine.on_reply(send, reply, self.now)

    def _time_out(self, link: _Link, send: Send) -> None:
        if id(send) in link.outstanding and not link.cut:
            self.counts["requests timed out"] += 1
            self._cut(link, K(K._TIMED_OUT, "no answer", maybe_applied=True))

    def _cut(self, link: _Link, error: K | None = None) -> None:
        if link.cut:
            return
        self.counts["connections cut"] += 1
        link.cut = True
        if link.producer.crashed:
            return
        lost, link.outstanding = link.outstanding, {}
        for machine, send in lost.values():
            machine.on_error(send, error or K(K._TRANSPORT, "cut", maybe_applied=True), self.now)

    def _cut_any(self) -> None:
        if self._links:
            self._cut(self.random.choice(list(self._links.values())))

    def _restart_broker(self) -> None:
        self.counts["brokers restarted"] += 1
        node = self.random.choice(self.cluster.nodes)
        self.cluster.stop(node)
        for (_, other), link in self._links.items():
            if other == node:
                self._cut(link)
        self.at(self.random.uniform(0.01, 1.0), lambda: self.cluster.start(node))

    # The properties

    def _check(self) -> None:
        logs = {key: partition.committed() for key, partition in self.cluster.partitions.items()}
        for key, partition in self.cluster.partitions.items():
            self.hold(not partition.undecided(), f"{key} has a transaction that nobody ends")
            order = sorted(logs[key] if key[0] == "offsets" else set(logs[key]))  # the same offset may come twice
            self.hold(logs[key] == order, f"{key} has something twice or out of order: {logs[key]}")
        seen = {item for log in logs.values() for item in log}
        for producer in self.producers:
            for txn in producer.txns:
                self._check_transaction(producer, txn, seen)
            self._check_end(producer)

    def _check_transaction(self, producer: Producer, txn: Txn, seen: set[int]) -> None:
        self.counts[f"transactions {txn.outcome or 'whose end was never told'}"] += 1
        items = {*txn.records, *txn.offsets.values()}
        visible = items & seen
        if txn.outcome == "committed":
            failed = [record for record in txn.records if producer.reports.get(record) is not None]
            self.hold(not failed, f"committed, although the records {failed} were reported as failed")
            self.hold(visible == items, f"committed, but {items - visible} is missing")
        elif txn.outcome == "aborted":
            self.hold(not visible, f"aborted, but {visible} can be read")
        else:
            self.hold(not visible or visible == items, f"torn: {visible} of {items} can be read")

    def _check_end(self, producer: Producer) -> None:
        error = producer.machine.error
        if error is not None and producer is self.owner and not self.cluster.fences:
            raise Violation(f"seed {self.seed}: no progress, the healed cluster cannot be written to: {error!r}")
        # With a first attempt of unknown fate a producer that was forgotten has to abort once.
        uncommitted = sum(txn.outcome != "committed" for txn in producer.final)
        self.hold(error is not None or uncommitted <= self.forgetful or bool(self.cluster.fences),
                  "no progress, the healed cluster does not commit")
        for record in itertools.chain.from_iterable(txn.records for txn in producer.txns):
            self.hold(producer.crashed or record in producer.reports, f"record {record} was never reported")


class _Link:
    """A producer's requests to one broker, in order. When it is cut, what is on the way may still arrive."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.cut = False
        self.outstanding: dict[int, tuple[Machine, Send]] = {}
        self.arrives_at = 0.0
        self.answers_at = 0.0


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return Simulation(seed).run()


if __name__ == "__main__":
    sys.exit(run_campaign(run_schedule, "Simulate transactions."))
