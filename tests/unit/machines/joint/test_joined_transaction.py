"""A participant claims each partition before it writes there, and stops for good when anything is wrong."""

from uuid import UUID

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.joint.joined_transaction import JoinedTransaction, JoinedTransactionFailed
from headrace.wire.messages.producer.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducersPartitionResponse,
    ProducerState,
    ProducersTopicResponse,
)
from tests.support.driven_conversation import NEW, OLD
from tests.support.driven_transactions import COORDINATOR, LOST, Finder

TOPIC_ID = UUID(int=5)


class Participant:
    """A participant with its clock, a coordinator and two leaders."""

    def __init__(self, transaction):
        self.finder = Finder(1, COORDINATOR)
        self.leaders = {("t", 0): 1, ("t", 1): 2, ("t", 2): 1}
        self.refreshed = 0
        self.now = 0.0
        self.machine = JoinedTransaction(lambda name: self.finder, self, 30.0, lambda attempt: 0.1 * 2**attempt)
        self.machine.join(transaction)

    def leader(self, topic, partition):
        return self.leaders[topic, partition], 0

    def refresh(self, now):
        self.refreshed += 1

    def wants(self, *partitions):
        return [self.machine.admits("t", each) for each in partitions]

    def sent(self, of=None):
        found = list(self.machine.poll(self.now))
        assert of is None or [type(each.request) for each in found] == [of] * len(found)
        return found

    def expect(self, of):
        (send,) = self.sent(of)
        return send

    def claim(self, send, code=0, **known):
        self.machine.on_reply(send, describe(send.request, code, **known), self.now)

    def add(self, send, code=0):
        self.machine.on_reply(send, added(send.request, code), self.now)

    def wait(self):
        deadline = self.machine.deadline()
        assert deadline > self.now
        self.now = deadline

    def failure(self):
        (event,) = self.machine.events()
        assert isinstance(event, JoinedTransactionFailed)
        assert self.machine.lost == event.error
        assert self.sent() == []
        assert self.wants(0) == [False]
        return event.error


def describe(request, code=0, producer_id=-1, epoch=0, last_sequence=-1):
    known = [ProducerState(producer_id=producer_id, producer_epoch=epoch, last_sequence=last_sequence)]
    return DescribeProducersResponse(topics=[ProducersTopicResponse(name=topic.name, partitions=[
        ProducersPartitionResponse(partition_index=each, error_code=code, active_producers=known)
        for each in topic.partition_indexes]) for topic in request.topics])


def added(request, code=0):
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[
        AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
            for each in topic.partitions]) for topic in request.v3_and_below_topics])


@pytest.fixture
def new():
    return Participant(NEW)


@pytest.fixture
def old():
    return Participant(OLD)


def test_batches_have_the_numbers_of_the_transaction(new, old):
    assert (new.machine.transactional_id, new.machine.producer_id, new.machine.epoch) == ("x", 7, 3)
    assert old.machine.max_produce_version == 11
    assert new.machine.max_produce_version > 11


def test_nothing_is_asked_before_something_is_to_be_written(new):
    assert new.sent() == []
    assert new.machine.deadline() is None


def test_a_partition_is_claimed_before_its_first_record_and_only_once(new):
    assert new.wants(0) == [False]
    send = new.expect(DescribeProducersRequest)
    assert send.destination == 1
    assert new.wants(0) == [False]
    assert new.sent() == []
    new.claim(send)
    assert new.wants(0) == [True]
    assert new.sent() == []


def test_partitions_of_one_leader_are_claimed_in_one_request(new):
    new.wants(0, 1, 2)
    sends = {send.destination: send for send in new.sent(DescribeProducersRequest)}
    assert sends[1].request.topics[0].partition_indexes == [0, 2]
    assert sends[2].request.topics[0].partition_indexes == [1]
    new.claim(sends[1])
    assert new.wants(0, 1, 2) == [True, False, True]


def test_records_of_the_same_transaction_refuse_a_claim(new):
    new.wants(0)
    new.claim(new.expect(DescribeProducersRequest), producer_id=7, epoch=3, last_sequence=0)
    error = new.failure()
    assert error == K._CONFLICT
    assert error.str().startswith("t[0]: The partition has records of this transaction already")


@pytest.mark.parametrize("known", [
    {"producer_id": 7, "epoch": 2, "last_sequence": 9}, {"producer_id": 8, "epoch": 3, "last_sequence": 9},
    {"producer_id": 7, "epoch": 3, "last_sequence": -1}])
def test_records_of_other_producers_and_of_transactions_before_do_not(new, known):
    new.wants(0)
    new.claim(new.expect(DescribeProducersRequest), **known)
    assert new.wants(0) == [True]


def test_with_version_1_the_coordinator_learns_of_the_partition_as_well(old):
    old.wants(0)
    add, claim = old.sent()
    assert isinstance(add.request, AddPartitionsToTxnRequest)
    assert (add.destination, add.max_version) == (COORDINATOR, 3)
    assert isinstance(claim.request, DescribeProducersRequest)
    old.claim(claim)
    assert old.wants(0) == [False]
    old.add(add)
    assert old.wants(0) == [True]


