"""DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets: where share groups begin (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from headrace.broker.apis.share_groups import check_name_is_free
from headrace.broker.cluster import ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.shares.share_partitions import ShareKey
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.groups.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["SERVES", "alter_share_group_offsets", "delete_share_group_offsets", "describe_share_group_offsets"]

_UNKNOWN = -1


def describe_share_group_offsets(
    call: ApiCall, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """The first offset that is not done, as it was written down last, and how many records are left."""
    return DescribeShareGroupOffsetsResponse(groups=[_described(call, each) for each in request.groups])


def _described(call: ApiCall, wanted: DescribeShareGroupOffsetsRequestGroup) -> DescribeShareGroupOffsetsResponseGroup:
    found = DescribeShareGroupOffsetsResponseGroup(group_id=wanted.group_id, topics=[], error_code=0)
    try:
        call.check_coordinator(wanted.group_id)
    except ApiError as error:
        found.error_code, found.error_message = error.code, error.reason
        return found
    catalog = call.cluster.catalog
    asked: dict[str, list[int]] = {}
    if wanted.topics is None:
        for key in call.cluster.shares.of_group(wanted.group_id):
            asked.setdefault(catalog.by_id[key.topic_id].name, []).append(key.partition)
    else:
        asked = {each.topic_name: each.partitions for each in wanted.topics}
    for name, numbers in asked.items():
        topic = catalog.topics.get(name)
        found.topics.append(DescribeShareGroupOffsetsResponseTopic(
            topic_name=name, topic_id=ZERO_UUID if topic is None else topic.id,
            partitions=[_described_partition(call, wanted.group_id, topic, index) for index in numbers]))
    return found


def _described_partition(
    call: ApiCall, group_id: str, topic: Topic | None, index: int
) -> DescribeShareGroupOffsetsResponsePartition:
    found = DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=_UNKNOWN, leader_epoch=0,
                                                       error_code=0)
    share = None if topic is None else call.cluster.shares.get(ShareKey(group_id, topic.id, index))
    if topic is not None and share is not None and share.written_start >= 0:
        found.start_offset = share.written_start
        found.lag = topic.partitions[index].log.end_offset - share.records.start_offset - share.records.done
    return found


def alter_share_group_offsets(
    call: ApiCall, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Let a group without members go on from other offsets."""
    try:
        _check_empty(call, request.group_id)
    except ApiError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.reason, responses=[])
    return AlterShareGroupOffsetsResponse(error_code=0, responses=[
        AlterShareGroupOffsetsResponseTopic(
            topic_name=wanted.topic_name, topic_id=_topic_id(call, wanted.topic_name),
            partitions=list(_altered(call, request.group_id, wanted)))
        for wanted in request.topics])


def _check_empty(call: ApiCall, group_id: str) -> None:
    """Whether a share group has no members, or there is none of this name.

    Raises:
        ApiError: neither is so.
    """
    if not group_id:
        raise ApiError(KafkaError.INVALID_GROUP_ID)
    call.check_coordinator(group_id)
    check_name_is_free(call, group_id)
    group = call.cluster.share_groups.get(group_id)
    if group is not None and group.members:
        raise ApiError(KafkaError.NON_EMPTY_GROUP)


def _topic_id(call: ApiCall, name: str) -> UUID:
    topic = call.cluster.catalog.topics.get(name)
    return ZERO_UUID if topic is None else topic.id


def _altered(
    call: ApiCall, group_id: str, wanted: AlterShareGroupOffsetsRequestTopic
) -> Iterator[AlterShareGroupOffsetsResponsePartition]:
    topic = call.cluster.catalog.topics.get(wanted.topic_name)
    for part in wanted.partitions:
        answer = AlterShareGroupOffsetsResponsePartition(partition_index=part.partition_index, error_code=0)
        if topic is None or not 0 <= part.partition_index < len(topic.partitions):
            answer.error_code = KafkaError.UNKNOWN_TOPIC_OR_PART
            answer.error_message = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART).str()
        else:
            log = topic.partitions[part.partition_index].log
            call.cluster.shares.begin_at(ShareKey(group_id, topic.id, part.partition_index),
                                         min(max(part.start_offset, log.start_offset), log.end_offset))
        yield answer


def delete_share_group_offsets(
    call: ApiCall, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Let a group without members forget topics."""
    try:
        _check_empty(call, request.group_id)
    except ApiError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.reason, responses=[])
    shares = call.cluster.shares
    found: list[DeleteShareGroupOffsetsResponseTopic] = []
    for wanted in request.topics:
        topic_id = _topic_id(call, wanted.topic_name)
        shares.forget(key for key in shares.of_group(request.group_id) if key.topic_id == topic_id)
        code = KafkaError.UNKNOWN_TOPIC_OR_PART if topic_id == ZERO_UUID else 0
        found.append(DeleteShareGroupOffsetsResponseTopic(
            topic_name=wanted.topic_name, topic_id=topic_id, error_code=code,
            error_message=KafkaError(code).str() if code else None))
    return DeleteShareGroupOffsetsResponse(error_code=0, responses=found)


SERVES = (
    ServedApi(DescribeShareGroupOffsetsRequest, describe_share_group_offsets,
              "Partitions that are not there are unknown to the group, as any other; Kafka does not answer then."),
    ServedApi(AlterShareGroupOffsetsRequest, alter_share_group_offsets,
              "Offsets are brought into the range of the log."),
    ServedApi(DeleteShareGroupOffsetsRequest, delete_share_group_offsets),
)
