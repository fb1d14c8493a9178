"""Transactions keep their promises on many schedules, and the simulation notices when they would not."""

import random
from collections.abc import Callable, Iterator

import pytest

from headrace.errors import KafkaError
from headrace.machines import transactions
from headrace.machines.coordinator import TRANSACTION, CoordinatorFinder
from headrace.machines.machine import Send
from headrace.machines.transaction_errors import ErrorClass, class_of
from headrace.machines.transactional_sequences import TransactionalSequences
from headrace.machines.transactions import Operation, OperationDone, State, Transactions
from headrace.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.transactions import AddPartitionsToTxnRequest, EndTxnRequest, EndTxnResponse

from .campaign import violation_within
from .model_transactions import ModelTransactions
from .transactions import Simulation, run_schedule


@pytest.mark.parametrize("first_seed", range(0, 800, 200))
def test_transactions_are_whole_in_order_and_once_or_not_at_all(first_seed):
    for seed in range(first_seed, first_seed + 200):
        run_schedule(seed)


def test_the_schedules_commit_abort_fence_and_time_out():
    ends, fences = set(), set()
    for seed in range(400):
        simulation = Simulation(seed)
        simulation.run()
        ends |= {txn.outcome for producer in simulation.producers for txn in producer.txns}
        fences |= set(simulation.cluster.fences)
    assert ends == {"committed", "aborted", None}
    assert len(fences) == 3


# Jepsen's schedule (Kafka and Bufstream): the reply to a commit is lost, the repeated commit succeeds, the next
# transaction begins, and the first commit arrives late and ends half of it.


class TwoTransactions:
    """One producer with transactions version 1 by hand, and what its brokers hold of two transactions."""

    def __init__(self) -> None:
        self.cluster = ModelTransactions(
            random.Random(1), lambda delay_s, action: action() if delay_s < 1 else None, 1, 1, (), 1000, 60.0)
        finder = CoordinatorFinder(TRANSACTION, "x")
        finder.node_id = 1
        self.machine = Transactions("x", 60_000, finder, lambda group: finder, dict, 1.0, lambda attempt: 0.0)
        self.machine.work = self
        self.now = 0.0

    def unresolved(self) -> bool:
        return False

    def sends(self) -> list[Send]:
        self.now += 1.0
        return list(self.machine.poll(self.now))

    def carry_out(self, send: Send) -> None:
        request = send.request
        if isinstance(request, InitProducerIdRequest):
            code = self.cluster.init(request.producer_id, request.producer_epoch)
            producer_id, epoch = self.cluster.numbers()
            reply = InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
        else:
            assert isinstance(request, EndTxnRequest)
            code = self.cluster.end(request.producer_id, request.producer_epoch, request.committed, 4)
            reply = EndTxnResponse(error_code=code)
        self.machine.on_reply(send, reply, self.now)

    def settle(self) -> None:
        while sends := self.sends():
            self.carry_out(sends[0])

    def write(self, record: str, sequence: int) -> None:
        """A record, its partition added first as the coordinator wants it."""
        machine, key = self.machine, ("t", 0)
        self.cluster.add(machine.producer_id, machine.epoch, [key])
        machine._contents.started = True
        self.cluster.write(1, key, (machine.producer_id, machine.epoch, sequence), (record,), adds=False)

    def run(self) -> list[str]:
        """What a reader sees at the moment when the second transaction is half written."""
        machine = self.machine
        assert machine.begin(Operation.INIT) is None
        self.settle()
        machine.open()
        self.write("first", 0)
        machine.begin(Operation.COMMIT)
        (lost,) = self.sends()
        machine.on_error(lost, KafkaError(KafkaError._TIMED_OUT, maybe_applied=True), self.now)
        machine._finder.node_id = 1
        self.settle()
        assert OperationDone(Operation.COMMIT) in machine.events()
        epoch = machine.epoch
        machine.open()
        self.write("half", 0 if epoch > lost.request.producer_epoch else 1)
        self.cluster.end(lost.request.producer_id, lost.request.producer_epoch, True, 4)  # it arrives now
        return self.cluster.partitions["t", 0].committed()


def test_a_late_commit_does_not_end_half_of_the_next_transaction():
    assert TwoTransactions().run() == ["first"]


def test_without_a_new_epoch_the_late_commit_would_end_half_of_it(monkeypatch):
    monkeypatch.setattr(Transactions, "_ended", ended_without_a_new_epoch)
    assert TwoTransactions().run() == ["first", "half"]


# Mutations


