"""Seeded simulation of exactly-once processing: workers of one group read, write and commit their offsets (KIP-447).

One seed is one schedule: workers with a transactional id each, one partition to read that goes from one to another
while the one before may not know it yet, and all the trouble of `tests.campaigns.sim.transactions`. A worker that
cannot go on is started again. Checked are safety (every input is written once and in order) and
progress (in the healed cluster all inputs are written).

    python -m tests.campaigns.sim.read_process_write --schedules 100000 --jobs 2
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Generator
from typing import Any

from headrace.machines.producer.transactions import ConsumerGroupMetadata, Operation
from headrace.types.records import TopicPartition

from .campaign import run_campaign
from .model_transactions import ModelTransactions
from .transactional_producer import TOPIC, Producer, Step, Txn
from .transactions import Simulation

_GROUP = "g1"
_OFFSETS = ("offsets", _GROUP)


class _View:
    """The simulation as one worker's producer sees it: with the coordinator of its own transactional id."""

    def __init__(self, sim: ReadProcessWrite, cluster: ModelTransactions) -> None:
        self._sim = sim
        self.cluster = cluster
        self.owner: Producer | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sim, name)


class Worker(Producer):
    """A member of the group. `seen` is what it knows: the generation, and whose the partition is."""

    def __init__(self, view: Any, number: int) -> None:
        self.number = number
        self.seen = (view.cluster.generations[_GROUP], view.assigned)
        super().__init__(view, 0, last=False)

    def _run(self) -> Step:
        if (yield from self._do(Operation.INIT)) is not None:
            return
        while not self.sim.done:
            if self.seen[1] != self.number:
                yield 0.05
                continue
            position = self.sim.committed_offset()
            if position is None:  # UNSTABLE_OFFSET_COMMIT
                yield 0.02
            elif not (yield from self._process(position, self.seen[0])):
                return
            yield self._pause()

    def _process(self, position: int, generation: int) -> Generator[Any, None, bool]:
        """One transaction; False if the producer cannot go on. What comes of it, the committed offset tells."""
        if self.machine.open() is not None:
            return False
        txn = Txn()
        self.txns.append(txn)
        behind = min(position + self._rng.choice([1, 2, 5]), self.sim.inputs)
        for number in range(position, behind):
            self._produce(txn)
            self.sim.input_of.update(dict.fromkeys(list(txn.records)[number - position :], number))
            if self._rng.random() < 0.3:
                yield self._pause()
        error = self.machine.add_offsets(
            [TopicPartition("in", 0, behind)], ConsumerGroupMetadata(_GROUP, generation, "m")
        )
        if error is None:
            yield lambda: Operation.OFFSETS in self.results
            error = self.results.pop(Operation.OFFSETS)
        return (yield from self._end(txn, error is None, True))


class ReadProcessWrite(Simulation):
    """One schedule."""

    def __init__(self, seed: int) -> None:
        self.assigned = 0
        self.input_of: dict[int, int] = {}
        super().__init__(seed)

    def _start(self) -> None:
        rng = self.random
        self.inputs = rng.choice([5, 20])
        self.cluster.poison.clear()  # no input is lost
        self._clusters = [self.cluster, *(self._coordinator(number) for number in range(1, rng.choice([2, 3])))]
        self._starts = itertools.count(1)
        self.producers = [Worker(_View(self, cluster), number) for number, cluster in enumerate(self._clusters)]
        for _ in range(rng.choice([0, 1, 3, 6])):
            self.at(rng.uniform(0, self.heal_at - 100.0), self._rebalance)

    def _coordinator(self, number: int) -> ModelTransactions:
        """Of another transactional id, in the same cluster."""
        first = self.cluster
        made = ModelTransactions(self.random, self.at, len(first.nodes), 0, (), 1000, first.timeout_s)
        made.partitions, made.generations, made.down = first.partitions, first.generations, first.down
        made.counts, made.largest, made.marker_delay_s = first.counts, first.largest, first.marker_delay_s
        made.ids = itertools.count(1000 * (number + 1))
        return made

    def _rebalance(self) -> None:
        """The partition goes to another worker; each learns of it in its own time."""
        self.counts["partitions handed over"] += 1
        self.assigned = self.random.randrange(len(self._clusters))
        self.cluster.generations[_GROUP] += 1
        news = (self.cluster.generations[_GROUP], self.assigned)
        for number in range(len(self._clusters)):
            self.at(self.random.uniform(0, 1.0), lambda number=number: self._tell(number, news))

    def _tell(self, number: int, news: tuple[int, int]) -> None:
        for worker in self.producers:
            if isinstance(worker, Worker) and worker.number == number:
                worker.seen = max(worker.seen, news)

    def committed_offset(self, require_stable: bool = True) -> int | None:
        """OffsetFetch; None as long as a transaction with offsets of the group is open (KIP-447)."""
        partition = self.cluster.partitions[_OFFSETS]
        if require_stable and partition.undecided():
            return None
        return max(partition.committed(), default=0)

    @property
    def done(self) -> bool:
        return self.committed_offset() == self.inputs

    def _step(self) -> float:
        moment = super()._step()
        for place, worker in enumerate(self.producers):
            if isinstance(worker, Worker) and worker.finished and not worker.crashed and not self.done:
                worker.crashed = True
                self.counts["workers started again"] += 1
                self.at(0.5, lambda number=worker.number, place=place: self._start_again(number, place))
        return moment

    def _start_again(self, number: int, place: int) -> None:
        self.producers[place] = Worker(_View(self, self._clusters[number]), number)

    def _check(self) -> None:
        written: list[int] = []
        for (topic, _), partition in self.cluster.partitions.items():
            if topic == TOPIC:
                inputs = [self.input_of[record] for record in partition.committed()]
                self.hold(inputs == sorted(inputs), f"written out of order: {inputs}")
                written += inputs
        self.counts["inputs written"] += len(written)
        self.hold(len(written) == len(set(written)), f"written twice: {sorted(written)}")
        self.hold(len(written) == self.inputs, f"of {self.inputs} inputs only {sorted(written)} are written")
        offsets = self.cluster.partitions[_OFFSETS].committed()
        self.hold(offsets == sorted(offsets), f"offsets went back: {offsets}")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return ReadProcessWrite(seed).run()


if __name__ == "__main__":
    sys.exit(run_campaign(run_schedule, "Simulate exactly-once processing in a group."))
