"""The owner of a joint transaction: in which order it asks, and what answers mean."""

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.joint import owner_steps
from headrace.machines.joint.joint_transaction import CommittedMark, JointTransaction
from headrace.wire.messages.consumer.offsets import OffsetFetchRequest
from headrace.wire.messages.producer.produce import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    DescribeTransactionsRequest,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
)
from tests.support.driven_conversation import NEW, OLD, DrivenConversation, committed, described, fetched

TAKEN = InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=3)


def begun(group="x", features=None):
    return DrivenConversation(owner_steps.begin("x", 60_000, lambda: features or {}, group=group))


# Begin


def test_the_name_is_taken_over_before_the_last_mark_is_asked_for():
    talk = begun()
    send = talk.answer(InitProducerIdRequest, TAKEN)
    request = send.request
    assert (request.transactional_id, request.transaction_timeout_ms) == ("x", 60_000)
    assert (request.producer_id, request.producer_epoch) == (-1, -1)
    send = talk.answer(OffsetFetchRequest, fetched(("t", 4, "note")))
    assert (send.request.group_id, send.request.topics, send.request.require_stable) == ("x", None, True)
    assert (send.destination, send.max_version) == (2, 7)
    assert talk.result() == (OLD, CommittedMark(4, "note"))


def test_the_cluster_says_which_version_of_transactions_it_speaks():
    talk = begun(None, {"transaction.version": 2})
    talk.answer(InitProducerIdRequest, TAKEN)
    assert talk.result() == (NEW, None)


def test_what_is_being_committed_is_waited_for_at_either_coordinator():
    talk = begun()
    talk.answer(InitProducerIdRequest, InitProducerIdResponse(error_code=K.CONCURRENT_TRANSACTIONS))
    talk.wait()
    talk.answer(InitProducerIdRequest, TAKEN)
    talk.answer(OffsetFetchRequest, fetched(code=K.UNSTABLE_OFFSET_COMMIT))
    talk.wait()
    talk.answer(OffsetFetchRequest, fetched())
    assert talk.result() == (OLD, None)


def test_of_marks_under_several_topics_the_last_one_counts():
    talk = begun()
    talk.answer(InitProducerIdRequest, TAKEN)
    talk.answer(OffsetFetchRequest, fetched(("a", 9, "old"), ("b", 10, "new"), ("c", -1, "")))
    assert talk.result()[1] == CommittedMark(10, "new")


def test_a_partition_whose_mark_is_not_settled_is_waited_for():
    talk = begun()
    talk.answer(InitProducerIdRequest, TAKEN)
    reply = fetched(("a", 9, "old"))
    reply.topics[0].partitions[0].error_code = K.UNSTABLE_OFFSET_COMMIT
    talk.answer(OffsetFetchRequest, reply)
    talk.wait()
    talk.answer(OffsetFetchRequest, fetched(("a", 10, "new")))
    assert talk.result()[1] == CommittedMark(10, "new")


@pytest.mark.parametrize("code", [K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, K.INVALID_TRANSACTION_TIMEOUT])
def test_a_name_that_cannot_be_taken_is_an_error(code):
    talk = begun()
    talk.answer(InitProducerIdRequest, InitProducerIdResponse(error_code=code))
    assert talk.error() == code


def test_a_group_that_must_not_be_read_is_an_error():
    talk = begun()
    talk.answer(InitProducerIdRequest, TAKEN)
    talk.answer(OffsetFetchRequest, fetched(code=K.GROUP_AUTHORIZATION_FAILED))
    assert talk.error() == K.GROUP_AUTHORIZATION_FAILED


# Probe


@pytest.mark.parametrize("code", [0, K.TRANSACTIONAL_ID_NOT_FOUND])
def test_a_name_that_may_be_described_is_known_or_not_yet(code):
    talk = DrivenConversation(owner_steps.probe("x"))
    send = talk.answer(DescribeTransactionsRequest, described(NEW, {}, code=code))
    assert send.request.transactional_ids == ["x"]
    assert talk.result() is None


