"""The verdict over a chain of groups finds each thing that can be wrong with one, and nothing in one that is right."""

from __future__ import annotations

import struct
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from .commit_log import read_commit
from .journal import Event, Run, Story, deliveries_of, runs_of
from .share_verdict import Faults, ShareCheck
from .spans import Offsets, covered, merged
from .verdict import GroupCheck, check_copies, check_order, held_by

THERE = {0: Offsets([0, 1, 2, 4, 5, 6, 8, 9])}
"""One partition; offsets 3 and 7 are the ends of transactions."""


class Told:
    """Writes a journal by hand, a second for each event."""

    def __init__(self, name: str, begin: float = 0.0) -> None:
        self._name, self._at, self._events, self._commits = name, begin, list[Event](), 0

    def add(self, what: str, **more: Any) -> Told:
        self._at += 1
        self._events.append({"at": self._at, "what": what, **more})
        return self

    def assign(self, generation: int = 1, partition: int = 0) -> Told:
        return self.add("assign", partitions=[partition], member=self._name, generation=generation)

    def read(self, first: int, last: int, generation: int = 1) -> Told:
        count = THERE[0].between(first, last + 1)
        return self.add("read", runs=[[0, first, last, count]], member=self._name, generation=generation)

    def commit(self, first: int, last: int, outcome: str = "committed") -> Told:
        self._commits += 1
        run = [0, first, last, THERE[0].between(first, last + 1)]
        self.add("commit", number=self._commits, offsets=[[0, last + 1]], runs=[run])
        return self.add("done", number=self._commits, outcome=outcome) if outcome else self

    def revoke(self, how: str = "revoke") -> Told:
        return self.add(how, partitions=[0])

    def story(self, **more: Any) -> Story:
        return Story(self._name, deepcopy(self._events), **more)


def first() -> Told:
    return Told("a").assign().read(0, 2).commit(0, 2).revoke()


def second(generation: int = 2, begin: float = 10.0) -> Told:
    return Told("b", begin).assign(generation).read(4, 9, generation).commit(4, 9).revoke()


def found_in(*told: Told | Story, commits: list[int] | None = None, once: bool = True) -> Counter[str]:
    stories = [each if isinstance(each, Story) else each.story() for each in told]
    return GroupCheck(stories, THERE, {0: [3, 10] if commits is None else commits}, once=once).run()


def test_nothing_is_wrong_with_a_group_that_keeps_its_word() -> None:
    assert found_in(first(), second()) == {}


def test_a_commit_whose_outcome_nobody_was_told_may_hold_or_not() -> None:
    killed = Told("a").assign().read(0, 2).commit(0, 2, "").story(killed_at=5.0)
    assert found_in(killed, second()) == {}
    assert found_in(killed, Told("b", 10).assign(2).read(0, 9, 2).commit(0, 9), commits=[10]) == {}


@pytest.mark.parametrize(("commits", "violations"), [
    ([3, 10, 3], {"set back": 1, "not committed": 5}),
    ([3, 6, 10], {"not asked for": 1}),
    ([3], {"not kept": 1, "not committed": 5}),
    ([10], {"not kept": 1, "ahead of processing": 3}),
])
def test_commits_that_are_not_as_the_workers_made_them_are_found(
    commits: list[int], violations: dict[str, int]
) -> None:
    assert found_in(first(), second(), commits=commits) == violations


def test_what_was_aborted_is_not_committed() -> None:
    again = Told("a").assign().read(0, 2).commit(0, 2, "aborted: X").add("rewind", offsets=[[0, 0]]).read(0, 2)
    assert found_in(again.commit(0, 2).revoke(), second()) == {}
    assert found_in(Told("a").assign().read(0, 2).commit(0, 2, "aborted: X").revoke(), second()) == {
        "not asked for": 1}


def test_what_is_worked_on_by_another_does_not_make_up_for_a_commit_ahead() -> None:
    greedy = Told("a").assign().read(0, 2).add("commit", number=1, offsets=[[0, 7]], runs=[[0, 0, 2, 3]]).revoke()
    assert found_in(greedy, second(), commits=[7, 10]) == {"ahead of processing": 3}


@pytest.mark.parametrize(("reads", "violations"), [
    ([(0, 2), (5, 6)], {"skipped": 1}),
    ([(0, 5), (4, 9)], {"read backwards": 1}),
    ([(0, 5), (6, 9)], {}),
])
def test_gaps_and_steps_back_between_two_reads_are_found(
    reads: list[tuple[int, int]], violations: dict[str, int]
) -> None:
    told = Told("a").assign()
    for each in reads:
        told.read(*each)
    assert found_in(told.revoke(), commits=[], once=False) == violations


