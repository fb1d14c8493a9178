"""What is to be done when a time has come: in order, once, and not when it was cancelled."""

import math

from headrace.broker.deadlines import Deadlines, Now


def noting(deadlines: Deadlines, done: list[str], *whats: tuple[float, str]) -> None:
    for when, what in whats:
        deadlines.at(when, lambda now, what=what: done.append(f"{what} at {now.s:g}"))  # type: ignore[misc]


def test_what_is_due_is_done_once_the_earliest_first() -> None:
    deadlines, done = Deadlines(), list[str]()
    noting(deadlines, done, (2.0, "c"), (1.0, "a"), (1.0, "b"), (3.0, "d"))
    assert deadlines.next_at == 1.0
    deadlines.run(Now(2.5, 0))
    assert done == ["a at 2.5", "b at 2.5", "c at 2.5"]
    assert deadlines.next_at == 3.0
    deadlines.run(Now(2.5, 0))
    assert len(done) == 3


def test_what_is_cancelled_is_not_done() -> None:
    deadlines, done = Deadlines(), list[str]()
    kept = deadlines.at(1.0, lambda now: done.append("kept"))
    gone = deadlines.at(1.0, lambda now: done.append("gone"))
    gone.cancel()
    gone.cancel()
    deadlines.run(Now(1.0, 0))
    kept.cancel()  # too late, and no harm
    assert done == ["kept"]
    assert deadlines.next_at == math.inf


def test_what_is_asked_for_meanwhile_is_done_if_it_is_due() -> None:
    deadlines, done = Deadlines(), list[str]()
    deadlines.at(1.0, lambda now: noting(deadlines, done, (now.s, "at once"), (now.s + 1, "later")))
    deadlines.run(Now(5.0, 0))
    assert done == ["at once at 5"]
    assert deadlines.next_at == 6.0


def test_cancelled_ones_are_let_go_so_that_the_list_does_not_grow() -> None:
    deadlines = Deadlines()
    kept = deadlines.at(50.0, lambda now: None)
    for _ in range(10_000):
        deadlines.at(100.0, lambda now: None).cancel()
    assert len(deadlines._heap) < 200
    assert deadlines.next_at == kept.when == 50.0
