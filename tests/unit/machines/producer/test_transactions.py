"""One producer's conversation with its transaction coordinator, call by call and answer by answer, in both versions."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError as K
from headrace.machines.producer.transactions import (
    ConsumerGroupMetadata,
    Operation,
    OperationDone,
    TransactionFailed,
    TxnState,
)
from headrace.types.records import TopicPartition
from headrace.wire.messages.producer.produce import InitProducerIdRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from tests.support.driven_transactions import (
    COORDINATOR,
    GROUP_COORDINATOR,
    MEMBER,
    Driven,
    offsets_reply,
    partitions_reply,
)


@pytest.fixture(params=[1, 2], ids=["version-1", "version-2"])
def either(request: pytest.FixtureRequest) -> Driven:
    return Driven(request.param).initialised()


@pytest.fixture
def one() -> Driven:
    return Driven(1).initialised()


@pytest.fixture
def two() -> Driven:
    return Driven(2).initialised()


# States and calls

CALLS = {
    "init": lambda d: d.machine.begin(Operation.INIT),
    "begin": lambda d: d.machine.open(),
    "offsets": lambda d: d.machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER),
    "commit": lambda d: d.machine.begin(Operation.COMMIT),
    "abort": lambda d: d.machine.begin(Operation.ABORT),
}
FATAL, ABORT = "fatal", "abort"
RULES = {  # what each call says in each state: None is allowed
    TxnState.UNINITIALIZED: (None, K._STATE, K._STATE, K._STATE, K._STATE),
    TxnState.INITIALIZING: (K._CONFLICT, K._CONFLICT, K._CONFLICT, K._CONFLICT, K._CONFLICT),
    TxnState.READY: (K._STATE, None, K._STATE, K._STATE, K._STATE),
    TxnState.IN_TRANSACTION: (K._STATE, K._STATE, None, None, None),
    TxnState.COMMITTING: (K._CONFLICT, K._CONFLICT, K._CONFLICT, K._CONFLICT, K._CONFLICT),
    TxnState.ABORTING: (K._CONFLICT, K._CONFLICT, K._CONFLICT, K._CONFLICT, K._CONFLICT),
    TxnState.ABORTABLE_ERROR: (ABORT, ABORT, ABORT, ABORT, None),
    TxnState.FATAL_ERROR: (FATAL, FATAL, FATAL, FATAL, FATAL),
}


def in_state(state: TxnState, version: int) -> Driven:
    driven = Driven(version)
    if state is TxnState.UNINITIALIZED:
        return driven
    if state is TxnState.INITIALIZING:
        driven.machine.begin(Operation.INIT)
        return driven
    driven.initialised()
    if state is not TxnState.READY:
        driven.opened()
    if state is TxnState.COMMITTING:
        driven.writing().ending(Operation.COMMIT)
    elif state is TxnState.ABORTING:
        driven.writing().ending(Operation.ABORT)
    elif state is TxnState.ABORTABLE_ERROR:
        driven.machine.on_record_failed(K(K._MSG_TIMED_OUT))
    elif state is TxnState.FATAL_ERROR:
        driven.machine.on_fatal(K(K.PRODUCER_FENCED))
    assert driven.machine.state is state
    return driven


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("state", "call", "says"), [
    (state, call, says) for state, row in RULES.items() for call, says in zip(CALLS, row, strict=True)])
def test_each_call_in_each_state_is_allowed_or_says_why_not(state, call, says, version):
    driven = in_state(state, version)
    error = CALLS[call](driven)
    if says is None:
        assert error is None
    elif says == FATAL:
        assert error.fatal()
    elif says == ABORT:
        assert error.txn_requires_abort()
    else:
        assert error.code() == says
        assert state.value in error.str()
    if says is not None:
        assert driven.machine.state is state


# The usual way


def test_a_transaction_of_version_1_adds_partitions_then_ends(one):
    one.opened()
    assert not one.machine.admits("t", 0)
    assert not one.machine.admits("t", 1)
    assert not one.machine.admits("u", 0)
    send = one.expect(AddPartitionsToTxnRequest)
    assert (send.destination, send.max_version) == (COORDINATOR, 3)
    assert {topic.name: topic.partitions for topic in send.request.v3_and_below_topics} == {"t": [0, 1], "u": [0]}
    assert one.sent() is None
    one.accept(send)
    assert one.machine.admits("t", 1)
    send = one.ending(Operation.COMMIT)
    assert (send.request.committed, send.request.producer_id, send.request.producer_epoch) == (True, 7, 0)
    assert (send.max_version, one.machine.max_produce_version) == (4, 11)
    one.accept(send)
    assert one.done() == {Operation.COMMIT: None}
    assert one.sent() is None
    assert (one.machine.state, one.machine.epoch) == (TxnState.READY, 0)


def test_a_transaction_of_version_2_only_ends_and_gets_the_next_epoch(two):
    two.opened()
    assert two.machine.admits("t", 0)
    assert two.machine.max_produce_version > 12
    assert two.sent() is None
    send = two.ending(Operation.ABORT)
    assert (send.request.committed, send.max_version) == (False, 5)
    two.accept(send, 9, 3)
    assert two.done() == {Operation.ABORT: None}
    assert (two.machine.producer_id, two.machine.epoch) == (9, 3)
    assert two.sent() is None
    two.opened().machine.admits("t", 0)
    two.accept(two.ending(Operation.COMMIT), 0, 4)  # the first id that a cluster gives
    assert (two.machine.producer_id, two.machine.epoch) == (0, 4)
    assert two.sent() is None


def test_partitions_are_added_once_in_each_transaction(one):
    one.opened().writing().writing()
    assert one.sent() is None
    one.end(Operation.COMMIT)
    one.opened()
    assert not one.machine.admits("t", 0)


@pytest.mark.parametrize("operation", [Operation.COMMIT, Operation.ABORT])
def test_a_transaction_with_nothing_in_it_needs_no_request(either, operation):
    either.opened()
    assert either.machine.begin(operation) is None
    assert either.sent() is None
    assert either.done() == {operation: None}
    assert either.machine.state is TxnState.READY


@pytest.mark.parametrize("operation", [Operation.COMMIT, Operation.ABORT])
def test_the_end_waits_for_records_on_their_way(either, operation):
    either.opened().writing()
    either.busy = True
    assert either.machine.begin(operation) is None
    assert either.sent() is None
    either.busy = False
    either.expect(EndTxnRequest)


def test_a_record_that_comes_after_the_end_was_asked_for_neither_gets_in_nor_holds_it_up(either):
    either.opened().writing()
    send = either.ending(Operation.COMMIT)
    either.busy = True
    assert not either.machine.admits("t", 0)
    either.machine.on_record_failed(K(K._MSG_TIMED_OUT))
    either.refuse(send, K.CONCURRENT_TRANSACTIONS)
    either.wait()
    either.expect(EndTxnRequest)
    assert either.done() == {}


@pytest.mark.parametrize(
    "state", [TxnState.UNINITIALIZED, TxnState.READY, TxnState.ABORTING, TxnState.ABORTABLE_ERROR, TxnState.FATAL_ERROR]
)
def test_records_are_sent_in_open_transactions_only(state):
    assert not in_state(state, 2).machine.admits("t", 0)


def test_records_that_wait_are_lost_once_the_transaction_is(either):
    assert either.machine.lost is None
    either.opened().writing()
    assert either.machine.lost is None
    either.ending(Operation.ABORT)
    assert either.machine.lost == K._PURGE_QUEUE


# Offsets


def test_offsets_of_version_1_are_announced_to_the_one_coordinator_and_sent_to_the_other(one):
    one.opened()
    positions = [TopicPartition("in", 3, 42, metadata="m", leader_epoch=6), TopicPartition("in", 4, 43)]
    assert one.machine.add_offsets(positions, MEMBER) is None
    send = one.expect(AddOffsetsToTxnRequest)
    assert (send.destination, send.request.group_id) == (COORDINATOR, "g")
    one.accept(send)
    send = one.expect(TxnOffsetCommitRequest)
    assert (send.destination, send.max_version) == (GROUP_COORDINATOR, 4)
    request = send.request
    assert (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (
        5, "member", "instance")
    assert [(p.partition_index, p.committed_offset, p.committed_leader_epoch, p.committed_metadata)
            for p in request.topics[0].partitions] == [(3, 42, 6, "m"), (4, 43, -1, "")]
    one.accept(send)
    assert one.done() == {Operation.OFFSETS: None}


def test_offsets_of_version_2_need_no_announcement(two):
    two.opened()
    two.machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    send = two.expect(TxnOffsetCommitRequest)
    assert send.max_version == 5
    two.accept(send)
    assert two.done() == {Operation.OFFSETS: None}
    two.end(Operation.COMMIT)


def test_a_group_is_announced_once_in_each_transaction(one):
    for _ in range(2):
        one.opened()
        for group, announced in (("g", True), ("h", True), ("g", False)):
            assert one.machine.add_offsets([TopicPartition("in", 0, 1)], ConsumerGroupMetadata(group)) is None
            if announced:
                one.accept(one.expect(AddOffsetsToTxnRequest))
            one.accept(one.expect(TxnOffsetCommitRequest))
            assert one.done() == {Operation.OFFSETS: None}
        one.end(Operation.COMMIT)


def test_a_second_call_with_offsets_is_refused_while_the_first_is_under_way(either):
    either.opened()
    either.machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    assert either.machine.add_offsets([TopicPartition("in", 0, 2)], MEMBER) == K._CONFLICT


def test_a_commit_sends_the_offsets_first(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    two.machine.begin(Operation.COMMIT)
    two.accept(two.expect(TxnOffsetCommitRequest))
    two.accept(two.expect(EndTxnRequest), 7, 1)
    assert two.done() == {Operation.OFFSETS: None, Operation.COMMIT: None}


def test_an_abort_ends_the_call_with_offsets(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    send = two.expect(TxnOffsetCommitRequest)
    two.machine.begin(Operation.ABORT)
    assert two.done() == {Operation.OFFSETS: K(K._STATE)}
    assert two.sent() is None
    two.accept(send)
    two.expect(EndTxnRequest)


def test_an_abort_that_is_refused_leaves_the_offsets_alone(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    two.machine.begin(Operation.COMMIT)
    assert two.machine.begin(Operation.ABORT) == K._CONFLICT
    two.expect(TxnOffsetCommitRequest)


def test_offsets_that_were_refused_are_sent_again_without_those_that_were_taken(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1), TopicPartition("in", 1, 1)], MEMBER)
    send = two.expect(TxnOffsetCommitRequest)
    two.machine.on_reply(send, offsets_reply({("in", 0): 0, ("in", 1): K.COORDINATOR_LOAD_IN_PROGRESS}), two.now)
    two.wait()
    again = two.expect(TxnOffsetCommitRequest)
    assert [p.partition_index for p in again.request.topics[0].partitions] == [1]


def test_offsets_of_a_topic_that_no_broker_knows_after_many_tries_fail_the_transaction(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1), TopicPartition("in", 1, 1)], MEMBER)
    for _ in range(10):  # a topic that was made just now is waited for
        two.machine.on_reply(two.expect(TxnOffsetCommitRequest), offsets_reply(
            {("in", 0): 0, ("in", 1): K.UNKNOWN_TOPIC_OR_PART}), two.now)
        assert two.machine.state is TxnState.IN_TRANSACTION
        two.wait()
    two.machine.on_reply(two.expect(TxnOffsetCommitRequest), offsets_reply(
        {("in", 1): K.UNKNOWN_TOPIC_OR_PART}), two.now)
    error = two.done()[Operation.OFFSETS]
    assert error == K.UNKNOWN_TOPIC_OR_PART
    assert error.txn_requires_abort()
    two.end(Operation.ABORT)


def test_offsets_that_an_answer_leaves_out_are_sent_again(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    two.machine.on_reply(two.expect(TxnOffsetCommitRequest), TxnOffsetCommitResponse(topics=[]), two.now)
    two.wait()
    two.expect(TxnOffsetCommitRequest)


def test_newer_offsets_after_a_lost_answer_doom_the_transaction_for_a_late_request_would_take_them_back(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    two.lose(two.expect(TxnOffsetCommitRequest))
    two.wait()
    two.accept(two.expect(TxnOffsetCommitRequest))
    assert two.done() == {Operation.OFFSETS: None}
    assert two.machine.add_offsets([TopicPartition("in", 1, 5)], MEMBER) is None
    two.accept(two.expect(TxnOffsetCommitRequest))
    error = two.machine.add_offsets([TopicPartition("in", 0, 2)], MEMBER)
    assert error is not None
    assert error.txn_requires_abort()


def test_a_group_that_may_not_be_used_dooms_the_transaction_only(either):
    either.opened()
    either.machine.group_finder("g").error = K(K.GROUP_AUTHORIZATION_FAILED)
    either.machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    if either.machine.version == 1:
        either.accept(either.expect(AddOffsetsToTxnRequest))
    assert either.sent() is None
    assert either.machine.state is TxnState.ABORTABLE_ERROR
    assert either.done()[Operation.OFFSETS] == K.GROUP_AUTHORIZATION_FAILED
    either.end(Operation.ABORT)
    assert either.sent() is None, "nothing late can arrive: no new epoch is needed"


def test_a_transactional_id_that_may_not_be_used_is_fatal():
    driven = Driven()
    driven.finder.error = K(K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    driven.machine.begin(Operation.INIT)
    assert driven.sent() is None
    error = driven.done()[Operation.INIT]
    assert error == K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()


# Coordinators that move, answers that are lost


def test_nothing_is_sent_while_the_coordinator_is_looked_for(either):
    either.finder.node_id = None
    either.opened().machine.admits("t", 0)
    either.machine.begin(Operation.COMMIT)
    assert either.sent() is None
    assert either.machine.deadline() is None
    either.finder.node_id = 5
    send = either.sent()
    assert send is not None
    assert send.destination == 5


def test_a_wait_that_is_over_leaves_no_deadline_in_the_past(one):
    one.opened().writing()
    one.refuse(one.ending(Operation.COMMIT), K.NOT_COORDINATOR)
    assert one.finder.lost == 1
    one.finder.node_id = None
    one.wait()
    assert one.sent() is None
    assert one.machine.deadline() is None


@pytest.mark.parametrize("operation", [Operation.COMMIT, Operation.ABORT])
def test_a_lost_answer_to_the_end_is_asked_for_again(either, operation):
    either.opened().writing()
    send = either.ending(operation)
    either.lose(send)
    assert either.finder.lost == 1
    either.wait()
    again = either.expect(EndTxnRequest)
    assert again.request == send.request


def test_the_wait_grows_with_failures_and_begins_anew_after_an_answer(one):
    one.machine.open()
    one.machine.admits("t", 0)
    waits = []
    for _ in range(3):
        one.lose(one.expect(AddPartitionsToTxnRequest))
        before = one.now
        one.wait()
        waits.append(round(one.now - before, 6))
    assert waits == [0.1, 0.2, 0.4]
    one.accept(one.expect(AddPartitionsToTxnRequest))
    one.lose(one.ending(Operation.COMMIT))
    assert one.machine.deadline() == pytest.approx(one.now + 0.1)


def test_an_answer_ends_the_row_of_failures(either):
    either.opened()
    for group in ("g", "h"):
        either.machine.add_offsets([TopicPartition("in", 0, 1)], ConsumerGroupMetadata(group))
        while (send := either.sent()) is not None:
            either.lose(send)
            assert either.machine.deadline() == pytest.approx(either.now + 0.1)
            either.wait()
            send = either.sent()
            assert send is not None
            either.accept(send)
    either.done()
    if either.machine.version == 1:
        for partition in (0, 1):
            either.machine.admits("t", partition)
            either.lose(either.expect(AddPartitionsToTxnRequest))
            assert either.machine.deadline() == pytest.approx(either.now + 0.1)
            either.wait()
            either.accept(either.expect(AddPartitionsToTxnRequest))


def test_the_transaction_before_is_waited_for_with_short_waits_at_first(one):
    one.opened().writing()
    send = one.ending(Operation.COMMIT)
    waits = []
    for _ in range(12):
        one.refuse(send, K.CONCURRENT_TRANSACTIONS)
        before = one.now
        one.wait()
        waits.append(one.now - before)
        send = one.expect(EndTxnRequest)
    assert waits[:10] == pytest.approx([0.02] * 10)
    assert min(waits[10:]) > 1


def test_a_failure_that_asking_again_cannot_cure_is_fatal(either):
    either.opened().writing()
    either.lose(either.ending(Operation.COMMIT), K(K._UNSUPPORTED_FEATURE))
    error = either.done()[Operation.COMMIT]
    assert error == K._UNSUPPORTED_FEATURE
    assert error.fatal()


@pytest.mark.parametrize("code", [K._AUTHENTICATION, K._SSL])
def test_a_coordinator_that_refuses_whom_it_has_let_in_before_is_waited_for_and_no_other(either, code):
    """As in librdkafka: where a password was replaced at the brokers first, the transaction had no other fault."""
    refusal = K(code, "who are you?")
    either.opened().writing()
    either.lose(either.ending(Operation.COMMIT), refusal)
    either.finder.node_id, either.finder.error = None, refusal
    either.wait()
    assert either.sent() is None
    assert either.machine.last_error == refusal
    either.finder.node_id, either.finder.error = either.finder.found, None
    either.accept(either.expect(EndTxnRequest))
    assert either.done() == {Operation.COMMIT: None}
    for lost in ("request", "lookup"):
        stranger = Driven(either.machine.version)
        stranger.machine.begin(Operation.INIT)
        if lost == "request":
            stranger.lose(stranger.expect(InitProducerIdRequest), refusal)
        else:
            stranger.finder.error = refusal
            assert stranger.sent() is None
        assert stranger.done() == {Operation.INIT: refusal}
        assert stranger.machine.error.fatal()


@pytest.mark.parametrize("code", [K._UNKNOWN_BROKER, K._BAD_MSG])
def test_a_coordinator_that_left_the_cluster_or_answered_nonsense_is_looked_for_again(either, code):
    either.opened().writing()
    either.lose(either.ending(Operation.COMMIT), K(code))
    assert either.finder.lost == 1
    either.wait()
    either.accept(either.expect(EndTxnRequest))
    assert either.done() == {Operation.COMMIT: None}


def test_a_port_that_spoke_tls_for_a_moment_ends_no_producer(either):
    either.opened().writing()
    either.lose(either.ending(Operation.COMMIT), K(K._SSL, "the port speaks TLS", retriable=True))
    assert either.machine.last_error.str() == "the port speaks TLS"
    either.wait()
    either.accept(either.expect(EndTxnRequest))
    assert either.done() == {Operation.COMMIT: None}
    assert either.machine.last_error is None


def test_why_an_operation_takes_long_is_known(either):
    assert either.machine.last_error is None
    either.finder.last_error = K(K._TRANSPORT, "no frame")
    assert either.machine.last_error.str() == "no frame"
    either.opened().writing()
    either.refuse(either.ending(Operation.COMMIT), K.CONCURRENT_TRANSACTIONS)
    assert either.machine.last_error == K.CONCURRENT_TRANSACTIONS


# A new epoch after anything uncertain (version 1), or after numbers that cannot be used any more


def recovered(driven: Driven) -> int:
    """Let the machine get a new epoch, if it wants one."""
    send = driven.sent()
    if send is None:
        return driven.machine.epoch
    assert (send.request.producer_id, send.request.producer_epoch) == (driven.machine.producer_id, driven.machine.epoch)
    driven.accept(send, driven.machine.producer_id, driven.machine.epoch + 1)
    return driven.machine.epoch


@pytest.mark.parametrize("operation", [Operation.COMMIT, Operation.ABORT])
def test_after_a_lost_answer_to_the_end_version_1_needs_a_new_epoch(one, operation):
    one.opened().writing()
    one.lose(one.ending(operation))
    one.wait()
    one.accept(one.expect(EndTxnRequest))
    assert one.done() == {operation: None}
    one.opened()
    assert not one.machine.admits("t", 0)
    assert recovered(one) == 1
    one.writing().end(Operation.COMMIT)
    assert recovered(one) == 1


def test_after_a_lost_answer_to_added_partitions_version_1_needs_a_new_epoch(one):
    one.opened().machine.admits("t", 0)
    one.lose(one.expect(AddPartitionsToTxnRequest))
    one.wait()
    one.writing().end(Operation.COMMIT)
    assert recovered(one) == 1


@pytest.mark.parametrize("lost", [AddOffsetsToTxnRequest, TxnOffsetCommitRequest])
def test_after_a_lost_answer_to_offsets_version_1_needs_a_new_epoch(one, lost):
    one.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    while (send := one.sent()) is not None:
        if isinstance(send.request, lost):
            one.lose(send)
            one.wait()
            lost = type(None)
        else:
            one.accept(send)
    one.done()
    one.end(Operation.COMMIT)
    assert recovered(one) == 1


def test_a_request_that_never_left_needs_no_new_epoch(one):
    one.opened().writing()
    one.lose(one.ending(Operation.COMMIT), K(K._TRANSPORT, "refused"))
    one.wait()
    one.accept(one.expect(EndTxnRequest))
    assert recovered(one) == 0


def test_version_2_gets_its_epoch_with_the_end_whatever_was_lost(two):
    two.opened().writing()
    two.machine.on_batch_failed(K(K._MSG_TIMED_OUT), sent=True, uncertain=True)
    two.lose(two.ending(Operation.ABORT))
    two.wait()
    two.accept(two.expect(EndTxnRequest), 7, 1)
    assert recovered(two) == 1


@pytest.mark.parametrize(("sent", "uncertain", "epoch"), [
    (False, False, 0), (True, False, 1), (False, True, 1), (True, True, 1)])
def test_after_a_batch_that_was_given_up_version_1_needs_a_new_epoch_if_it_had_a_number(one, sent, uncertain, epoch):
    one.opened().writing()
    one.machine.on_batch_failed(K(K._MSG_TIMED_OUT), sent=sent, uncertain=uncertain)
    assert one.machine.state is TxnState.ABORTABLE_ERROR
    one.done()
    one.end(Operation.ABORT)
    assert recovered(one) == epoch


def test_numbers_of_batches_that_the_abort_purged_count_too(one):
    one.opened().writing()
    one.busy = True
    one.machine.begin(Operation.ABORT)
    one.machine.on_batch_failed(K(K._PURGE_INFLIGHT), sent=True, uncertain=True)
    one.busy = False
    one.accept(one.expect(EndTxnRequest))
    assert one.done() == {Operation.ABORT: None}
    assert recovered(one) == 1


def test_an_end_of_version_2_without_an_epoch_in_the_answer_is_followed_by_a_request_for_one(two):
    two.opened().writing()
    two.accept(two.ending(Operation.COMMIT))
    assert two.done() == {Operation.COMMIT: None}
    assert recovered(two) == 1


def test_a_lost_answer_to_the_request_for_an_epoch_is_asked_for_again_with_the_old_one(one):
    one.opened().writing()
    one.machine.on_batch_failed(K(K._MSG_TIMED_OUT), sent=True, uncertain=False)
    one.end(Operation.ABORT)
    send = one.expect(InitProducerIdRequest)
    one.lose(send)
    one.wait()
    assert one.expect(InitProducerIdRequest).request == send.request


def test_a_producer_that_was_replaced_while_it_waited_for_its_epoch_is_told_at_the_next_call(one):
    one.opened().writing()
    one.machine.on_batch_failed(K(K._MSG_TIMED_OUT), sent=True, uncertain=False)
    one.end(Operation.ABORT)
    one.refuse(one.expect(InitProducerIdRequest), K.PRODUCER_FENCED)
    error = one.machine.open()
    assert error == K._FENCED
    assert error.fatal()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_brokers_before_kafka_2_5_cannot_go_on_after_an_uncertain_end(version):
    driven = Driven(1)
    driven.machine.begin(Operation.INIT)
    send = driven.expect(InitProducerIdRequest)
    send.version = version
    driven.accept(send, 7, 0)
    driven.opened().writing()
    driven.lose(driven.ending(Operation.COMMIT))
    driven.wait()
    driven.done()
    driven.accept(driven.expect(EndTxnRequest))
    events = driven.machine.events()
    assert events[0] == OperationDone(Operation.COMMIT)
    assert isinstance(events[1], TransactionFailed)
    assert driven.machine.open().fatal()


# Which version


def test_the_version_is_settled_when_a_transaction_begins(one):
    one.features = {"transaction.version": 2}
    one.opened()
    assert one.machine.version == 2
    one.features = {"transaction.version": 1}
    one.writing().end(Operation.COMMIT)
    one.opened()
    assert one.machine.version == 1


def test_a_transaction_of_version_1_with_nothing_in_it_has_not_used_its_epoch(one):
    one.opened()
    one.machine.begin(Operation.COMMIT)
    assert one.sent() is None
    one.features = {"transaction.version": 2}
    one.opened()
    assert one.machine.version == 2


def test_version_2_begins_in_an_epoch_that_version_1_has_not_used(one):
    one.opened().writing()
    one.features = {"transaction.version": 2}
    one.end(Operation.COMMIT)
    one.opened()
    assert one.machine.version == 2
    assert not one.machine.admits("t", 0)
    assert recovered(one) == 1
    assert one.machine.admits("t", 0)


def test_a_change_to_version_2_between_transactions_waits_for_the_end_of_the_next_one(one):
    """A request for an epoch long after the last transaction could end what another producer has open by then."""
    one.opened().writing().end(Operation.COMMIT)
    one.features = {"transaction.version": 2}
    one.opened()
    assert one.machine.version == 1
    one.writing().end(Operation.COMMIT)
    assert recovered(one) == 1
    one.opened()
    assert one.machine.version == 2


def test_without_news_of_features_the_version_stays(two):
    two.opened().writing().end(Operation.COMMIT)
    two.features = {}
    two.opened()
    assert two.machine.version == 2


def test_without_any_feature_it_is_version_1():
    driven = Driven()
    driven.features = {}
    assert driven.initialised().opened().machine.version == 1


# Ends that go wrong


def test_a_failed_record_dooms_the_transaction_and_ends_a_commit(either):
    either.opened().writing()
    either.busy = True
    either.machine.begin(Operation.COMMIT)
    either.machine.on_record_failed(K(K._MSG_TIMED_OUT, "too late"))
    events = either.machine.events()
    assert isinstance(events[0], TransactionFailed)
    error = events[1].error
    assert error == K._MSG_TIMED_OUT
    assert (error.txn_requires_abort(), error.retriable(), error.fatal()) == (True, False, False)
    assert either.machine.lost is error
    either.busy = False
    either.end(Operation.ABORT)
    assert either.machine.lost is None
    assert recovered(either) in (0, 1)
    either.opened().writing().end(Operation.COMMIT)


def test_a_refused_commit_that_may_have_gone_through_before_is_fatal_and_says_so(either):
    either.opened().writing()
    either.lose(either.ending(Operation.COMMIT))
    either.wait()
    either.refuse(either.expect(EndTxnRequest), K.INVALID_TXN_STATE)
    error = either.done()[Operation.COMMIT]
    assert error.fatal()
    assert error.maybe_applied


@pytest.mark.parametrize("first", [K.COORDINATOR_NOT_AVAILABLE, K.NOT_COORDINATOR])
def test_a_fenced_commit_that_may_be_in_the_coordinators_log_says_so(either, first):
    either.opened().writing()
    either.refuse(either.ending(Operation.COMMIT), first)
    either.wait()
    either.refuse(either.expect(EndTxnRequest), K.PRODUCER_FENCED)
    error = either.done()[Operation.COMMIT]
    assert error == K._FENCED
    assert error.maybe_applied


@pytest.mark.parametrize("before", [None, K.CONCURRENT_TRANSACTIONS, K.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_commit_that_was_never_done_can_be_aborted(either, before):
    """The coordinator of version 2 says so when the transaction was open for too long, first that it is aborting it."""
    either.opened().writing()
    asked = either.ending(Operation.COMMIT)
    if before is not None:
        either.refuse(asked, before)
        either.wait()
        asked = either.expect(EndTxnRequest)
    either.refuse(asked, K.INVALID_TXN_STATE)
    error = either.done()[Operation.COMMIT]
    assert error.txn_requires_abort()
    assert not error.maybe_applied
    either.busy = True
    assert either.machine.begin(Operation.ABORT) is None
    assert either.sent() is None
    either.busy = False
    either.expect(EndTxnRequest)


@pytest.mark.parametrize("operation", [Operation.COMMIT, Operation.ABORT])
def test_a_fenced_producer_asks_for_nothing_more(either, operation):
    either.opened().writing()
    either.refuse(either.ending(operation), K.PRODUCER_FENCED)
    error = either.done()[operation]
    assert (error.code(), error.fatal(), error.maybe_applied) == (K._FENCED, True, False)
    assert either.sent() is None
    assert either.machine.deadline() is None


def test_an_abort_of_what_the_coordinator_never_heard_of_succeeds_in_a_new_epoch(either):
    either.opened()
    either.machine.admits("t", 0)
    if (lost := either.sent()) is not None:
        either.lose(lost)
        either.wait()
    either.refuse(either.ending(Operation.ABORT), K.INVALID_TXN_STATE)
    assert either.done() == {Operation.ABORT: None}
    assert recovered(either) == 1


def test_an_abort_of_version_2_may_come_while_the_transaction_before_is_completed(two):
    send = aborting_behind_another(two)
    for _ in range(3):
        two.refuse(send, K.PRODUCER_FENCED)
        assert two.done() == {}
        two.wait()
        send = two.expect(EndTxnRequest)
    two.accept(send, 7, 2)
    assert two.done() == {Operation.ABORT: None}


def aborting_behind_another(two):
    two.opened().writing().end(Operation.COMMIT)
    two.opened().machine.admits("t", 0)
    return two.ending(Operation.ABORT)


def test_a_first_abort_is_not_early_so_one_that_is_fenced_is_fatal_at_once(two):
    two.opened().machine.admits("t", 0)
    two.refuse(two.ending(Operation.ABORT), K.PRODUCER_FENCED)
    assert two.done()[Operation.ABORT] == K._FENCED


def test_offsets_are_not_early_so_a_producer_that_is_fenced_with_them_is_told_at_once(two):
    two.opened().writing().end(Operation.COMMIT)
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    two.refuse(two.expect(TxnOffsetCommitRequest), K.PRODUCER_FENCED)
    assert two.done()[Operation.OFFSETS] == K._FENCED


def test_an_abort_of_version_1_is_not_early_behind_a_transaction_of_version_2(two):
    two.opened().writing().end(Operation.COMMIT)
    two.features = {"transaction.version": 1}
    two.opened().machine.admits("t", 0)
    two.lose(two.expect(AddPartitionsToTxnRequest))
    two.wait()
    two.refuse(two.ending(Operation.ABORT), K.PRODUCER_FENCED)
    assert two.done()[Operation.ABORT] == K._FENCED


def test_an_abort_is_not_early_where_a_leader_has_said_that_the_epoch_is_outdated(two):
    two.opened().writing().end(Operation.COMMIT)
    two.opened().machine.admits("t", 0)
    two.machine.on_batch_failed(K(K.INVALID_PRODUCER_EPOCH), sent=True, uncertain=False)
    two.refuse(two.ending(Operation.ABORT), K.PRODUCER_FENCED)
    assert two.done()[Operation.ABORT] == K._FENCED


def test_an_abort_that_seemed_early_was_fenced_if_there_is_nothing_left_to_abort(two):
    two.refuse(aborting_behind_another(two), K.PRODUCER_FENCED)
    two.wait()
    two.refuse(two.expect(EndTxnRequest), K.INVALID_TXN_STATE)
    assert two.done()[Operation.ABORT] == K._FENCED


def test_an_abort_of_version_2_that_stays_fenced_is_fatal(two):
    send = aborting_behind_another(two)
    for _ in range(30):
        two.refuse(send, K.PRODUCER_FENCED)
        two.wait()
        send = two.expect(EndTxnRequest)
    two.refuse(send, K.PRODUCER_FENCED)
    assert two.done()[Operation.ABORT].fatal()


def test_an_abort_that_is_fenced_after_offsets_were_stored_is_fatal_at_once(two):
    two.opened().machine.add_offsets([TopicPartition("in", 0, 1)], MEMBER)
    two.accept(two.expect(TxnOffsetCommitRequest))
    two.refuse(two.ending(Operation.ABORT), K.PRODUCER_FENCED)
    assert two.done()[Operation.ABORT].fatal()


def test_answers_after_the_end_of_all_change_nothing(either):
    either.opened().writing()
    send = either.ending(Operation.COMMIT)
    either.machine.on_fatal(K(K.PRODUCER_FENCED))
    assert either.done()[Operation.COMMIT] == K._FENCED
    either.accept(send, 7, 1)
    assert either.machine.state is TxnState.FATAL_ERROR
    assert either.done() == {}


def test_a_fatal_error_is_told_once(either):
    either.opened()
    for _ in range(2):
        either.machine.on_fatal(K(K.CLUSTER_AUTHORIZATION_FAILED))
    assert len(either.machine.events()) == 1


def test_the_answer_for_one_partition_that_heals_does_not_hide_that_of_one_that_does_not(one):
    one.opened()
    one.machine.admits("t", 0)
    one.machine.admits("t", 1)
    send = one.expect(AddPartitionsToTxnRequest)
    one.machine.on_reply(send, partitions_reply({
        ("t", 0): K.UNKNOWN_TOPIC_OR_PART, ("t", 1): K.TOPIC_AUTHORIZATION_FAILED}), one.now)
    assert one.machine.state is TxnState.ABORTABLE_ERROR
    assert one.machine.error == K.TOPIC_AUTHORIZATION_FAILED


def test_partitions_that_were_added_stay_so_while_others_are_tried_again(one):
    one.opened()
    one.machine.admits("t", 0)
    one.machine.admits("t", 1)
    send = one.expect(AddPartitionsToTxnRequest)
    one.machine.on_reply(send, partitions_reply({("t", 0): 0, ("t", 1): K.CONCURRENT_TRANSACTIONS}), one.now)
    assert one.machine.admits("t", 0)
    one.wait()
    assert one.expect(AddPartitionsToTxnRequest).request.v3_and_below_topics[0].partitions == [1]