def test_a_right_that_is_missing_shows_before_anything_is_begun():
    talk = DrivenConversation(owner_steps.probe("x"))
    talk.answer(DescribeTransactionsRequest, described(NEW, {}, code=K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    assert talk.error() == K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_brokers_that_are_too_old_are_refused_with_the_remedy():
    talk = DrivenConversation(owner_steps.probe("x"))
    talk.lose(DescribeTransactionsRequest, K(K._UNSUPPORTED_FEATURE, "the broker does not know it"))
    error = talk.error()
    assert error == K._UNSUPPORTED_FEATURE
    assert "needs Kafka 3.0 or later, best 3.6: the broker does not know it" in error.str()


# Check


def checked(reply, written=(("t", 0), ("t", 2))):
    talk = DrivenConversation(owner_steps.check(NEW, written))
    send = talk.answer(DescribeTransactionsRequest, reply)
    assert send.request.transactional_ids == [NEW.transactional_id]
    return talk


def test_a_transaction_that_holds_what_was_reported_may_be_committed():
    assert checked(described(NEW, {"t": [2, 0]})).result() is None


def test_the_offsets_of_an_earlier_attempt_at_the_mark_are_no_records():
    assert checked(described(NEW, {"t": [2, 0], "__consumer_offsets": [13]})).result() is None


@pytest.mark.parametrize("held", [{"t": [0, 1, 2]}, {"t": [0]}, {"t": [0, 2], "u": [0]}, {}])
def test_what_nobody_reported_or_what_is_missing_is_an_error(held):
    error = checked(described(NEW, held)).error()
    assert error == K._INCONSISTENT
    assert "other partitions than were reported: " in error.str()


@pytest.mark.parametrize("state", ["Empty", "PrepareAbort", "CompleteAbort", "CompleteCommit", "PrepareCommit"])
def test_a_transaction_that_is_not_open_is_an_error(state):
    assert checked(described(NEW, {"t": [0, 2]}, state)).error() == K.INVALID_TXN_STATE


@pytest.mark.parametrize("other", [JointTransaction("x", 7, 4, 2), JointTransaction("x", 8, 3, 2)])
def test_a_transaction_of_somebody_else_under_the_same_name_is_an_error(other):
    assert checked(described(other, {"t": [0, 2]})).error() == K.INVALID_TXN_STATE


def test_a_coordinator_that_does_not_know_the_name_is_an_error():
    assert checked(described(NEW, {}, code=K.TRANSACTIONAL_ID_NOT_FOUND)).error() == K.TRANSACTIONAL_ID_NOT_FOUND


# Mark and end


@pytest.mark.parametrize("transaction", [NEW, OLD])
def test_the_mark_is_part_of_the_transaction(transaction):
    talk = DrivenConversation(owner_steps.mark(transaction, "g", CommittedMark(5, "note"), ("t", 0)))
    if transaction.version == 1:
        send = talk.answer(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse(error_code=0))
        assert (send.request.producer_id, send.request.producer_epoch, send.request.group_id) == (7, 3, "g")
    send = talk.expect(TxnOffsetCommitRequest)
    assert send.max_version == {1: 4, 2: 5}[transaction.version]
    request = send.request
    assert (request.transactional_id, request.group_id, request.producer_id, request.producer_epoch) == ("x", "g", 7, 3)
    (part,) = request.topics[0].partitions
    assert (request.topics[0].name, part.partition_index) == ("t", 0)
    assert (part.committed_offset, part.committed_metadata) == (5, "note")
    talk.machine.on_reply(send, committed(request), talk.now)
    assert talk.result() is None


def test_a_mark_that_is_refused_is_an_error():
    talk = DrivenConversation(owner_steps.mark(NEW, "g", CommittedMark(5, "note"), ("t", 0)))
    send = talk.expect(TxnOffsetCommitRequest)
    talk.machine.on_reply(send, committed(send.request, K.INVALID_PRODUCER_EPOCH), talk.now)
    assert talk.error() == K.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("transaction", [NEW, OLD])
def test_the_end_is_a_commit_in_the_version_of_the_transaction(transaction):
    talk = DrivenConversation(owner_steps.end(transaction))
    send = talk.answer(EndTxnRequest, EndTxnResponse(error_code=0))
    assert (send.request.committed, send.max_version) == (True, {1: 4, 2: 5}[transaction.version])
    assert talk.result() is None


@pytest.mark.parametrize("code", [K.INVALID_TXN_STATE, K.PRODUCER_FENCED, K.INVALID_PRODUCER_EPOCH])
def test_a_commit_that_is_refused_is_an_error_and_never_turns_into_anything_else(code):
    talk = DrivenConversation(owner_steps.end(NEW))
    talk.answer(EndTxnRequest, EndTxnResponse(error_code=code))
    assert talk.error() == code
    assert talk.sent() is None


# Abort


def test_with_version_2_an_abort_ends_the_transaction():
    talk = DrivenConversation(owner_steps.abort(NEW, 60_000))
    send = talk.answer(EndTxnRequest, EndTxnResponse(error_code=0))
    assert (send.request.committed, send.request.producer_epoch) == (False, 3)
    assert talk.result() is None


@pytest.mark.parametrize("code", [0, K.INVALID_TXN_STATE])
def test_with_version_1_the_owner_of_the_name_asks_for_a_new_epoch_behind_the_abort(code):
    talk = DrivenConversation(owner_steps.abort(OLD, 60_000))
    send = talk.answer(EndTxnRequest, EndTxnResponse(error_code=code))
    assert (send.request.committed, send.max_version) == (False, 4)
    send = talk.answer(InitProducerIdRequest, TAKEN)
    assert (send.request.producer_id, send.request.producer_epoch) == (7, 3)
    assert talk.result() is None


def test_with_version_1_an_epoch_that_cannot_be_had_any_more_is_not_needed():
    talk = DrivenConversation(owner_steps.abort(OLD, 60_000))
    talk.answer(EndTxnRequest, EndTxnResponse(error_code=0))
    talk.answer(InitProducerIdRequest, InitProducerIdResponse(error_code=K.PRODUCER_FENCED))
    assert talk.result() is None


@pytest.mark.parametrize("code", [K.PRODUCER_FENCED, K.INVALID_PRODUCER_EPOCH, K.INVALID_PRODUCER_ID_MAPPING])
@pytest.mark.parametrize("transaction", [NEW, OLD])
def test_who_was_replaced_asks_for_nothing_more(transaction, code):
    talk = DrivenConversation(owner_steps.abort(transaction, 60_000))
    talk.answer(EndTxnRequest, EndTxnResponse(error_code=code))
    assert talk.sent() is None
    assert talk.result() is None


def test_with_version_2_a_transaction_that_is_over_need_not_be_aborted():
    talk = DrivenConversation(owner_steps.abort(NEW, 60_000))
    talk.answer(EndTxnRequest, EndTxnResponse(error_code=K.INVALID_TXN_STATE))
    assert talk.result() is None


def test_an_abort_that_is_not_allowed_is_an_error():
    talk = DrivenConversation(owner_steps.abort(NEW, 60_000))
    talk.answer(EndTxnRequest, EndTxnResponse(error_code=K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    assert talk.error() == K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
