"""What a share group knows of a partition, under a clock of the test: handing out, locks, words, limits, leaders."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.broker.deadlines import Deadlines, Now
from headrace.broker.shares.in_flight import SHARED_RECORD_TRANSITIONS
from headrace.broker.shares.share_partition import Acknowledgement, SharePartition, ShareRules
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError as K

LOCK_S = 30.0
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class Bench:
    """A partition from offset 0 on, with batches of some size, and its clock."""

    def __init__(self, batches: int = 1, size: int = 4, *, start: int = 0, deliveries: int = 5,
                 records: int = 2000) -> None:
        self.now = 0.0
        self.deadlines = Deadlines()
        self.changes = 0
        self.batches = [(place * size, place * size + size - 1) for place in range(batches)]
        self.share = SharePartition(start, lambda: ShareRules(LOCK_S, deliveries, records), self.deadlines,
                                    self._changed)

    def _changed(self, share: SharePartition) -> None:
        self.changes += 1

    def take(self, member: str = "a", most: int = 500, *, strict: bool = False,
             size: int = 500) -> list[tuple[int, int, int]]:
        """What a member gets."""
        if not self.share.has_room:
            return []
        read = [each for each in self.batches if each[1] >= self.share.next_offset]
        return [tuple(each) for each in self.share.acquire(member, read, most, size, Now(self.now, 0), strict=strict)]

    def say(self, *said: tuple[int, int, Any], member: str = "a") -> None:
        """What became of records: first and last offset, and one type or several."""
        self.share.acknowledge(member, [Acknowledgement(first, last, [kind] if isinstance(kind, int) else kind)
                                        for first, last, kind in said], Now(self.now, 0))

    def refused(self, *said: tuple[int, int, Any], member: str = "a") -> int:
        with pytest.raises(ApiError) as refusal:
            self.say(*said, member=member)
        return refusal.value.code

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.deadlines.run(Now(self.now, 0))

    @property
    def states(self) -> list[tuple[int, int, str, int]]:
        return [(run.first, run.last, run.state.name, run.deliveries) for run in self.share.records]


# Handing out

def test_whole_batches_are_handed_out_up_to_the_one_with_the_last_record_that_is_wanted() -> None:
    bench = Bench(batches=5, size=3)
    assert bench.take(most=4, size=2) == [(0, 2, 1), (3, 5, 1)]
    assert bench.take("b", most=4, size=500) == [(6, 11, 1)]


def test_a_strict_limit_is_kept_and_the_rest_is_left_to_others() -> None:
    bench = Bench(batches=3, size=3)
    assert bench.take(most=4, strict=True) == [(0, 3, 1)]
    assert bench.take("b", most=4, strict=True) == [(4, 5, 1), (6, 7, 1)]
    assert bench.take("c") == [(8, 8, 1)]


def test_what_is_held_is_handed_out_to_nobody_else() -> None:
    bench = Bench()
    assert bench.take("a") == [(0, 3, 1)]
    assert bench.take("a") == bench.take("b") == []


def test_a_group_that_begins_in_the_middle_of_a_batch_gets_the_rest_of_it() -> None:
    assert Bench(start=2).take() == [(2, 3, 1)]


def test_a_group_may_be_at_so_many_records_and_goes_on_when_the_first_are_done() -> None:
    bench = Bench(batches=4, size=4, records=8)
    assert bench.take() == [(0, 7, 1)]
    assert bench.take() == []
    bench.say((4, 7, ACCEPT))
    assert bench.take() == []
    bench.say((0, 3, ACCEPT))
    assert bench.take() == [(8, 15, 1)]


def test_records_that_come_back_are_handed_out_before_new_ones() -> None:
    bench = Bench(batches=2)
    bench.take(most=4)
    bench.say((1, 2, RELEASE))
    assert bench.take("b") == [(1, 2, 2), (4, 7, 1)]


def test_records_that_came_back_often_are_handed_out_in_ever_smaller_numbers() -> None:
    bench = Bench(size=16)
    given = []
    for _ in range(7):
        taken = bench.take()
        given += taken
        bench.say(*((first, last, RELEASE) for first, last, _ in taken))
    assert given == [(0, 15, 1), (0, 15, 2), (0, 15, 3), (0, 7, 4), (0, 0, 5), (1, 1, 5), (2, 2, 5)]


@pytest.mark.parametrize(("deliveries", "given"), [
    (2, [(0, 7, 1), (0, 7, 2), ()]), (3, [(0, 7, 1), (0, 7, 2), (0, 0, 3)]),
    (4, [(0, 7, 1), (0, 7, 2), (0, 3, 3)])])
def test_how_soon_that_begins_follows_from_the_limit(deliveries: int, given: list[Any]) -> None:
    bench = Bench(size=8, deliveries=deliveries)
    for expected in given:
        taken = bench.take()
        assert taken == ([expected] if expected else [])
        bench.say(*((first, last, RELEASE) for first, last, _ in taken))


# Locks

def test_a_lock_that_is_over_gives_the_records_to_others() -> None:
    bench = Bench()
    bench.take("a")
    bench.wait(LOCK_S - 1)
    assert bench.take("b") == []
    bench.wait(1)
    assert bench.changes == 1
    assert bench.take("b") == [(0, 3, 2)]
    assert bench.refused((0, 3, ACCEPT)) == K.INVALID_RECORD_STATE


def test_a_lock_holds_what_was_not_acknowledged_yet() -> None:
    bench = Bench()
    bench.take()
    bench.say((1, 1, ACCEPT))
    bench.wait(LOCK_S)
    assert bench.states == [(0, 0, "AVAILABLE", 1), (1, 1, "ACKNOWLEDGED", 1), (2, 3, "AVAILABLE", 1)]


def test_a_renewed_record_is_held_for_a_whole_lock_more() -> None:
    bench = Bench()
    bench.take()
    bench.wait(LOCK_S - 1)
    bench.say((0, 1, RENEW))
    assert bench.changes == 0
    bench.wait(LOCK_S - 1)
    assert bench.take("b") == [(2, 3, 2)]
    bench.say((0, 1, ACCEPT))
    assert bench.share.records.start_offset == 2


def test_the_lock_of_records_that_are_done_ends_without_a_trace() -> None:
    bench = Bench(batches=3, size=1)
    for _ in range(3):
        [(first, last, _)] = bench.take(most=1)
        bench.say((first, last, ACCEPT))
    bench.wait(LOCK_S)
    assert (bench.states, bench.changes, bench.deadlines.next_at) == ([], 3, math.inf)


# Words

def test_each_word_does_what_it_says() -> None:
    bench = Bench(size=5)
    bench.take()
    bench.say((0, 4, [RELEASE, ACCEPT, REJECT, GAP, RELEASE]))
    assert bench.states == [(0, 0, "AVAILABLE", 1), (1, 1, "ACKNOWLEDGED", 1), (2, 3, "ARCHIVED", 1),
                            (4, 4, "AVAILABLE", 1)]
    assert bench.take() == [(0, 0, 2), (4, 4, 2)]
    bench.say((0, 0, ACCEPT), (4, 4, REJECT))
    assert bench.states == []
    assert bench.share.records.start_offset == bench.share.records.end_offset == 5


def test_nobody_acknowledges_what_another_holds() -> None:
    bench = Bench()
    bench.take("a")
    assert bench.refused((0, 3, ACCEPT), member="b") == K.INVALID_RECORD_STATE


def test_of_several_words_all_hold_or_none() -> None:
    bench = Bench()
    bench.take("a", most=2, strict=True)
    bench.take("b")
    assert bench.refused((0, 1, ACCEPT), (2, 2, ACCEPT)) == K.INVALID_RECORD_STATE
    assert bench.refused((0, 1, ACCEPT), (1, 1, ACCEPT)) == K.INVALID_RECORD_STATE
    assert {state for _, _, state, _ in bench.states} == {"ACQUIRED"}
    bench.say((0, 1, ACCEPT))
    assert bench.share.records.start_offset == 2


def test_a_word_about_what_is_long_done_is_passed_over() -> None:
    bench = Bench()
    bench.take()
    bench.say((0, 1, ACCEPT))
    bench.say((0, 1, ACCEPT))
    bench.say((0, 3, ACCEPT))
    assert bench.share.records.start_offset == 4


@pytest.mark.parametrize(("said", "code"), [((4, 4, ACCEPT), K.INVALID_REQUEST), ((3, 9, ACCEPT), K.INVALID_REQUEST)])
def test_a_word_about_what_was_never_handed_out_is_refused(said: tuple[int, int, int], code: int) -> None:
    bench = Bench(batches=2)
    bench.take(most=4)
    assert bench.refused(said) == code


def test_nothing_can_be_said_before_anything_was_handed_out() -> None:
    assert Bench().refused((0, 0, ACCEPT)) == K.INVALID_RECORD_STATE


def test_a_record_is_given_up_after_its_last_delivery() -> None:
    bench = Bench(size=1, deliveries=2)
    bench.take()
    bench.say((0, 0, RELEASE))
    bench.take()
    bench.wait(LOCK_S)
    assert bench.take() == bench.states == []
    assert bench.share.records.start_offset == 1


# Members, leaders and logs

def test_a_member_that_goes_gives_back_what_it_holds_and_nothing_else() -> None:
    bench = Bench(batches=2)
    bench.take("a", most=4)
    bench.take("b", most=4)
    bench.share.release("a")
    assert bench.take("c") == [(0, 3, 2)]


def test_another_leader_knows_no_holders_and_no_deliveries_of_which_it_has_not_heard() -> None:
    bench = Bench(batches=2)
    bench.take("a", most=4)
    bench.say((0, 0, RELEASE), (1, 1, ACCEPT))
    bench.share.forget_holders()
    assert bench.states == [(0, 0, "AVAILABLE", 1), (1, 1, "ACKNOWLEDGED", 1), (2, 3, "AVAILABLE", 0)]
    assert bench.refused((2, 3, ACCEPT)) == K.INVALID_RECORD_STATE
    bench.wait(LOCK_S)
    assert bench.take("b", most=4) == [(0, 0, 2), (2, 3, 1), (4, 7, 1)]


def test_records_that_the_log_has_no_more_are_left_out() -> None:
    bench = Bench(batches=3)
    bench.take(most=8)
    bench.say((4, 5, RELEASE))
    bench.share.records.skip_to(5)
    assert bench.states == [(5, 5, "AVAILABLE", 1), (6, 7, "ACQUIRED", 1)]
    bench.say((0, 3, ACCEPT))
    bench.share.records.skip_to(10)
    assert (bench.states, bench.share.next_offset) == ([], 10)


def test_records_of_aborted_transactions_are_taken_out_of_what_was_acquired() -> None:
    bench = Bench(batches=3)
    acquired = bench.share.acquire("a", bench.batches, 500, 500, Now(0, 0), strict=False)
    assert bench.share.without(acquired, [(4, 7)]) == [(0, 3, 1), (8, 11, 1)]
    assert bench.states == [(0, 3, "ACQUIRED", 1), (4, 7, "ARCHIVED", 1), (8, 11, "ACQUIRED", 1)]


def test_what_is_kept_brings_the_state_back_without_holders() -> None:
    bench = Bench(batches=2)
    bench.take(most=4)
    bench.say((1, 1, ACCEPT), (2, 2, RELEASE))
    other = Bench(batches=2)
    other.share.restore(bench.share.kept())
    assert other.states == [(0, 0, "AVAILABLE", 0), (1, 1, "ACKNOWLEDGED", 1), (2, 2, "AVAILABLE", 1),
                            (3, 3, "AVAILABLE", 0)]


def test_neighbours_in_one_state_are_one_run() -> None:
    bench = Bench(size=1000)
    bench.take()
    for offset in range(1, 1000):
        bench.say((offset, offset, ACCEPT))
    assert bench.states == [(0, 0, "ACQUIRED", 1), (1, 999, "ACKNOWLEDGED", 1)]


def test_what_is_done_leads_nowhere() -> None:
    ways = [way for way in SHARED_RECORD_TRANSITIONS if way[0].name in ("ACKNOWLEDGED", "ARCHIVED")]
    assert ways == []


def test_a_group_is_at_so_many_records_and_not_more() -> None:
    bench = Bench(batches=3, records=6)
    assert bench.take(most=4, strict=True) == [(0, 3, 1)]
    assert bench.take("b", strict=True) == [(4, 5, 1)]
    assert bench.take("c", strict=True) == [(6, 7, 1)], "of a batch that it is at it is at all"
    assert bench.take("d", strict=True) == []
    bench.say((0, 3, ACCEPT))
    assert bench.take("d", strict=True) == [(8, 9, 1)]
