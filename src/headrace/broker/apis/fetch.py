"""Fetch: whole batches from an offset on, at once where there are enough, else when they come or time is up.

Every fetch is answered in full, without a session (KIP-227 leaves that to the broker): the state of a session would
save bytes between machines, and this broker is seldom on another machine.
"""

from __future__ import annotations

from headrace.broker.apis.served_api import ServedApi
from headrace.broker.cluster import ApiCall
from headrace.broker.deadlines import Now
from headrace.broker.purgatory import DelayedReply
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.log import LogSlice
from headrace.broker.storage.partition import MAX_CONVERTED_BYTES, ApiError, Partition
from headrace.errors import CorruptRecordError, KafkaError, KafkaException
from headrace.records.legacy.conversion import downgrade
from headrace.wire.messages.consumer.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

__all__ = ["SERVES", "fetch"]

_COMMITTED = 1
_NOTHING = LogSlice(b"", 0)
_FIRST_OF_SESSION, _NO_SESSION = 0, -1
_IDS_FROM = 13
_LEADERS_FROM = 12
_ENDPOINTS_FROM = 16
_FORMAT_1_FROM = 2
_WHOLE_FIRST_FROM = 3
_BATCHES_FROM = 4
_ZSTD_FROM = 10
_OF_LOG = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH,
           KafkaError.UNKNOWN_LEADER_EPOCH)
_LARGEST_REPLY_BYTES = 64 << 20
_LARGEST_CONVERTED_BYTES = 8 << 20
"""Most bytes of batches that are converted for one reply: as messages of the old formats they may be several times
larger."""


def fetch(call: ApiCall, request: FetchRequest) -> FetchResponse | DelayedReply:
    """Answer at once when `min_bytes` are there, something is wrong, or the client does not wait; else wait."""
    if request.session_epoch not in (_FIRST_OF_SESSION, _NO_SESSION):
        return FetchResponse(error_code=KafkaError.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    reply, count = _read(call, request)
    if count >= request.min_bytes or request.max_wait_ms <= 0 or _has_error(reply):
        return reply
    return _wait(call, request)


def _wait(call: ApiCall, request: FetchRequest) -> DelayedReply:
    """Look again at every append to one of the partitions, until `max_wait_ms` are over."""
    until = call.now.s + request.max_wait_ms / 1000

    def look_again(now: Now) -> FetchResponse | DelayedReply:
        reply, count = _read(call, request)
        return reply if count >= request.min_bytes or now.s >= until or _has_error(reply) else delayed

    delayed = DelayedReply(_partitions(call, request), until, look_again)
    return delayed


def _partitions(call: ApiCall, request: FetchRequest) -> list[Partition]:
    return [call.topic(each.topic, each.topic_id, _IDS_FROM).partitions[part.partition]
            for each in request.topics for part in each.partitions]


def _has_error(reply: FetchResponse) -> bool:
    return any(part.error_code for topic in reply.responses for part in topic.partitions)


def _read(call: ApiCall, request: FetchRequest) -> tuple[FetchResponse, int]:
    """The reply as it would be now, and how many bytes of the logs it carries."""
    room = min(request.max_bytes, _LARGEST_REPLY_BYTES if call.version >= _BATCHES_FROM else _LARGEST_CONVERTED_BYTES)
    reply, total = FetchResponse(error_code=0, responses=[]), 0
    for wanted in request.topics:
        parts: list[PartitionData] = []
        for part in wanted.partitions:
            # A batch that is larger than all limits comes whole when it is the reply's first, so that readers get on.
            data, stored_bytes = _read_partition(call, request.isolation_level == _COMMITTED, wanted, part,
                                                 room - total, whole_first=total == 0)
            parts.append(data)
            total += stored_bytes
        reply.responses.append(FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=parts))
    if call.version >= _ENDPOINTS_FROM and any(
            part.error_code == KafkaError.NOT_LEADER_FOR_PARTITION for topic in reply.responses
            for part in topic.partitions):
        reply.node_endpoints = [NodeEndpoint(node_id=node.id, host=node.host, port=node.port)
                                for node in call.cluster.up_nodes]
    return reply, total


