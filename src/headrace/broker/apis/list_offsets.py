"""ListOffsets and OffsetForLeaderEpoch: from times and epochs to offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headrace.broker.cluster import ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.log import Log
from headrace.broker.storage.partition import ApiError, Partition
from headrace.errors import CorruptRecordError, KafkaError
from headrace.records import Cursor
from headrace.records.control import control_records
from headrace.wire.messages.consumer.fetch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["SERVES", "list_offsets", "offset_at_time", "offset_for_leader_epoch"]

_EPOCH_FROM = 4
_COMMITTED = 1
_NEVER = 1 << 15
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_SPECIAL_FROM = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9,
                 EARLIEST_PENDING_UPLOAD: 11}
"""The first version that knows each of them."""


def list_offsets(call: ApiCall, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """The offset of each partition's start, end, or first record at or after a time."""
    return ListOffsetsResponse(topics=[
        ListOffsetsTopicResponse(name=topic.name, partitions=_listed_topic(call, topic, request.isolation_level))
        for topic in request.topics])


def _listed_topic(call: ApiCall, wanted: ListOffsetsTopic, isolation_level: int) -> list[ListOffsetsPartitionResponse]:
    """One answer for each partition; one that is asked for twice gets none, but for version 0."""
    counts = Counter(each.partition_index for each in wanted.partitions)
    if call.version == 0 or max(counts.values(), default=0) <= 1:
        return [_listed(call, wanted.name, each, isolation_level) for each in wanted.partitions]
    return [_listed(call, wanted.name, each, isolation_level) if counts[each.partition_index] == 1
            else ListOffsetsPartitionResponse(partition_index=each.partition_index, old_style_offsets=[],
                                              error_code=KafkaError.INVALID_REQUEST)
            for each in {each.partition_index: each for each in wanted.partitions}.values()]


def _listed(
    call: ApiCall, name: str, wanted: ListOffsetsPartition, isolation_level: int
) -> ListOffsetsPartitionResponse:
    reply = ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=0, old_style_offsets=[])
    try:
        topic = call.topic(name, ZERO_UUID, _NEVER)
        partition = call.led_partition(topic, wanted.partition_index, wanted.current_leader_epoch)
        if call.version < _SPECIAL_FROM.get(wanted.timestamp, 0 if wanted.timestamp >= 0 else _NEVER):
            raise ApiError(KafkaError.UNSUPPORTED_VERSION)
        if call.version == 0:
            reply.old_style_offsets = _segment_offsets(call, partition.log, wanted)
            return reply
        end = partition.last_stable_offset if isolation_level == _COMMITTED else partition.log.end_offset
        reply.offset, reply.timestamp = _offset_at(partition, wanted.timestamp, end)
        if call.version >= _EPOCH_FROM and reply.offset >= 0:
            is_end = wanted.timestamp == LATEST  # which may lie before records of open transactions
            reply.leader_epoch = partition.leader_epoch if is_end else partition.epoch_at(reply.offset)
    except ApiError as error:
        reply.error_code = error.code
    return reply


def _segment_offsets(call: ApiCall, log: Log, wanted: ListOffsetsPartition) -> list[int]:
    """Version 0 knew no offsets of times: where segments begin that were last written to before the time, the newest
    first, and before them the log's end.

    Source: `UnifiedLog.legacyFetchOffsetsBefore`.
    """
    starts = log.segment_starts() or [(log.start_offset, call.now.ms)]
    if log.segment_starts():
        starts.append((log.end_offset, call.now.ms))
    if wanted.timestamp == EARLIEST:
        starts = starts[:1]
    elif wanted.timestamp != LATEST:
        while starts and starts[-1][1] > wanted.timestamp:
            starts.pop()
    newest_first = [offset for offset, _ in reversed(starts)]
    return newest_first[:max(wanted.max_num_offsets, 0)]


def _offset_at(partition: Partition, timestamp_ms: int, end_offset: int) -> tuple[int, int]:
    """Offset and timestamp for a time or one of the special values; (-1, -1) when there is none before the end."""
    log = partition.log
    if timestamp_ms == LATEST:
        return end_offset, -1
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, -1
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1
    if timestamp_ms == MAX_TIMESTAMP:
        timestamp_ms = log.max_timestamp_ms()
        if timestamp_ms < 0:
            return -1, -1
    offset, stamp = _first_at(log, timestamp_ms)
    return (offset, stamp) if offset < end_offset else (-1, -1)


def offset_at_time(partition: Partition, timestamp_ms: int) -> int:
    """Offset of the first record at or after a time; -1 when there is none."""
    return _first_at(partition.log, timestamp_ms)[0]


def _first_at(log: Log, timestamp_ms: int) -> tuple[int, int]:
    """The first record at or after a time: the batches' highest timestamps lead to it, then its batch is read."""
    for batch in log.batches_by_time(timestamp_ms):
        try:
            for offset, stamp in _times(batch, log.start_offset):
                if stamp >= timestamp_ms:
                    return offset, stamp
        except CorruptRecordError as error:
            raise ApiError(KafkaError.INVALID_MSG, str(error)) from None
    return -1, -1


def _times(batch: bytes | memoryview, start_offset: int) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record of a batch; markers of transactions count, too."""
    for marker in control_records(batch):
        yield marker.offset, marker.timestamp_ms
    for message in Cursor(batch, "", -1, start_offset).take(1 << 31):
        yield message.offset() or 0, message.timestamp()[1]


def offset_for_leader_epoch(call: ApiCall, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Where each epoch ended, so that a reader finds out what was cut off (KIP-320)."""
    return OffsetForLeaderEpochResponse(topics=[
        OffsetForLeaderTopicResult(topic=topic.topic, partitions=[_epoch_end(call, topic.topic, each)
                                                                  for each in topic.partitions])
        for topic in request.topics
    ])


def _epoch_end(call: ApiCall, name: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    reply = EpochEndOffset(error_code=0, partition=wanted.partition)
    try:
        topic = call.topic(name, ZERO_UUID, _NEVER)
        partition = call.led_partition(topic, wanted.partition, wanted.current_leader_epoch)
        reply.leader_epoch, reply.end_offset = partition.epoch_end(wanted.leader_epoch)
    except ApiError as error:
        reply.error_code = error.code
    return reply


SERVES = (
    ServedApi(ListOffsetsRequest, list_offsets, "Nothing is ever in remote storage."),
    ServedApi(OffsetForLeaderEpochRequest, offset_for_leader_epoch),
)
