"""What the tests of share groups share: groups that begin at the first record, and members that read for a while."""

import time
from typing import Any

from headrace import Producer
from headrace.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from headrace.wire.messages.groups.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from tests.support.raw_client import RawClient
from tools.kafka import KafkaCluster


def settings(cluster: KafkaCluster, group: str, **more: Any) -> dict[str, Any]:
    """Properties of a member; explicit acknowledgement is `mode="explicit"`."""
    mode = more.pop("mode", "implicit")
    return {**cluster.connection, "group.id": group, "share.acknowledgement.mode": mode, **more}


def prepare(cluster: KafkaCluster, group: str, **properties: str) -> None:
    """Let a group begin at the first record; more properties of the group with "_" for "."."""
    wanted = {"share.auto.offset.reset": "earliest",
              **{f"share.{name.replace('_', '.')}": value for name, value in properties.items()}}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()]
    with AdminClient(cluster.connection) as admin:
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
        for done in admin.incremental_alter_configs([resource]).values():
            done.result(30)


def fill(cluster: KafkaCluster, topic: str, count: int, partitions: int = 3, first: int = 0) -> None:
    """Write numbers, partition by partition in turn."""
    with Producer(cluster.connection) as producer:
        for i in range(first, first + count):
            producer.produce(topic, str(i).encode(), partition=i % partitions)
        assert producer.flush(30) == 0


def take(consumer: Any, expected: int, timeout_s: float = 30.0) -> list[Any]:
    """What a member reads until it has so many records, all of which it holds. None of them is an error."""
    found: list[Any] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < expected:
        assert time.monotonic() < deadline, f"{len(found)} records of {expected}"
        messages = list(consumer.poll(0.5))
        assert [message.error() for message in messages if message.error() is not None] == []
        found += messages
    return found


def places(messages: Any) -> set[tuple[Any, Any]]:
    """Partition and offset of each message."""
    return {(message.partition(), message.offset()) for message in messages}


def start_offsets(cluster: KafkaCluster, group: str) -> dict[int, int]:
    """The first offset of each partition that is not done with, as the brokers say."""
    asked = DescribeShareGroupOffsetsRequest(groups=[
        DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    found: dict[int, int] = {}
    for node_id in cluster.nodes:  # one of them is the coordinator
        with RawClient(cluster.bootstrap_servers, node_id) as client:
            for each in client.call(asked, 0).groups:
                for topic in each.topics:
                    found.update({part.partition_index: part.start_offset for part in topic.partitions})
    return found