def test_with_version_1_one_request_to_add_partitions_is_under_way_at_a_time(old):
    old.wants(0)
    add, _ = old.sent()
    old.wants(1)
    assert [type(each.request) for each in old.sent()] == [DescribeProducersRequest]
    old.add(add)
    assert old.expect(AddPartitionsToTxnRequest).request.v3_and_below_topics[0].partitions == [1]


def test_a_transaction_before_that_is_still_being_completed_is_waited_for(old):
    old.wants(0)
    add, claim = old.sent()
    old.claim(claim)
    old.add(add, K.CONCURRENT_TRANSACTIONS)
    assert old.sent() == []
    old.wait()
    old.add(old.expect(AddPartitionsToTxnRequest))
    assert old.wants(0) == [True]


def test_a_coordinator_that_moved_is_looked_for(old):
    old.wants(0)
    add, _ = old.sent()
    old.add(add, K.NOT_COORDINATOR)
    assert old.finder.lost == 1


@pytest.mark.parametrize("code", [K.INVALID_PRODUCER_EPOCH, K.PRODUCER_FENCED, K.TOPIC_AUTHORIZATION_FAILED])
def test_a_partition_that_the_coordinator_refuses_is_the_end(old, code):
    old.wants(0)
    add, _ = old.sent()
    old.add(add, code)
    assert old.failure() == code


def test_a_leader_that_moved_is_looked_for_and_asked_again(new):
    new.wants(0)
    new.claim(new.expect(DescribeProducersRequest), K.NOT_LEADER_FOR_PARTITION)
    assert new.refreshed == 1
    new.leaders["t", 0] = 2
    new.wait()
    send = new.expect(DescribeProducersRequest)
    assert send.destination == 2
    new.claim(send)
    assert new.wants(0) == [True]


def test_a_partition_without_a_leader_waits_for_one(new):
    new.leaders["t", 0] = None
    new.wants(0)
    assert new.sent() == []
    assert new.refreshed == 1


def test_a_topic_that_must_not_be_read_cannot_be_claimed(new):
    new.wants(0)
    new.claim(new.expect(DescribeProducersRequest), K.TOPIC_AUTHORIZATION_FAILED)
    failure = new.failure()
    assert failure == K.TOPIC_AUTHORIZATION_FAILED
    assert failure.str().startswith("DescribeProducers of t[0]: ")
    assert failure.str().endswith("; this needs READ on the topic")


def test_a_lost_answer_is_asked_for_again(old):
    old.wants(0)
    add, claim = old.sent()
    old.machine.on_error(add, LOST, old.now)
    old.machine.on_error(claim, LOST, old.now)
    assert (old.finder.lost, old.refreshed) == (1, 1)
    assert old.machine.last_error == LOST
    old.wait()
    add, claim = old.sent()
    old.add(add)
    old.claim(claim)
    assert old.wants(0) == [True]


def test_brokers_that_know_no_such_request_are_the_end(new):
    new.wants(0)
    new.machine.on_error(new.expect(DescribeProducersRequest), K(K._UNSUPPORTED_FEATURE, "too old"), 0.0)
    assert new.failure() == K._UNSUPPORTED_FEATURE


def test_a_coordinator_that_must_not_be_used_is_the_end(old):
    old.finder.error = K(K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    old.wants(0)
    assert old.sent() == []
    assert old.failure() == K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_record_that_was_lost_is_the_end_whoever_tells_of_it(new, old):
    new.machine.on_batch_failed(K(K._MSG_TIMED_OUT), sent=True, uncertain=True)
    assert new.failure() == K._MSG_TIMED_OUT
    old.machine.on_fatal(K(K.PRODUCER_FENCED))
    old.machine.on_record_failed(K(K._MSG_TIMED_OUT))
    assert old.failure() == K.PRODUCER_FENCED


def test_the_next_transaction_claims_its_partitions_itself(new):
    new.wants(0)
    late = new.expect(DescribeProducersRequest)
    new.machine.join(NEW._replace(epoch=4))
    assert new.machine.epoch == 4
    assert new.wants(0) == [False]
    new.claim(late)  # an answer to the one before says nothing
    assert new.wants(0) == [False]
    new.claim(new.expect(DescribeProducersRequest))
    assert new.wants(0) == [True]


def test_a_partition_that_others_have_written_before_is_claimed_if_their_records_and_no_others_are_there():
    participant = Participant(NEW)
    participant.machine.join(NEW, {("t", 0): 5})
    assert participant.machine.before("t", 0) == 5
    assert participant.machine.before("t", 1) == 0
    participant.wants(0)
    participant.claim(participant.expect(DescribeProducersRequest), producer_id=NEW.producer_id, epoch=NEW.epoch,
                      last_sequence=4)
    assert participant.wants(0) == [True]


@pytest.mark.parametrize("last_sequence", [-1, 3, 5])
def test_records_that_are_missing_or_too_many_of_those_before_are_a_conflict(last_sequence):
    participant = Participant(NEW)
    participant.machine.join(NEW, {("t", 0): 5})
    participant.wants(0)
    participant.claim(participant.expect(DescribeProducersRequest), producer_id=NEW.producer_id, epoch=NEW.epoch,
                      last_sequence=last_sequence)
    assert participant.failure().code() == K._CONFLICT
