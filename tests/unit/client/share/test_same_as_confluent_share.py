"""What a share consumer refuses, and in which words: the same calls on confluent_kafka's and on ours, without a broker.

Where ours does otherwise, `OTHERWISE` has both outcomes and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

import headrace
from tests.support.same_as_confluent import QUIET, outcome

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "socket.timeout.ms": 100, "logger": QUIET}
Call = Callable[[ModuleType, Any], Any]

CALLS: dict[str, Call] = {
    "subscribe to a text": lambda k, c: c.subscribe("t"),
    "subscribe to None": lambda k, c: c.subscribe(None),
    "subscribe to a tuple": lambda k, c: c.subscribe(("t",)),
    "subscribe to an empty name": lambda k, c: c.subscribe([""]),
    "subscribe twice to one": lambda k, c: c.subscribe(["t", "t"]),
    "an empty list leaves": lambda k, c: (c.subscribe(["t"]), c.subscribe([]), c.subscription()),
    "a list replaces": lambda k, c: (c.subscribe(["a"]), c.subscribe(["b"]), c.subscription()),
    "poll for a text": lambda k, c: (c.subscribe(["t"]), c.poll("1"))[1],
    "poll for a list": lambda k, c: (c.subscribe(["t"]), c.poll([]))[1],
    "poll without topics": lambda k, c: c.poll(0),
    "commit for a text": lambda k, c: c.commit_sync("1"),
    "commit for an object": lambda k, c: c.commit_sync(timeout=object()),
    "commit of nothing": lambda k, c: c.commit_sync(1.5),
    "commit with an argument": lambda k, c: c.commit_async(1.0),
    "acknowledge None": lambda k, c: c.acknowledge(None),
    "acknowledge a message of no topic": lambda k, c: c.acknowledge(k.Message(partition=0, offset=0)),
    "acknowledge what is not held": lambda k, c: c.acknowledge(k.Message(topic="t", partition=0, offset=0)),
    "acknowledge as 0": lambda k, c: c.acknowledge_offset("t", 0, 0, 0),
    "acknowledge as 999": lambda k, c: c.acknowledge_offset("t", 0, 0, 999),
    "acknowledge as a text": lambda k, c: c.acknowledge_offset("t", 0, 0, "ACCEPT"),
    "acknowledge as a float": lambda k, c: c.acknowledge_offset("t", 0, 0, 1.0),
    "acknowledge partition -1": lambda k, c: c.acknowledge_offset("t", -1, 0),
    "acknowledge offset -1": lambda k, c: c.acknowledge_offset("t", 0, -1),
    "acknowledge partition 1.5": lambda k, c: c.acknowledge_offset("t", 1.5, 0),
    "acknowledge topic None": lambda k, c: c.acknowledge_offset(None, 0, 0),
    "a callback that is none": lambda k, c: c.set_acknowledgement_commit_callback(1),
    "made again": lambda k, c: c.__init__(NOWHERE),
    "closed, then asked": lambda k, c: (c.close(), c.subscription())[1],
    "closed, then None acknowledged": lambda k, c: (c.close(), c.acknowledge(None))[1],
    "closed twice": lambda k, c: (c.close(), c.close()),
}
OTHERWISE: dict[str, tuple[Call, Any, Any]] = {
    "a pattern is refused, for it would be taken for a name": (lambda k, c: c.subscribe(["^t"]), None, "ValueError"),
    "None waits for ever, as in all calls": (lambda k, c: c.commit_sync(None), "TypeError", {}),
    "4 is RENEW, of Kafka 4.2": (lambda k, c: c.acknowledge_offset("t", 0, 0, 4), "ValueError", "RuntimeError"),
}
TEXTS: dict[str, tuple[Call, type[Exception], str]] = {
    "nothing is given": (lambda k, c: k.ShareConsumer(), TypeError, "expected configuration dict"),
    "no group": (lambda k, c: k.ShareConsumer({"logger": QUIET}), ValueError, "group.id must be set"),
    "a callback of commits": (lambda k, c: k.ShareConsumer({**NOWHERE, "on_commit": print}), ValueError,
                              "on_commit is not supported on"),
    "a text": (lambda k, c: c.subscribe("t"), TypeError, "expected list of"),
    "closed": (lambda k, c: (c.close(), c.poll(0))[1], RuntimeError, "Share consumer closed"),
    "made again": (lambda k, c: c.__init__(NOWHERE), RuntimeError, "ShareConsumer already initialized"),
    "a callback that is none": (lambda k, c: c.set_acknowledgement_commit_callback(1), TypeError,
                                "callback must be callable or None"),
}


@pytest.fixture
def consumers() -> Iterator[dict[ModuleType, Any]]:
    made: dict[ModuleType, Any] = {
        kafka: kafka.ShareConsumer({**NOWHERE, "share.acknowledgement.mode": "explicit"})
        for kafka in (confluent_kafka, headrace)}
    yield made
    for consumer in made.values():
        consumer.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_call_returns_or_raises_the_same(call: Call, consumers: dict[ModuleType, Any]) -> None:
    theirs, ours = (outcome(lambda k: call(k, consumers[k]), kafka) for kafka in (confluent_kafka, headrace))
    assert ours == theirs


@pytest.mark.parametrize("given", OTHERWISE.values(), ids=list(OTHERWISE))
def test_a_call_differs_for_a_reason(given: tuple[Call, Any, Any], consumers: dict[ModuleType, Any]) -> None:
    call, theirs, ours = given
    assert outcome(lambda k: call(k, consumers[k]), confluent_kafka) == theirs
    assert outcome(lambda k: call(k, consumers[k]), headrace) == ours


@pytest.mark.parametrize("given", TEXTS.values(), ids=list(TEXTS))
def test_an_error_says_what_the_peers_says(
    given: tuple[Call, type[Exception], str], consumers: dict[ModuleType, Any]
) -> None:
    call, kind, text = given
    for kafka, consumer in consumers.items():
        with pytest.raises(kind, match=text):
            call(kafka, consumer)


NOT_MADE: dict[str, Call] = {
    "subscribe": lambda k, c: c.subscribe(["t"]), "unsubscribe": lambda k, c: c.unsubscribe(),
    "subscription": lambda k, c: c.subscription(), "poll": lambda k, c: c.poll(0),
    "acknowledge": lambda k, c: c.acknowledge(None), "by offset": lambda k, c: c.acknowledge_offset("t", 0, 0),
    "commit": lambda k, c: c.commit_sync(0), "commit later": lambda k, c: c.commit_async(),
    "callback": lambda k, c: c.set_acknowledgement_commit_callback(None),
    "credentials": lambda k, c: c.set_sasl_credentials("u", "p"), "close": lambda k, c: c.close(),
    "with": lambda k, c: c.__enter__() is c, "end of with": lambda k, c: c.__exit__(None, None, None),
    "bool": lambda k, c: bool(c), "attribute": lambda k, c: c.no_such,
}


@pytest.mark.parametrize("call", NOT_MADE.values(), ids=list(NOT_MADE))
def test_a_subclass_that_does_not_make_it_is_a_closed_consumer(call: Call) -> None:
    def said(kafka: ModuleType) -> Any:
        consumer = type("Mine", (kafka.ShareConsumer,), {"__init__": lambda self: None})()
        try:
            return call(kafka, consumer)
        except kafka.IllegalStateException as error:
            return str(error).partition(":")[0]

    assert outcome(said, headrace) == outcome(said, confluent_kafka)


def test_what_headrace_adds_is_closed_in_a_consumer_that_was_not_made() -> None:
    consumer = type("Mine", (headrace.ShareConsumer,), {"__init__": lambda self: None})()
    for call in (consumer.metrics, consumer.acquisition_lock_timeout_ms, consumer.wakeup, lambda: next(iter(consumer))):
        with pytest.raises(headrace.IllegalStateException, match="Share consumer closed: its __init__"):
            call()


def test_one_that_is_made_again_goes_on(consumers: dict[ModuleType, Any]) -> None:
    for consumer in consumers.values():
        consumer.subscribe(["t"])
        with pytest.raises(RuntimeError, match="already initialized"):
            consumer.__init__({**NOWHERE, "group.id": "h"})
        assert consumer.subscription() == ["t"]


def test_a_time_that_is_none_is_named() -> None:
    with headrace.ShareConsumer(NOWHERE) as consumer, pytest.raises(TypeError, match="a number of seconds, not str"):
        consumer.commit_sync("soon")  # type: ignore[arg-type]
