"""Inside a transaction all numbers come from the coordinator, and a batch that is given up dooms it."""

import math

import pytest

from headrace.errors import KafkaError
from headrace.machines.producer.transactional_sequences import TransactionalSequences
from headrace.machines.producer.transactions import Operation, TxnState
from headrace.records import scan
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest
from headrace.wire.messages.producer.transactions import AddPartitionsToTxnRequest
from tests.support.driven_sender import Leader, content, first_of
from tests.support.driven_transactions import Driven

TRANSACTIONAL = 0x10
"""The bit of a batch's attributes."""


class Writer(Leader):
    """A sender whose batches belong to transactions."""

    def __init__(self, version=2):
        self.driven = Driven(version)
        super().__init__(transactions=self.driven.machine, max_in_flight=5)
        self.driven.machine.work = self.sender
        self.driven.initialised().opened()

    def end(self, operation=Operation.COMMIT):
        self.driven.end(operation)
        self.driven.opened()

    @property
    def state(self):
        return self.driven.machine.state


@pytest.fixture(params=[1, 2], ids=["version-1", "version-2"])
def writer(request):
    made = Writer(request.param)
    made.driven.writing()  # so that the coordinator knows of the partition
    return made


def test_the_sender_asks_nobody_for_a_producer_id_and_time_changes_nothing():
    sequences = TransactionalSequences(Driven().machine)
    assert not sequences.asks
    assert list(sequences.poll(0.0)) == []
    assert sequences.deadline() == math.inf


def test_batches_have_the_coordinators_numbers_and_say_that_they_belong_to_a_transaction(writer):
    send = first_of(writer, b"1", b"2")
    assert isinstance(send.request, ProduceRequest)
    assert content(send) == (0, 0, [b"1", b"2"])
    data = bytes(send.request.topic_data[0].partition_data[0].records)
    assert scan(data)[0].producer_id == 7
    assert int.from_bytes(data[21:23], "big") & TRANSACTIONAL
    writer.answer(send)
    assert content(first_of(writer, b"3")) == (0, 2, [b"3"])


def test_with_version_1_nothing_is_sent_until_the_coordinator_knows_of_the_partition():
    writer = Writer(1)
    writer.add(b"1")
    assert writer.poll() == []
    writer.driven.accept(writer.driven.expect(AddPartitionsToTxnRequest))
    assert writer.store_all() == [(0, 0, [b"1"])]


def test_with_version_2_it_is_told_by_the_batch_itself():
    writer = Writer(2)
    writer.add(b"1")
    assert writer.store_all() == [(0, 0, [b"1"])]


@pytest.mark.parametrize(("version", "following"), [(1, (0, 2)), (2, (1, 0))])
def test_numbers_begin_again_with_each_epoch_that_the_coordinator_gives_and_only_then(version, following):
    writer = Writer(version)
    writer.driven.writing()
    writer.add(b"1", b"2")
    assert writer.store_all() == [(0, 0, [b"1", b"2"])]
    writer.end()
    writer.driven.writing()
    writer.add(b"3")
    assert writer.store_all() == [(*following, [b"3"])]


def test_a_second_batch_follows_only_when_the_broker_has_stored_one(writer):
    first = first_of(writer, b"1")
    writer.add(b"2")
    assert writer.poll() == []
    writer.answer(first)
    second = writer.poll()
    third = first_of(writer, b"3")
    assert [content(send)[1] for send in (*second, third)] == [1, 2]


def test_so_it_is_in_each_epoch():
    writer = Writer(2)
    writer.add(b"1")
    writer.store_all()
    writer.end()
    first = first_of(writer, b"2")
    writer.add(b"3")
    assert writer.poll() == []
    writer.answer(first)
    assert writer.store_all() == [(1, 1, [b"3"])]