def _read_partition(
    call: ApiCall, is_committed: bool, wanted: FetchTopic, part: FetchPartition, room: int, *, whole_first: bool
) -> tuple[PartitionData, int]:
    topic: Topic | None = None
    try:
        topic = call.topic(wanted.topic, wanted.topic_id, _IDS_FROM)
        partition = call.led_partition(topic, part.partition, part.current_leader_epoch)
        log = partition.log
        if not log.start_offset <= part.fetch_offset <= log.end_offset:
            raise ApiError(KafkaError.OFFSET_OUT_OF_RANGE)
        stable = partition.last_stable_offset
        found = _batches(call, topic, partition, part, room, stable if is_committed else log.end_offset,
                         whole_first=whole_first)
        records = found.data if call.version >= _BATCHES_FROM else _message_set(call, found.data, part)
    except ApiError as error:
        return _error_response(topic if call.version >= _LEADERS_FROM else None, part, error), 0
    data = PartitionData(
        partition_index=part.partition, error_code=0, high_watermark=log.end_offset,
        last_stable_offset=stable, log_start_offset=log.start_offset, records=records,
        aborted_transactions=_aborted(partition, part.fetch_offset, found) if is_committed else None,
    )
    return data, len(found.data)


def _aborted(partition: Partition, offset: int, found: LogSlice) -> list[AbortedTransaction]:
    """The aborted transactions with records in what was read, so that the reader leaves these out."""
    if not found.data:
        return []
    return [AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in partition.producers.aborted(offset, found.end_offset)]


def _batches(
    call: ApiCall,
    topic: Topic,
    partition: Partition,
    part: FetchPartition,
    room: int,
    before: int,
    *,
    whole_first: bool,
) -> LogSlice:
    """Batches from the asked offset on, as they lie in the log, up to those that begin at `before`."""
    limit = min(part.partition_max_bytes, room)
    if call.version < _ZSTD_FROM and topic.configs["compression.type"] == "zstd":
        raise ApiError(KafkaError.UNSUPPORTED_COMPRESSION_TYPE)
    if limit <= 0 and not whole_first:
        return _NOTHING
    found = partition.log.read(part.fetch_offset, limit, before)
    return found if whole_first or len(found.data) <= limit or call.version < _WHOLE_FIRST_FROM else _NOTHING


def _message_set(call: ApiCall, batches: bytes | memoryview, part: FetchPartition) -> bytes:
    """Batches as messages of the format that the version knows. Before version 3 a reply is cut off at the limit,
    wherever that is: so a reader learns that its limit is too small for a message.
    """
    try:
        messages = downgrade(batches, 0 if call.version < _FORMAT_1_FROM else 1, first_offset=part.fetch_offset,
                             max_decompressed_bytes=MAX_CONVERTED_BYTES)
    except CorruptRecordError as error:
        raise ApiError(KafkaError.INVALID_MSG, str(error)) from None
    except KafkaException as error:
        raise ApiError(error.args[0].code(), error.args[0].str()) from None
    return messages[:max(part.partition_max_bytes, 0)] if call.version < _WHOLE_FIRST_FROM else messages


def _error_response(topic: Topic | None, part: FetchPartition, error: ApiError) -> PartitionData:
    data = PartitionData(partition_index=part.partition, error_code=error.code, high_watermark=-1,
                         aborted_transactions=None if error.code in _OF_LOG else [], records=b"")
    if topic is not None and 0 <= part.partition < len(topic.partitions):
        partition = topic.partitions[part.partition]
        if error.code in (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH):
            data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
    return data


SERVES = (
    ServedApi(FetchRequest, fetch,
              "Every fetch is answered in full: no sessions are kept (KIP-227 leaves that to the broker). Versions 0 "
              "and 1 get messages of format 0, versions 2 and 3 of format 1, at most 8 MiB of batches in one reply; "
              "zstd batches are refused there, as are zstd topics before version 10."),
)
