"""For a fault that answers with an error: the reply to any request in which every part carries one error code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.wire.messages.admin import topics as admin_topics
from headrace.wire.messages.cluster import metadata, session
from headrace.wire.messages.consumer import fetch, offsets
from headrace.wire.messages.groups import classic_groups as groups
from headrace.wire.messages.producer import produce, transactions
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


def _add_partitions(request: transactions.AddPartitionsToTxnRequest, code: int) -> Response:
    def results(topics: list[transactions.AddPartitionsToTxnTopic]) -> list[transactions.AddPartitionsToTxnTopicResult]:
        return [transactions.AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=[
            transactions.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
            for index in topic.partitions]) for topic in topics]

    return transactions.AddPartitionsToTxnResponse(
        error_code=code, results_by_topic_v3_and_below=results(request.v3_and_below_topics),
        results_by_transaction=[transactions.AddPartitionsToTxnResult(
            transactional_id=each.transactional_id, topic_results=results(each.topics))
            for each in request.transactions])


def _txn_offset_commit(request: transactions.TxnOffsetCommitRequest, code: int) -> Response:
    return transactions.TxnOffsetCommitResponse(topics=[
        transactions.TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=[
            transactions.TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions])
        for topic in request.topics])


def _markers(request: transactions.WriteTxnMarkersRequest, code: int) -> Response:
    return transactions.WriteTxnMarkersResponse(markers=[
        transactions.WritableTxnMarkerResult(producer_id=each.producer_id, topics=[
            transactions.WritableTxnMarkerTopicResult(name=topic.name, partitions=[
                transactions.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                for index in topic.partition_indexes])
            for topic in each.topics])
        for each in request.markers])


def _describe_transactions(request: transactions.DescribeTransactionsRequest, code: int) -> Response:
    return transactions.DescribeTransactionsResponse(transaction_states=[
        transactions.DescribedTransaction(
            error_code=code, transactional_id=name, transaction_state="", transaction_timeout_ms=0,
            transaction_start_time_ms=0, producer_id=0, producer_epoch=0, topics=[])
        for name in request.transactional_ids])


def _describe_producers(request: transactions.DescribeProducersRequest, code: int) -> Response:
    return transactions.DescribeProducersResponse(topics=[
        transactions.ProducersTopicResponse(name=topic.name, partitions=[
            transactions.ProducersPartitionResponse(partition_index=index, error_code=code, active_producers=[])
            for index in topic.partition_indexes])
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
    transactions.AddPartitionsToTxnRequest: _add_partitions,
    transactions.AddOffsetsToTxnRequest: lambda _, code: transactions.AddOffsetsToTxnResponse(error_code=code),
    transactions.TxnOffsetCommitRequest: _txn_offset_commit,
    transactions.EndTxnRequest: lambda _, code: transactions.EndTxnResponse(error_code=code),
    transactions.WriteTxnMarkersRequest: _markers,
    transactions.DescribeTransactionsRequest: _describe_transactions,
    transactions.ListTransactionsRequest: lambda _, code: transactions.ListTransactionsResponse(
        error_code=code, unknown_state_filters=[], transaction_states=[]),
    transactions.DescribeProducersRequest: _describe_producers,
}
