"""As whom an application reads and commits, while its group goes on in the background."""

from __future__ import annotations

from headrace.machines.groups.membership import Change, EpochMoved, Rebalance
from headrace.machines.groups.ownership import Ownership
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.types.records import TopicPartition


def change(what: Change, generation: int, *partitions: int, member_id: str = "me") -> Rebalance:
    return Rebalance(what, [TopicPartition("t", p) for p in partitions], True, generation, member_id)


def told(ownership: Ownership, *changes: Rebalance) -> None:
    for each in changes:
        ownership.meet(each)
        ownership.part(each)


def test_before_the_first_assignment_nobody_reads() -> None:
    assert Ownership("g", "one").member == ConsumerGroupMetadata("g", -1, "", "one")


def test_an_assignment_is_the_applications_from_the_moment_it_is_told_of() -> None:
    ownership = Ownership("g", "one")
    ownership.meet(change(Change.ASSIGN, 4, 0))
    assert ownership.member == ConsumerGroupMetadata("g", 4, "me", "one")
    assert ownership.reader_of("t", 0) == ownership.member


def test_what_is_revoked_is_the_applications_until_it_has_been_told() -> None:
    ownership = Ownership("g", None)
    told(ownership, change(Change.ASSIGN, 4, 0, 1))
    ownership.meet(change(Change.REVOKE, 5, 0))
    assert ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 5, "me")
    ownership.part(change(Change.REVOKE, 5, 0))
    told(ownership, change(Change.ASSIGN, 6))
    assert ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 5, "me")
    assert ownership.reader_of("t", 1) == ConsumerGroupMetadata("g", 6, "me")


def test_a_member_that_was_dropped_stays_who_it_was_until_it_is_given_partitions_again() -> None:
    ownership = Ownership("g", None)
    told(ownership, change(Change.ASSIGN, 4, 0), change(Change.LOSE, -1, 0, member_id=""))
    assert ownership.member == ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 4, "me")
    told(ownership, change(Change.ASSIGN, 6, 1, member_id="me again"))
    assert ownership.member == ConsumerGroupMetadata("g", 6, "me again")
    assert ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 4, "me")


def test_what_comes_back_is_read_as_the_present_member() -> None:
    ownership = Ownership("g", None)
    told(ownership, change(Change.ASSIGN, 4, 0), change(Change.REVOKE, 4, 0), change(Change.ASSIGN, 5, 0))
    assert ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 5, "me")


def test_what_is_held_stays_held_in_a_group_that_takes_little_away_unless_it_is_lost() -> None:
    ownership = Ownership("g", None)
    assert not ownership.goes_on
    told(ownership, change(Change.ASSIGN, 4, 0))
    assert ownership.goes_on
    ownership.expect(change(Change.REVOKE, 5, 0))
    assert ownership.goes_on
    ownership.expect(change(Change.LOSE, -1, 0))
    ownership.expect(change(Change.ASSIGN, 6, 0))
    assert not ownership.goes_on
    told(ownership, change(Change.LOSE, -1, 0))
    assert ownership.goes_on
    ownership.expect(change(Change.LOSE, -1, 0))
    ownership.leave()
    told(ownership, Rebalance(Change.ASSIGN, [], False, 7, "me"))
    assert not ownership.goes_on


def test_who_left_is_nobody() -> None:
    ownership = Ownership("g", None)
    told(ownership, change(Change.ASSIGN, 4, 0), change(Change.REVOKE, 4, 0))
    ownership.leave()
    assert ownership.member == ownership.reader_of("t", 0) == ConsumerGroupMetadata("g")


def test_a_newer_epoch_is_the_applications_without_a_callback() -> None:
    ownership = Ownership("g", "one")
    ownership.advance(EpochMoved(4, "me"))
    assert ownership.member.generation == -1, "it has been given nothing"
    told(ownership, change(Change.ASSIGN, 4, 0, 1))
    ownership.advance(EpochMoved(5, "me"))
    assert ownership.member == ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 5, "me", "one")


def test_a_callback_that_comes_late_does_not_bring_an_older_epoch_back() -> None:
    ownership = Ownership("g", None)
    for epoch in (4, 5):
        ownership.advance(EpochMoved(epoch, "me"))
    told(ownership, change(Change.ASSIGN, 4, 0))
    assert ownership.member == ConsumerGroupMetadata("g", 5, "me")


def test_what_was_given_up_stays_with_the_epoch_in_which_that_was() -> None:
    ownership = Ownership("g", None)
    ownership.advance(EpochMoved(4, "me"))
    told(ownership, change(Change.ASSIGN, 4, 0, 1), change(Change.REVOKE, 4, 0))
    ownership.advance(EpochMoved(5, "me"))
    assert ownership.reader_of("t", 0) == ConsumerGroupMetadata("g", 4, "me")
    assert ownership.reader_of("t", 1) == ConsumerGroupMetadata("g", 5, "me")
    assert (ownership.holds("t", 0), ownership.holds("t", 1)) == (False, True)


def test_a_member_that_comes_back_in_a_new_group_takes_its_lower_epoch() -> None:
    ownership = Ownership("g", None)
    ownership.advance(EpochMoved(9, "me"))
    told(ownership, change(Change.ASSIGN, 9, 0), change(Change.LOSE, -1, 0, member_id=""))
    ownership.advance(EpochMoved(1, "me"))
    told(ownership, change(Change.ASSIGN, 1, 0))
    assert ownership.member == ConsumerGroupMetadata("g", 1, "me")
