"""`oauth_cb` of a blocking client is called while the client is made, and what is wrong with it is raised there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import headrace
import headrace.admin
import headrace.aio
from headrace import KafkaError, KafkaException
from headrace.client import core
from tests.support.ctrl_c import CtrlC, interrupted, keys
from tests.support.same_as_confluent import QUIET, same
from tests.support.sasl_broker import OAUTH, SaslBroker, client, known

__all__ = ["keys"]

KINDS: dict[str, Callable[..., Any]] = {
    "producer": headrace.Producer, "consumer": headrace.Consumer, "share consumer": headrace.ShareConsumer,
    "admin client": headrace.admin.AdminClient,
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def properties(callback: Callable[[str], Any], **more: Any) -> dict[str, Any]:
    return {**OAUTH, "oauth_cb": callback, "sasl.oauthbearer.config": "x=1", "logger": QUIET, **more}


def made(kind: str, callback: Callable[[str], Any], **more: Any) -> Any:
    group = {"group.id": "g"} if "consumer" in kind else {}
    return KINDS[kind](properties(callback, **group, **more))


def token() -> tuple[str, float]:
    return "token", time.time() + 300


@each_kind
def test_the_callback_was_called_once_and_on_another_thread_when_a_client_is_made(kind: str) -> None:
    calls: list[tuple[str, bool]] = []

    def callback(config: str) -> tuple[str, float]:
        calls.append((config, threading.current_thread() is threading.main_thread()))
        return token()

    made(kind, callback).close()
    assert calls == [("x=1", False)]


def test_a_coroutine_function_is_awaited_when_a_client_is_made() -> None:
    calls = []

    async def callback(config: str) -> tuple[str, float]:
        await asyncio.sleep(0)
        calls.append(config)
        return token()

    made("producer", callback).close()
    assert calls == ["x=1"]


def test_confluent_kafka_calls_it_with_the_same_and_as_often() -> None:
    def begun(kafka: Any) -> Any:
        calls = []

        def callback(config: str) -> Any:
            calls.append(config)
            return *token(), "principal", {"traceId": "7"}

        client = kafka.Producer(properties(callback))
        return calls, bool(client)

    same(begun)


@each_kind
@pytest.mark.parametrize(("answer", "why"), [
    (OSError("closed on sundays"), "oauth_cb raised OSError: closed on sundays"),
    (SystemExit(3), "oauth_cb raised SystemExit"),
    (None, "oauth_cb must return"), (("token", 3600), "expired already"), (("", 9e9), "token is empty"),
    (("token", 9e9, "principal", {"auth": "x"}), "the SASL extension"),
])
def test_without_a_usable_token_there_is_no_client_and_the_reason_is_told_at_once(
    kind: str, answer: Any, why: str
) -> None:
    calls, told, began_at = [], list[Any](), time.monotonic()

    def callback(config: str) -> Any:
        calls.append(config)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with pytest.raises(KafkaException, match=why) as failed:
        made(kind, callback, **{"bootstrap.servers": "127.0.0.1:1", "error_cb": told.append, "stats_cb": told.append,
                                "statistics.interval.ms": 5})
    assert failed.value.args[0].code() == KafkaError.SASL_AUTHENTICATION_FAILED
    assert time.monotonic() - began_at < 5
    assert (calls, told) == (["x=1"], [])
    made("producer", lambda config: token()).close()  # the loop that all clients share goes on


def test_a_callback_that_takes_too_long_is_told_of_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_LONGEST_LOGIN_S", 0.05)
    goes_on, calls = threading.Event(), []

    def callback(config: str) -> tuple[str, float]:
        calls.append(config)
        goes_on.wait(10)
        return token()

    with pytest.raises(KafkaException, match=r"no token within 0\.05 s") as failed:
        made("producer", callback, **{"bootstrap.servers": "127.0.0.1:1"})
    assert failed.value.args[0].code() == KafkaError.SASL_AUTHENTICATION_FAILED
    goes_on.set()
    assert calls == ["x=1"]


@interrupted
@each_kind
def test_ctrl_c_gets_through_while_the_callback_takes_its_time(kind: str, keys: CtrlC) -> None:
    interrupted_after_s = []

    def callback(config: str) -> tuple[str, float]:
        time.sleep(0.3)
        return token()

    def work() -> None:
        began_at = time.monotonic()
        try:
            made(kind, callback, **{"bootstrap.servers": "127.0.0.1:1"}).close()
        except KeyboardInterrupt:
            interrupted_after_s.append(time.monotonic() - began_at)
            raise

    keys.again_and_again(0.05, work, 0, 4)
    assert min(interrupted_after_s) < 0.3
    made(kind, callback).close()


def test_the_token_serves_the_first_connections() -> None:
    calls = []

    def callback(config: str) -> tuple[str, float]:
        calls.append(config)
        return token()

    async def run() -> None:
        broker = SaslBroker()
        made = client(broker, OAUTH, oauth_cb=callback)
        await made.log_in(made.close)
        await known(made)
        assert b"auth=Bearer token" in broker.tokens[0]
        assert len(calls) == 1
        await made.close()

    asyncio.run(run())


def test_who_stops_waiting_for_the_token_is_told_nothing_else_and_the_client_is_closed(
        monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        made = client(SaslBroker(), OAUTH, oauth_cb=lambda config: token())
        monkeypatch.setattr(made.driver, "log_in", partial(asyncio.sleep, 60))
        logging_in = asyncio.create_task(made.log_in(made.close))
        await asyncio.sleep(0)
        logging_in.cancel()
        with pytest.raises(asyncio.CancelledError):
            await logging_in
        assert made.closed

    asyncio.run(run())


def test_it_is_not_called_by_a_client_that_authenticates_otherwise_or_on_the_loop_of_an_application() -> None:
    calls: list[str] = []
    password = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    headrace.Producer(properties(calls.append, **password)).close()

    async def run() -> None:
        async with headrace.aio.AIOProducer(properties(calls.append)):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert calls == []