def test_a_number_refused_behind_a_missing_batch_is_sent_again_unchanged(writer):
    writer.answer(first_of(writer, b"0"))
    missing, behind = first_of(writer, b"1"), first_of(writer, b"2")
    writer.answer(behind, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    writer.answer(missing, KafkaError.NOT_ENOUGH_REPLICAS)
    writer.now += 0.1
    assert writer.store_all() == [(0, 1, [b"1"]), (0, 2, [b"2"])]
    assert writer.state is TxnState.IN_TRANSACTION


@pytest.mark.parametrize("code", [KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.RECORD_LIST_TOO_LARGE])
def test_a_batch_that_is_given_up_dooms_the_transaction_and_nothing_more_is_sent_in_it(writer, code):
    writer.answer(first_of(writer, b"1"), code)
    assert writer.state is TxnState.ABORTABLE_ERROR
    writer.add(b"2")
    assert writer.poll() == []
    assert [(found, bool(error)) for found, error in writer.reports()] == [([b"1"], True), ([b"2"], True)]


def test_version_1_asks_for_a_new_epoch_also_where_the_first_batch_of_all_was_given_up():
    writer = Writer(1)
    writer.driven.writing()
    writer.answer(first_of(writer, b"1"), KafkaError.RECORD_LIST_TOO_LARGE)
    writer.driven.end(Operation.ABORT)
    writer.driven.expect(InitProducerIdRequest)


def test_after_the_abort_numbers_begin_at_zero_in_a_new_epoch():
    writer = Writer(2)
    writer.answer(first_of(writer, b"0"))
    writer.answer(first_of(writer, b"1"), KafkaError.RECORD_LIST_TOO_LARGE)
    writer.end(Operation.ABORT)
    writer.add(b"2")
    assert writer.store_all() == [(1, 0, [b"2"])]


def test_a_first_batch_that_may_be_stored_is_never_sent_under_another_number(writer):
    send = first_of(writer, b"1")
    writer.answer(send, KafkaError.REQUEST_TIMED_OUT)
    writer.now += 0.1
    (again,) = writer.poll()
    assert content(again) == content(send)
    writer.answer(again, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    [(found, error)] = writer.reports()
    assert (found, error.maybe_applied) == ([b"1"], True)
    assert writer.state is TxnState.ABORTABLE_ERROR


def test_a_producer_that_was_forgotten_with_all_it_wrote_begins_at_zero_in_the_same_epoch(writer):
    writer.answer(first_of(writer, b"0"), base_offset=4)
    writer.answer(first_of(writer, b"1"), KafkaError.UNKNOWN_PRODUCER_ID, log_start_offset=5)
    writer.now += 0.1
    assert writer.store_all() == [(0, 0, [b"1"])]
    assert writer.state is TxnState.IN_TRANSACTION


def test_a_first_batch_is_not_refused_because_the_producer_was_forgotten(writer):
    writer.answer(first_of(writer, b"1"), KafkaError.UNKNOWN_PRODUCER_ID, log_start_offset=5)
    assert writer.state is TxnState.ABORTABLE_ERROR


def test_a_producer_that_was_forgotten_with_records_that_should_be_there_is_given_up(writer):
    writer.answer(first_of(writer, b"0"), base_offset=4)
    writer.answer(first_of(writer, b"1"), KafkaError.UNKNOWN_PRODUCER_ID, log_start_offset=3)
    assert writer.state is TxnState.ABORTABLE_ERROR


def test_what_may_be_stored_is_not_sent_under_another_number_although_the_producer_was_forgotten(writer):
    writer.answer(first_of(writer, b"0"), base_offset=4)
    writer.answer(first_of(writer, b"1"), KafkaError.REQUEST_TIMED_OUT)
    writer.now += 0.1
    (again,) = writer.poll()
    writer.answer(again, KafkaError.UNKNOWN_PRODUCER_ID, log_start_offset=5)
    assert writer.state is TxnState.ABORTABLE_ERROR
    assert [(found, error and error.maybe_applied) for found, error in writer.reports()] == [
        ([b"0"], None), ([b"1"], True)]


def test_a_forgotten_producer_begins_again_only_when_nothing_under_the_old_numbers_is_in_flight(writer):
    writer.answer(first_of(writer, b"0"), base_offset=4)
    first, second = first_of(writer, b"1"), first_of(writer, b"2")
    writer.answer(first, KafkaError.UNKNOWN_PRODUCER_ID, log_start_offset=5)
    writer.now += 0.1
    assert writer.poll() == []
    writer.answer(second, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    writer.now += 0.1
    assert writer.store_all() == [(0, 0, [b"1"]), (0, 1, [b"2"])]


def test_the_transaction_learns_that_a_batch_is_stored():
    writer = Writer(2)
    writer.add(b"0")
    writer.store_all()
    writer.end()
    writer.add(b"1")
    writer.store_all()
    # Before, being fenced could be an answer to the transaction before this one, and would be tried again.
    writer.driven.refuse(writer.driven.ending(Operation.COMMIT), KafkaError.PRODUCER_FENCED)
    assert writer.state is TxnState.FATAL_ERROR


def test_why_the_coordinator_does_not_answer_is_known():
    driven = Driven(1).initialised().opened()
    sequences = TransactionalSequences(driven.machine)
    assert sequences.last_error is None
    driven.machine.admits("t", 0)
    driven.lose(driven.expect(AddPartitionsToTxnRequest))
    assert sequences.last_error == KafkaError._TRANSPORT
