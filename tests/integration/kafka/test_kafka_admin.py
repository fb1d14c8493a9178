"""Administration of a real Kafka."""

from collections.abc import Iterator

import pytest

from headrace import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from headrace.admin import AdminClient, ConfigResource, IsolationLevel, NewPartitions, NewTopic, OffsetReset, OffsetSpec
from tests.support.real_kafka import until
from tools.kafka import KafkaCluster


@pytest.fixture
def admin(kafka: KafkaCluster) -> Iterator[AdminClient]:
    with AdminClient(kafka.connection) as client:
        yield client


def test_a_topic_is_made_grown_and_deleted(kafka: KafkaCluster, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("made", 2, len(kafka.nodes), config={"retention.ms": "60000"})])["made"].result(10)
    admin.create_partitions([NewPartitions("made", 5)])["made"].result(10)
    # The controller has done it when it answers; the broker that is asked next hears of it a little later.
    until(lambda: sorted(admin.list_topics("made", 10).topics["made"].partitions) == [0, 1, 2, 3, 4])
    admin.delete_topics(["made"])["made"].result(10)
    until(lambda: "made" not in admin.list_topics(timeout=10).topics)


def test_making_a_topic_twice_says_that_it_exists(admin: AdminClient, topic: str) -> None:
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert topic in str(caught.value)


def test_deleting_a_topic_that_is_not_there_says_so(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as caught:
        admin.delete_topics(["nowhere"])["nowhere"].result(10)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_config_is_altered_and_read_back(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "123456"})
    with pytest.deprecated_call(match="incremental_alter_configs"):
        admin.alter_configs([resource])[resource].result(10)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    # As above: another broker than the one that did it may be asked.
    until(lambda: admin.describe_configs([asked])[asked].result(10)["retention.ms"].value == "123456")
    assert not admin.describe_configs([asked])[asked].result(10)["retention.ms"].is_default


def test_the_cluster_shows_its_brokers(kafka: KafkaCluster, admin: AdminClient) -> None:
    cluster = admin.list_topics(timeout=10)
    assert sorted(cluster.brokers) == list(kafka.nodes)
    places = [f"{cluster.brokers[node_id].host}:{cluster.brokers[node_id].port}" for node_id in kafka.nodes]
    assert ",".join(places) == kafka.connection["bootstrap.servers"]
    assert cluster.controller_id in kafka.nodes


def test_partitions_move_between_brokers(kafka: KafkaCluster, admin: AdminClient) -> None:
    first, last = min(kafka.nodes), max(kafka.nodes)
    where = TopicPartition("moves", 0)
    admin.create_topics([NewTopic("moves", replica_assignment=[[first]])])["moves"].result(10)
    until(lambda: leader_of(admin, "moves") == first)
    admin.alter_partition_reassignments({where: [last]})[where].result(10)
    until(lambda: admin.list_partition_reassignments([where]).result(10) == {} and leader_of(admin, "moves") == last)
    found = admin.describe_log_dirs(list(kafka.nodes), [where])
    until(lambda: holders(admin, kafka, where) == [last])
    assert set(found) == set(kafka.nodes)
    elected = admin.elect_leaders(ElectionType.PREFERRED, [where]).result(10)[where]
    assert elected is not None
    assert elected.error == KafkaError.ELECTION_NOT_NEEDED


def leader_of(admin: AdminClient, topic: str) -> int | None:
    described = admin.describe_topics(TopicCollection([topic]))[topic]
    if described.exception(10) is not None:
        return None
    leader = described.result().partitions[0].leader
    return None if leader is None else leader.id


def holders(admin: AdminClient, kafka: KafkaCluster, where: TopicPartition) -> list[int]:
    """The brokers that have a replica."""
    found = admin.describe_log_dirs(list(kafka.nodes), [where])
    return sorted(node for node, future in found.items() for directory in future.result(10).values()
                  if not isinstance(directory, KafkaError) and where in directory.replicas)


def test_the_controllers_are_described(kafka: KafkaCluster, admin: AdminClient) -> None:
    found = admin.describe_metadata_quorum().result(10)
    assert found.leader_id in kafka.nodes
    assert sorted(voter.replica_id for voter in found.voters) == list(kafka.nodes)
    assert found.high_watermark > 0


def test_groups_of_all_coordinators_are_found_reset_and_deleted(kafka: KafkaCluster, admin: AdminClient,
                                                                topic: str) -> None:
    with Producer(kafka.connection) as producer:
        for number in range(10):
            producer.produce(topic, str(number), partition=0, timestamp=1000 + number)
    where = TopicPartition(topic, 0)
    groups = [f"admin-{number}-{topic}" for number in range(8)]
    for group in groups:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 5)])
        until(lambda wanted=wanted: all(
            tp.error is None for future in admin.alter_consumer_group_offsets([wanted]).values()
            for tp in future.result(10).topic_partitions))
    listed = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(10)
    assert set(groups) <= {each.group_id for each in listed.valid or ()}
    assert listed.errors == []
    described = admin.describe_consumer_groups(groups)
    assert {future.result(10).state for future in described.values()} == {ConsumerGroupState.EMPTY}
    reset = admin.reset_consumer_group_offsets(groups[0], to=OffsetSpec.for_timestamp(1003)).result(10)
    assert reset == {where: OffsetReset(5, 3)}
    assert admin.reset_consumer_group_offsets(groups[0], shift_by=-1, dry_run=True).result(10) == {
        where: OffsetReset(3, 2)}
    assert [future.exception(10) for future in admin.delete_consumer_groups(groups).values()] == [None] * 8


def test_a_transaction_is_found_ended_in_a_partition_and_its_producer_shut_out(
    kafka: KafkaCluster, admin: AdminClient, topic: str
) -> None:
    def stable() -> int:
        found = admin.list_offsets({where: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)
        return found[where].result(10).offset

    where, name = TopicPartition(topic, 0), f"id-of-{topic}"
    with Producer({**kafka.connection, "transactional.id": name}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, b"v", partition=0)
        producer.flush(10)
        assert name in {each.transactional_id for each in admin.list_transactions(states=["Ongoing"]).result(10)}
        described = admin.describe_transactions([name])[name].result(10)
        assert (described.state, described.partitions) == ("Ongoing", {where})
        (known,) = admin.describe_producers([where])[where].result(10)
        assert (known.producer_id, known.transaction_start_offset) == (described.producer_id, 0)
        assert stable() == 0
        admin.abort_transaction(where, 0).result(10)
        until(lambda: stable() == 2)  # behind the record and the marker
        assert admin.fence_producers([name])[name].result(10) is None
        with pytest.raises(KafkaException):
            producer.commit_transaction(10)


def test_a_partition_number_beyond_the_topic_is_refused(kafka: KafkaCluster, topic: str) -> None:
    errors: list[KafkaError | None] = []
    with Producer(kafka.connection) as producer:
        try:
            producer.produce(topic, b"v", partition=99, on_delivery=lambda error, _m: errors.append(error))
        except KafkaException as error:
            errors.append(error.args[0])
        producer.flush(10)
    assert [error is not None and error.code() for error in errors] == [KafkaError._UNKNOWN_PARTITION]
