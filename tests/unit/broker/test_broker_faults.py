"""Faults on request, nodes that go and come back, leaders that move."""

import threading
import time

import confluent_kafka
import pytest

from headrace import TopicPartition
from headrace.admin import AdminClient, OffsetSpec
from headrace.errors import KafkaError
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.frame import decode_response
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.wire.messages.consumer.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.raw_client import RawClient, batch_of, produce_request


def test_a_dropped_request_is_not_carried_out(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.add_fault(Fault(action=Action.DROP, request=ProduceRequest))
    with RawClient(broker) as client:
        client.send(produce_request("t", 0, batch_of([b"a"])), 9)
        assert client.is_closed()
    assert broker.end_offsets("t") == [0]


@pytest.mark.parametrize("action", [Action.LOSE_REPLY, Action.CUT])
def test_a_lost_or_cut_reply_belongs_to_a_request_that_was_carried_out(broker: EmbeddedBroker, action: Action) -> None:
    broker.create_topic("t")
    broker.add_fault(Fault(action=action, request=ProduceRequest))
    with RawClient(broker) as client:
        client.send(produce_request("t", 0, batch_of([b"a"])), 9)
        with pytest.raises(ConnectionError):
            client.read_frame()
    assert broker.end_offsets("t") == [1]


def test_a_garbled_reply_belongs_to_a_request_that_was_carried_out_and_the_connection_stays_open(
    broker: EmbeddedBroker,
) -> None:
    broker.create_topic("t")
    broker.add_fault(Fault(action=Action.GARBLE, request=ProduceRequest, garble=lambda reply: reply[:4] + b"?" * (
        len(reply) - 4)))
    with RawClient(broker) as client:
        client.send(produce_request("t", 0, batch_of([b"a"])), 9)
        frame = client.read_frame()
        assert set(frame) == set(b"?")
        assert client.produce("t", 0, batch_of([b"b"])).error_code == 0
    assert broker.end_offsets("t") == [2]


def test_an_error_is_told_in_every_part_and_goes_away_by_itself(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, times=2, after=1,
                           error_code=KafkaError.NOT_ENOUGH_REPLICAS))
    with RawClient(broker) as client:
        codes = [client.produce("t", 0, batch_of([b"a"])).error_code for _ in range(4)]
    assert codes == [0, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS, 0]


def test_a_late_error_belongs_to_a_request_that_was_carried_out(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.add_fault(Fault(action=Action.LATE_ERROR, request=ProduceRequest,
                           error_code=KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
    with RawClient(broker) as client:
        codes = [client.produce("t", 0, batch_of([b"a"])).error_code for _ in range(2)]
    assert codes == [KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0]
    assert broker.end_offsets("t") == [2]


def test_a_delay_holds_back_the_request_and_those_behind_it(broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(action=Action.DELAY, request=MetadataRequest, delay_s=0.2))
    with RawClient(broker) as client:
        start = time.monotonic()
        client.call(MetadataRequest(topics=None))
        assert time.monotonic() - start >= 0.2


def test_a_delay_ends_when_faults_are_cleared(broker: EmbeddedBroker) -> None:
    held = threading.Event()
    broker.add_fault(Fault(action=Action.DELAY, request=MetadataRequest, delay_s=60, times=2,
                           effect=lambda _: held.set()))
    with RawClient(broker) as client, RawClient(broker) as gone:
        gone.send(MetadataRequest(topics=None))
        assert held.wait(10)
        gone.socket.close()
        held.clear()
        client.send(MetadataRequest(topics=None))
        assert held.wait(10)
        broker.clear_faults()
        client.socket.settimeout(10)
        assert client.read_frame()


def test_a_silent_broker_never_answers(broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(action=Action.SILENCE, request=MetadataRequest))
    with RawClient(broker) as client:
        client.socket.settimeout(0.2)
        client.send(MetadataRequest(topics=None))
        with pytest.raises(TimeoutError):
            client.read_frame()


def metadata_of(broker: EmbeddedBroker, topic: str, node: int = 1) -> MetadataResponse:
    with RawClient(broker, node) as client:
        reply = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
        assert isinstance(reply, MetadataResponse)
        return reply


def test_leaders_are_spread_over_the_nodes(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 6)
    reply = metadata_of(three_nodes, "t")
    assert sorted(each.leader_id for each in reply.topics[0].partitions) == [1, 1, 2, 2, 3, 3]
    assert {f"{each.host}:{each.port}" for each in reply.brokers} == set(three_nodes.bootstrap_servers.split(","))


def test_the_wrong_node_says_who_leads(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1)
    three_nodes.move_leader("t", 0, 3)
    with RawClient(three_nodes, 1) as client:
        reply = client.call(produce_request("t", 0, batch_of([b"a"])), 12)
        refused = reply.responses[0].partition_responses[0]
        assert refused.error_code == KafkaError.NOT_LEADER_FOR_PARTITION
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (3, 1)
        assert {each.node_id for each in reply.node_endpoints} == {1, 2, 3}
        assert client.produce("t", 0, batch_of([b"a"])).error_code == KafkaError.NOT_LEADER_FOR_PARTITION
    with RawClient(three_nodes, 3) as client:
        assert client.produce("t", 0, batch_of([b"a"])).error_code == 0


def test_epochs_are_checked_and_their_ends_known(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1)
    with RawClient(three_nodes, 1) as client:
        client.produce("t", 0, batch_of([b"a", b"b"]))
    three_nodes.move_leader("t", 0, 2)

    def ask(current: int, epoch: int) -> tuple[int, int, int]:
        reply = client.call(OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[
            OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)])]))
        part = reply.topics[0].partitions[0]
        return part.error_code, part.leader_epoch, part.end_offset

    with RawClient(three_nodes, 2) as client:
        client.produce("t", 0, batch_of([b"c"]))
        assert ask(1, 0) == (0, 0, 2)
        assert ask(1, 1) == (0, 1, 3)
        assert ask(1, 7) == (0, -1, -1)
        assert ask(0, 0)[0] == KafkaError.FENCED_LEADER_EPOCH
        assert ask(5, 0)[0] == KafkaError.UNKNOWN_LEADER_EPOCH


