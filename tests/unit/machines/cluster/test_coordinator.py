"""Finding the coordinator of a group or transactional id."""

from typing import Any

import pytest

from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import GROUP, SHARE, TRANSACTION, CoordinatorFinder, CoordinatorRefused
from headrace.machines.machine import ErrorEvent, Send
from headrace.wire.codec import decode, encode
from headrace.wire.messages.groups.classic_groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse


def ask(finder: CoordinatorFinder, now: float) -> Send | None:
    sends = list(finder.poll(now))
    return sends[0] if sends else None


def answer(finder: CoordinatorFinder, reply: FindCoordinatorResponse, now: float) -> None:
    send = ask(finder, now)
    assert send is not None
    finder.on_reply(send, reply, now)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_key_is_asked_for_in_the_form_for_one_key(kind: int, version: int) -> None:
    send = ask(CoordinatorFinder(kind, "k"), 0.0)
    assert send is not None
    assert send.max_version == 3
    if kind == GROUP or version > 0:
        request: Any = decode(FindCoordinatorRequest, encode(send.request, version), version)
        assert request.key == "k"


def test_a_share_group_is_asked_for_in_the_form_for_many() -> None:
    send = ask(CoordinatorFinder(SHARE, "k"), 0.0)
    assert send is not None
    request: Any = decode(FindCoordinatorRequest, encode(send.request, 6), 6)
    assert (request.key_type, request.coordinator_keys) == (SHARE, ["k"])


def test_the_coordinator_is_found_in_both_forms_of_the_reply() -> None:
    for reply in (FindCoordinatorResponse(node_id=3, host="h", port=1),
                  FindCoordinatorResponse(coordinators=[Coordinator(key="k", node_id=3, host="h", port=1)])):
        finder = CoordinatorFinder(GROUP, "k")
        answer(finder, reply, 0.0)
        assert finder.node_id == 3
        assert finder.deadline() is None


def test_a_lost_coordinator_is_looked_for_again_no_faster_than_the_backoff() -> None:
    finder = CoordinatorFinder(GROUP, "k")
    answer(finder, FindCoordinatorResponse(node_id=3), 10.0)
    finder.invalidate(10.02)
    assert finder.node_id is None
    assert finder.deadline() == 10.1
    answer(finder, FindCoordinatorResponse(node_id=4), 10.1)
    assert finder.node_id == 4


def test_a_cluster_that_is_still_loading_is_ridden_out_in_silence_with_growing_waits() -> None:
    finder = CoordinatorFinder(GROUP, "k")
    now, waits = 0.0, []
    for code in (15, 14, 16, 15, 15):
        answer(finder, FindCoordinatorResponse(error_code=code), now)
        deadline = finder.deadline()
        assert deadline is not None
        waits.append(round(deadline - now, 3))
        now = deadline
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert finder.events() == []
    assert finder.error is None
    answer(finder, FindCoordinatorResponse(node_id=3), now)
    finder.invalidate(now := now + 5.0)
    answer(finder, FindCoordinatorResponse(error_code=15), now)
    assert finder.deadline() == pytest.approx(now + 0.1)


def test_a_missing_permission_is_told_once() -> None:
    finder = CoordinatorFinder(GROUP, "k")
    for _ in range(3):
        answer(finder, FindCoordinatorResponse(error_code=30), finder.deadline() or 0.0)
    [event] = finder.events()
    assert isinstance(event, CoordinatorRefused)
    assert isinstance(event, ErrorEvent)
    assert finder.error == event.error == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert event.error.str() == 'This user may not do this with the group; this needs READ on group "k"'


def test_what_is_no_missing_right_is_told_with_the_name() -> None:
    finder = CoordinatorFinder(GROUP, "k")
    answer(finder, FindCoordinatorResponse(error_code=KafkaError.INVALID_GROUP_ID, error_message="No."), 0.0)
    assert finder.error is not None
    assert finder.error.str() == 'group "k": No'


def test_no_answer_leads_to_another_question() -> None:
    finder = CoordinatorFinder(GROUP, "k")
    send = ask(finder, 0.0)
    assert send is not None
    assert ask(finder, 0.0) is None
    finder.on_error(send, KafkaError(KafkaError._TRANSPORT), 1.0)
    assert finder.deadline() == 1.1
    assert finder.events() == []


@pytest.mark.parametrize(("error", "is_final"), [
    (KafkaError(KafkaError._SSL), True), (KafkaError(KafkaError._SSL, retriable=True), False),
    (KafkaError(KafkaError._AUTHENTICATION), True), (KafkaError(KafkaError._TRANSPORT), False),
])
def test_why_it_is_not_found_is_known_and_only_a_refusal_is_final(error: KafkaError, is_final: bool) -> None:
    finder = CoordinatorFinder(TRANSACTION, "k")
    send = ask(finder, 0.0)
    assert send is not None
    finder.on_error(send, error, 0.0)
    assert finder.last_error is error
    assert (finder.error is error) is is_final
    answer(finder, FindCoordinatorResponse(node_id=3), 5.0)
    assert (finder.node_id, finder.error, finder.last_error) == (3, None, None)
