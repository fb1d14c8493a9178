"""For a fault that answers with an error: the reply to any request in which every part carries one error code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.wire.messages import admin_topics, fetch, groups, metadata, offsets, produce, session
from headrace.wire.schema import Request, Response

__all__ = ["refusal_of"]


def refusal_of(request: Request, code: int) -> Response:
    """The reply to `request` that says `code` in every place that can.

    Raises:
        KeyError: no fault of this kind is foreseen for the request.
    """
    return _REFUSALS[type(request)](request, code)


def _produce(request: produce.ProduceRequest, code: int) -> Response:
    return produce.ProduceResponse(responses=[
        produce.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[
            produce.PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1, record_errors=[])
            for part in topic.partition_data])
        for topic in request.topic_data])


def _fetch(request: fetch.FetchRequest, code: int) -> Response:
    return fetch.FetchResponse(error_code=0, responses=[
        fetch.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[
            fetch.PartitionData(partition_index=part.partition, error_code=code, high_watermark=-1,
                                aborted_transactions=None, records=b"")
            for part in topic.partitions])
        for topic in request.topics])


def _metadata(request: metadata.MetadataRequest, code: int) -> Response:
    return metadata.MetadataResponse(brokers=[], error_code=code, topics=[
        metadata.MetadataResponseTopic(error_code=code, name=topic.name, topic_id=topic.topic_id, partitions=[])
        for topic in request.topics or []])


def _list_offsets(request: offsets.ListOffsetsRequest, code: int) -> Response:
    return offsets.ListOffsetsResponse(topics=[
        offsets.ListOffsetsTopicResponse(name=topic.name, partitions=[
            offsets.ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code,
                                                 old_style_offsets=[]) for part in topic.partitions])
        for topic in request.topics])


def _offset_commit(request: offsets.OffsetCommitRequest, code: int) -> Response:
    return offsets.OffsetCommitResponse(topics=[
        offsets.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=[
            offsets.OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions])
        for topic in request.topics])


def _offset_fetch(request: offsets.OffsetFetchRequest, code: int) -> Response:
    return offsets.OffsetFetchResponse(error_code=code, topics=[], groups=[
        offsets.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code, topics=[])
        for group in request.groups])


def _find_coordinator(request: groups.FindCoordinatorRequest, code: int) -> Response:
    return groups.FindCoordinatorResponse(error_code=code, node_id=-1, host="", port=-1, coordinators=[
        groups.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None)
        for key in request.coordinator_keys])


def _join(request: groups.JoinGroupRequest, code: int) -> Response:
    return groups.JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=request.member_id,
                                    members=[])


def _create_topics(request: admin_topics.CreateTopicsRequest, code: int) -> Response:
    return admin_topics.CreateTopicsResponse(topics=[
        admin_topics.CreatableTopicResult(name=topic.name, error_code=code, error_message=None, configs=[])
        for topic in request.topics])


def _epochs(request: fetch.OffsetForLeaderEpochRequest, code: int) -> Response:
    return fetch.OffsetForLeaderEpochResponse(topics=[
        fetch.OffsetForLeaderTopicResult(topic=topic.topic, partitions=[
            fetch.EpochEndOffset(error_code=code, partition=part.partition)
            for part in topic.partitions])
        for topic in request.topics])


_REFUSALS: dict[type[Request], Callable[[Any, int], Response]] = {
    session.ApiVersionsRequest: lambda _, code: session.ApiVersionsResponse(error_code=code, api_keys=[]),
    metadata.MetadataRequest: _metadata,
    produce.ProduceRequest: _produce,
    produce.InitProducerIdRequest: lambda _, code: produce.InitProducerIdResponse(
        error_code=code, producer_id=-1, producer_epoch=-1),
    fetch.FetchRequest: _fetch,
    fetch.OffsetForLeaderEpochRequest: _epochs,
    offsets.ListOffsetsRequest: _list_offsets,
    offsets.OffsetCommitRequest: _offset_commit,
    offsets.OffsetFetchRequest: _offset_fetch,
    groups.FindCoordinatorRequest: _find_coordinator,
    groups.JoinGroupRequest: _join,
    groups.SyncGroupRequest: lambda _, code: groups.SyncGroupResponse(error_code=code, assignment=b""),
    groups.HeartbeatRequest: lambda _, code: groups.HeartbeatResponse(error_code=code),
    groups.LeaveGroupRequest: lambda _, code: groups.LeaveGroupResponse(error_code=code, members=[]),
    groups.ListGroupsRequest: lambda _, code: groups.ListGroupsResponse(error_code=code, groups=[]),
    admin_topics.CreateTopicsRequest: _create_topics,
}