def ended_without_a_new_epoch(self: Transactions) -> None:
    self._finish(Operation.COMMIT if self.state is State.COMMITTING else Operation.ABORT)


def finds(saying: str = "", schedules: int = 4000) -> str:
    return violation_within(run_schedule, schedules, saying)


def test_no_new_epoch_after_a_transaction_is_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "_ended", ended_without_a_new_epoch)
    assert finds()


def test_no_new_epoch_after_a_lost_answer_is_noticed(monkeypatch):
    on_error = Transactions.on_error

    def forgetful(self: Transactions, send: Send, error: KafkaError, now: float) -> None:
        before = self._contents.uncertain
        on_error(self, send, error, now)
        self._contents.uncertain = before

    monkeypatch.setattr(Transactions, "on_error", forgetful)
    assert finds()


def test_no_new_epoch_after_a_batch_was_given_up_is_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "on_batch_failed",
                        lambda self, error, sent, uncertain: self.on_record_failed(error))
    assert finds()


def test_a_commit_in_spite_of_a_failed_record_is_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "on_record_failed", lambda self, error: None)
    assert finds()


def test_records_before_their_partition_was_added_are_noticed(monkeypatch):
    admits = Transactions.admits
    monkeypatch.setattr(Transactions, "admits", lambda self, topic, partition: (
        admits(self, topic, partition) or (self.state is State.OPEN and not self._recovering)))
    assert finds()


def test_records_while_a_new_epoch_is_awaited_are_noticed(monkeypatch):
    admits = Transactions.admits

    def too_early(self: Transactions, topic: str, partition: int) -> bool:
        recovering, self._recovering = self._recovering, False
        try:
            return admits(self, topic, partition)
        finally:
            self._recovering = recovering

    monkeypatch.setattr(Transactions, "admits", too_early)
    assert finds()


def test_records_after_the_end_was_asked_for_are_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "poll", without_ending(Transactions.poll))
    assert finds()


def without_ending(poll: Callable[[Transactions, float], Iterator[Send]]) -> Callable[[Transactions, float], object]:
    def unguarded(self: Transactions, now: float) -> Iterator[Send]:
        yield from poll(self, now)
        self._contents.ending = False

    return unguarded


def test_an_end_before_all_records_are_resolved_is_noticed(monkeypatch):
    monkeypatch.setattr("headrace.machines.sender.Sender.unresolved", lambda self: False)
    assert finds()


def test_a_commit_reported_before_it_is_answered_is_noticed(monkeypatch):
    poll = Transactions.poll

    def hasty(self: Transactions, now: float):
        for send in poll(self, now):
            if isinstance(send.request, EndTxnRequest):
                self._ended()
            yield send

    monkeypatch.setattr(Transactions, "poll", hasty)
    assert finds()


def reclassify(monkeypatch: pytest.MonkeyPatch, to: Callable[[type, ErrorClass], ErrorClass]) -> None:
    monkeypatch.setattr(transactions, "class_of", lambda request, code: to(request, class_of(request, code)))


def test_asking_on_after_being_fenced_is_noticed(monkeypatch):
    reclassify(monkeypatch, lambda request, kind: ErrorClass.RETRY if kind is ErrorClass.FENCED else kind)
    assert finds()


def test_a_new_epoch_for_a_fenced_producer_is_noticed(monkeypatch):
    reclassify(monkeypatch, lambda request, kind: (
        ErrorClass.ABORT_AND_BUMP if kind is ErrorClass.FENCED and request is EndTxnRequest else kind))
    assert finds("a new epoch was asked for")


def test_taking_over_again_instead_of_going_on_from_the_own_epoch_is_noticed(monkeypatch):
    initialise = transactions.Identity.initialise

    def take_over(self: transactions.Identity, timeout_ms: int):
        request = initialise(self, timeout_ms)
        request.producer_id = request.producer_epoch = -1
        return request

    monkeypatch.setattr(transactions.Identity, "initialise", take_over)
    assert finds()


@pytest.mark.slow
def test_an_abort_that_could_be_a_commit_is_noticed(monkeypatch):
    refused = Transactions._on_end_refused

    def sure(self: Transactions, error: KafkaError, kind: ErrorClass) -> None:
        self._contents.end_uncertain = False
        refused(self, error, kind)

    monkeypatch.setattr(Transactions, "_on_end_refused", sure)
    assert finds("can be read", schedules=10_000)


