"""`ShareConsumer`: arguments, states and errors, over confluent_kafka and headrace, without a broker."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace import KafkaError, KafkaException, ShareConsumer
from headrace.broker.faults import Action, Fault
from headrace.errors import ConfigError, WakeupError
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest
from tests.support.same_as_confluent import QUIET, by_name, same

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "logger": QUIET, "error_cb": lambda _: None}


@pytest.fixture
def made() -> Iterator[Any]:
    """Makes share consumers whose broker is not there; they are closed in the end."""
    consumers = []

    def make(kafka: ModuleType, topics: list[str] | None = None, **given: Any) -> Any:
        consumers.append(kafka.ShareConsumer({**NOWHERE, **{k.replace("_", "."): v for k, v in given.items()}}))
        if topics:
            consumers[-1].subscribe(topics)
        return consumers[-1]

    yield make
    closing = [threading.Thread(target=one.close) for one in consumers]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()


@pytest.mark.parametrize("arguments", [(), ("a",), (None,)])
def test_without_properties_there_is_no_consumer(arguments: tuple[Any, ...]) -> None:
    assert same(lambda kafka: kafka.ShareConsumer(*arguments)) == "TypeError"


@by_name({name: {name: value} for name, value in {
        "group.instance.id": "a", "auto.offset.reset": "earliest", "enable.auto.commit": True,
        "isolation.level": "read_committed", "partition.assignment.strategy": "range", "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 3000, "group.protocol.type": "consumer", "enable.partition.eof": True,
        "queued.max.messages.kbytes": 100, "on_commit": print,
    }.items()})
def test_what_makes_no_sense_is_refused_as_by_confluent(case: dict[str, Any]) -> None:
    """Which exception it is differs between properties in confluent_kafka, and never here."""
    with pytest.raises((ValueError, confluent_kafka.KafkaException)):
        confluent_kafka.ShareConsumer({**NOWHERE, **case})
    with pytest.raises(ConfigError, match=next(iter(case)).replace(".", "[.]")) as error:
        ShareConsumer({**NOWHERE, **case})
    assert isinstance(error.value, ValueError)


def test_a_group_is_needed() -> None:
    for kafka in (confluent_kafka, headrace):
        with pytest.raises(ValueError, match="must be set"):
            kafka.ShareConsumer({"bootstrap.servers": "x"})
    with pytest.raises(ConfigError, match=r"group\.id.*must be set"):
        ShareConsumer({**NOWHERE, "group.id": ""})


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="implicit, explicit"):
        ShareConsumer({**NOWHERE, "share.acknowledgement.mode": "sometimes"})


@pytest.mark.parametrize("name", ["group.protocol", "group.remote.assignor"])
def test_the_protocols_of_other_groups_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not supported on a share consumer"):
        ShareConsumer({**NOWHERE, name: "consumer"})


def test_properties_that_share_groups_use_are_taken_and_those_of_others_left_alone(made: Any) -> None:
    taken = {"share.acknowledgement.mode": "explicit", "max.poll.records": 10, "max.poll.interval.ms": 5000,
             "fetch.wait.max.ms": 10, "check.crcs": True, "client.rack": "r", "acks": "all",
             "enable.auto.offset.store": True, "auto.commit.interval.ms": 5}
    for kafka in (confluent_kafka, headrace):
        made(kafka, **taken)


@by_name({
    "poll": lambda one, kafka: one.poll(0.1),
    "poll text": lambda one, kafka: one.poll("a"),
    "text": lambda one, kafka: one.subscribe("abc"),
    "twice": lambda one, kafka: one.subscribe(["a", "a"]),
    "empty": lambda one, kafka: one.subscribe([""]),
    "nothing": lambda one, kafka: (one.subscribe(["a"]), one.subscribe([]), one.subscription()),
    "topics": lambda one, kafka: (one.subscription(), one.subscribe(["a", "b"]), one.subscription()),
    "none": lambda one, kafka: (one.subscribe(["b"]), one.unsubscribe(), one.unsubscribe(), one.subscription()),
    "acknowledge nothing": lambda one, kafka: one.acknowledge(kafka.Message()),
    "acknowledge text": lambda one, kafka: one.acknowledge("a"),
    "acknowledge what is not held": lambda one, kafka: one.acknowledge(kafka.Message("a", 0, 0)),
    "acknowledge an offset that is not held": lambda one, kafka: one.acknowledge_offset("a", 0, 0),
    "acknowledge a negative partition": lambda one, kafka: one.acknowledge_offset("a", -1, 0),
    "acknowledge a negative offset": lambda one, kafka: one.acknowledge_offset("a", 0, -1),
    "acknowledge without an offset": lambda one, kafka: one.acknowledge_offset("a", 0),
    "acknowledge a topic of bytes": lambda one, kafka: one.acknowledge_offset(1, 0, 0),
    "commit nothing": lambda one, kafka: one.commit_sync(0.1),
    "commit nothing behind": lambda one, kafka: one.commit_async(),
    "commit with an argument": lambda one, kafka: one.commit_async(1),
    "no callback": lambda one, kafka: one.set_acknowledgement_commit_callback(None),
    "a number as callback": lambda one, kafka: one.set_acknowledgement_commit_callback(3),
    "credentials of none": lambda one, kafka: one.set_sasl_credentials(None, "a"),
    "close": lambda one, kafka: (one.close(), one.close()),
    "with": lambda one, kafka: one.__enter__() is one,
    "made twice": lambda one, kafka: one.__init__(NOWHERE),
})
def test_a_call_does_what_confluents_does(case: Any, made: Any) -> None:
    same(lambda kafka: case(made(kafka), kafka))
    same(lambda kafka: case(made(kafka, share_acknowledgement_mode="explicit"), kafka))


@by_name({
    "poll": lambda one, kafka: one.poll(0),
    "subscribe": lambda one, kafka: one.subscribe(["a"]),
    "unsubscribe": lambda one, kafka: one.unsubscribe(),
    "subscription": lambda one, kafka: one.subscription(),
    "acknowledge": lambda one, kafka: one.acknowledge(kafka.Message("a", 0, 0)),
    "acknowledge no message": lambda one, kafka: one.acknowledge(None),
    "acknowledge_offset": lambda one, kafka: one.acknowledge_offset("a", 0, 0),
    "commit_sync": lambda one, kafka: one.commit_sync(),
    "commit_async": lambda one, kafka: one.commit_async(),
    "callback": lambda one, kafka: one.set_acknowledgement_commit_callback(print),
    "credentials": lambda one, kafka: one.set_sasl_credentials("a", "b"),
    "close": lambda one, kafka: one.close(),
    "with": lambda one, kafka: one.__exit__(None, None, None),
})
def test_a_closed_consumer_does_what_confluents_does(case: Any, made: Any) -> None:
    def closed(kafka: ModuleType) -> Any:
        one = made(kafka)
        one.close()
        try:
            return case(one, kafka)
        except kafka.IllegalStateException as error:
            return str(error)

    assert same(closed) in (None, "Share consumer closed")


def test_a_poll_without_a_broker_is_empty_when_its_time_is_up(made: Any) -> None:
    one = made(headrace, ["t"])
    started = time.monotonic()
    assert one.poll(0.3).is_empty()
    assert 0.25 < time.monotonic() - started < 20
    assert one.acquisition_lock_timeout_ms() is None
    assert one.metrics()["type"] == "consumer"


def test_patterns_are_refused(made: Any) -> None:
    with pytest.raises(ValueError, match="no patterns"):
        made(headrace).subscribe(["^a.*"])


def test_words_that_there_are_not_are_refused(made: Any) -> None:
    with pytest.raises(ValueError, match="9 is not a valid AcknowledgeType"):
        made(headrace, share_acknowledgement_mode="explicit").acknowledge_offset("t", 0, 0, 9)


def test_exceptions_have_confluents_bases() -> None:
    for name in ("IllegalStateException", "ConcurrentModificationException"):
        for kafka in (confluent_kafka, headrace):
            assert getattr(kafka, name).__bases__ == (RuntimeError,)


def test_a_share_consumer_that_is_let_go_is_gone() -> None:
    one = ShareConsumer(NOWHERE)
    one.set_acknowledgement_commit_callback(lambda offsets, error, self=one: None)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_a_broker_without_share_groups_is_told_of_clearly() -> None:
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings.of_kafka("3.9")) as broker, ShareConsumer({
            **NOWHERE, "bootstrap.servers": broker.bootstrap_servers}) as one:
        one.subscribe(["t"])
        for _ in range(2):
            with pytest.raises(KafkaException, match="the brokers have no share groups: they need Kafka") as error:
                one.poll(10)
            assert error.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE


def test_a_wakeup_before_close_does_not_end_it(made: Any) -> None:
    one = made(headrace, ["t"])
    one.wakeup()
    one.close()


def test_a_wakeup_while_nothing_waits_ends_the_next_poll_and_no_other(made: Any) -> None:
    one = made(headrace, ["t"])
    one.wakeup()
    with pytest.raises(WakeupError):
        one.poll(0)
    assert one.poll(0).is_empty()


def test_a_wakeup_ends_a_close_that_waits() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        one = ShareConsumer({**NOWHERE, "bootstrap.servers": broker.bootstrap_servers})
        one.subscribe(["t"])
        end = time.monotonic() + 20
        while one.acquisition_lock_timeout_ms() is None:
            one.poll(0.1)
            assert time.monotonic() < end
        broker.add_fault(Fault(action=Action.SILENCE, request=ShareGroupHeartbeatRequest, times=None))
        waker = threading.Timer(1, one.wakeup)
        waker.start()
        with pytest.raises(WakeupError):
            one.close()
        waker.join()


@pytest.mark.parametrize("name", ["ShareConsumer", "DeserializingShareConsumer", "Messages", "AcknowledgeType"])
def test_the_names_of_confluents_classes_are_here(name: str) -> None:
    theirs, ours = getattr(confluent_kafka, name), getattr(headrace, name)
    assert {member for member in dir(theirs) if not member.startswith("_")} <= set(dir(ours))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_may_close_the_consumer_of_its_parent(made: Any) -> None:
    consumer = made(headrace, ["t"])
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)
        try:
            consumer.close()
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert consumer.subscription() == ["t"]