def test_a_record_that_is_left_out_within_a_read_is_found() -> None:
    def read_of(count: int) -> Told:
        return Told("a").assign().add("read", runs=[[0, 0, 6, count]], member="a", generation=1)

    assert found_in(read_of(6), commits=[], once=False) == {}
    assert found_in(read_of(5), commits=[], once=False) == {"skipped": 1}
    assert found_in(read_of(7), commits=[], once=False) == {"damaged": 1}


@pytest.mark.parametrize("how", ["revoke", "lost"])
def test_who_reads_what_it_does_not_hold_is_found(how: str) -> None:
    late = Told("a").assign().read(0, 2).revoke(how).read(4, 6)
    assert found_in(late, commits=[], once=False) == {"not held": 1}


def test_two_members_with_one_partition_in_one_generation_are_found() -> None:
    assert found_in(first(), second(generation=1)) == {"of two owners": 1}


def test_two_members_with_one_partition_at_one_time_are_found() -> None:
    assert found_in(first(), second(begin=3.0)) == {"owned twice": 1}


def test_who_has_a_partition_twice_is_named_with_what_both_wrote_down() -> None:
    check = GroupCheck([first().story(), second(begin=3.0).story()], THERE, {0: [3, 10]}, once=True)
    assert check.run() == {"owned twice": 1}
    summary, *journals = check.details
    assert summary.startswith("b has partition 0 from ")
    assert ", and a until " in summary
    assert [journal.partition(":")[0] for journal in journals] == ["a", "b"]
    assert all("assign[[0], " in journal for journal in journals)


def test_who_was_frozen_or_lost_a_partition_did_not_hold_it_to_the_end() -> None:
    told = Told("a").assign().read(0, 2).commit(0, 2).add("told", error="X").add("told", error="X").revoke()
    assert found_in(told, second(begin=4.5)) == {"owned twice": 1}
    assert found_in(told.story(frozen=[(4.2, 6.5)]), second(begin=4.5)) == {}
    lost = Told("a").assign().read(0, 2).commit(0, 2).add("told", error="X").add("told", error="X").revoke("lost")
    assert list(held_by(lost.story())) == [(0, 1.0, 3.0)]
    assert found_in(lost, second(begin=4.5)) == {}


def test_what_is_assigned_right_behind_a_freeze_is_held_from_the_first_commit_on() -> None:
    frozen = [(11.2, 11.9)]
    told = Told("b", 10.0).add("told", error="X").assign(2)
    assert list(held_by(deepcopy(told).revoke("lost").story(frozen=frozen))) == []
    assert list(held_by(deepcopy(told).story(frozen=frozen))) == []
    assert list(held_by(deepcopy(told).revoke("lost").story())) == [(0, 12.0, 12.0)]
    late = told.read(4, 9, 2).commit(4, 9)
    assert list(held_by(deepcopy(late).revoke("lost").story(frozen=frozen))) == [(0, 14.0, 14.0)]
    assert list(held_by(late.revoke().story(frozen=frozen))) == [(0, 14.0, 16.0)]


def test_copies_are_counted_by_number() -> None:
    assert check_copies({0: 1, 1: 1}, 2, once=True) == {}
    assert check_copies({0: 2, -1: 1}, 2, once=True) == {"missing": 1, "twice": 1, "damaged": 1}
    assert check_copies({0: 2, 1: 1}, 2, once=False) == {}


def test_a_record_behind_a_later_one_is_found() -> None:
    assert check_order([[0, 6, 12], [1, 7]]) == {}
    assert check_order([[0, 6, 5, 12], [7, 1]]) == {"out of order": 2}


class _Message:
    def __init__(self, partition: int, offset: int, count: int = 1) -> None:
        self._all = partition, offset, count

    def partition(self) -> int:
        return self._all[0]

    def offset(self) -> int:
        return self._all[1]

    def delivery_count(self) -> int:
        return self._all[2]


def test_messages_of_several_partitions_are_runs_and_a_step_back_begins_another() -> None:
    messages = [_Message(*each) for each in ((0, 1), (1, 5), (0, 2), (0, 4), (0, 3), (1, 6))]
    assert runs_of(messages) == [Run(0, 1, 4, 3), Run(1, 5, 6, 2), Run(0, 3, 3, 1)]


def test_deliveries_are_runs_of_one_count() -> None:
    messages = [_Message(*each) for each in ((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 5, 2))]
    assert deliveries_of(messages) == [Run(0, 1, 2, 1), Run(0, 3, 3, 2), Run(0, 5, 5, 2)]


