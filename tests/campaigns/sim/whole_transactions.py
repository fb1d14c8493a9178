"""The simulation of transactions with the embedded broker in place of the model.

One seed is one schedule, as in `tests.campaigns.sim.transactions`, with the same applications, network and checks; but
batches are bytes, and coordinator, leaders, markers and committed offsets are the broker's own. So each side tests the
other. What this broker does not do is left out: it looks into no record, and never forgets a producer by retention.

    python -m tests.campaigns.sim.whole --of transactions --schedules 100000 --jobs 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from headrace.broker.coordinators.classic_groups import Member
from headrace.broker.coordinators.transactional_ids import OngoingTransaction, TransactionState
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.partition import NO_LEADER, Partition
from headrace.errors import KafkaError as K
from headrace.machines.cluster.coordinator import TRANSACTION
from headrace.machines.machine import Machine, Send
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

from . import transactional_replies as replies
from .pure_brokers import HEADER_BYTES, RECORD_BYTES, PureBrokers, arrived, numbers_in, refused, sealed, told
from .transactional_producer import TOPIC, TOPIC_ID, Producer
from .transactions import GROUPS, Simulation

_NAME, _INPUT = "x", "in"
_LAST_EPOCH = 32_767
_NOBODY = OngoingTransaction(_NAME, -1)
_PASSING_OFFSETS = (K.COORDINATOR_NOT_AVAILABLE, K.REQUEST_TIMED_OUT)


class _Log:
    """A partition as the simulation looks at it."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.forgetful = False

    @property
    def leader(self) -> int:
        return self._partition.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._partition.leader_epoch

    def committed(self) -> list[int]:
        return [number for _, number in numbers_in(self._partition, committed=True)]

    def undecided(self) -> bool:
        return self._partition.last_stable_offset < self._partition.log.end_offset


class _Offsets:
    """A group's committed offsets, in the order in which they came to be seen."""

    def __init__(self, store: Any, group: str) -> None:
        self._store, self._group = store, group
        self.leader, self.leader_epoch = NO_LEADER, -1
        self.forgetful = False
        self.seen: list[int] = []

    def note(self) -> None:
        found = self._store.fetch(self._group).get((_INPUT, 0))
        if found is not None and self.seen[-1:] != [found.offset]:
            self.seen.append(found.offset)

    def committed(self) -> list[int]:
        return self.seen

    def undecided(self) -> bool:
        return bool(self._store.unstable(self._group))


