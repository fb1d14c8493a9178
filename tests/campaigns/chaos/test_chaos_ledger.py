"""The verdict of a chaos run finds each thing that can be wrong; and the proxy does what it says."""

from __future__ import annotations

import pytest

from .ledger import Fate, Found, Ledger, Outcome, found_of, value_of
from .proxy import Frames

Log = list[Found]


def ledger(count: int = 4, fate: Fate = Fate.STORED) -> Ledger:
    """Records of one producer for one partition, at offsets from 10 on."""
    made = Ledger(transactional=False)
    stream = made.stream("p", 0)
    for _ in range(count):
        number = stream.add()
        stream.report(number, fate, 10 + number if fate is Fate.STORED else -1)
    return made


def log(*numbers: int, first: int = 10) -> dict[int, Log]:
    return {0: [Found(first + at, "p", number) for at, number in enumerate(numbers)]}


def transactions(outcome: Outcome) -> Ledger:
    """One transaction of two records for each of two partitions; the first was stored at offset 0."""
    made = Ledger(transactional=True)
    transaction = made.begin("p")
    for partition in (0, 1):
        stream = made.stream("p", partition)
        for _ in range(2):
            number = stream.add()
            transaction.add(stream, number)
            stream.report(number, Fate.STORED, number)
    transaction.outcome = outcome
    return made


BOTH = {0: [Found(0, "p", 0), Found(1, "p", 1)], 1: [Found(0, "p", 0), Found(1, "p", 1)]}
HALF = {0: BOTH[0], 1: []}


def test_nothing_is_wrong_with_what_is_there_once_and_in_order() -> None:
    assert ledger().check(log(0, 1, 2, 3)) == {}
    assert transactions(Outcome.COMMITTED).check(BOTH) == {}
    assert transactions(Outcome.ABORTED).check({0: [], 1: []}) == {}


@pytest.mark.parametrize(("found", "violations"), [
    (log(0, 1, 3), {"lost": 1, "misplaced": 1}),
    (log(0, 1, 2, 3, 3), {"duplicated": 1, "misplaced": 1}),
    (log(0, 2, 1, 3), {"out of order": 1, "misplaced": 2}),
    (log(0, 1, 2, 3, first=20), {"misplaced": 4}),
    (log(0, 1, 2, 3, 4), {"damaged": 1}),
    ({0: [], 1: [Found(10, "p", 0)]}, {"lost": 4, "damaged": 1}),
])
def test_what_is_wrong_with_acknowledged_records_is_found(found: dict[int, Log], violations: dict[str, int]) -> None:
    assert ledger().check(found) == violations


def test_a_failed_record_may_be_there_only_if_its_report_said_so() -> None:
    assert ledger(fate=Fate.UNKNOWN).check(log(0, 3)) == {}
    assert ledger(fate=Fate.DENIED).check(log(0, 3)) == {"denied": 2}
    assert ledger(fate=Fate.DENIED).check(log()) == {}


def test_each_record_has_exactly_one_report() -> None:
    made = ledger()
    made.stream("p", 0).add()
    made.stream("p", 0).report(0, Fate.STORED, 10)
    assert made.check(log(0, 1, 2, 3)) == {"unreported": 1, "reported twice": 1}


@pytest.mark.parametrize(("outcome", "found", "violations"), [
    (Outcome.COMMITTED, HALF, {"lost": 2, "torn": 1}),
    (Outcome.COMMITTED, {0: [], 1: []}, {"lost": 4}),
    (Outcome.ABORTED, HALF, {"aborted seen": 2}),
    (Outcome.UNKNOWN, HALF, {"torn": 1}),
    (Outcome.UNKNOWN, BOTH, {}),
    (Outcome.UNKNOWN, {0: [], 1: []}, {}),
    (Outcome.OPEN, {0: [], 1: []}, {"not over": 1}),
])
def test_a_transaction_is_there_as_a_whole_or_not_at_all(
    outcome: Outcome, found: dict[int, Log], violations: dict[str, int]
) -> None:
    assert transactions(outcome).check(found) == violations


def test_a_group_has_the_offset_of_the_last_committed_transaction() -> None:
    made = Ledger(transactional=True)
    assert made.check_offset("p", -1001)
    for offset, outcome in enumerate((Outcome.COMMITTED, Outcome.ABORTED, Outcome.UNKNOWN)):
        transaction = made.begin("p")
        transaction.offset, transaction.outcome = offset, outcome
    made.begin("q").outcome = Outcome.COMMITTED
    assert [made.check_offset("p", offset) for offset in (-1001, 0, 1, 2)] == [False, True, False, True]


def test_a_commit_that_succeeds_although_a_record_failed_is_found() -> None:
    made = transactions(Outcome.COMMITTED)
    made.stream("p", 0).fates[1] = Fate.DENIED
    assert made.check(BOTH) == {"denied": 1}


def test_a_damaged_value_belongs_to_no_record() -> None:
    value = value_of("p", 7)
    assert found_of(3, b"p", value) == Found(3, "p", 7)
    damages = ((b"q", value), (b"p", value[:-1] + b"!"), (b"p", b"8" + value[1:]), (None, None), (b"\xff", b"1"))
    for key, wrong in damages:
        assert found_of(3, key, wrong) == Found(3, "", 0)


@pytest.mark.parametrize("step", [1, 2, 3, 5, 100])
def test_the_proxy_knows_where_frames_end(step: int) -> None:
    sizes = (3, 0, 10, 1)
    data = b"".join(size.to_bytes(4, "big") + bytes(size) for size in sizes)
    frames, ends = Frames(), []
    for at in range(0, len(data), step):
        ends += [at + end for end in frames.feed(data[at:at + step])]
    assert ends == [7, 11, 25, 30]