def test_offsets_are_listed_with_the_epoch_of_the_record_that_is_there(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1)
    tp = TopicPartition("t", 0)
    times = {"begin": OffsetSpec.earliest(), "first": OffsetSpec.for_timestamp(0), "end": OffsetSpec.latest(),
             "newest": OffsetSpec.max_timestamp()}

    def listed(admin: AdminClient) -> dict[str, tuple[int, int | None]]:
        found = {name: admin.list_offsets({tp: spec})[tp].result(10) for name, spec in times.items()}
        return {name: (each.offset, each.leader_epoch) for name, each in found.items()}

    with AdminClient({"bootstrap.servers": three_nodes.bootstrap_servers}) as admin:
        with RawClient(three_nodes, 1) as client:
            client.produce("t", 0, batch_of([b"a", b"b"], timestamp_ms=5))
        three_nodes.move_leader("t", 0, 2)
        assert listed(admin) == {"begin": (0, 0), "first": (0, 0), "end": (2, 1), "newest": (0, 0)}
        with RawClient(three_nodes, 2) as client:
            client.produce("t", 0, batch_of([b"c"], timestamp_ms=9))
        assert listed(admin) == {"begin": (0, 0), "first": (0, 0), "end": (3, 1), "newest": (2, 1)}
        three_nodes.move_leader("t", 0, 3)
        admin.delete_records([TopicPartition("t", 0, 3)])[TopicPartition("t", 0, 3)].result(10)
        assert listed(admin)["begin"] == (3, 2)


def test_a_stopped_node_hands_over_and_leads_again_when_others_go(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 3)
    three_nodes.stop_node(1)
    reply = metadata_of(three_nodes, "t", 2)
    assert {each.leader_id for each in reply.topics[0].partitions} == {2, 3}
    assert reply.topics[0].partitions[0].offline_replicas == [1]
    assert [each.node_id for each in reply.brokers] == [2, 3]
    three_nodes.start_node(1)
    three_nodes.stop_node(2)
    three_nodes.stop_node(3)
    assert [three_nodes.leader("t", index) for index in range(3)] == [1, 1, 1]


def test_a_partition_without_a_living_replica_has_no_leader(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1, replication_factor=1)
    three_nodes.stop_node(1)
    part = metadata_of(three_nodes, "t", 2).topics[0].partitions[0]
    assert (part.error_code, part.leader_id) == (KafkaError.LEADER_NOT_AVAILABLE, -1)


def test_a_long_poll_ends_when_the_leader_moves(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1)
    with RawClient(three_nodes, 1) as client:
        version = client.send(FetchRequest(max_wait_ms=9000, min_bytes=1, topics=[FetchTopic(
            topic="t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)])]), 12)
        time.sleep(0.05)
        three_nodes.move_leader("t", 0, 2)
        start = time.monotonic()
        frame = client.read_frame()
        assert time.monotonic() - start < 5
        _, reply = decode_response(FetchRequest, version, frame)
        assert isinstance(reply, FetchResponse)
        assert reply.responses[0].partitions[0].error_code == KafkaError.NOT_LEADER_FOR_PARTITION


def test_a_foreign_producer_loses_and_repeats_nothing_through_faults(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1)
    for after, action in enumerate([Action.LOSE_REPLY, Action.DROP, Action.CUT, Action.LOSE_REPLY]):
        three_nodes.add_fault(Fault(action=action, request=ProduceRequest, after=after * 2))
    producer = confluent_kafka.Producer({
        "bootstrap.servers": three_nodes.bootstrap_servers, "enable.idempotence": True, "batch.num.messages": 10,
        "retry.backoff.ms": 20, "retry.backoff.max.ms": 50, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50,
        "log_level": 0})
    for number in range(500):
        producer.produce("t", str(number))
        if number == 250:
            producer.poll(0.1)
            three_nodes.move_leader("t", 0, 2)
    assert producer.flush(20) == 0
    assert three_nodes.end_offsets("t") == [500]
