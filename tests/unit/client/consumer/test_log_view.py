"""What leaders say about many logs: one request for each broker, and what becomes of errors."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Producer
from headrace.admin import AdminClient
from headrace.broker.settings import BrokerSettings
from headrace.client.consumer.log_view import LogView, patiently
from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster import metadata
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.consumer.offsets import ListOffsetsRequest

PATIENCE_S = 10
EARLIEST, LATEST = -2, -1
KEYS = [("t", partition) for partition in range(6)]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 6, "empty": 1}, nodes=3, settings=BrokerSettings()) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for partition in range(6):
                for n in range(partition):
                    producer.produce("t", b"v", partition=partition, timestamp=1000 * (n + 1))
            assert producer.flush(PATIENCE_S) == 0
        yield broker


@pytest.fixture
def view(broker: EmbeddedBroker) -> Iterator[LogView]:
    with LogView({"bootstrap.servers": broker.bootstrap_servers}, ["t", "nowhere"]) as view:
        yield view


@pytest.fixture
def asked(broker: EmbeddedBroker) -> Iterator[Counter[str]]:
    """How many requests of each kind came."""
    asked: Counter[str] = Counter()

    def note(request: object) -> bool:
        asked[type(request).__name__] += 1
        return False

    for kind in (MetadataRequest, ListOffsetsRequest):
        broker.add_fault(Fault(action=Action.DELAY, request=kind, times=None, when=note))
    yield asked
    broker.clear_faults()


def test_ends_are_one_request_for_each_broker(broker: EmbeddedBroker, asked: Counter[str]) -> None:
    with LogView({"bootstrap.servers": broker.bootstrap_servers}, ["t"]) as view:  # a missing topic is asked for again
        view.topics(PATIENCE_S)
        for _ in range(3):
            asked.clear()
            found = view.offsets(dict.fromkeys(KEYS, LATEST), PATIENCE_S)
            assert {key: each.offset for key, each in found.items()} == {("t", p): p for p in range(6)}
            assert asked == {"ListOffsetsRequest": 3}


def test_topics_are_asked_for_when_the_answer_is_too_old(view: LogView, asked: Counter[str]) -> None:
    for max_age_s, count in ((0.0, 1), (60.0, 1), (0.0, 2)):
        topics = view.topics(PATIENCE_S, max_age_s=max_age_s)
        assert sorted(topics["t"].partitions) == list(range(6))
        assert topics["nowhere"].error == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert asked["MetadataRequest"] >= count
    view.forget_topics()
    before = asked["MetadataRequest"]
    view.topics(PATIENCE_S, max_age_s=60.0)
    assert asked["MetadataRequest"] > before


def test_all_topics_can_be_asked_for(broker: EmbeddedBroker) -> None:
    with LogView({"bootstrap.servers": broker.bootstrap_servers}, None) as view:
        assert {"t", "empty"} <= view.topics(PATIENCE_S).keys()


def test_times_choose_offsets(view: LogView) -> None:
    view.topics(PATIENCE_S)
    found = view.offsets({("t", 5): 3000, ("t", 2): 9000, ("t", 4): EARLIEST}, PATIENCE_S)
    assert {key: each.offset for key, each in found.items()} == {("t", 5): 2, ("t", 2): -1, ("t", 4): 0}


def test_a_partition_that_is_not_there_is_an_error(view: LogView) -> None:
    view.topics(PATIENCE_S)
    with pytest.raises(KafkaException, match=r"t\[6\]"):
        view.offsets({("t", 6): LATEST}, PATIENCE_S)


def test_a_leader_that_refuses_is_an_error(view: LogView, broker: EmbeddedBroker) -> None:
    view.topics(PATIENCE_S)
    broker.add_fault(Fault(action=Action.ERROR, request=ListOffsetsRequest, times=1,
                           error_code=KafkaError.NOT_LEADER_FOR_PARTITION))
    with pytest.raises(KafkaException) as refused:
        view.offsets(dict.fromkeys(KEYS, LATEST), PATIENCE_S)
    assert refused.value.error == KafkaError.NOT_LEADER_FOR_PARTITION


def test_leaders_know_where_their_terms_ended(view: LogView) -> None:
    view.topics(PATIENCE_S)
    latest = view.offsets({("t", 3): LATEST, ("t", 5): LATEST}, PATIENCE_S)
    epochs = {key: each.leader_epoch for key, each in latest.items() if each.leader_epoch is not None}
    assert view.epoch_ends(epochs, PATIENCE_S) == {key: latest[key].offset for key in epochs}


def test_offsets_of_a_group_are_set_in_the_background(view: LogView, broker: EmbeddedBroker) -> None:
    view.commit("readers", {("t", 3): 2, ("t", 4): 4}, PATIENCE_S)(PATIENCE_S)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("readers")]).values()
    committed = {(tp.topic, tp.partition): tp.offset for tp in found.result(PATIENCE_S).topic_partitions or ()}
    assert committed == {("t", 3): 2, ("t", 4): 4}


def test_a_commit_that_is_refused_says_why(view: LogView) -> None:
    with pytest.raises(KafkaException, match="nowhere"):
        view.commit("readers", {("nowhere", 0): 2}, 1.0)(PATIENCE_S)


def test_properties_of_fetches_are_those_of_readers_and_do_not_matter(broker: EmbeddedBroker) -> None:
    given = {"fetch.max.wait.ms": 7, "fetch.message.max.bytes": 5_000_000, "fetch.min.bytes": 9}
    with LogView({"bootstrap.servers": broker.bootstrap_servers, **given}, ["t"]) as view:
        view.topics(PATIENCE_S)
        assert not view.wait_for_records({("t", 1): 1}, 0.2)


def test_without_brokers_the_wait_ends() -> None:
    began = time.monotonic()
    with LogView({"bootstrap.servers": "127.0.0.1:1"}, ["t"]) as view, pytest.raises(KafkaException):
        view.topics(0.3)
    assert time.monotonic() - began < 5


def test_a_view_that_is_dropped_is_closed(broker: EmbeddedBroker) -> None:
    view = LogView({"bootstrap.servers": broker.bootstrap_servers}, ["t"])
    view.topics(PATIENCE_S)
    core = view._core
    del view
    end = time.monotonic() + PATIENCE_S
    while not core.closed and time.monotonic() < end:
        time.sleep(0.01)
    assert core.closed


def test_a_leader_that_moves_is_found_by_asking_again(view: LogView, broker: EmbeddedBroker) -> None:
    view.topics(PATIENCE_S)
    old = broker.leader("t", 0)
    broker.move_leader("t", 0, old % 3 + 1)
    broker.add_fault(Fault(  # also if the view has looked again meanwhile
        action=Action.ERROR, request=ListOffsetsRequest, error_code=KafkaError.NOT_LEADER_FOR_PARTITION))
    try:
        with pytest.raises(KafkaException) as caught:
            view.offsets({("t", 0): LATEST}, PATIENCE_S)
        assert caught.value.error == KafkaError.NOT_LEADER_FOR_PARTITION
        found = patiently(lambda left_s: view.offsets({("t", 0): LATEST}, left_s), time.monotonic() + PATIENCE_S)
        assert found["t", 0].offset == 0
    finally:
        broker.move_leader("t", 0, old)


def test_what_does_not_pass_is_said_at_once_and_a_topic_that_is_unknown_after_a_moment() -> None:
    for code, shortest_s, longest_s in ((KafkaError.TOPIC_AUTHORIZATION_FAILED, 0, 0.5),
                                        (KafkaError.UNKNOWN_TOPIC_OR_PART, 0.7, 2)):
        def ask(left_s: float, code: int = code) -> None:
            assert left_s <= 30
            raise KafkaException(KafkaError(code))

        began = time.monotonic()
        with pytest.raises(KafkaException):
            patiently(ask, began + 30)
        assert shortest_s <= time.monotonic() - began < longest_s


def test_names_that_cannot_be_resolved_are_said_long_before_the_time_is_over_until_a_broker_has_answered(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, port = broker.bootstrap_servers.split(",")[0].rpartition(":")
    known = False
    look_up = socket.getaddrinfo

    def getaddrinfo(host: str, *given: Any, **named: Any) -> Any:
        if str(host).endswith(".invalid") and not known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up("127.0.0.1" if str(host).endswith(".invalid") else host, *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(metadata, "UNKNOWN_HOSTS_S", 0.5)
    with LogView({"bootstrap.servers": f"kafka.invalid:{port},other.invalid:{port}"}, ["t"]) as view:
        for _ in range(2):
            with pytest.raises(KafkaException, match="the host name cannot be resolved") as caught:
                view.topics(60)
            assert caught.value.error == KafkaError._RESOLVE
            assert not view.answered
        known = True
        assert "t" in patiently(view.topics, time.monotonic() + 60)
        assert view.answered


def test_a_broker_that_refuses_beside_names_that_cannot_be_resolved_may_come_back() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        servers = f"kafka.invalid:9092,127.0.0.1:{unused.getsockname()[1]}"
        with LogView({"bootstrap.servers": servers}, ["t"]) as view:
            for _ in range(2):
                with contextlib.suppress(KafkaException):
                    view.topics(1)
            with pytest.raises(KafkaException) as caught:
                view.topics(1)
    assert caught.value.error == KafkaError._TIMED_OUT
