"""Share sessions: what a broker is told of, and the number of each request."""

from uuid import UUID

from headrace.machines.share.acknowledgements import RENEW, Acknowledgements
from headrace.machines.share.share_session import ShareSession
from headrace.wire.messages.groups.share_groups import ShareAcknowledgeRequest, ShareFetchRequest

A, B = UUID(int=1), UUID(int=2)


def fetch(session: ShareSession, wanted: dict[tuple[str, int], UUID], *said: Acknowledgements) -> ShareFetchRequest:
    request = ShareFetchRequest(member_id="m", max_wait_ms=1, min_bytes=1, max_records=1, batch_size=1)
    session.fill_fetch(request, wanted, said)
    return request


def named(request: ShareFetchRequest) -> set[tuple[UUID, int]]:
    return {(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions}


def forgotten(request: ShareFetchRequest) -> set[tuple[UUID, int]]:
    return {(topic.topic_id, part) for topic in request.forgotten_topics_data for part in topic.partitions}


def test_a_session_names_only_what_is_new_and_what_is_gone() -> None:
    session = ShareSession(1)
    first = fetch(session, {("a", 0): A, ("a", 1): A})
    assert (first.share_session_epoch, named(first), forgotten(first)) == (0, {(A, 0), (A, 1)}, set())
    assert not session.is_open
    session.answered()
    assert session.is_open
    second = fetch(session, {("a", 1): A, ("b", 0): B})
    assert (second.share_session_epoch, named(second), forgotten(second)) == (1, {(B, 0)}, {(A, 0)})
    session.answered()
    third = fetch(session, {("a", 1): A, ("b", 0): B})
    assert (third.share_session_epoch, named(third), forgotten(third)) == (2, set(), set())
    fetch(session, {("a", 1): A, ("a", 2): A, ("b", 0): B})
    assert forgotten(fetch(session, {})) == {(A, 1), (A, 2), (B, 0)}


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    session = ShareSession(1)
    fetch(session, {("a", 0): A})
    request = fetch(session, {("a", 0): B})
    assert (named(request), forgotten(request)) == ({(B, 0)}, {(A, 0)})


def test_acknowledgements_travel_with_a_fetch() -> None:
    session = ShareSession(1)
    fetch(session, {("a", 3): A})
    request = fetch(session, {("a", 3): A}, Acknowledgements(("a", 3), A, session, {1: 1, 2: 1}),
                    Acknowledgements(("a", 3), A, session, {4: 2}))
    [topic] = request.topics
    [part] = topic.partitions
    assert (topic.topic_id, part.partition_index) == (A, 3)
    assert [(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in part.acknowledgement_batches] == [(1, 2, [1]), (4, 4, [2])]


def test_acknowledgements_travel_alone_and_say_that_some_renew() -> None:
    session = ShareSession(1)
    session.answered()
    request = ShareAcknowledgeRequest(member_id="m")
    session.fill_acknowledge(request, [Acknowledgements(("a", 3), A, session, {1: RENEW}),
                                       Acknowledgements(("b", 0), B, session, {9: 1})])
    assert (request.share_session_epoch, request.is_renew_ack) == (1, True)
    assert [(topic.topic_id, topic.partitions[0].partition_index) for topic in request.topics] == [(A, 3), (B, 0)]


def test_the_last_request_ends_the_session() -> None:
    session = ShareSession(1)
    session.answered()
    request = ShareAcknowledgeRequest(member_id="m")
    session.fill_acknowledge(request, [], last=True)
    assert (request.share_session_epoch, request.topics) == (-1, [])
    session.end()
    assert session.lost
    assert not session.is_open


def test_numbers_begin_again_behind_the_highest_one() -> None:
    session = ShareSession(1)
    session.epoch = 2**31 - 1
    session.answered()
    assert session.epoch == 1
