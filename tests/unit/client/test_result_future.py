"""A future without a condition of its own does what one with it does."""

import threading
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, as_completed, wait
from concurrent.futures import TimeoutError as LateError
from threading import RLock

import pytest

from headrace.client.result_future import ResultFuture


def made(count: int) -> list[Future[int]]:
    lock = RLock()
    return [ResultFuture(lock) for _ in range(count)]


def test_results_and_errors_are_handed_over() -> None:
    first, second = made(2)
    told: list[int] = []
    first.add_done_callback(lambda future: told.append(future.result()))
    first.set_result(3)
    second.set_exception(KeyError("k"))
    assert (first.done(), first.result(), told) == (True, 3, [3])
    assert isinstance(second.exception(0), KeyError)


def test_who_waits_for_one_is_woken_by_that_one_alone() -> None:
    first, second = made(2)
    waits = threading.Event()
    found: list[int] = []

    def wait_for_second() -> None:
        waits.set()
        found.append(second.result(30))

    thread = threading.Thread(target=wait_for_second)
    thread.start()
    waits.wait(30)
    first.set_result(1)
    second.set_result(2)
    thread.join(30)
    assert found == [2]


def test_a_wait_that_is_too_short_is_a_timeout_and_the_result_comes_later() -> None:
    (future,) = made(1)
    with pytest.raises(LateError):
        future.result(0.001)
    future.set_result(1)
    assert future.result(0) == 1


def test_several_are_waited_for_together() -> None:
    futures = made(3)
    thread = threading.Thread(target=lambda: [future.set_result(at) for at, future in enumerate(futures)])
    thread.start()
    assert sorted(future.result() for future in as_completed(futures, 30)) == [0, 1, 2]
    thread.join(30)
    assert wait(futures, 1, ALL_COMPLETED).not_done == wait(futures, 1, FIRST_COMPLETED).not_done == set()


def test_it_may_be_cancelled_until_it_is_done() -> None:
    first, second = made(2)
    assert first.cancel()
    assert first.cancelled()
    second.set_result(1)
    assert not second.cancel()
