"""Requests about share groups and where they begin, and what their replies mean: pure functions.

Read next: `client.admin.share_group_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import by_topic, failure, key_of, numbers_by_topic, operations
from headrace.machines.admin.group_requests import partitions_of
from headrace.types.cluster import Node
from headrace.types.groups import MemberDescription, ShareGroupDescription, SharePartitionOffset
from headrace.types.records import TopicPartition
from headrace.wire.messages.groups import share_groups as wire

__all__ = [
    "alter_share_offsets",
    "delete_share_offsets",
    "describe_share_groups",
    "list_share_offsets",
    "read_altered_share_offsets",
    "read_deleted_share_offsets",
    "read_share_offsets",
    "share_description",
]


def describe_share_groups(ids: Sequence[str], authorized_operations: bool) -> wire.ShareGroupDescribeRequest:
    """Ask a coordinator for share groups."""
    return wire.ShareGroupDescribeRequest(group_ids=list(ids), include_authorized_operations=authorized_operations)


def share_description(
    group: wire.DescribedShareGroup, coordinator: Node | None
) -> ShareGroupDescription | KafkaError:
    """What a reply says of one group."""
    members = [MemberDescription(m.member_id, m.client_id, m.client_host, partitions_of(m.assignment))
               for m in group.members]
    return _ended(group.group_id, group.error_code, group.error_message, "DESCRIBE") or ShareGroupDescription(
        group.group_id, members, group.assignor_name, group.group_state, coordinator,
        operations(group.authorized_operations))


def list_share_offsets(
    group_id: str, partitions: Iterable[TopicPartition] | None
) -> wire.DescribeShareGroupOffsetsRequest:
    """Ask where a share group's records begin; without partitions, of all that it has read."""
    topics = None if partitions is None else [
        wire.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()]
    return wire.DescribeShareGroupOffsetsRequest(groups=[
        wire.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)])


def read_share_offsets(
    reply: wire.DescribeShareGroupOffsetsResponse, group_id: str
) -> dict[TopicPartition, SharePartitionOffset | KafkaError] | KafkaError:
    """The begin of each partition, or the error of the group."""
    found: dict[TopicPartition, SharePartitionOffset | KafkaError] = {}
    for group in reply.groups:
        error = _ended(group_id, group.error_code, group.error_message, "DESCRIBE")
        if error is not None:
            return error
        for topic in group.topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.topic_name, part.partition_index)
                found[tp] = failure(key_of(tp), part.error_code, part.error_message) or SharePartitionOffset(
                    part.start_offset, part.lag)
    return found


def alter_share_offsets(group_id: str, offsets: Mapping[TopicPartition, int]) -> wire.AlterShareGroupOffsetsRequest:
    """Ask to begin elsewhere; the group must have no members."""
    return wire.AlterShareGroupOffsetsRequest(group_id=group_id, topics=[
        wire.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[
            wire.AlterShareGroupOffsetsRequestPartition(partition_index=tp.partition, start_offset=offset)
            for tp, offset in partitions])
        for topic, partitions in by_topic(offsets).items()])


def read_altered_share_offsets(
    reply: wire.AlterShareGroupOffsetsResponse, group_id: str
) -> dict[TopicPartition, KafkaError | None] | KafkaError:
    """How it ended for each partition, or the error of the group."""
    return _ended(group_id, reply.error_code, reply.error_message, "READ") or {
        TopicPartition(topic.topic_name, part.partition_index):
            failure(f"{topic.topic_name}[{part.partition_index}]", part.error_code, part.error_message,
                    f'READ on topic "{topic.topic_name}"')
        for topic in reply.responses for part in topic.partitions}


def delete_share_offsets(group_id: str, topics: Iterable[str]) -> wire.DeleteShareGroupOffsetsRequest:
    """Ask to forget topics; the group must have no members."""
    return wire.DeleteShareGroupOffsetsRequest(group_id=group_id, topics=[
        wire.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics])


def read_deleted_share_offsets(
    reply: wire.DeleteShareGroupOffsetsResponse, group_id: str
) -> dict[str, KafkaError | None] | KafkaError:
    """How it ended for each topic, or the error of the group."""
    return _ended(group_id, reply.error_code, reply.error_message, "DELETE") or {
        topic.topic_name: failure(f'topic "{topic.topic_name}"', topic.error_code, topic.error_message,
                                  f'READ on topic "{topic.topic_name}"')
        for topic in reply.responses}


def _ended(group_id: str, code: int, message: str | None, operation: str) -> KafkaError | None:
    return failure(f'group "{group_id}"', code, message, f'{operation} on group "{group_id}"')