class TransactionCluster(PureBrokers):
    """The brokers with one topic and two groups; what `ModelTransactions` has for the simulation.

    Attributes:
        fences: why a producer may be fenced without a rival.
        generations: of each group; offsets of a member of another one are refused (KIP-447).
        opened_late: the open transaction was opened by a request that nobody waits for any more.
    """

    def __init__(self, sim: WholeTransactions, nodes: int, max_epoch: int, marker_delay_ms: int) -> None:
        settings = BrokerSettings(auto_create_topics=False, marker_delay_ms=marker_delay_ms,
                                  transaction_version=2 if sim.newest is replies.NEWEST else 0)
        self._ids = iter([UUID(int=1), TOPIC_ID, UUID(int=8)])
        super().__init__(sim.clock, sim.random, nodes, settings)
        self.counts: Counter[str] = Counter()
        self.fences: list[str] = []
        self.poison: set[int] = set()
        self.late = self.opened_late = False
        self._largest = 1000
        catalog = self.cluster.catalog
        self.topic = catalog.create(TOPIC, sim.partitions, sim.random.randint(1, nodes))
        catalog.create(_INPUT, 1, 1)
        self.generations = dict.fromkeys(GROUPS, 1)
        self.partitions: dict[Any, Any] = {(TOPIC, each.index): _Log(each) for each in self.topic.partitions}
        self.offsets = {group: _Offsets(self.cluster.offsets, group) for group in GROUPS}
        self.partitions |= {("offsets", group): each for group, each in self.offsets.items()}
        self._make_groups()
        self._watch_offsets()
        if max_epoch < _LAST_EPOCH:
            self._wear_out(max_epoch)

    def _new_uuid(self) -> UUID:
        return next(self._ids)

    def _make_groups(self) -> None:
        for group_id in GROUPS:
            group = self.cluster.groups.get_or_make(group_id)
            group.members["m"] = Member("m", None, "c", "host", 60.0, 60.0, {})
            group.generation = 1

    def _watch_offsets(self) -> None:
        store, settle = self.cluster.offsets, self.cluster.offsets.settle

        def settled(producer_id: int, *, commit: bool) -> None:
            settle(producer_id, commit=commit)
            for each in self.offsets.values():
                each.note()

        store.settle = settled  # type: ignore[method-assign]

    def _wear_out(self, left: int) -> None:
        """The transactional id was used so often that its producer id has few epochs left."""
        self.cluster.transactions.initialise(_NAME, 60_000, None, self.now)
        self.transaction.epoch = _LAST_EPOCH - 1 - left

    @property
    def transaction(self) -> OngoingTransaction:
        """What the coordinator knows of the transactional id."""
        return self.cluster.transactions.get(_NAME, self.now) or _NOBODY

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return self.transaction.state is TransactionState.ONGOING

    @property
    def largest(self) -> int:
        """Most records of a batch."""
        return self._largest

    @largest.setter
    def largest(self, count: int) -> None:
        self._largest = count
        self.topic.configure({"max.message.bytes": str(HEADER_BYTES + RECORD_BYTES * count)})

    def _ring(self) -> None:
        was_open = self.is_open
        super()._ring()
        if was_open and not self.is_open:
            self.fences.append("a transaction was open for too long")
            self.counts["transactions timed out"] += 1

    # What happens to a cluster

    def heal(self) -> None:
        self.cluster.settings.marker_delay_ms = 0

    def move_coordinator(self) -> None:
        """It is where the hash of the name says: it moves when a node goes, and when it comes back."""

    def rebalance(self) -> None:
        group = self._chance.choice(GROUPS)
        self.counts["groups rebalanced"] += 1
        self.generations[group] += 1
        found = self.cluster.groups.get(group)
        assert found is not None
        found.generation += 1

    def move_leader(self) -> None:
        self.counts["leaders moved"] += 1
        self.lead(self._chance.choice(self.topic.partitions))

    def lose_leader(self) -> Partition:
        self.counts["partitions without a leader"] += 1
        partition = self._chance.choice(self.topic.partitions)
        partition.lead(NO_LEADER)
        return partition

    def elect(self, partition: Partition) -> None:
        if partition.leader_id == NO_LEADER:
            self.lead(partition)


