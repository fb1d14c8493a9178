"""New, growing, deleted and described topics as values: requests survive the wire, replies are read into results."""

from uuid import UUID

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import topic_requests as admin
from headrace.types.acls import AclOperation
from headrace.types.admin import NewPartitions, NewTopic, TopicDescription
from headrace.types.records import Uuid
from headrace.wire.messages.admin.topics import CreatableTopicResult, CreateTopicsResponse
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.travelling import travels


def test_new_topics_are_written_with_counts_or_with_an_assignment() -> None:
    topics = [NewTopic("a", 3, 2, config={"retention.ms": 5, "flag": True}),
              NewTopic("b", replica_assignment=[[1], [2]])]
    request = travels(admin.create_topics(topics, 1.5, True), 1, 7)
    counted, assigned = request.topics
    assert (counted.num_partitions, counted.replication_factor) == (3, 2)
    assert [(config.name, config.value) for config in counted.configs] == [("retention.ms", "5"), ("flag", "true")]
    assert (assigned.num_partitions, assigned.replication_factor) == (-1, -1)
    assert [(a.partition_index, a.broker_ids) for a in assigned.assignments] == [(0, [1]), (1, [2])]
    assert (request.timeout_ms, request.validate_only) == (1500, True)


def test_deletions_go_by_name() -> None:
    assert travels(admin.delete_topics(["a", "b"], 1.0), 0, 5).topic_names == ["a", "b"]


def test_partitions_are_added_where_the_broker_likes_or_as_assigned() -> None:
    request = travels(admin.create_partitions([NewPartitions("a", 4), NewPartitions("b", 2, [[1]])], 1.0, False), 0, 3)
    assert [(t.name, t.count, t.assignments and t.assignments[0].broker_ids) for t in request.topics] == [
        ("a", 4, None), ("b", 2, [1])]


def test_a_result_names_the_topic_and_keeps_the_brokers_words() -> None:
    reply = CreateTopicsResponse(topics=[CreatableTopicResult(name="a"), CreatableTopicResult(
        name="b", error_code=36, error_message="Topic 'b' already exists.")])
    results = admin.read_created(reply)
    assert results["a"] is None
    error = results["b"]
    assert error == KafkaError.TOPIC_ALREADY_EXISTS
    assert error is not None
    assert error.str() == "topic \"b\": Topic 'b' already exists."


def test_work_that_goes_on_behind_the_answer_is_an_error_only_to_who_waits_for_it() -> None:
    reply = CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_code=KafkaError.REQUEST_TIMED_OUT),
                                         CreatableTopicResult(name="b", error_code=36), CreatableTopicResult(name="c")])
    assert {name: error and error.code() for name, error in admin.read_created(reply).items()} == {
        "a": KafkaError.REQUEST_TIMED_OUT, "b": KafkaError.TOPIC_ALREADY_EXISTS, "c": None}
    assert {name: error and error.code() for name, error in admin.begun(admin.read_created)(reply).items()} == {
        "a": None, "b": KafkaError.TOPIC_ALREADY_EXISTS, "c": None}


def test_a_right_that_is_missing_is_named_with_the_topic() -> None:
    reply = CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_code=29, error_message="Refused.")])
    error = admin.read_created(reply)["a"]
    assert error is not None
    assert error.str() == 'topic "a": Refused; this needs CREATE on topic "a" or on the cluster'


def test_a_described_topic_has_its_id_its_brokers_in_order_and_what_may_be_done() -> None:
    assert travels(admin.describe_topics(["a"], True), 9, 12).include_topic_authorized_operations
    reply = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="one", port=1), MetadataResponseBroker(node_id=2, host="two",
                                                                                             port=2)],
        topics=[
            MetadataResponseTopic(name="a", topic_id=UUID(int=2**64 + 5), topic_authorized_operations=1 << 3 | 1 << 8,
                                  partitions=[
                MetadataResponsePartition(partition_index=1, leader_id=-1, replica_nodes=[7], isr_nodes=[]),
                MetadataResponsePartition(partition_index=0, leader_id=2, replica_nodes=[2, 1], isr_nodes=[2])]),
            MetadataResponseTopic(name="b", error_code=3)])
    found = admin.read_described_topics(reply)
    topic = found["a"]
    assert isinstance(topic, TopicDescription)
    assert topic.topic_id == Uuid(1, 5)
    assert topic.authorized_operations == [AclOperation.READ, AclOperation.DESCRIBE]
    led, orphaned = topic.partitions
    assert (led.id, led.leader and led.leader.host, [n.id for n in led.replicas], [n.id for n in led.isr]) == (
        0, "two", [2, 1], [2])
    assert (orphaned.id, orphaned.leader, orphaned.replicas[0].id) == (1, None, 7)
    assert found["b"] == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize(("topic", "complete"), [
    (NewTopic("a", 2, 1), True), (NewTopic("a", replica_assignment=[[1]]), True), (NewTopic("a", 2), False),
    (NewTopic("a", replication_factor=1), False), (NewTopic("a"), False)])
def test_brokers_before_kafka_2_4_have_to_be_told_both_counts(topic: NewTopic, complete: bool) -> None:
    request = admin.create_topics([NewTopic("b", 1, 1), topic], 1.0, False)
    assert admin.create_topics_for_version(request, 4) is request
    if complete:
        assert admin.create_topics_for_version(request, 3) is request
        return
    with pytest.raises(KafkaException, match=r'topic "a": the brokers are older than Kafka 2\.4 .* both') as caught:
        admin.create_topics_for_version(request, 3)
    assert caught.value.error.code() == KafkaError._UNSUPPORTED_FEATURE
