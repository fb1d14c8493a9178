"""`AdminClient`: futures for each thing, errors served by `poll()`, and an end."""

from __future__ import annotations

import gc
import inspect
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

from headrace.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec
from headrace.client.admin.admin_client import list_these
from headrace.errors import ClientClosedError, ConfigError, KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.types.cluster import TopicCollection
from headrace.types.records import TopicPartition

PATIENCE_S = 10


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "two": 2}) as made:
        yield made


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


def test_each_thing_has_a_future_with_its_own_result_or_error(admin: AdminClient) -> None:
    futures = admin.create_topics([NewTopic("admin-a", 2), NewTopic("one", 1)])
    assert set(futures) == {"admin-a", "one"}
    assert all(isinstance(future, Future) for future in futures.values())
    assert futures["admin-a"].result(PATIENCE_S) is None
    with pytest.raises(KafkaException) as refused:
        futures["one"].result(PATIENCE_S)
    assert refused.value.error == KafkaError.TOPIC_ALREADY_EXISTS
    assert admin.delete_topics(["admin-a"])["admin-a"].result(PATIENCE_S) is None
    assert "admin-a" not in admin.list_topics(timeout=PATIENCE_S).topics


def test_what_is_only_validated_is_not_done(admin: AdminClient) -> None:
    assert admin.create_topics([NewTopic("admin-b", 1)], validate_only=True)["admin-b"].result(PATIENCE_S) is None
    assert "admin-b" not in admin.list_topics(timeout=PATIENCE_S).topics


def test_partitions_are_added(broker: EmbeddedBroker, admin: AdminClient) -> None:
    broker.create_topic("admin-grows", 1)
    assert admin.create_partitions([NewPartitions("admin-grows", 3)])["admin-grows"].result(PATIENCE_S) is None
    assert len(admin.list_topics("admin-grows", PATIENCE_S).topics["admin-grows"].partitions) == 3


def test_futures_are_found_by_the_very_things_that_were_asked_for(admin: AdminClient) -> None:
    resource, partition = ConfigResource("topic", "one"), TopicPartition("two", 1)
    entries = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    assert entries["cleanup.policy"].value == "delete"
    assert admin.list_offsets({partition: OffsetSpec.latest()})[partition].result(PATIENCE_S).offset == 0


def test_a_list_that_is_none_is_told_to_the_caller_and_not_to_a_future(admin: AdminClient) -> None:
    with pytest.raises(TypeError, match="topics: expected list of str"):
        admin.delete_topics("one")  # type: ignore[arg-type]


def test_a_future_that_is_taken_out_of_its_dict_is_settled(admin: AdminClient) -> None:
    assert admin.describe_topics(TopicCollection(["one"])).pop("one").result(PATIENCE_S).name == "one"
    admin.describe_topics(TopicCollection(["one"])).clear()
    deadline = time.monotonic() + PATIENCE_S
    while len(admin) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(admin) == 0


def test_the_cluster_and_its_groups_are_described(broker: EmbeddedBroker, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(PATIENCE_S)
    assert {f"{node.host}:{node.port}" for node in described.nodes} == set(broker.bootstrap_servers.split(","))
    assert described.controller in described.nodes
    assert [node.id_string for node in described.nodes] == [str(node.id) for node in described.nodes]
    assert admin.list_consumer_groups().result(PATIENCE_S).errors == []
    with pytest.deprecated_call(match=r"use list_consumer_groups\(\)"):
        assert admin.list_groups(timeout=PATIENCE_S) == []


def test_several_topics_are_listed_in_one_request_and_no_others(admin: AdminClient) -> None:
    assert set(list_these(admin, ["one", "two"], PATIENCE_S).topics) == {"one", "two"}
    assert {"one", "two"} <= set(list_these(admin, None, PATIENCE_S).topics)


def test_errors_wait_for_poll_and_are_told_in_the_thread_that_calls_it() -> None:
    came, told = threading.Event(), []

    def error_cb(error: KafkaError) -> None:
        told.append((error.code(), threading.current_thread()))
        came.set()

    with AdminClient({"bootstrap.servers": "127.0.0.1:1", "error_cb": error_cb}) as admin:
        for _ in range(100):
            assert not came.is_set()  # nobody else calls it
            with pytest.raises(KafkaException):
                admin.list_topics(timeout=0.1)
            assert not came.is_set()
            if served := admin.poll(0):
                break
        assert served == len(told) >= 1
    assert {thread for _, thread in told} == {threading.current_thread()}


def test_a_closed_client_says_so_and_may_be_closed_again(broker: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.close()
    admin.close()
    calls: list[Any] = [lambda: admin.list_topics(timeout=1), lambda: admin.create_topics([NewTopic("x")]),
                        lambda: admin.describe_cluster().result(PATIENCE_S)]
    for call in calls:
        with pytest.raises(ClientClosedError):
            call()


def test_what_is_not_settled_when_the_client_is_closed_fails() -> None:
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None})
    future = admin.create_topics([NewTopic("t")], request_timeout=60)["t"]
    admin.close()
    with pytest.raises((KafkaException, ClientClosedError)):
        future.result(PATIENCE_S)


def test_a_client_that_is_let_go_without_an_end_closes_its_connections(broker: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.list_topics(timeout=PATIENCE_S)
    core = admin._core
    del admin
    gc.collect()
    for _ in range(100):
        if core.closed:
            break
        threading.Event().wait(0.05)
    assert core.closed


def test_an_unknown_property_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.server"):
        AdminClient({"bootstrap.server": "localhost:9092"})


def test_poll_waits_for_an_error_and_no_longer_than_it_is_told() -> None:
    told: list[int] = []
    conf = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: told.append(error.code())}
    with AdminClient(conf) as admin:
        future = admin.create_topics([NewTopic("t")], request_timeout=PATIENCE_S)["t"]
        assert len(admin) >= 1
        assert admin.poll(PATIENCE_S) >= 1
        assert told
        assert not future.done()
    with AdminClient({"bootstrap.servers": "127.0.0.1:1"}) as quiet:
        assert quiet.poll(0.01) == 0
        assert len(quiet) == 0


def test_a_poll_ends_when_the_client_is_closed() -> None:
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1"})
    waits = threading.Event()

    def poll() -> None:
        waits.set()
        with suppress(ClientClosedError):  # it was closed before
            assert admin.poll() == 0

    polling = threading.Thread(target=poll)
    polling.start()
    waits.wait(PATIENCE_S)
    admin.close()
    polling.join(PATIENCE_S)
    assert not polling.is_alive()


def test_new_credentials_are_for_connections_that_come_later(broker: EmbeddedBroker) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.set_sasl_credentials("alice", "secret")
        with pytest.raises(TypeError):
            admin.set_sasl_credentials("alice", None)  # type: ignore[arg-type]
        assert admin.list_topics(timeout=PATIENCE_S).topics
    with pytest.raises(ClientClosedError):
        admin.set_sasl_credentials("alice", "secret")


def test_properties_may_be_given_by_keyword_and_a_call_shows_what_it_takes(broker: EmbeddedBroker) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}, **{"client.id": "by keyword"}) as admin:
        assert admin.cluster_id()
    shown = inspect.signature(AdminClient.create_topics)
    assert list(shown.parameters) == ["self", "new_topics", "operation_timeout", "request_timeout", "validate_only"]
    assert shown.return_annotation == "dict[str, Future[None]]"
    assert "validate_only" in (AdminClient.create_topics.__doc__ or "")
    assert inspect.signature(AdminClient.list_topics).return_annotation == "ClusterMetadata"
