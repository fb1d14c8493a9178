"""What all calls have in common: times and flags are checked, and each future gets the result of its own key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace import Producer
from headrace.admin import AdminClient, NewTopic
from headrace.client.admin.admin_area import ByKey
from headrace.errors import KafkaError, KafkaException
from headrace.net.thread import loop_thread
from headrace.testing import EmbeddedBroker

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}


@pytest.mark.parametrize(("given", "error"), [
    ({"request_timeout": -1}, ValueError), ({"request_timeout": 3601}, ValueError),
    ({"request_timeout": "1"}, TypeError), ({"operation_timeout": -1}, ValueError),
    ({"operation_timeout": 3601}, ValueError), ({"operation_timeout": "1"}, TypeError),
    ({"validate_only": 1}, TypeError), ({"validate_only": "yes"}, TypeError), ({"unknown": 1}, TypeError),
])
def test_times_and_flags_that_make_no_sense_are_refused_before_anything_is_sent(
    given: dict[str, Any], error: type[Exception]
) -> None:
    with AdminClient(NOBODY) as admin, pytest.raises(error):
        admin.create_topics([NewTopic("t")], **given)


@pytest.mark.parametrize("name", ["request_timeout", "operation_timeout"])
def test_a_time_that_is_no_number_is_told_with_its_unit(name: str) -> None:
    with AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}) as admin, pytest.raises(
            TypeError, match=f"{name} must be a number of seconds, not str"):
        admin.create_topics([NewTopic("t", 1)], **{name: "5"})


@pytest.mark.parametrize(("client", "call"), [
    (AdminClient, "list_topics"), (AdminClient, "cluster_id"), (Producer, "list_topics"), (Producer, "cluster_id")])
def test_a_timeout_that_is_no_number_is_told_as_such(client: type[Any], call: str) -> None:
    made = client(NOBODY)
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not str"):
        getattr(made, call)(timeout="5")
    made.close()


@pytest.mark.parametrize("call", ["list_topics", "cluster_id", "list_groups"])
@pytest.mark.filterwarnings("ignore:list_groups:DeprecationWarning")
def test_a_timeout_of_a_call_that_is_waited_for_may_be_longer_than_an_hour(call: str) -> None:
    with EmbeddedBroker() as broker, AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        assert getattr(admin, call)(timeout=1e9) is not None


def test_nothing_is_done_for_nothing() -> None:
    assert settled([], KafkaException(KafkaError(KafkaError._FAIL))) == {}


def settled(keys: list[str], results: dict[str, int | KafkaError | None] | Exception) -> dict[str, asyncio.Future[Any]]:
    async def work() -> dict[str, int | KafkaError | None]:
        if isinstance(results, Exception):
            raise results
        return results

    async def run() -> dict[str, asyncio.Future[Any]]:
        call = ByKey(keys, work)
        futures: dict[str, asyncio.Future[Any]] = {key: asyncio.Future() for key in call.keys}
        await call.settle(futures)
        return futures

    return loop_thread().call(run())


def test_each_future_gets_the_result_or_the_error_of_its_own_key() -> None:
    futures = settled(["a", "b", "c"], {"a": 1, "b": KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)})
    assert futures["a"].result() == 1
    failures = {key: futures[key].exception() for key in "bc"}
    assert all(isinstance(failure, KafkaException) for failure in failures.values())
    assert [failure.error.code() for failure in failures.values() if isinstance(failure, KafkaException)] == [
        KafkaError.TOPIC_ALREADY_EXISTS, KafkaError._FAIL]


def test_work_in_parts_ends_each_future_with_its_part() -> None:
    async def run() -> list[bool]:
        goes_on = asyncio.Event()

        async def late() -> dict[str, int]:
            await goes_on.wait()
            return {"b": 2}

        async def early() -> dict[str, int]:
            return {"a": 1}

        call = ByKey(["a", "b", "c"], late, early)
        futures: dict[str, asyncio.Future[Any]] = {key: asyncio.Future() for key in call.keys}
        task = asyncio.create_task(call.settle(futures))
        assert await futures["a"] == 1
        before = [future.done() for future in futures.values()]
        goes_on.set()
        await task
        assert futures["b"].result() == 2
        assert str(futures["c"].exception()).count("does not mention it") == 1
        return before

    assert loop_thread().call(run()) == [True, False, False]


def test_work_that_fails_as_a_whole_fails_every_future() -> None:
    futures = settled(["a", "b"], KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    assert {str(future.exception()) for future in futures.values()} == {str(KafkaException(
        KafkaError(KafkaError._TIMED_OUT)))}
