"""Functions of the application are held by its client alone, so that both can go; its logger may raise what it will."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import weakref
from typing import Any

import pytest

from headrace import Consumer, Producer
from headrace.buffers import implementation
from headrace.client.application_callbacks import ApplicationCallbacks, ApplicationLog
from headrace.config import CONSUMER, Config
from headrace.testing import EmbeddedBroker


class Face:
    """A client that holds its functions."""

    def __init__(self) -> None:
        self.callbacks = ApplicationCallbacks(self)


def test_what_was_lent_calls_the_function_and_gives_its_result() -> None:
    face = Face()
    lent = face.callbacks.lend("key", lambda one, two: (two, one))
    assert lent is not None
    assert lent(1, 2) == (2, 1)


def test_what_a_function_raises_passes_through() -> None:
    def wrong() -> None:
        raise ValueError("mine")

    face = Face()
    lent = face.callbacks.lend("key", wrong)
    assert lent is not None
    with pytest.raises(ValueError, match="mine"):
        lent()


def test_no_function_is_none() -> None:
    assert Face().callbacks.lend("key", None) is None
    assert Face().callbacks.lend_with_face("key", None) is None


def test_a_function_that_is_held_under_the_same_key_later_takes_the_place_of_the_first() -> None:
    face = Face()
    lent = face.callbacks.lend("key", lambda: "first")
    other = face.callbacks.lend("other", lambda: "other")
    assert lent is not None
    assert other is not None
    face.callbacks.lend("key", lambda: "second")
    assert (lent(), other()) == ("second", "other")
    face.callbacks.lend("key", None)
    assert lent() is None


def test_a_coroutine_function_is_lent_as_one() -> None:
    async def callback(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    face = Face()
    lent = face.callbacks.lend("key", callback)
    assert lent is not None
    assert inspect.iscoroutinefunction(lent)
    assert asyncio.run(lent(4)) == 5


def test_the_client_comes_in_front_where_it_is_wanted() -> None:
    face = Face()
    lent = face.callbacks.lend_with_face("key", lambda *arguments: arguments)
    assert lent is not None
    assert lent(1, 2) == (face, 1, 2)


def test_functions_that_lead_back_to_their_client_do_not_keep_it_and_do_nothing_afterwards() -> None:
    face = Face()
    called: list[Any] = []
    lent = face.callbacks.lend("key", lambda held=face: called.append(held))
    with_face = face.callbacks.lend_with_face("with", called.append)
    assert lent is not None
    assert with_face is not None
    gone = weakref.ref(face)
    del face
    gc.collect()
    assert gone() is None
    assert (lent(), with_face()) == (None, None)
    assert called == []


def test_of_properties_only_functions_that_a_client_calls_are_lent() -> None:
    def function(*arguments: Any) -> tuple[Any, ...]:
        return arguments

    face = Face()
    given = {"error_cb": function, "client.id": "c", "on_commit": function, "stats_cb": None, "partitioner": function}
    made = face.callbacks.lend_properties(given)
    assert {name for name in given if made[name] is not given[name]} == {"error_cb", "on_commit"}
    assert made["error_cb"](1) == (1,)


def test_a_client_that_is_let_go_is_abandoned_on_its_loop() -> None:
    async def main() -> None:
        face, done = Face(), asyncio.Event()
        face.callbacks.when_let_go(lambda: True, done.set)
        await asyncio.sleep(0)
        assert not done.is_set()
        del face
        gc.collect()
        assert not done.is_set()  # the loop does it, not whoever let go
        await asyncio.wait_for(done.wait(), 5)

    asyncio.run(main())


def test_a_client_that_was_closed_before_is_not_abandoned() -> None:
    async def main() -> None:
        face, abandoned = Face(), []
        face.callbacks.when_let_go(lambda: False, lambda: abandoned.append(1))
        del face
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)
        assert abandoned == []

    asyncio.run(main())


def test_a_client_that_outlives_its_loop_raises_nothing() -> None:
    faces, abandoned = [Face()], []

    async def main() -> None:
        faces[0].callbacks.when_let_go(lambda: True, lambda: abandoned.append(1))

    asyncio.run(main())
    faces.clear()
    gc.collect()
    assert abandoned == []


@pytest.mark.skipif(implementation == "plain", reason="the collector sees the plain twin, and ends it first")
def test_in_a_circle_a_client_ends_behind_the_del_methods_that_may_still_call_it() -> None:
    told: list[Any] = []

    class Owner:
        def __init__(self) -> None:
            self.face = Face()
            self.lent = self.face.callbacks.lend("key", self.called)
            self.face.callbacks.end_with(told.append, "end")

        def called(self) -> None:
            told.append("called")

        def __del__(self) -> None:
            self.face.callbacks.renew(self.face)
            assert self.lent is not None
            self.lent()
            told.append("del")

    Owner()
    gc.collect()
    assert told == ["called", "del", "end"]


def test_what_is_to_be_done_at_the_end_takes_the_place_of_what_was() -> None:
    face, told = Face(), list[str]()
    face.callbacks.end_with(told.append, "first")
    face.callbacks.end_with(told.append, "second")
    del face
    assert told == ["second"]


class FullDisk(logging.Handler):
    """Raises as soon as it is full, as a handler may that an application wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.full, self.refused = False, 0

    def emit(self, record: logging.LogRecord) -> None:
        if self.full:
            self.refused += 1
            raise OSError(28, "No space left on device")


def _logger(handler: logging.Handler) -> logging.Logger:
    logger = logging.Logger("application")
    logger.addHandler(handler)
    return logger


def test_the_first_line_that_cannot_be_written_is_told_and_the_caller_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = FullDisk()
    handler.full = True
    log = ApplicationLog(Config(CONSUMER, {"bootstrap.servers": "a:1", "group.id": "g", "logger": _logger(handler)}))
    for _ in range(3):
        log.log(logging.WARNING, "%s", "text")
    assert handler.refused == 3
    assert capsys.readouterr().err.count("OSError: [Errno 28]") == 1


def test_clients_whose_logger_raises_outlive_their_broker(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler, reports = FullDisk(), []
    with EmbeddedBroker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        common = {"bootstrap.servers": broker.bootstrap_servers, "logger": _logger(handler)}
        producer = Producer({**common, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50})
        consumer = Consumer({**common, "group.id": "g", "auto.offset.reset": "earliest",
                             "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50})
        producer.produce("t", "before")
        assert producer.flush(10) == 0
        consumer.subscribe(["t"])
        assert [each.value() for each in consumer.consume(1, 10)] == [b"before"]
    handler.full = True
    producer.produce("t", "behind", on_delivery=lambda error, message: reports.append(error))
    producer.flush(0.3)
    consumer.consume(1, 0.3)
    assert handler.refused
    with EmbeddedBroker(port=port):
        assert producer.flush(10) == 0
        assert reports == [None]
        assert [each.value() for each in consumer.consume(1, 20)] == [b"behind"]
        consumer.close()
        producer.close()
    assert "No space left on device" in capsys.readouterr().err
