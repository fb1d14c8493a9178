"""What a query's driver asks the brokers: about the topics that it reads, and about all of them only for a pattern."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.admin import AdminClient
from headrace.broker.settings import BrokerSettings
from headrace.errors import ClientClosedError, ConfigError, KafkaError, KafkaException
from headrace.machines.cluster import metadata
from headrace.machines.cluster.metadata import PartitionInfo, TopicInfo
from headrace.spark import cluster
from headrace.spark.cluster import ClusterView
from headrace.spark.options import Position, Retries, TopicSelection
from headrace.spark.plan import DataLossError
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.consumer.offsets import ListOffsetsRequest

TOPICS = {"a": 2, "ab": 1, "c": 1}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics=TOPICS, settings=BrokerSettings(auto_create_topics=True)) as broker:
        yield broker


@pytest.fixture
def asked(broker: EmbeddedBroker) -> Iterator[list[list[str] | None]]:
    """The topics of the metadata requests, None for all."""
    asked: list[list[str] | None] = []

    def note(request: MetadataRequest) -> bool:
        asked.append(None if request.topics is None else sorted(str(topic.name) for topic in request.topics))
        assert not request.topics or not request.allow_auto_topic_creation
        return False

    broker.add_fault(Fault(action=Action.DELAY, request=MetadataRequest, times=None, when=note))
    yield asked
    broker.clear_faults()


_open: list[ClusterView] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """No view asks on behind its test, which would be taken for one of the next."""
    yield
    while _open:
        _open.pop().close()


def view_of(broker: EmbeddedBroker, **subscription: Any) -> ClusterView:
    _open.append(ClusterView({"bootstrap.servers": broker.bootstrap_servers}, TopicSelection(**subscription)))
    return _open[-1]


@pytest.mark.parametrize(("subscription", "partitions"), [
    ({"topics": ("c", "a")}, [("a", 0), ("a", 1), ("c", 0)]),
    ({"assigned": (("a", 1), ("c", 0))}, [("a", 1), ("c", 0)]),
])
def test_a_query_asks_for_the_topics_that_it_reads_and_no_others(
    broker: EmbeddedBroker, asked: list[list[str] | None], monkeypatch: pytest.MonkeyPatch,
    subscription: dict[str, Any], partitions: list[tuple[str, int]],
) -> None:
    monkeypatch.setattr(cluster, "_FRESH_S", -1.0)  # each time as if a second had gone by
    view = view_of(broker, **subscription)
    assert view.partitions() == partitions
    for _ in range(3):
        assert view.ends() == dict.fromkeys(partitions, 0)
    assert view.earliest(partitions) == dict.fromkeys(partitions, 0)
    assert {topic for topics in asked for topic in (["all"] if topics is None else topics)} == {"a", "c"}


def test_what_was_just_heard_is_not_asked_for_again(
    broker: EmbeddedBroker, asked: list[list[str] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_FRESH_S", 60.0)  # on any machine it was just now
    view = view_of(broker, topics=("a",))
    assert set(view.ends()) == {("a", 0), ("a", 1)}
    before = len(asked)
    assert view.partitions() == [("a", 0), ("a", 1)]
    assert set(view.ends()) == {("a", 0), ("a", 1)}
    assert len(asked) == before


def test_a_query_with_a_pattern_asks_for_all_topics(broker: EmbeddedBroker, asked: list[list[str] | None]) -> None:
    view = view_of(broker, pattern="a.*")
    assert view.partitions() == [("a", 0), ("a", 1), ("ab", 0)]
    assert None in asked


@pytest.mark.parametrize(("pattern", "topics"), [
    ("b", {"ab"}), ("a", {"a", "ab"}), ("^a$", {"a"}), ("b|c", {"ab", "c"}),
])
def test_a_pattern_is_searched_in_names_as_in_spark_s_connector(
    broker: EmbeddedBroker, pattern: str, topics: set[str]
) -> None:
    view = view_of(broker, pattern=pattern)
    assert {topic for topic, _ in view.partitions()} == topics
    assert {topic for topic, _ in view.ends()} == topics


@pytest.mark.parametrize(("subscription", "read"), [
    ({"pattern": "e"}, ["events"]), ({"topics": ("__consumer_offsets",)}, ["__consumer_offsets"]),
])
def test_a_pattern_passes_internal_topics_over_and_a_name_does_not(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, subscription: dict[str, Any], read: list[str]
) -> None:
    view = view_of(broker, **subscription)
    partitions = {0: PartitionInfo(0)}
    there = {name: TopicInfo(name, partitions=partitions, is_internal=name.startswith("__"))
             for name in ("events", "__consumer_offsets")}
    monkeypatch.setattr(view._log, "topics", lambda timeout_s, max_age_s=0.0: there)
    assert view.partitions() == [(name, 0) for name in read]


@pytest.mark.parametrize(("subscription", "said"), [
    ({"topics": ("a", "nowhere")}, "topic nowhere does not exist"),
    ({"topics": ("a", "no topic")}, 'topic "no topic": The topic\'s name is not valid'),
    ({"assigned": (("a", 2), ("nowhere", 0), ("c", 0))}, r"partition a\[2\], nowhere\[0\] does not exist"),
])
def test_what_is_not_there_is_named_at_once_and_not_made(
    broker: EmbeddedBroker, subscription: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        view_of(broker, **subscription).partitions()
    assert view_of(broker, pattern=".*").partitions() == sorted(
        (topic, partition) for topic, count in TOPICS.items() for partition in range(count))


def test_a_topic_that_is_gone_later_is_left_out_of_the_ends(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_FRESH_S", -1.0)
    broker.create_topic("gone", 1)
    view = view_of(broker, topics=("c", "gone"))
    assert view.ends() == {("c", 0): 0, ("gone", 0): 0}
    assert view.topic_ids.keys() == {"c", "gone"}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics(["gone"])["gone"].result(10)
    assert view.ends() == {("c", 0): 0}
    assert view.topic_ids.keys() == {"c"}
    with pytest.raises(ConfigError, match="topic gone does not exist"):
        view.partitions()


def test_ends_come_with_the_terms_of_their_leaders() -> None:
    with EmbeddedBroker(topics={"filled": 2}) as broker:
        view = view_of(broker, topics=("filled",))
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.produce("filled", b"v", partition=1)
            assert producer.flush(10) == 0
        assert view.ends() == {("filled", 0): 0, ("filled", 1): 1}
        epoch = view.end_epochs["filled", 1]
        assert view.log_ends({("filled", 1): epoch}) == {("filled", 1): 1}
        assert view.log_ends({}) == {}
        view.close()


def test_logs_that_are_too_short_are_told_and_an_open_transaction_s_records_count() -> None:
    with EmbeddedBroker(topics={"open": 2}) as broker:
        view = view_of(broker, topics=("open",))
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with Producer({**servers, "transactional.id": "x"}) as producer:
            producer.init_transactions(10)
            producer.begin_transaction()
            producer.produce("open", b"v", partition=0)
            assert producer.flush(10) == 0
            assert view.latest([("open", 0)]) == {("open", 0): 0}
            assert view.too_short({("open", 0): 1, ("open", 1): 0}) == {}
            assert view.too_short({("open", 0): 2, ("open", 1): 4}) == {("open", 0): 1, ("open", 1): 0}
            producer.abort_transaction(10)
        assert view.too_short({}) == {}
        view.close()


@pytest.mark.parametrize(("retries", "asked"), [(Retries(count=0, pause_s=0.0), 1), (Retries(count=3, pause_s=0.0), 4)])
def test_brokers_that_fail_are_asked_as_often_as_the_options_say(
    broker: EmbeddedBroker, retries: Retries, asked: int
) -> None:
    view = ClusterView({"bootstrap.servers": broker.bootstrap_servers}, TopicSelection(topics=("c",)), retries)
    failed: list[ListOffsetsRequest] = []
    broker.add_fault(Fault(action=Action.ERROR, request=ListOffsetsRequest, times=None,
                           error_code=KafkaError.NOT_LEADER_FOR_PARTITION,
                           when=lambda request: failed.append(request) is None))
    with pytest.raises(KafkaException):
        view.latest([("c", 0)])
    broker.clear_faults()
    assert len(failed) == asked
    assert view.latest([("c", 0)]) == {("c", 0): 0}


def test_a_time_that_no_record_has_is_an_error_or_the_end(broker: EmbeddedBroker) -> None:
    view = view_of(broker, topics=("c",))
    with pytest.raises(DataLossError, match=r"no record at or after the time given for c\[0\] \(5\)"):
        view.resolve(Position(timestamps={("c", 0): 5}), [("c", 0)])
    assert view.resolve(Position(timestamps={("c", 0): 5}, else_latest=True), [("c", 0)]) == {("c", 0): 0}
    with pytest.raises(ConfigError, match=r"the timestamps that were given leave out c\[0\]"):
        view.resolve(Position(timestamps={("a", 0): 5}), [("c", 0)])


def test_hosts_that_nobody_knows_end_a_query_that_begins_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "UNKNOWN_HOSTS_S", 0.5)
    monkeypatch.setattr(cluster, "_ATTEMPT_S", 60.0)  # nothing waits for an answer
    servers = {"bootstrap.servers": "one.invalid:9092,two.invalid:9092"}
    with (
        ClusterView(servers, TopicSelection(topics=("a",)), Retries(patience_s=60.0)) as view,
        pytest.raises(KafkaException, match=r"\.invalid:9092: the host name cannot be resolved") as caught,
    ):
        view.partitions()
    assert caught.value.error == KafkaError._RESOLVE


def test_a_query_that_runs_waits_for_a_name_service_that_is_down(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "UNKNOWN_HOSTS_S", 0.0)
    monkeypatch.setattr(cluster, "_FRESH_S", -1.0)
    view = view_of(broker, topics=("a",))
    assert view.ends() == {("a", 0): 0, ("a", 1): 0}
    ask, failures = view._log.offsets, 0

    def offsets(*wanted: Any, **more: Any) -> Any:
        nonlocal failures
        failures += 1
        if failures < 4:
            raise KafkaException(KafkaError(KafkaError._RESOLVE))
        return ask(*wanted, **more)

    monkeypatch.setattr(view._log, "offsets", offsets)
    assert view.ends() == {("a", 0): 0, ("a", 1): 0}
    assert failures == 4


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE])
def test_a_query_that_begins_while_brokers_restart_waits_for_them(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    view = ClusterView({"bootstrap.servers": broker.bootstrap_servers}, TopicSelection(topics=("c",)),
                       Retries(pause_s=0.02))
    _open.append(view)
    ask, failures = view._log.topics, 0

    def topics(*wanted: Any, **more: Any) -> Any:
        nonlocal failures
        failures += 1
        if failures < 4:
            raise KafkaException(KafkaError(code))
        return ask(*wanted, **more)

    monkeypatch.setattr(view._log, "topics", topics)
    began = time.monotonic()
    assert view.partitions() == [("c", 0)]
    assert failures == 4
    assert time.monotonic() - began >= 3 * 0.02  # it asks no faster than the options say


@pytest.mark.parametrize(("subscription", "read"), [({"topics": ("a", "b")}, None), ({"pattern": "."}, [("a", 0)])])
def test_a_topic_that_the_user_may_not_see_is_said_to_be_so_where_it_was_named(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, subscription: dict[str, Any],
    read: list[tuple[str, int]] | None,
) -> None:
    view = view_of(broker, **subscription)
    there = {"a": TopicInfo("a", partitions={0: PartitionInfo(0)}),
             "b": TopicInfo("b", error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))}
    monkeypatch.setattr(view._log, "topics", lambda timeout_s, max_age_s=0.0: there)
    if read is not None:
        assert view.partitions() == read
        return
    with pytest.raises(KafkaException) as caught:
        view.partitions()
    assert caught.value.error == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_what_no_waiting_mends_is_said_at_once(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    view, asked = view_of(broker, topics=("c",)), []

    def topics(*wanted: Any, **more: Any) -> Any:
        asked.append(wanted)
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    monkeypatch.setattr(view._log, "topics", topics)
    with pytest.raises(KafkaException) as caught:
        view.partitions()
    assert caught.value.error == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert len(asked) == 1


def test_a_group_has_the_offsets_once_their_commit_is_answered(broker: EmbeddedBroker) -> None:
    view_of(broker, topics=("c",)).begin_commit("lag-tools", {("c", 0): 7})(10.0)
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "lag-tools"}) as consumer:
        (found,) = consumer.committed([TopicPartition("c", 0)], 10)
    assert found.offset == 7


def test_a_view_that_is_left_has_let_go_of_its_connections(broker: EmbeddedBroker) -> None:
    with ClusterView({"bootstrap.servers": broker.bootstrap_servers}, TopicSelection(topics=("c",))) as view:
        assert view.partitions() == [("c", 0)]
    with pytest.raises(ClientClosedError):
        view.earliest([("c", 0)])
