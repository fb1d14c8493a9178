"""The campaign's own judgement: each kind of finding is seen, and nothing else."""

from __future__ import annotations

import pytest

from .verdict import Verdict, verdict_of

SENT = {0: [0, 2, 4, 6], 1: [1, 3, 5, 7]}


def judged(partition_0: list[int], *, ordered: bool = True, uncommitted: int = 8) -> Verdict:
    return verdict_of(SENT, {0: partition_0, 1: SENT[1]}, uncommitted, ordered=ordered)


def test_a_faithful_copy_has_no_findings() -> None:
    assert judged([0, 2, 4, 6]) == Verdict(8, 8, 0, 0, 0, 0, 0)
    assert judged([0, 2, 4, 6]).findings == 0


def test_records_of_aborted_transactions_are_counted_and_are_no_finding() -> None:
    found = judged([0, 2, 4, 6], uncommitted=11)
    assert (found.aborted, found.findings) == (3, 0)


@pytest.mark.parametrize(("log", "kind", "count"), [
    ([0, 2, 4], "missing", 1),
    ([], "missing", 4),
    ([0, 2, 2, 4, 6, 2], "twice", 2),
    ([0, 2, 4, 6, 1], "foreign", 1),
    ([0, 2, 4, 6, 99], "foreign", 1),
    ([0, 4, 2, 6], "disordered", 1),
])
def test_each_kind_of_finding_is_counted_by_itself(log: list[int], kind: str, count: int) -> None:
    found = judged(log)
    assert getattr(found, kind) == count
    assert found.findings == count


def test_shuffled_rows_have_no_order() -> None:
    assert judged([6, 4, 2, 0], ordered=False).findings == 0
    assert judged([6, 4, 2, 0]).disordered == 3


def test_copies_that_come_again_later_are_copies_and_not_disorder() -> None:
    found = judged([0, 2, 4, 0, 2, 4, 6])
    assert (found.twice, found.disordered) == (3, 0)
