"""The consumer while brokers fail: nothing is lost, nothing comes twice, and nobody has to help."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.errors import KafkaError
from headrace.testing import EmbeddedBroker
from headrace.types.records import OFFSET_BEGINNING, TopicPartition
from headrace.wire.frame import decode_response, encode_response
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataResponse
from headrace.wire.messages.consumer.fetch import FetchRequest
from headrace.wire.messages.consumer.offsets import ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from headrace.wire.schema import Request

PARTITIONS, EACH = 3, 400


@contextmanager
def filled(nodes: int) -> Iterator[EmbeddedBroker]:
    """A broker with `EACH` records in every partition of topic "t"."""
    with EmbeddedBroker(nodes=nodes, topics={"t": PARTITIONS}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 20}) as producer:
            for partition in range(PARTITIONS):
                for i in range(EACH):
                    producer.produce("t", value=b"%d" % i, partition=partition)
            assert producer.flush(10) == 0
        yield broker


def consumer(broker: EmbeddedBroker, **more: object) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest",
                     "max.partition.fetch.bytes": 1500, "fetch.wait.max.ms": 50, **more})


def read(reader: Consumer, found: dict[int, list[int]], count: int, timeout_s: float = 20.0) -> None:
    """Read so many more records into `found`, which is offsets by partition."""
    deadline = time.monotonic() + timeout_s
    while count > 0:
        assert time.monotonic() < deadline, {p: len(offsets) for p, offsets in found.items()}
        for message in reader.consume(min(count, 50), 0.2):
            assert message.error() is None, message.error()
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            found.setdefault(partition, []).append(offset)
            count -= 1


COMPLETE = {partition: list(range(EACH)) for partition in range(PARTITIONS)}


@pytest.mark.parametrize("action", [Action.DROP, Action.LOSE_REPLY, Action.CUT])
def test_lost_fetches_lose_no_record_and_repeat_none(action: Action) -> None:
    with filled(nodes=1) as broker, consumer(broker) as reader:
        reader.assign([TopicPartition("t", p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        found: dict[int, list[int]] = {}
        for _ in range(4):
            broker.add_fault(Fault(action=action, request=FetchRequest, after=2))
            read(reader, found, PARTITIONS * EACH // 4)
    assert found == COMPLETE


def test_a_moving_leader_is_followed() -> None:
    with filled(nodes=3) as broker, consumer(broker) as reader:
        reader.assign([TopicPartition("t", p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        found: dict[int, list[int]] = {}
        for turn in range(6):
            for partition in range(PARTITIONS):
                broker.move_leader("t", partition, 1 + (turn + partition) % 3)
            read(reader, found, PARTITIONS * EACH // 6)
    assert found == COMPLETE


def test_a_broker_that_goes_and_comes_back_is_ridden_out() -> None:
    with filled(nodes=3) as broker, consumer(broker, **{"group.id": "g"}) as reader:
        reader.subscribe(["t"])
        found: dict[int, list[int]] = {}
        read(reader, found, 300)
        broker.stop_node(2)
        read(reader, found, 300)
        broker.start_node(2)
        read(reader, found, 600)
    assert found == COMPLETE


@pytest.mark.parametrize("request_type", [
    JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, OffsetFetchRequest, ListOffsetsRequest])
@pytest.mark.parametrize(("action", "code"), [
    (Action.LOSE_REPLY, 0), (Action.DROP, 0), (Action.ERROR, KafkaError.NOT_COORDINATOR),
    (Action.ERROR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)])
def test_a_group_gets_going_whatever_request_is_lost(request_type: type[Request], action: Action, code: int) -> None:
    if request_type is ListOffsetsRequest and action is Action.ERROR:
        code = KafkaError.NOT_LEADER_FOR_PARTITION
    with filled(nodes=1) as broker:
        broker.add_fault(Fault(action=action, request=request_type, error_code=code))
        # A member whose id was lost on the way keeps the group waiting for a session; make that short (KIP-394).
        properties = {"group.id": "g", "heartbeat.interval.ms": 50, "session.timeout.ms": 6000}
        with consumer(broker, **properties) as reader:
            reader.subscribe(["t"])
            found: dict[int, list[int]] = {}
            read(reader, found, PARTITIONS * EACH)
    assert found == COMPLETE


def test_a_commit_whose_reply_is_lost_is_repeated() -> None:
    with filled(nodes=1) as broker, consumer(broker, **{"group.id": "g"}) as reader:
        broker.add_fault(Fault(action=Action.LOSE_REPLY, request=OffsetCommitRequest))
        result = reader.commit(offsets=[TopicPartition("t", 0, 9)], asynchronous=False)
        assert result is not None
        assert [tp.error for tp in result] == [None]
        assert [tp.offset for tp in reader.committed([TopicPartition("t", 0)], timeout=5)] == [9]


@pytest.mark.parametrize("release", ["0.10.0", "0.10.2"])
def test_brokers_before_0_11_are_refused_with_the_reason_and_told_once(release: str) -> None:
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings.of_kafka(release)) as broker, \
            Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as reader:
        reader.subscribe(["t"])
        message = reader.poll(10)
        assert message is not None
        error = message.error()
        assert error == KafkaError._UNSUPPORTED_FEATURE
        assert "older than Apache Kafka 0.11" in error.str()
        assert reader.poll(0.5) is None
        assert "0.11" in reader.health().waits_for


def unknown_topics(reply: bytes) -> bytes:
    """The same metadata from a broker that has not heard of the topics."""
    version = MetadataRequest.max_version
    number, picture = decode_response(MetadataRequest, version, reply[4:])
    assert isinstance(picture, MetadataResponse)
    for topic in picture.topics:
        topic.error_code, topic.partitions = KafkaError.UNKNOWN_TOPIC_OR_PART, []
    return b"".join(encode_response(picture, version, number))


@pytest.mark.parametrize("group", [None, "classic", "consumer"])
def test_a_broker_that_does_not_know_the_topic_for_a_moment_takes_nothing_from_its_readers(group: str | None) -> None:
    changes: list[str] = []
    found: dict[int, list[int]] = {}
    more = {} if group is None else {"group.id": "g", "group.protocol": group}
    with filled(1) as broker, consumer(broker, **{"topic.metadata.refresh.interval.ms": 50}, **more) as reader:
        if group is None:
            reader.assign([TopicPartition("t", partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        else:
            reader.subscribe(["t"], on_assign=lambda *_: changes.append("assigned"),
                             on_revoke=lambda *_: changes.append("revoked"))
        read(reader, found, 100)
        asked: list[object] = []
        broker.add_fault(Fault(action=Action.GARBLE, request=MetadataRequest, garble=unknown_topics, times=5))
        broker.add_fault(Fault(action=Action.PASS, request=MetadataRequest, effect=asked.append, times=None))
        deadline = time.monotonic() + 20.0
        while not asked:  # the lagging broker has answered five times, and knows the topic again
            assert time.monotonic() < deadline
            read(reader, found, 1)
            time.sleep(0.02)
        read(reader, found, EACH * PARTITIONS - sum(map(len, found.values())))
        assert reader.poll(0.2) is None, "nor is anything told"
    assert found == COMPLETE
    assert changes == ([] if group is None else ["assigned", "revoked"]), "with its end"


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN])
def test_a_partition_whose_start_was_refused_is_read_once_it_is_not(code: int) -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.produce("t", b"x")
        broker.add_fault(Fault(action=Action.ERROR, request=ListOffsetsRequest, error_code=code, times=1))
        with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g",
                       "auto.offset.reset": "earliest"}) as reader:
            reader.subscribe(["t"])
            told = reader.poll(10)
            assert told is not None
            assert told.error() == code
            read = reader.poll(10)
            assert read is not None
            assert read.value() == b"x"
