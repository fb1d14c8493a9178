"""Fetch sessions: a broker is told only what changed."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.consumer.fetch_session import FetchSession
from headrace.machines.consumer.subscription import Key, PartitionState
from headrace.wire.messages.consumer.fetch import FetchRequest, FetchResponse

T, U = UUID(int=1), UUID(int=2)


Asked = tuple[int, UUID]


def asked(offset: int, topic_id: UUID = T) -> Asked:
    return offset, topic_id


def want(session: FetchSession, wanted: dict[Key, Asked]) -> None:
    """Have exactly these partitions asked for."""
    session.leave_all()
    for key, (offset, topic_id) in wanted.items():
        state = PartitionState(*key)
        state.fetch_offset = offset
        session.want(key, (state, topic_id, 5))


def fill(session: FetchSession, wanted: dict[Key, Asked] | None = None) -> FetchRequest:
    """The next request, for what is wanted already or for these partitions."""
    if wanted is not None:
        want(session, wanted)
    request = FetchRequest(max_wait_ms=500, min_bytes=1)
    session.fill(request, 1000)
    return request


def sent(request: FetchRequest) -> list[tuple[str, int, int]]:
    return [(t.topic, p.partition, p.fetch_offset) for t in request.topics for p in t.partitions]


def forgotten(request: FetchRequest) -> list[tuple[str, int]]:
    return [(t.topic, p) for t in request.forgotten_topics_data for p in t.partitions]


def opened(wanted: dict[Key, Asked]) -> FetchSession:
    session = FetchSession()
    fill(session, wanted)
    assert session.on_reply(FetchResponse(session_id=77))
    return session


def test_the_first_request_opens_a_session_and_names_everything() -> None:
    request = fill(FetchSession(), {("t", 0): asked(1), ("t", 1): asked(2)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert sent(request) == [("t", 0, 1), ("t", 1, 2)]


def test_the_next_request_names_only_what_moved_and_what_is_new() -> None:
    session = opened({("t", 0): asked(1), ("t", 1): asked(2)})
    request = fill(session, {("t", 0): asked(1), ("t", 1): asked(9), ("t", 2): asked(0)})
    assert (request.session_id, request.session_epoch) == (77, 1)
    assert sent(request) == [("t", 1, 9), ("t", 2, 0)]
    assert forgotten(request) == []


def test_a_partition_that_is_not_wanted_is_forgotten_once() -> None:
    session = opened({("t", 0): asked(1), ("t", 1): asked(2)})
    assert forgotten(fill(session, {("t", 1): asked(2)})) == [("t", 0)]
    session.on_reply(FetchResponse(session_id=77))
    assert forgotten(fill(session, {("t", 1): asked(2)})) == []


def test_a_topic_made_anew_is_forgotten_and_named_again() -> None:
    session = opened({("t", 0): asked(9, T)})
    request = fill(session, {("t", 0): asked(9, U)})
    assert forgotten(request) == [("t", 0)]
    assert [topic.topic_id for topic in request.topics] == [U]
    assert [topic.topic_id for topic in request.forgotten_topics_data] == [T]


@pytest.mark.parametrize("code", [
    KafkaError.FETCH_SESSION_ID_NOT_FOUND, KafkaError.INVALID_FETCH_SESSION_EPOCH,
    KafkaError.FETCH_SESSION_TOPIC_ID_ERROR, KafkaError.UNKNOWN])
def test_a_lost_session_starts_again_with_everything(code: int) -> None:
    session = opened({("t", 0): asked(1)})
    assert not session.on_reply(FetchResponse(error_code=code))
    request = fill(session, {("t", 0): asked(1)})
    assert request.session_epoch == 0
    assert sent(request) == [("t", 0, 1)]


def test_a_broker_without_sessions_gets_full_requests_for_ever() -> None:
    session = FetchSession()
    for _ in range(3):
        request = fill(session, {("t", 0): asked(1)})
        assert (request.session_id, request.session_epoch, sent(request)) == (0, 0, [("t", 0, 1)])
        session.on_reply(FetchResponse(session_id=0))


def test_a_broker_without_sessions_is_asked_last_for_the_partitions_that_got_something() -> None:
    session, offsets, served = FetchSession(), dict.fromkeys(range(5), 0), []
    for _ in range(10):  # its replies hold one partition, the first that is asked for
        request = fill(session, {("t", partition): asked(offset) for partition, offset in offsets.items()})
        served.append(sent(request)[0][1])
        offsets[served[-1]] += 10
        session.on_reply(FetchResponse(session_id=0))
    assert served == [0, 1, 2, 3, 4] * 2


def test_a_topic_without_an_id_keeps_to_the_versions_with_names() -> None:
    session, request = FetchSession(), FetchRequest(max_wait_ms=1, min_bytes=1)
    want(session, {("t", 0): asked(1, UUID(int=0))})
    assert session.fill(request, 1000) == 12
    want(session, {("t", 0): asked(1, T)})
    assert session.fill(request, 1000) is None
    assert session.names == {T.int: "t"}


def test_the_epoch_grows_with_every_answer() -> None:
    session = opened({("t", 0): asked(1)})
    epochs = []
    for _ in range(3):
        epochs.append(fill(session, {("t", 0): asked(1)}).session_epoch)
        session.on_reply(FetchResponse(session_id=77))
    assert epochs == [1, 2, 3]


def test_who_leaves_one_partition_for_another_says_both() -> None:
    session = opened({("t", 0): asked(1), ("t", 1): asked(2)})
    session.leave(("t", 0))
    session.want(("t", 2), (PartitionState("t", 2), T, 5))
    assert session.only_moved(1000) is None
    request = fill(session)
    assert ([partition for _, partition, _ in sent(request)], forgotten(request)) == ([2], [("t", 0)])