class WholeTransactions(Simulation):
    """One schedule."""

    cluster: TransactionCluster

    def __init__(self, seed: int) -> None:
        self._written: dict[Send, bytearray] = {}
        super().__init__(seed)
        self.forgetful = False
        self.cluster.poison.clear()
        self.at(self.heal_at - self.now, self.cluster.heal)

    def _make_cluster(self, nodes: int, max_epoch: int, timeout_s: float) -> Any:
        self.timeout_ms = int(timeout_s * 1000)
        return TransactionCluster(self, nodes, max_epoch, self.random.choice([0, 0, 5, 400]))

    def _forget(self) -> None:
        """This broker does not."""

    def sealed(self, records: list[int]) -> Any:
        return sealed(records, 1_700_000_000_000)

    def _transmit(self, producer: Producer, machine: Machine, send: Send) -> None:
        self._written[send] = self.cluster.written(send, "p", self.newest.get(type(send.request)))
        super()._transmit(producer, machine, send)

    # What a broker answers, and what goes wrong with it

    def _answer(self, producer: Producer, node: int, send: Send, late: bool) -> Any:
        self.cluster.late = late
        received = arrived(self._written[send])
        was_open = self.cluster.is_open
        reply = self._carried_out(producer, node, received, late)
        if self.cluster.is_open and not was_open:
            self.cluster.opened_late = late
        return told(received, reply)

    def _carried_out(self, producer: Producer, node: int, received: RequestFrame, late: bool) -> Any:
        request = received.request
        if isinstance(request, ProduceRequest):
            return self._produce(node, received, request)
        if isinstance(request, FindCoordinatorRequest):
            return self._find(node, received, request)
        if isinstance(request, TxnOffsetCommitRequest):
            return self._told(node, received, self._doom(replies._DOOM_OFFSETS), _PASSING_OFFSETS)
        if isinstance(request, InitProducerIdRequest):
            return self._init(producer, node, received, request, late)
        code = self._code(replies._PASSING)
        if isinstance(request, EndTxnRequest) and not code and request.committed:
            code = self._doom(replies._DOOM, lambda: self.cluster.fences.append("a commit was refused"))
        elif isinstance(request, AddOffsetsToTxnRequest):
            code = code or self._doom(replies._DOOM_OFFSETS)
        elif isinstance(request, AddPartitionsToTxnRequest) and not code:
            code = self._doom(replies._DOOM)
            if code == K.TOPIC_AUTHORIZATION_FAILED:
                wanted = [index for topic in request.v3_and_below_topics for index in topic.partitions]
                codes = dict.fromkeys(wanted, K.OPERATION_NOT_ATTEMPTED) | {self.random.choice(wanted): code}
                return replies._partitions_answer(codes)
        return self._told(node, received, code)

    def _told(self, node: int, received: RequestFrame, code: int,
              passing: tuple[int, ...] = (K.COORDINATOR_NOT_AVAILABLE,)) -> Any:
        """The broker's reply, or an error in its place: at once, or after all was done."""
        if code:
            return refused(received, code)
        reply = self.cluster.answer_of(node, received)
        return refused(received, self.random.choice(passing)) if self.faulty else reply

    def _code(self, passing: tuple[int, ...]) -> int:
        code = replies._fatal(self)
        return self.random.choice(passing) if self.faulty else code

    def _doom(self, codes: tuple[int, ...], noted: Callable[[], None] = lambda: None) -> int:
        if code := replies._doom(self, codes):
            noted()
        return code

    def _find(self, node: int, received: RequestFrame, request: FindCoordinatorRequest) -> Any:
        if request.key_type != TRANSACTION and self.refuses(0.1):
            return refused(received, K.GROUP_AUTHORIZATION_FAILED)
        return refused(received, K.COORDINATOR_NOT_AVAILABLE) if self.faulty else self.cluster.answer_of(node, received)

    def _init(self, producer: Producer, node: int, received: RequestFrame, request: InitProducerIdRequest,
              late: bool) -> Any:
        cluster, known = self.cluster, self.cluster.transaction
        takes_over = request.producer_epoch < 0
        if code := self._code(replies._PASSING):
            return refused(received, code)
        if late:
            cluster.fences.append("a late InitProducerId")
        if cluster.is_open and (late or takes_over or cluster.opened_late or request.producer_epoch != known.epoch):
            cluster.fences.append("InitProducerId in an open transaction")
        reply = cluster.answer_of(node, received)
        if not reply.error_code and takes_over:
            self.owner = producer
        return refused(received, K.COORDINATOR_NOT_AVAILABLE) if self.faulty else reply

    def _produce(self, node: int, received: RequestFrame, request: ProduceRequest) -> ProduceResponse:
        topic, answers, taken = request.topic_data[0], list[PartitionProduceResponse](), []
        for data in topic.partition_data:
            if code := self._refusal():
                answers.append(PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1))
            else:
                taken.append(data)
        reply = ProduceResponse(responses=[TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)])
        topic.partition_data = taken
        if taken:
            reply = self.cluster.answer_of(node, received)
            answers += [self._changed(each) for each in reply.responses[0].partition_responses]
        if self.faulty:
            self.counts["partitions missing in answers"] += 1
            answers.pop()
        reply.throttle_time_ms = self.random.choice([1, 50, 200]) if self.faulty else 0
        reply.responses[0].partition_responses = answers
        return reply

    def _refusal(self) -> int:
        if self.faulty:
            self.counts["errors before the append"] += 1
            return self.random.choice(replies._BEFORE_APPEND)
        return replies._doom(self, replies._DOOM) or replies._fatal(self)

    def _changed(self, answer: PartitionProduceResponse) -> PartitionProduceResponse:
        self.counts[f"brokers said {K(answer.error_code).name()}"] += 1
        if answer.error_code == 0 and self.faulty:
            self.counts["errors after the append"] += 1
            return PartitionProduceResponse(index=answer.index, base_offset=-1,
                                            error_code=self.random.choice(replies._AFTER_APPEND))
        return answer


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return WholeTransactions(seed).run()


__all__ = ["TransactionCluster", "WholeTransactions", "run_schedule"]
