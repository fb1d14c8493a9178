"""The rules of transactions, each broken: epochs, fencing, what is waited for, offsets, members of groups (KIP-447)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headrace.errors import KafkaError
from headrace.machines.machine import Send
from headrace.machines.producer import sender, transactions
from headrace.machines.producer.transaction_errors import ErrorClass, class_of
from headrace.machines.producer.transactional_sequences import TransactionalSequences
from headrace.machines.producer.transactions import Operation, OperationDone, Transactions, TxnState
from headrace.wire.messages.producer.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

from . import read_process_write
from .mutation import Rules
from .transactions import run_schedule

TRANSACTION_RULES = Rules()
broken = TRANSACTION_RULES.broken


def ended_without_a_new_epoch(self: Transactions) -> None:
    self._finish(Operation.COMMIT if self.state is TxnState.COMMITTING else Operation.ABORT)


@broken("Version 1: after anything uncertain the next transaction has a new epoch", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "_ended", ended_without_a_new_epoch)


@broken("A lost answer is such an uncertainty", run_schedule, 4000)
def _(patch: pytest.MonkeyPatch) -> None:
    on_error = Transactions.on_error

    def forgetful(self: Transactions, send: Send, error: KafkaError, now: float) -> None:
        before = self._contents.uncertain
        on_error(self, send, error, now)
        self._contents.uncertain = before

    patch.setattr(Transactions, "on_error", forgetful)


@broken("A batch that was given up is one as well", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "on_batch_failed",
                        lambda self, error, sent, uncertain: self.on_record_failed(error))


@broken("A failed record dooms its transaction", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "on_record_failed", lambda self, error: None)


@broken("Version 1: a partition is added before it is written to", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    admits = Transactions.admits
    patch.setattr(Transactions, "admits", lambda self, topic, partition: (
        admits(self, topic, partition) or (self.state is TxnState.IN_TRANSACTION and not self._recovering)))


@broken("No record is sent while a new epoch is awaited", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    admits = Transactions.admits

    def too_early(self: Transactions, topic: str, partition: int) -> bool:
        recovering, self._recovering = self._recovering, False
        try:
            return admits(self, topic, partition)
        finally:
            self._recovering = recovering

    patch.setattr(Transactions, "admits", too_early)


@broken("No record is sent after the end was asked for", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "poll", without_ending(Transactions.poll))


def without_ending(poll: Callable[[Transactions, float], Iterator[Send]]) -> Callable[[Transactions, float], object]:
    def unguarded(self: Transactions, now: float) -> Iterator[Send]:
        yield from poll(self, now)
        self._contents.ending = False

    return unguarded


@broken("The end is asked for when every record is stored or given up", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("headrace.machines.producer.sender.Sender.unresolved", lambda self: False)


@broken("A commit is reported when it is answered", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    poll = Transactions.poll

    def hasty(self: Transactions, now: float):
        for send in poll(self, now):
            if isinstance(send.request, EndTxnRequest):
                self._ended()
            yield send

    patch.setattr(Transactions, "poll", hasty)


def reclassify(patch: pytest.MonkeyPatch, to: Callable[[type, ErrorClass], ErrorClass]) -> None:
    patch.setattr(transactions, "class_of", lambda request, code: to(request, class_of(request, code)))


@broken("Who is fenced asks for nothing more", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    reclassify(patch, lambda request, kind: ErrorClass.RETRY if kind is ErrorClass.FENCED else kind)


@broken("Who is fenced asks for no new epoch: it would abort the other's transaction",
        run_schedule, 600, "a new epoch was asked for")
def _(patch: pytest.MonkeyPatch) -> None:
    reclassify(patch, lambda request, kind: (
        ErrorClass.ABORT_AND_BUMP if kind is ErrorClass.FENCED and request is EndTxnRequest else kind))


@broken("A new epoch goes on from the own one, and takes nothing over (KIP-360)", run_schedule, 12000)
def _(patch: pytest.MonkeyPatch) -> None:
    initialise = transactions.TransactionalIdentity.initialise

    def take_over(self: transactions.TransactionalIdentity, timeout_ms: int):
        request = initialise(self, timeout_ms)
        request.producer_id = request.producer_epoch = -1
        return request

    patch.setattr(transactions.TransactionalIdentity, "initialise", take_over)


@broken("A commit that may be in the log does not turn into an abort", run_schedule, 20000, "can be read")
def _(patch: pytest.MonkeyPatch) -> None:
    refused = Transactions._on_end_refused

    def sure(self: Transactions, error: KafkaError, kind: ErrorClass) -> None:
        self._contents.end_uncertain = False
        refused(self, error, kind)

    patch.setattr(Transactions, "_on_end_refused", sure)


@broken("A fatal end says that the transaction may be committed", run_schedule, 4000, "can be read")
def _(patch: pytest.MonkeyPatch) -> None:
    fail = Transactions._fail

    def sure(self: Transactions, error: KafkaError) -> None:
        self._contents.end_uncertain = False
        fail(self, error)

    patch.setattr(Transactions, "_fail", sure)


@broken("Numbers begin again in a new epoch", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    def allows(self, queue, batch):
        numbers = self._transactions
        if not numbers.admits(queue.topic, queue.partition):
            return False
        own = queue.partition_sequence
        own.producer_id, own.epoch = numbers.producer_id, numbers.epoch
        return self.has_room(queue, batch)

    patch.setattr(TransactionalSequences, "allows", allows)


@broken("Numbers go on in the same epoch", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    open_ = Transactions.open

    def restart(self: Transactions):
        for queue in self.work._batch_queues._queues.values():
            queue.partition_sequence.next_sequence = 0
        return open_(self)

    patch.setattr(Transactions, "open", restart)


@broken("Version 2: the answer to EndTxn has the next epoch", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "_end_answered", lambda self, reply: self._ended())


@broken("Version 1: the coordinator learns of a group before its offsets are written", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    step = Transactions._offsets_step

    def silent(self, offsets):
        self._contents.groups.add(offsets.member.group_id)
        return step(self, offsets)

    patch.setattr(Transactions, "_offsets_step", silent)


@broken("Offsets that a late request could take back doom the transaction", run_schedule, 12000, "out of order")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transactions, "offset_keys", lambda request: set())


@broken("A commit waits for offsets", run_schedule, 600, "missing")
def _(patch: pytest.MonkeyPatch) -> None:
    add = Transactions.add_offsets

    def at_once(self, offsets, member):
        error = add(self, offsets, member)
        if error is None:
            self._events.append(OperationDone(Operation.OFFSETS))
            self._offsets = None
        return error

    patch.setattr(Transactions, "add_offsets", at_once)


@broken("Records that come too late do not keep an abort waiting", run_schedule, 600, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "lost", property(lambda self: self.error))


@broken("Nor a commit that is asked for again", run_schedule, 600, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    def waiting(self: Transactions):
        if self.state in (TxnState.COMMITTING, TxnState.ABORTING) and self.work.unresolved():
            return None, None
        return next_(self)

    next_ = Transactions._next
    patch.setattr(Transactions, "_next", waiting)


@broken("No deadline stays in the past", run_schedule, 600, "spin")
def _(patch: pytest.MonkeyPatch) -> None:
    poll = Transactions.poll

    def lazy(self: Transactions, now: float):
        due = self._due
        yield from poll(self, now)
        if self._flying is None and due > 0 and self._due < 0:
            self._due = due

    patch.setattr(Transactions, "poll", lazy)


@broken("Version 2: an abort that comes too early is not taken for a fenced producer",
        run_schedule, 6000, "cannot be written to")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transactions, "_EARLY_TRIES", 0)


@broken("Version 1: partitions are added to each transaction", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "open", remembering_partitions(Transactions.open))


def remembering_partitions(open_: Callable[[Transactions], object]) -> Callable[[Transactions], object]:
    def opened(self: Transactions) -> object:
        added = self._contents.added
        result = open_(self)
        self._contents.added |= added
        return result

    return opened


@broken("Version 2 begins in an epoch that version 1 has not used", run_schedule, 12000)
def _(patch: pytest.MonkeyPatch) -> None:
    never = property(lambda self: False, lambda self, used: None)
    patch.setattr(Transactions, "_used_by_version_1", never, raising=False)


@broken("A request is asked again after a passing error", run_schedule, 600, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "_again", lambda self, now, wait_s=None: setattr(self, "_flying", object()))


@broken("Version 2 has its own requests, and each transaction its own epoch", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(transactions.LAST_VERSIONS, EndTxnRequest, (4, 4))
    patch.setitem(transactions.LAST_VERSIONS, AddPartitionsToTxnRequest, (3, 3))
    patch.setattr(Transactions, "_end_answered", lambda self, reply: self._ended())


@broken("Offsets of a member that was replaced doom the transaction (KIP-447)", read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    doom = Transactions._doom

    def careless(self: Transactions, error: KafkaError, *, bump: bool) -> None:
        if error.code() in _REPLACED:
            self._end_offsets(None)
        else:
            doom(self, error, bump=bump)

    patch.setattr(Transactions, "_doom", careless)


_REPLACED = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID,
             KafkaError.STALE_MEMBER_EPOCH)


@broken("Offsets say of which member of the group they are (KIP-447)", read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    commit = transactions.TransactionalIdentity.commit_offsets
    patch.setattr(transactions.TransactionalIdentity, "commit_offsets", lambda self, member, offsets: commit(
        self, transactions.ConsumerGroupMetadata(member.group_id), offsets))


@broken("A refusal of a replaced member's offsets is not waited out", read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    reclassify(patch, lambda request, kind: (
        ErrorClass.RETRY if kind is ErrorClass.ABORT and request is TxnOffsetCommitRequest else kind))


@broken("Whoever takes a partition over waits for open offsets (KIP-447)", read_process_write.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    committed = read_process_write.ReadProcessWrite.committed_offset
    patch.setattr(read_process_write.ReadProcessWrite, "committed_offset", lambda self: committed(self, False))


@broken("What cannot go on is not asked again and again", run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    reclassify(patch, lambda request, kind: ErrorClass.RETRY if kind is ErrorClass.ABORT else kind)


@broken("A batch that is refused for its partition's sake is not reported as stored", run_schedule, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    error_action = sender.error_action
    patch.setattr(sender, "error_action", lambda code: (
        sender.ErrorAction.STORED if code == KafkaError.TRANSACTION_ABORTABLE else error_action(code)))
