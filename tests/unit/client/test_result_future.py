"""A future without a condition of its own does what one with it does."""

import threading
from collections.abc import Callable
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, CancelledError, Future, as_completed, wait
from concurrent.futures import TimeoutError as LateError
from threading import RLock

import pytest

from headrace.client.result_future import Ends, ResultFuture, end_each, end_together
from headrace.errors import KafkaError, KafkaException


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


@pytest.mark.parametrize("end", [end_each, lambda ends: end_together(RLock(), ends)], ids=["each", "together"])
@pytest.mark.parametrize("called_back", [False, True])
def test_who_waits_for_several_hears_of_those_that_were_cancelled_when_the_call_ends(
    end: Callable[[Ends], None], called_back: bool
) -> None:
    first, second, third = futures = made(3)
    told: list[Future[int]] = []
    if called_back:
        first.add_done_callback(told.append)
    first.cancel()
    third.cancel()
    assert wait(futures, 0).done == set()
    end([(future, 1) for future in futures])
    assert wait(futures, 30).not_done == set()
    assert set(as_completed(futures, 30)) == set(futures)
    assert (first.cancelled(), second.result(), told) == (True, 1, [first] * called_back)


def test_it_may_be_cancelled_until_it_is_done() -> None:
    first, second = made(2)
    assert first.cancel()
    assert first.cancelled()
    second.set_result(1)
    assert not second.cancel()


def test_it_has_all_that_a_future_of_the_library_has() -> None:
    (future,) = made(1)
    theirs = {name: value for name, value in vars(Future()).items() if name != "_condition"}
    assert theirs
    assert {name: getattr(future, name) for name in theirs} == theirs
    assert future._condition is future._condition  # type: ignore[attr-defined]
    assert not hasattr(future, "_nothing_that_a_future_has")


def test_what_is_made_for_one_future_is_not_another_s() -> None:
    first, second = made(2)
    first.add_done_callback(lambda future: None)
    assert second._done_callbacks == []  # type: ignore[attr-defined]
    assert first._condition is not second._condition  # type: ignore[attr-defined]


def test_a_result_that_nobody_waited_for_is_one_that_is_found() -> None:
    lock = RLock()
    future, refused, cancelled = (ResultFuture[int](lock) for _ in range(3))
    cancelled.cancel()
    end_together(lock, [(future, 5), (refused, KafkaError(KafkaError._TIMED_OUT)), (cancelled, 6), (future, 7)])
    assert (future.result(), future.exception(), future.done(), future.running()) == (5, None, True, False)
    with pytest.raises(KafkaException):
        refused.result(0)
    with pytest.raises(CancelledError):
        cancelled.result(0)
    assert wait([future, refused], 0).not_done == set()


def test_results_that_are_handed_over_together_are_all_there_for_who_waits_for_the_first() -> None:
    lock = RLock()
    futures = [ResultFuture[int](lock) for _ in range(1000)]
    found: list[bool] = []
    waits = threading.Event()

    def wait_for_first() -> None:
        waits.set()
        futures[0].result(30)
        found.extend(future.done() for future in futures)

    thread = threading.Thread(target=wait_for_first)
    thread.start()
    waits.wait(30)
    end_together(lock, [(future, at) for at, future in enumerate(futures)])
    thread.join(30)
    assert found == [True] * 1000


def test_a_callback_may_wait_for_another_thread_that_asks_for_a_result() -> None:
    lock = RLock()
    first, second = ResultFuture[int](lock), ResultFuture[int](lock)
    told: list[int] = []

    def ask_elsewhere(_: object) -> None:
        thread = threading.Thread(target=lambda: told.append(second.result(30)))
        thread.start()
        thread.join(30)

    first.add_done_callback(ask_elsewhere)
    end_together(lock, [(first, 1), (second, 2)])
    assert told == [2]


def test_callbacks_come_in_the_order_of_the_results() -> None:
    lock = RLock()
    futures = [ResultFuture[int](lock) for _ in range(4)]
    told: list[int] = []
    for at in (3, 0, 2):
        futures[at].add_done_callback(lambda future: told.append(future.result()))
    end_together(lock, [(future, at) for at, future in enumerate(futures)])
    assert told == [0, 2, 3]


def test_an_error_is_raised_and_a_future_that_is_done_stays_as_it_is() -> None:
    refused, broken, cancelled = futures = made(3)
    cancelled.cancel()
    end_each(zip(futures, (KafkaError(KafkaError._TIMED_OUT), KeyError("k"), 1), strict=True))
    assert isinstance(refused.exception(), KafkaException)
    assert isinstance(broken.exception(), KeyError)
    assert cancelled.cancelled()