def test_covered_records_are_counted_once() -> None:
    spans = merged([(4, 6), (0, 3), (5, 7)])
    assert spans == [(0, 3), (4, 7)]
    assert covered(THERE[0], spans, 1, 9) == 5


def test_a_commit_is_read_as_kafka_writes_it() -> None:
    key = struct.pack(">hh1sh2si", 1, 1, b"g", 2, b"tt", 7)
    value = struct.pack(">hqihq", 3, 42, -1, 0, 0)
    assert read_commit(key, value) == ("g", "tt", 7, 42)
    assert read_commit(key, None) is None
    assert read_commit(struct.pack(">h", 2) + key[2:], value) is None


# Share groups

def share(*told: Told | Story, members: list[float] | None = None, leaders: list[float] | None = None) -> ShareCheck:
    stories = [each if isinstance(each, Story) else each.story() for each in told]
    check = ShareCheck(stories, {0: Offsets([0])}, *(
        Faults((at, at) for at in times or []) for times in (members, leaders)))
    check.run()
    return check


def delivered(told: Told, count: int, answer: str | None = None, kind: str = "accept") -> Told:
    """A record is handed out, acknowledged, and answered."""
    told.add("read", runs=[[0, 0, 0, count]]).add(kind, runs=[[0, 0, 0, count]])
    return told.add("answer", runs=[[0, 0, 0, 1]], error=None if answer == "" else answer) if answer != "-" else told


def test_a_record_that_is_released_and_accepted_is_counted_one_by_one() -> None:
    check = share(delivered(delivered(Told("a"), 1, "", "release"), 2, ""))
    assert +check.violations == {}
    assert check.numbers["counts that grew by one"] == 2
    assert check.numbers["accepted"] == 1


def test_a_record_that_nobody_accepted_is_found() -> None:
    assert +share(delivered(Told("a"), 1, "", "release")).violations == {"never accepted": 1}
    assert +share(delivered(Told("a"), 1, "INVALID_RECORD_STATE")).violations == {"never accepted": 1}
    assert +share(delivered(Told("a"), 1, "-")).violations == {}  # killed before it was told


def test_a_record_that_comes_again_after_it_was_accepted_is_found() -> None:
    again = delivered(delivered(Told("a"), 1, ""), 2, "")
    assert +share(again).violations == {"accepted twice": 1, "delivered after acceptance": 1}
    stale = delivered(Told("b", 10), 1, "INVALID_RECORD_STATE").story(frozen=[(2.0, 10.5)])
    assert +share(delivered(Told("a"), 1, ""), stale).violations == {}


def test_a_late_acceptance_of_what_another_has_accepted_is_told_and_no_violation() -> None:
    """Brokers confirm it where the group is done with the record."""
    late = Told("b").add("read", runs=[[0, 0, 0, 1]])
    for _ in range(16):
        late.add("told", error="X")
    late.add("accept", runs=[[0, 0, 0, 1]]).add("answer", runs=[[0, 0, 0, 1]], error=None)
    first = Told("a", 17).add("read", runs=[[0, 0, 0, 2]])
    first.add("accept", runs=[[0, 0, 0, 2]]).add("answer", runs=[[0, 0, 0, 1]], error=None)
    check = share(late, first)
    assert +check.violations == {}
    assert check.numbers["accepted once more, too late"] == 1
    early = Told("b").add("read", runs=[[0, 0, 0, 1]]).add("accept", runs=[[0, 0, 0, 1]])
    early.add("answer", runs=[[0, 0, 0, 1]], error=None)
    also = Told("a", 1).add("read", runs=[[0, 0, 0, 2]]).add("accept", runs=[[0, 0, 0, 2]])
    assert +share(early, also.add("answer", runs=[[0, 0, 0, 1]], error=None)).violations == {"accepted twice": 1}


@pytest.mark.parametrize(("counts", "members", "leaders", "violations"), [
    ([1, 2], [], [], {}),
    ([2], [], [], {"miscounted": 1}),
    ([2], [0.0], [], {}),
    ([1, 3], [], [], {"miscounted": 1}),
    ([1, 3], [3.0], [], {}),
    ([1, 1], [3.0], [], {"miscounted": 1}),
    ([1, 1], [], [3.0], {}),
    ([0, 1], [3.0], [], {"miscounted": 1}),
])
def test_a_delivery_count_that_does_not_grow_by_one_needs_a_fault(
    counts: list[int], members: list[float], leaders: list[float], violations: dict[str, int]
) -> None:
    told = Told("a")
    for count in counts[:-1]:
        delivered(told, count, "", "release")
    assert +share(delivered(told, counts[-1], ""), members=members, leaders=leaders).violations == violations
