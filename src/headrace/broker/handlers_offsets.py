"""ListOffsets and OffsetForLeaderEpoch: from times and epochs to offsets."""

from __future__ import annotations

from headrace.broker.cluster import Call
from headrace.broker.partition import Partition, Refused
from headrace.errors import CorruptRecordError, KafkaError
from headrace.records import Cursor
from headrace.wire.messages.fetch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from headrace.wire.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["list_offsets", "offset_for_leader_epoch"]

_EPOCH_FROM = 4
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def list_offsets(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """The offset of each partition's start, end, or first record at or after a time."""
    return ListOffsetsResponse(topics=[
        ListOffsetsTopicResponse(name=topic.name, partitions=[_listed(call, topic.name, each)
                                                              for each in topic.partitions])
        for topic in request.topics
    ])


def _listed(call: Call, name: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    reply = ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=0, old_style_offsets=[])
    try:
        topic = call.topic(name, ZERO_UUID, 1 << 15)
        partition = call.led_partition(topic, wanted.partition_index, wanted.current_leader_epoch)
        reply.offset, reply.timestamp = _offset_at(name, partition, wanted.timestamp)
        if call.version >= _EPOCH_FROM and reply.offset >= 0:
            reply.leader_epoch = partition.leader_epoch
    except Refused as refused:
        reply.error_code = refused.code
    return reply


def _offset_at(topic: str, partition: Partition, timestamp_ms: int) -> tuple[int, int]:
    """Offset and timestamp for a time or one of the special values; (-1, -1) when there is none."""
    log = partition.log
    if timestamp_ms == LATEST:
        return log.end_offset, -1
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, -1
    if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1
    if timestamp_ms == MAX_TIMESTAMP:
        timestamp_ms = log.max_timestamp_ms()
        return _first_at(topic, partition, timestamp_ms) if timestamp_ms >= 0 else (-1, -1)
    if timestamp_ms < 0:
        raise Refused(KafkaError.UNSUPPORTED_VERSION)
    return _first_at(topic, partition, timestamp_ms)


def _first_at(topic: str, partition: Partition, timestamp_ms: int) -> tuple[int, int]:
    """The first record at or after a time: the batches' highest timestamps lead to it, then its batch is read."""
    for batch in partition.log.batches_by_time(timestamp_ms):
        try:
            messages = Cursor(batch, topic, partition.index, partition.log.start_offset).take(1 << 31)
        except CorruptRecordError as error:
            raise Refused(KafkaError.INVALID_MSG, str(error)) from None
        for message in messages:
            _, stamp = message.timestamp()
            offset = message.offset()
            if stamp >= timestamp_ms and offset is not None:
                return offset, stamp
    return -1, -1


def offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Where each epoch ended, so that a reader finds out what was cut off (KIP-320)."""
    return OffsetForLeaderEpochResponse(topics=[
        OffsetForLeaderTopicResult(topic=topic.topic, partitions=[_epoch_end(call, topic.topic, each)
                                                                  for each in topic.partitions])
        for topic in request.topics
    ])


def _epoch_end(call: Call, name: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    reply = EpochEndOffset(error_code=0, partition=wanted.partition)
    try:
        topic = call.topic(name, ZERO_UUID, 1 << 15)
        partition = call.led_partition(topic, wanted.partition, wanted.current_leader_epoch)
        reply.leader_epoch, reply.end_offset = partition.epoch_end(wanted.leader_epoch)
    except Refused as refused:
        reply.error_code = refused.code
    return reply