def test_a_fatal_end_that_hides_a_possible_commit_is_noticed(monkeypatch):
    fail = Transactions._fail

    def sure(self: Transactions, error: KafkaError) -> None:
        self._contents.end_uncertain = False
        fail(self, error)

    monkeypatch.setattr(Transactions, "_fail", sure)
    assert finds("can be read")


def test_numbers_that_go_on_in_a_new_epoch_are_noticed(monkeypatch):
    def allows(self, queue, batch):
        numbers = self._transactions
        if not numbers.admits(queue.topic, queue.partition):
            return False
        queue.producer_id, queue.epoch = numbers.producer_id, numbers.epoch
        return self.has_room(queue, batch)

    monkeypatch.setattr(TransactionalSequences, "allows", allows)
    assert finds()


def test_numbers_that_begin_again_in_the_same_epoch_are_noticed(monkeypatch):
    open_ = Transactions.open

    def restart(self: Transactions):
        for queue in self.work._accumulator._queues.values():
            queue.next_sequence = 0
        return open_(self)

    monkeypatch.setattr(Transactions, "open", restart)
    assert finds()


def test_the_old_epoch_after_a_commit_of_version_2_is_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "_end_answered", lambda self, reply: self._ended())
    assert finds()


def test_offsets_without_telling_the_coordinator_are_noticed(monkeypatch):
    step = Transactions._offsets_step

    def silent(self, offsets):
        self._contents.groups.add(offsets.member.group_id)
        return step(self, offsets)

    monkeypatch.setattr(Transactions, "_offsets_step", silent)
    assert finds()


def test_offsets_that_a_late_request_takes_back_are_noticed(monkeypatch):
    monkeypatch.setattr(transactions, "offset_keys", lambda request: set())
    assert finds("out of order", schedules=10_000)


def test_a_commit_without_waiting_for_offsets_is_noticed(monkeypatch):
    add = Transactions.add_offsets

    def at_once(self, offsets, member):
        error = add(self, offsets, member)
        if error is None:
            self._events.append(OperationDone(Operation.OFFSETS))
            self._offsets = None
        return error

    monkeypatch.setattr(Transactions, "add_offsets", at_once)
    assert finds("missing")


def test_too_late_records_that_keep_an_abort_waiting_are_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "lost", property(lambda self: self.error))
    assert finds("no progress")


def test_too_late_records_that_keep_a_repeated_commit_waiting_are_noticed(monkeypatch):
    def waiting(self: Transactions):
        if self.state in (State.COMMITTING, State.ABORTING) and self.work.unresolved():
            return None, None
        return next_(self)

    next_ = Transactions._next
    monkeypatch.setattr(Transactions, "_next", waiting)
    assert finds("no progress")


def test_a_deadline_that_stays_in_the_past_is_noticed(monkeypatch):
    poll = Transactions.poll

    def lazy(self: Transactions, now: float):
        due = self._due
        yield from poll(self, now)
        if self._flying is None and due > 0 and self._due < 0:
            self._due = due

    monkeypatch.setattr(Transactions, "poll", lazy)
    assert finds("spin")


def test_an_abort_that_comes_too_early_is_not_taken_for_a_fenced_producer(monkeypatch):
    monkeypatch.setattr(transactions, "_EARLY_TRIES", 0)
    assert finds("can not be written to")


def test_partitions_that_are_added_once_for_all_transactions_are_noticed(monkeypatch):
    monkeypatch.setattr(Transactions, "open", remembering_partitions(Transactions.open))
    assert finds()


def remembering_partitions(open_: Callable[[Transactions], object]) -> Callable[[Transactions], object]:
    def opened(self: Transactions) -> object:
        added = self._contents.added
        result = open_(self)
        self._contents.added |= added
        return result

    return opened


def test_version_2_in_an_epoch_that_version_1_has_used_is_noticed(monkeypatch):
    never = property(lambda self: False, lambda self, used: None)
    monkeypatch.setattr(Transactions, "_used_by_version_1", never, raising=False)
    assert finds()


def test_forgetting_to_ask_again_is_noticed_as_lack_of_progress(monkeypatch):
    monkeypatch.setattr(Transactions, "_again", lambda self, now, wait_s=None: setattr(self, "_flying", object()))
    assert finds("no progress")


def test_the_requests_of_version_2_are_needed_for_its_epochs(monkeypatch):
    monkeypatch.setitem(transactions.LAST_VERSIONS, EndTxnRequest, (4, 4))
    monkeypatch.setitem(transactions.LAST_VERSIONS, AddPartitionsToTxnRequest, (3, 3))
    monkeypatch.setattr(Transactions, "_end_answered", lambda self, reply: self._ended())
    assert finds()
