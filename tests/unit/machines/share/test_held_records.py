"""The records that an application has: what was said of them, and what is left to say."""

from uuid import UUID

from headrace.machines.share.held_records import HeldRecords
from headrace.machines.share.share_fetcher import AcquiredBatch
from headrace.machines.share.share_session import ShareSession
from headrace.types.share import AcknowledgeType

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
T = ("t", 0)


def batch(key: tuple[str, int] = T, session: ShareSession | None = None) -> AcquiredBatch:
    return AcquiredBatch(key, UUID(int=1), session or ShareSession(1), [(0, 9, 1)], b"", 99.0)


def holding(*offsets: int) -> HeldRecords:
    held = HeldRecords()
    held.add(batch(), offsets)
    return held


def test_each_record_waits_for_a_word() -> None:
    held = holding(1, 2, 3)
    assert held.unacknowledged == 3
    assert held.acknowledge(T, 2, REJECT)
    assert held.unacknowledged == 2
    assert not held.acknowledge(T, 4, ACCEPT)
    assert not held.acknowledge(("other", 0), 1, ACCEPT)
    [taken] = held.take()
    assert taken.types == {2: REJECT}
    assert not held.acknowledge(T, 2, ACCEPT)
    assert held.take() == []


def test_the_last_word_counts() -> None:
    held = holding(1)
    held.acknowledge(T, 1, REJECT)
    held.acknowledge(T, 1, RELEASE)
    assert [taken.types for taken in held.take()] == [{1: RELEASE}]


def test_all_are_accepted_at_once() -> None:
    held = holding(1, 2)
    held.add(batch(("u", 3)), [7])
    held.accept_all()
    assert held.unacknowledged == 0
    assert {taken.key: taken.types for taken in held.take()} == {T: {1: ACCEPT, 2: ACCEPT}, ("u", 3): {7: ACCEPT}}


def test_a_renewed_record_is_held_on_and_waits_for_nothing() -> None:
    held = holding(1, 2)
    held.acknowledge(T, 1, RENEW)
    held.acknowledge(T, 2, ACCEPT)
    held.take()
    assert held.unacknowledged == 0
    assert held.acknowledge(T, 1, ACCEPT)
    assert [taken.types for taken in held.take()] == [{1: ACCEPT}]
    assert not held.acknowledge(T, 1, ACCEPT)


def test_what_was_acquired_in_several_sessions_goes_back_to_each() -> None:
    held, first, second = HeldRecords(), ShareSession(1), ShareSession(1)
    held.add(batch(session=first), [1, 2])
    held.add(batch(session=second), [3])
    held.accept_all()
    assert {id(taken.session): taken.types for taken in held.take()} == {
        id(first): {1: ACCEPT, 2: ACCEPT}, id(second): {3: ACCEPT}}


def test_a_record_that_comes_again_is_a_new_one() -> None:
    held, again = holding(1, 2), ShareSession(1)
    held.acknowledge(T, 1, RENEW)
    held.take()
    held.acknowledge(T, 2, ACCEPT)
    held.add(batch(session=again), [1, 2])
    assert held.unacknowledged == 2
    held.accept_all()
    assert [taken.session for taken in held.take()] == [again]


def test_nothing_is_left_when_all_is_forgotten() -> None:
    held = holding(1)
    held.acknowledge(T, 1, ACCEPT)
    held.forget()
    assert held.unacknowledged == 0
    assert held.take() == []
