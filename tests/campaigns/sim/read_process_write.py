"""The simulation of exactly-once processing: workers of one group read, write and commit their offsets (KIP-447).

One seed is one schedule: workers with a transactional id each, one partition to read that goes from one to another
while the one before may not know it yet, and the embedded broker, the network and all the trouble of
`whole_transactions`. Where to go on a worker asks the group's coordinator, as a consumer does. A worker that cannot go
on is started again. Checked are safety (every input is written once and in order) and progress (in the healed cluster
all inputs are written, and no worker waits for a transaction to time out).

    python -m tests.campaigns.sim.whole --of read-process-write --schedules 100000 --jobs 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

from headrace.errors import KafkaError as K
from headrace.machines.producer.transactions import ConsumerGroupMetadata, Operation
from headrace.types.records import TopicPartition
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.consumer.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.producer.transactions import TxnOffsetCommitResponse

from .transactional_producer import TOPIC, Producer, Step, Txn
from .whole_transactions import WholeTransactions

_GROUP, _INPUT = "g1", "in"
_OFFSETS = ("offsets", _GROUP)
_FETCH_VERSION = 9
"""Of OffsetFetch: topics are named."""
_PROMPT_S = 30.0
"""Half of what ends a transaction that nobody ends."""


class Worker(Producer):
    """A member of the group.

    Attributes:
        number: its own.
        seen: what it knows: the generation, and whose the partition is.
    """

    sim: ReadProcessWrite

    def __init__(self, sim: ReadProcessWrite, number: int) -> None:
        self.number = number
        self.name = f"x{number or ''}"
        self.seen = (sim.cluster.generations[_GROUP], sim.assigned)
        super().__init__(sim, 0, last=False)

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
            elif not self.sim.done and not (yield from self._process(position, self.seen[0])):
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
            [TopicPartition(_INPUT, 0, behind)], ConsumerGroupMetadata(_GROUP, generation, "m")
        )
        if error is None:
            yield lambda: Operation.OFFSETS in self.results
            error = self.results.pop(Operation.OFFSETS)
        return (yield from self._end(txn, error is None, True))


class ReadProcessWrite(WholeTransactions):
    """One schedule.

    Attributes:
        assigned: whose the partition is.
        done: a worker has seen that all is written.
        done_at: when it did.
    """

    def __init__(self, seed: int) -> None:
        self.assigned, self.done, self.done_at = 0, False, 0.0
        self.input_of: dict[int, int] = {}
        super().__init__(seed)

    def _start(self) -> None:
        rng = self.random
        self.inputs = rng.choice([5, 20])
        self.producers = [Worker(self, number) for number in range(rng.choice([2, 3]))]
        for _ in range(rng.choice([0, 1, 3, 6])):
            self.at(rng.uniform(0, self.heal_at - 100.0), self._rebalance)

    def _carried_out(self, producer: Producer, node: int, received: RequestFrame, late: bool) -> Any:
        reply = super()._carried_out(producer, node, received, late)
        if isinstance(reply, TxnOffsetCommitResponse):
            self.counts["offsets of a member that was replaced"] += any(
                part.error_code == K.ILLEGAL_GENERATION for topic in reply.topics for part in topic.partitions)
        return reply

    def _rebalance(self) -> None:
        """The partition goes to another worker; each learns of it in its own time."""
        self.counts["partitions handed over"] += 1
        self.assigned = self.random.randrange(len(self.producers))
        self.cluster.rebalance(_GROUP)
        news = (self.cluster.generations[_GROUP], self.assigned)
        for number in range(len(self.producers)):
            self.at(self.random.uniform(0, 1.0), lambda number=number: self._tell(number, news))

    def _tell(self, number: int, news: tuple[int, int]) -> None:
        for worker in self.producers:
            if isinstance(worker, Worker) and worker.number == number:
                worker.seen = max(worker.seen, news)

    def committed_offset(self, require_stable: bool = True) -> int | None:
        """OffsetFetch; None while there is no answer, as long as a transaction with the offset is open (KIP-447)."""
        found = self.cluster.cluster.coordinator(_GROUP)
        if found is None:
            return None
        wanted = OffsetFetchRequestGroup(group_id=_GROUP, topics=[
            OffsetFetchRequestTopics(name=_INPUT, partition_indexes=[0])])
        request = OffsetFetchRequest(groups=[wanted], require_stable=require_stable)
        reply = self.cluster.answer_of(found.id, RequestFrame(request.api_key, _FETCH_VERSION, 0, "p", request))
        part = reply.groups[0].topics[0].partitions[0]
        if part.error_code == K.UNSTABLE_OFFSET_COMMIT:
            self.counts["offsets that were not settled"] += 1
            return None
        self.hold(not part.error_code, f"OffsetFetch: {K(part.error_code)}")
        if not self.done and part.committed_offset == self.inputs:
            self.done, self.done_at = True, self.now
        return max(part.committed_offset, 0)

    def _step(self) -> float:
        moment = super()._step()
        for worker in self.producers:
            if isinstance(worker, Worker) and worker.finished and not worker.crashed and not self.done:
                worker.crashed = True
                self.counts["workers started again"] += 1
                self.at(0.5, lambda number=worker.number: self._start_again(number))
        return moment

    def _start_again(self, number: int) -> None:
        self.producers[number] = Worker(self, number)

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
        self.hold(self.done_at < self.heal_at + _PROMPT_S, "no progress before a transaction was open for too long")
        offsets = self.cluster.partitions[_OFFSETS].committed()
        self.hold(offsets == sorted(offsets), f"offsets went back: {offsets}")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return ReadProcessWrite(seed).run()
