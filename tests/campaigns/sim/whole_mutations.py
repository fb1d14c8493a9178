"""Rules of the embedded broker, each broken: the machines that run together with it have to notice."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.broker.coordinators.classic_groups import Group, GroupState, Member
from headrace.broker.coordinators.committed_offsets import OffsetStore
from headrace.broker.coordinators.planned_groups import PlannedGroup, PlannedMember
from headrace.broker.coordinators.transaction_coordinator import TransactionCoordinator
from headrace.broker.coordinators.transactional_ids import OngoingTransaction, ProducerIdAndEpoch, TransactionState
from headrace.broker.deadlines import Now
from headrace.broker.purgatory import DelayedReply, Purgatory
from headrace.broker.storage.partition import Partition
from headrace.broker.storage.producer_state import ProducerStates
from headrace.errors import KafkaError as K
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.consumer_group import ConsumerGroup

from . import (
    produce,
    read_process_write,
    transactions,
    whole_groups,
    whole_planned_groups,
    whole_produce,
    whole_transactions,
)
from .campaign import Schedule
from .mutation import Rules
from .produce_mutations import PRODUCE_RULES
from .pure_brokers import PureBrokers
from .transaction_mutations import TRANSACTION_RULES

WHOLE_RULES = Rules()
broken = WHOLE_RULES.broken


def _take(patch: pytest.MonkeyPatch, refusal: int) -> None:
    """Take batches that would be refused with this error."""
    check = ProducerStates.check

    def lenient(self: ProducerStates, info: Any, *, own_epochs: bool = False) -> int:
        code = check(self, info, own_epochs=own_epochs)
        return 0 if code == refusal else code

    patch.setattr(ProducerStates, "check", lenient)


@broken("Embedded log: a repeated batch is recognised", whole_produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "duplicate", lambda self, info: None)


@broken("Embedded log: no sequence may be left out", whole_produce.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _take(patch, K.OUT_OF_ORDER_SEQUENCE_NUMBER)


@broken("Embedded log: nothing of an epoch before is taken", whole_transactions.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    _take(patch, K.INVALID_PRODUCER_EPOCH)
    patch.setattr(TransactionCoordinator, "verify", lambda self, name, who, now: self.get(name, now))
    patch.setattr(OngoingTransaction, "check_has", lambda self, partition=None, group=None: None)


@broken("Embedded log: a batch is stored where the one before ends", whole_produce.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    append = Partition.append

    def elsewhere(self: Partition, *given: Any) -> Any:
        stored = append(self, *given)
        return stored._replace(base_offset=stored.base_offset + 1)

    patch.setattr(Partition, "append", elsewhere)


@broken("Embedded catalogue: a topic made anew has another id", whole_produce.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PureBrokers, "_new_uuid", lambda self: UUID(int=1))


@broken("Embedded log: a marker ends what is open", whole_transactions.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "end_transaction", lambda self, marker, now_ms: None)


@broken("Embedded log: readers learn of aborted transactions", whole_transactions.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "aborted", lambda self, offset, end_offset: iter(()))


@broken("Embedded coordinator: whoever takes over gets a new epoch", whole_transactions.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    initialise = OngoingTransaction.initialise

    def same_epoch(self: OngoingTransaction, timeout_ms: int, expected: Any, *rest: Any) -> None:
        before = self.epoch
        initialise(self, timeout_ms, expected, *rest)
        self.epoch = before if expected is None and before >= 0 and self.epoch else self.epoch

    patch.setattr(OngoingTransaction, "initialise", same_epoch)


@broken("Embedded coordinator: what is open is aborted when somebody takes over", whole_transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def leave_open(self: TransactionCoordinator, name: str, now: Now) -> None:
        self._known[name].state = TransactionState.EMPTY
        self._known[name].partitions = {}

    patch.setattr(TransactionCoordinator, "_abort", leave_open)


def _ignore_epoch(patch: pytest.MonkeyPatch, method: str) -> None:
    original = getattr(OngoingTransaction, method)

    def lenient(self: OngoingTransaction, who: ProducerIdAndEpoch, *rest: Any) -> Any:
        return original(self, who._replace(epoch=self.epoch), *rest)

    patch.setattr(OngoingTransaction, method, lenient)


@broken("Embedded coordinator: EndTxn of an epoch before is refused", whole_transactions.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    _ignore_epoch(patch, "end")


@broken("Embedded coordinator: partitions of an epoch before are refused", whole_transactions.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    _ignore_epoch(patch, "check")


@broken("Embedded coordinator: a transaction that takes too long is aborted", whole_transactions.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionCoordinator, "_watch", lambda self, transaction, now: None)


@broken("Embedded coordinator: who goes on under a new id waits for the markers", whole_transactions.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OngoingTransaction, "_check_successor", lambda self, who: None)


@broken("Embedded offsets: those of an aborted transaction are forgotten", whole_transactions.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    settle = OffsetStore._settle
    patch.setattr(OffsetStore, "_settle", lambda self, producer_id, commit: settle(self, producer_id, True))


@broken("Embedded offsets: what an open transaction may change is not given out (KIP-447)",
        read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetStore, "unstable", lambda self, group: set())


@broken("Embedded group: offsets of a member that was replaced are refused (KIP-447)",
        read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "check_transactional_commit", lambda self, member_id, instance_id, generation: None)


@broken("Embedded group: a commit of a generation before is refused", whole_groups.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "check_generation", lambda self, generation: None)
    patch.setattr(Group, "check_commit", lambda self, member_id, instance_id, generation, now: None)


@broken("Embedded group: a rebalance begins a new generation", whole_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    complete = Group._complete_join

    def same_generation(self: Group, now: Now) -> None:
        before = self.generation
        complete(self, now)
        self.generation = max(before, 1)

    patch.setattr(Group, "_complete_join", same_generation)


@broken("Embedded group: a silent member is dropped", whole_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    def lives_on(self: Group, member: Member, now: Now) -> None:
        member.expires_at = now.s + member.session_s
        self._watch(member)

    patch.setattr(Group, "_session_ends", lives_on)
    patch.setattr(Group, "_join_time_is_up", lambda self, now: None)


@broken("Embedded group: when one leaves the others share anew", whole_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "_after_departure", lambda self, now: None)


@broken("Embedded group: all members are awaited before the next generation", whole_groups.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Group, now: Now) -> None:
        if self.state is GroupState.PREPARING and any(each.joining for each in self.members.values()):
            self._complete_join(now)

    patch.setattr(Group, "_complete_join_if_all_are_here", hasty)


@broken("Purgatory: what is answered is looked at", whole_groups.run_schedule, 100, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    answer = Purgatory.answer

    def forgetful(self: Purgatory, delayed: DelayedReply, reply: Any) -> None:
        answer(self, delayed, reply)
        if len(self.due) > 1:
            self.due.pop()

    patch.setattr(Purgatory, "answer", forgetful)


@broken("Member: what the plan took is given up", whole_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    on_sync = ClassicGroup._on_sync

    def greedy(self: ClassicGroup, reply: Any, now: float) -> None:
        owned = self._owned
        on_sync(self, reply, now)
        self._target |= owned

    patch.setattr(ClassicGroup, "_on_sync", greedy)


@broken("Member: a member of another generation joins again", whole_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    on_heartbeat = ClassicGroup._on_heartbeat

    def deaf(self: ClassicGroup, code: int, *rest: Any) -> None:
        on_heartbeat(self, 0 if code == K.REBALANCE_IN_PROGRESS else code, *rest)

    patch.setattr(ClassicGroup, "_on_heartbeat", deaf)


@broken("Planned group: a commit of an epoch before the assignment is refused", whole_planned_groups.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlannedGroup, "check_commit", lambda self, *who: None)


@broken("Planned group: what another holds is waited for", whole_planned_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlannedMember, "held", property(lambda self: frozenset()))


@broken("Planned group: who gives up is awaited", whole_planned_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    lead = PlannedGroup._lead
    patch.setattr(PlannedGroup, "_lead", lambda self, member, owned, now: lead(self, member, frozenset(), now))


@broken("Planned group: a silent member is dropped", whole_planned_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlannedGroup, "_touch", lambda self, member, now: None)


@broken("Planned group: a topic that grows is planned for anew", whole_planned_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    count = PlannedGroup._count
    patch.setattr(PlannedGroup, "_count", lambda self: self._counts or count(self))


@broken("Led member: nothing is free before the application has given it up", whole_planned_groups.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    reconcile = ConsumerGroup._reconcile

    def hasty(self: ConsumerGroup, target: Any) -> None:
        reconcile(self, target)
        self._held = (self._assignments, self._owned & target)

    patch.setattr(ConsumerGroup, "_reconcile", hasty)
    patch.setattr(ConsumerGroup, "_in_use", property(lambda self: self._owned & (self._target or frozenset())))


@broken("Led member: who was fenced loses what it has", whole_planned_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_report_lost", lambda self, now: (
        setattr(self, "_lost", False), self._go("lost"), self._begin_again(now)))


@broken("Led member: who was fenced joins anew", whole_planned_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_lose", lambda self, now: self._retry(now))


@broken("Led member: each assignment is acknowledged", whole_planned_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    news = ConsumerGroup._news
    patch.setattr(ConsumerGroup, "_news", lambda self: {**news(self), "topic_partitions": (0, frozenset())})


@broken("Led member: nothing is taken up that the coordinator may think free", whole_planned_groups.run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_is_understood", True)


@broken("Led member: what is being taken up is in use", whole_planned_groups.run_schedule, 30_000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_in_use", property(lambda self: self._owned))


_RARE = {
    "A batch is reported once": 700,
    "Until the first batch is stored only one is in flight": 400,
    "Only one is in flight at first also after a long silence": 1500,
    "No batch goes five places beyond the oldest that is unresolved": 2000,
    "A refused sequence is not sent for ever": 2000,
    "Batches with sequences are resolved before sequences begin again": 600,
    "An error that may come after the append leaves it open too": 1000,
    "Who is not the leader may have been when it stored the batch": 1500,
    "A lost answer is such an uncertainty": 2500,
    "A batch that was given up is one as well": 1000,
    "No record is sent while a new epoch is awaited": 500,
    "Offsets that a late request could take back doom the transaction": 12_000,
    "Records that come too late do not keep an abort waiting": 1500,
    "What was sent directly is taken back before the loop sends": 6000,
    "A pause that the broker asked for holds for direct requests as well": 6000,
    "Nothing is sent directly while a batch of its partition is on its way to its queue": 3000,
    "A batch that is refused for its partition's sake is not reported as stored": 1500,
}
"""Rules of the machines that take more than some hundred schedules."""
_ELSEWHERE = {
    "What may be stored gets no new sequence",
    "A producer id whose epochs are used up is replaced",
    "Who is not the leader is not asked for ever",
    "A new epoch goes on from the own one, and takes nothing over (KIP-360)",
    "A commit that may be in the log does not turn into an abort",
    "What cannot go on is not asked again and again",
    "What is lent has the partition's next number when it is lent",
}
"""Those that need a broker which forgets producers, or refusals and delays that only the models have."""


def _again(rules: Rules, of: Schedule, schedule: Schedule) -> None:
    """The rules of the machines, broken under the embedded broker as they are under the model."""
    for rule in rules:
        if rule.run_schedule is of and rule.rule not in _ELSEWHERE:
            broken(f"{rule.rule} (embedded broker)", schedule, _RARE.get(rule.rule, 300))(rule.break_it)


_again(PRODUCE_RULES, produce.run_schedule, whole_produce.run_schedule)
_again(TRANSACTION_RULES, transactions.run_schedule, whole_transactions.run_schedule)
assert {*_RARE, *_ELSEWHERE} <= {each.rule for each in (*PRODUCE_RULES, *TRANSACTION_RULES)}, "a rule has another name"
