"""What became of records, as brokers want it: in runs, in order, without overlaps."""

import random
from uuid import UUID

import pytest

from headrace.machines.share.acknowledgements import GAP, RENEW, Acknowledgements, batches_of, gaps_in
from headrace.machines.share.share_session import ShareSession


def said(types: dict[int, int], *runs: tuple[int, int, int]) -> Acknowledgements:
    return Acknowledgements(("t", 0), UUID(int=7), ShareSession(1), types, runs)


def test_records_that_follow_each_other_and_share_a_type_are_one_run() -> None:
    assert batches_of([said({3: 1, 1: 1, 2: 1, 7: 1})]) == [(1, 3, [1]), (7, 7, [1])]
    assert batches_of([said({1: 1, 0: 1})]) == [(0, 1, [1])]


def test_where_types_differ_each_record_has_its_own() -> None:
    assert batches_of([said({1: 1, 2: 3, 3: 1})]) == [(1, 3, [1, 3, 1])]


def test_several_are_merged_in_order_and_the_later_word_counts() -> None:
    assert batches_of([said({5: 1, 6: RENEW}, (7, 9, GAP)), said({6: 1, 1: 2}, (2, 4, 2))]) == [
        (1, 1, [2]), (2, 4, [2]), (5, 6, [1]), (7, 9, [GAP])]


def test_what_renews_is_known() -> None:
    assert said({1: 1, 2: RENEW}).renews
    assert not said({1: 1}, (2, 3, GAP)).renews


@pytest.mark.parametrize(("ranges", "start", "end", "offsets", "gaps"), [
    ([(0, 9, 1)], 0, 10, range(10), []),
    ([(0, 9, 1)], 0, 10, [], [(0, 9, GAP)]),
    ([(0, 9, 1)], 3, 10, [4, 9], [(3, 3, GAP), (5, 8, GAP)]),
    ([(0, 9, 1)], 0, 5, [0, 1], [(2, 4, GAP)]),
    ([(0, 2, 1), (5, 6, 2)], 0, 7, [1, 5], [(0, 0, GAP), (2, 2, GAP), (6, 6, GAP)]),
    ([(0, 10**12, 1)], 0, 10**12 + 1, [10**12], [(0, 10**12 - 1, GAP)]),
])
def test_the_offsets_without_a_record_are_found(
    ranges: list[tuple[int, int, int]], start: int, end: int, offsets: list[int], gaps: list[tuple[int, int, int]]
) -> None:
    assert gaps_in(ranges, start, end, offsets) == gaps


def test_gaps_and_records_together_are_what_was_asked_for() -> None:
    for seed in range(300):
        dice = random.Random(seed)
        ranges, at = [], 0
        for _ in range(dice.randint(1, 4)):
            first = at + dice.randint(0, 3)
            at = first + dice.randint(1, 6)
            ranges.append((first, at - 1, 1))
        held = {offset for first, last, _ in ranges for offset in range(first, last + 1)}
        start, end = dice.randint(0, at), dice.randint(0, at + 2)
        asked = {offset for offset in held if start <= offset < end}
        offsets = sorted(dice.sample(sorted(asked), dice.randint(0, len(asked))))
        gaps = [offset for first, last, _ in gaps_in(ranges, start, end, offsets) for offset in range(first, last + 1)]
        assert sorted([*gaps, *offsets]) == sorted(asked), seed
