"""Calls about share groups: listed, described, moved, forgotten and deleted."""

from __future__ import annotations

import pytest

from headrace import KafkaError, KafkaException, Producer, ShareConsumer, TopicPartition
from headrace.admin import AdminClient, ListedShareGroup, SharePartitionOffset
from headrace.broker.faults import Action, Fault
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.groups.classic_groups import ListGroupsRequest

PATIENCE_S = 10
T0 = TopicPartition("t", 0)


def assigned(admin: AdminClient) -> list[TopicPartition]:
    """What the members of the group have; nothing before there is one."""
    described = admin.describe_share_groups(["g"])["g"]
    if described.exception(PATIENCE_S) is not None:
        return []
    return [tp for member in described.result().members for tp in member.assignment.topic_partitions]


def test_a_share_group_from_its_first_member_to_its_end() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with Producer(servers) as producer:
            for number in range(5):
                producer.produce("t", str(number).encode())
        with AdminClient(servers) as admin:
            with ShareConsumer({**servers, "group.id": "g"}) as consumer:
                consumer.subscribe(["t"])
                while assigned(admin) != [T0]:
                    consumer.poll(0.1)
                assert admin.list_share_groups().result(PATIENCE_S) == [ListedShareGroup("g", "Stable")]
                with pytest.raises(KafkaException) as refused:
                    admin.alter_share_group_offsets("g", {T0: 0})[T0].result(PATIENCE_S)
                assert refused.value.error == KafkaError.NON_EMPTY_GROUP
            assert admin.alter_share_group_offsets("g", {T0: 2})[T0].result(PATIENCE_S) is None
            begin = admin.list_share_group_offsets("g", [T0]).result(PATIENCE_S)[T0]
            assert isinstance(begin, SharePartitionOffset)
            assert begin.start_offset == 2
            assert admin.delete_share_group_offsets("g", ["t"])["t"].result(PATIENCE_S) is None
            assert admin.delete_share_groups(["g"])["g"].result(PATIENCE_S) is None
            assert admin.list_share_groups().result(PATIENCE_S) == []


def test_offsets_are_moved_within_the_log_and_forgotten_for_one_topic() -> None:
    with EmbeddedBroker(topics={"t": 1, "u": 1}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with Producer(servers) as producer:
            for number in range(5):
                producer.produce("t", str(number).encode())
        u0 = TopicPartition("u", 0)
        with AdminClient(servers) as admin:
            def begins() -> list[int]:
                found = admin.list_share_group_offsets("g", [T0, u0]).result(PATIENCE_S)
                return [each.start_offset for each in (found[T0], found[u0]) if isinstance(each, SharePartitionOffset)]

            moved = admin.alter_share_group_offsets("g", {T0: 99, u0: 0, TopicPartition("t", 1): 0})
            assert [future.exception(PATIENCE_S) is None for future in moved.values()] == [True, True, False]
            assert begins() == [5, 0]
            admin.delete_share_group_offsets("g", ["u"])["u"].result(PATIENCE_S)
            assert begins() == [5, -1]


def test_a_broker_that_does_not_list_its_groups_is_an_error() -> None:
    with EmbeddedBroker() as broker, AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        broker.add_fault(Fault(action=Action.ERROR, request=ListGroupsRequest,
                               error_code=KafkaError.CLUSTER_AUTHORIZATION_FAILED, times=None))
        with pytest.raises(KafkaException) as refused:
            admin.list_share_groups().result(PATIENCE_S)
        assert refused.value.error == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_a_share_group_that_is_not_there_is_an_error() -> None:
    with EmbeddedBroker() as broker, AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        with pytest.raises(KafkaException) as missing:
            admin.describe_share_groups(["nobody"])["nobody"].result(PATIENCE_S)
        assert missing.value.error == KafkaError.GROUP_ID_NOT_FOUND
        with pytest.raises(TypeError):
            admin.alter_share_group_offsets("g", {T0: "2"})  # type: ignore[dict-item]
