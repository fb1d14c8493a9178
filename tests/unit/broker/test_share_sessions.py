"""Share sessions: numbered requests, an end with the connection, a limit for each node, and nobody served twice before
others once."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.broker.shares.share_sessions import SessionKey, SharingSessions
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError

A, B, C = ((UUID(int=1), index) for index in range(3))


def key(member: str = "m", node_id: int = 1) -> SessionKey:
    return SessionKey(node_id, "g", member)


def refused(sessions: SharingSessions, epoch: int, member: str = "m") -> int:
    with pytest.raises(ApiError) as raised:
        sessions.enter(key(member), epoch)
    return raised.value.code


def test_each_request_has_the_number_behind_the_one_before() -> None:
    sessions = SharingSessions(10)
    session = sessions.begin(key(), "connection")
    assert sessions.enter(key(), 1) is session
    assert refused(sessions, 1) == refused(sessions, 3) == KafkaError.INVALID_SHARE_SESSION_EPOCH
    assert sessions.enter(key(), 2) is session
    assert sessions.enter(key(), -1) is session  # the last one has no number
    assert refused(sessions, 1, "other") == KafkaError.SHARE_SESSION_NOT_FOUND


def test_behind_the_highest_number_comes_1_for_0_begins_a_session() -> None:
    sessions = SharingSessions(10)
    sessions.begin(key(), "connection").epoch = 2**31 - 1
    sessions.enter(key(), 2**31 - 1)
    assert sessions.enter(key(), 1).epoch == 2


def test_a_node_has_so_many_sessions_and_a_member_that_begins_anew_needs_no_more() -> None:
    sessions = SharingSessions(2)
    for member in "ab":
        sessions.begin(key(member), "connection")
    with pytest.raises(ApiError) as raised:
        sessions.begin(key("c"), "connection")
    assert raised.value.code == KafkaError.SHARE_SESSION_LIMIT_REACHED
    old = sessions.get(key("a"))
    assert sessions.begin(key("a"), "connection") is not old
    sessions.begin(key("c", node_id=2), "connection")
    sessions.end(sessions.of_node(2)[0])
    assert sessions.of_node(2) == []
    assert len(sessions.of_node(1)) == 2


def test_the_end_of_a_session_that_was_begun_anew_is_not_that_of_the_new_one() -> None:
    sessions = SharingSessions(10)
    old, new = sessions.begin(key(), "first"), sessions.begin(key(), "second")
    assert (sessions.of_connection("first"), sessions.of_connection("second")) == ([], [new])
    sessions.end(old)
    assert sessions.get(key()) is new


def test_a_partition_that_gave_records_stands_behind_the_others() -> None:
    session = SharingSessions(1).begin(key(), "connection")
    session.change([A, B, C], [])
    session.served(A, with_records=True)
    session.served(B, with_records=False)
    assert session.partitions == {B: True, C: False, A: True}
    assert list(session.partitions) == [B, C, A]
    session.change([A], [B])
    session.served(B, with_records=True)  # it was forgotten meanwhile
    assert list(session.partitions) == [C, A]
