"""A conversation asks until it is answered; what asking again cannot cure is raised inside it."""

import pytest

from headrace.errors import KafkaError as K
from headrace.errors import KafkaException
from headrace.machines.cluster.coordinator import TRANSACTION
from headrace.machines.joint.conversation import Ask
from headrace.machines.machine import LOST
from headrace.wire.messages.producer.transactions import EndTxnRequest, EndTxnResponse
from tests.support.driven_conversation import PATIENCE_S, DrivenConversation

ASK = Ask(TRANSACTION, "x", EndTxnRequest(transactional_id="x", producer_id=7, producer_epoch=3, committed=True),
          lambda reply: [reply.error_code], 4)


def once():
    reply = yield ASK
    return reply.producer_epoch


def answer(code=0):
    return EndTxnResponse(error_code=code, producer_epoch=9)


@pytest.fixture
def talk():
    return DrivenConversation(once())


def test_it_asks_the_coordinator_in_the_highest_version_that_is_allowed_and_returns_what_came_of_it(talk):
    send = talk.answer(EndTxnRequest, answer())
    assert (send.destination, send.max_version, send.timeout_s) == (1, 4, 30.0)
    assert talk.result() == 9
    assert talk.sent() is None
    assert talk.machine.deadline() is None


def test_it_waits_for_the_coordinator_to_be_found(talk):
    talk.finders[TRANSACTION].node_id = None
    assert talk.sent() is None
    assert talk.machine.deadline() == PATIENCE_S
    talk.finders[TRANSACTION].node_id = 5
    assert talk.expect(EndTxnRequest).destination == 5


def test_one_question_is_under_way_at_a_time(talk):
    talk.expect(EndTxnRequest)
    assert talk.sent() is None


def test_a_coordinator_that_moved_is_looked_for_and_asked_again(talk):
    talk.answer(EndTxnRequest, answer(K.NOT_COORDINATOR))
    assert talk.finders[TRANSACTION].lost == 1
    assert talk.sent() is None
    talk.wait()
    talk.answer(EndTxnRequest, answer())
    assert talk.result() == 9


@pytest.mark.parametrize("code", LOST)
def test_a_lost_answer_is_asked_for_again(talk, code):
    talk.lose(EndTxnRequest, K(code))
    assert talk.finders[TRANSACTION].lost == 1
    talk.wait()
    talk.answer(EndTxnRequest, answer())
    assert talk.result() == 9


def test_what_is_still_being_completed_is_asked_for_often_at_first_then_less_so(talk):
    for _ in range(10):
        talk.answer(EndTxnRequest, answer(K.CONCURRENT_TRANSACTIONS))
        before = talk.now
        talk.wait()
        assert talk.now - before == pytest.approx(0.02)
    talk.answer(EndTxnRequest, answer(K.CONCURRENT_TRANSACTIONS))
    before = talk.now
    talk.wait()
    assert talk.now - before > 1


def test_a_refusal_is_raised_where_the_question_was_asked(talk):
    talk.answer(EndTxnRequest, answer(K.PRODUCER_FENCED))
    error = talk.error()
    assert error == K.PRODUCER_FENCED
    assert error.str().startswith("EndTxn of x: ")


def test_a_conversation_may_go_on_after_a_refusal():
    def stubborn():
        try:
            yield ASK
        except KafkaException as refused:
            return (yield ASK).producer_epoch, refused.error.code()

    talk = DrivenConversation(stubborn())
    talk.answer(EndTxnRequest, answer(K.INVALID_TXN_STATE))
    talk.answer(EndTxnRequest, answer())
    assert talk.result() == (9, K.INVALID_TXN_STATE)


def test_brokers_that_know_no_such_request_are_not_asked_again(talk):
    talk.lose(EndTxnRequest, K(K._UNSUPPORTED_FEATURE, "too old"))
    assert talk.error() == K._UNSUPPORTED_FEATURE


def test_a_coordinator_that_must_not_be_used_ends_it(talk):
    talk.finders[TRANSACTION].error = K(K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert talk.sent() is None
    assert talk.error() == K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_it_gives_up_in_the_end_and_says_what_failed_last(talk):
    while talk.now < PATIENCE_S:
        talk.answer(EndTxnRequest, answer(K.COORDINATOR_LOAD_IN_PROGRESS))
        talk.wait()
    assert talk.sent() is None
    error = talk.error()
    assert error == K._TIMED_OUT
    assert "EndTxn of x was not answered in time; last error: EndTxn of x:" in error.str()
    assert talk.machine.deadline() is None


def test_what_comes_after_its_end_changes_nothing(talk):
    talk.lose(EndTxnRequest)
    talk.wait()
    send = talk.expect(EndTxnRequest)
    talk.machine.on_reply(send, answer(), talk.now)
    talk.machine.on_reply(send, answer(K.PRODUCER_FENCED), talk.now)
    for code in (K._TRANSPORT, K._AUTHENTICATION):
        talk.machine.on_error(send, K(code), talk.now)
    assert talk.result() == 9
    assert talk.ended() is None


def test_one_that_asks_nothing_ends_at_once():
    def silent():
        return "nothing to do"
        yield ASK

    talk = DrivenConversation(silent())
    assert talk.sent() is None
    assert talk.result() == "nothing to do"
