"""Requests that wait are looked at again when what they wait for changes, when their time is up, or when answered."""

import pytest

from headrace.broker.deadlines import Deadlines, Now
from headrace.broker.purgatory import DelayedReply, Purgatory
from headrace.wire.messages.groups.classic_groups import HeartbeatResponse

NOW = Now(1.0, 0)


@pytest.fixture
def deadlines() -> Deadlines:
    return Deadlines()


@pytest.fixture
def purgatory(deadlines: Deadlines) -> Purgatory:
    return Purgatory(deadlines)


def test_a_change_makes_those_due_that_wait_for_it_once(purgatory: Purgatory) -> None:
    first, second, other = (DelayedReply(keys) for keys in (["a", "b"], ["b"], ["c"]))
    for each in (first, second, other):
        purgatory.put(each)
    assert not purgatory.due
    purgatory.wake("a")
    purgatory.wake("b")
    assert purgatory.due
    assert purgatory.take_due() == [first, second]
    assert not purgatory.due


def test_who_waits_on_is_woken_again(purgatory: Purgatory) -> None:
    waiting = DelayedReply(["a"])
    purgatory.put(waiting)
    for _ in range(2):
        purgatory.wake("a")
        assert purgatory.take_due() == [waiting]
        assert waiting.look_again(NOW) is waiting


def test_who_is_removed_is_woken_no_more_and_leaves_nothing_behind(purgatory: Purgatory, deadlines: Deadlines) -> None:
    waiting = DelayedReply(["a", "b"], until=5.0)
    purgatory.put(waiting)
    purgatory.remove(waiting)
    purgatory.wake("a")
    deadlines.run(Now(9.0, 0))
    assert purgatory.take_due() == []
    assert purgatory._waiting == {}


def test_when_its_time_is_up_it_is_looked_at_again(purgatory: Purgatory, deadlines: Deadlines) -> None:
    waiting = DelayedReply(["a"], until=5.0)
    purgatory.put(waiting)
    assert deadlines.next_at == 5.0
    deadlines.run(Now(5.0, 0))
    assert purgatory.take_due() == [waiting]


def test_an_answer_is_given_once_and_only_to_who_waits(purgatory: Purgatory) -> None:
    answered, removed = DelayedReply(), DelayedReply()
    reply = HeartbeatResponse(error_code=0)
    purgatory.put(removed)
    purgatory.remove(removed)
    for each in (answered, removed):
        purgatory.answer(each, reply)
        purgatory.answer(each, HeartbeatResponse(error_code=1))
    assert purgatory.take_due() == [answered]
    assert answered.is_settled
    assert answered.look_again(NOW) is reply


def test_a_request_may_be_answered_before_it_is_put_here(purgatory: Purgatory) -> None:
    waiting = DelayedReply()
    purgatory.answer(waiting, None)
    purgatory.put(waiting)
    assert purgatory.take_due() == [waiting]
    assert waiting.look_again(NOW) is None
