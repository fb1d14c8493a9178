"""Fetch: whole batches from an offset on, at once where there are enough, else when they come or time is up.

In a session (KIP-227) a request names what has changed since the one before, and so does its reply.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.broker.cluster import ApiCall
from headrace.broker.deadlines import Now
from headrace.broker.purgatory import DelayedReply
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.fetch_sessions import FetchingPartition, FetchingSession
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
           KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.INCONSISTENT_TOPIC_ID)
_LARGEST_REPLY_BYTES = 64 << 20
_LARGEST_CONVERTED_BYTES = 8 << 20
"""Most bytes of batches that are converted for one reply: as messages of the old formats they may be several times
larger."""


def fetch(call: ApiCall, request: FetchRequest) -> FetchResponse | DelayedReply:
    """Answer at once when `min_bytes` are there, something is wrong, or the client does not wait; else wait."""
    sessions = call.cluster.fetch_sessions
    if request.session_epoch in (_FIRST_OF_SESSION, _NO_SESSION):
        if request.session_id:
            sessions.end(call.node_id, request.session_id)
        asked = [FetchingPartition(topic, part) for topic in request.topics for part in topic.partitions]
        if request.session_epoch == _NO_SESSION:
            return _answer(_Fetch(call, request, asked), call.now)
        return _answer(_FirstOfSession(call, request, asked), call.now)
    session = sessions.get(call.node_id, request.session_id)
    error = _session_error(call, request, session)
    if session is None or error:
        return FetchResponse(error_code=error, responses=[])
    session.update(request.topics, request.forgotten_topics_data)
    if not session.partitions:
        sessions.end(call.node_id, session.id)
        return FetchResponse(responses=[])
    session.advance(call.now.s)
    return _answer(_NextOfSession(call, request, list(session.partitions.values()), session), call.now)


def _session_error(call: ApiCall, request: FetchRequest, session: FetchingSession | None) -> int:
    if session is None:
        return KafkaError.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != request.session_epoch:
        return KafkaError.INVALID_FETCH_SESSION_EPOCH
    return 0 if session.uses_ids == (call.version >= _IDS_FROM) else KafkaError.FETCH_SESSION_TOPIC_ID_ERROR


class _Fetch:
    """One request without a session: the reply has all partitions.

    Args:
        call, request: the request.
        asked: what it asks for, in order.
    """

    def __init__(self, call: ApiCall, request: FetchRequest, asked: list[FetchingPartition]) -> None:
        self.call, self.request, self.asked = call, request, asked

    def reply(self, found: list[PartitionData], now: Now) -> FetchResponse:
        """The reply with what was read of each partition."""
        return _reply(self.call, zip(self.asked, found, strict=True))


class _FirstOfSession(_Fetch):
    """A request that opens a session: so does its reply, unless there is no room for one."""

    def reply(self, found: list[PartitionData], now: Now) -> FetchResponse:
        """As `_Fetch.reply`."""
        reply = super().reply(found, now)
        for partition, data in zip(self.asked, found, strict=True):
            partition.is_news(data)
        session = self.call.cluster.fetch_sessions.open(
            self.call.node_id, self.asked, self.call.version >= _IDS_FROM, now.s)
        reply.session_id = 0 if session is None else session.id
        return reply


class _NextOfSession(_Fetch):
    """A request within a session: the reply has what is new."""

    def __init__(self, call: ApiCall, request: FetchRequest, asked: list[FetchingPartition],
                 session: FetchingSession) -> None:
        super().__init__(call, request, asked)
        self._session, self._epoch = session, session.epoch

    def reply(self, found: list[PartitionData], now: Now) -> FetchResponse:
        """As `_Fetch.reply`."""
        if self._session.epoch != self._epoch:  # it went on meanwhile
            return FetchResponse(error_code=KafkaError.INVALID_FETCH_SESSION_EPOCH, session_id=self._session.id,
                                 responses=[])
        news = [(partition, data) for partition, data in zip(self.asked, found, strict=True) if partition.is_news(data)]
        for partition, data in news:
            if data.records:
                self._session.serve_last(partition)
        reply = _reply(self.call, news)
        reply.session_id = self._session.id
        return reply


def _answer(fetch: _Fetch, now: Now) -> FetchResponse | DelayedReply:
    """The reply, or what it waits for: every append to one of the partitions, until `max_wait_ms` are over."""
    call, request = fetch.call, fetch.request
    until = now.s + request.max_wait_ms / 1000

    def look(now: Now) -> FetchResponse | None:
        found, count = _read(call, request, fetch.asked)
        is_over = count >= request.min_bytes or now.s >= until or any(data.error_code for data in found)
        return fetch.reply(found, now) if is_over else None

    def look_again(now: Now) -> FetchResponse | DelayedReply:
        reply = look(now)
        return delayed if reply is None else reply

    at_once = look(now)
    if at_once is not None:
        return at_once
    delayed = DelayedReply(_partitions(call, fetch.asked), until, look_again)
    return delayed


def _partitions(call: ApiCall, asked: Iterable[FetchingPartition]) -> list[Partition]:
    return [call.topic(each.topic.topic, each.topic.topic_id, _IDS_FROM).partitions[each.asked.partition]
            for each in asked]


def _read(call: ApiCall, request: FetchRequest, asked: Iterable[FetchingPartition]) -> tuple[list[PartitionData], int]:
    """What each partition has now, and how many bytes of the logs that is."""
    room = min(request.max_bytes, _LARGEST_REPLY_BYTES if call.version >= _BATCHES_FROM else _LARGEST_CONVERTED_BYTES)
    total, parts = 0, []
    for each in asked:
        # A batch that is larger than all limits comes whole when it is the reply's first, so that readers get on.
        data, stored_bytes = _read_partition(call, request.isolation_level == _COMMITTED, each, room - total,
                                             whole_first=total == 0)
        parts.append(data)
        total += stored_bytes
    return parts, total


def _reply(call: ApiCall, parts: Iterable[tuple[FetchingPartition, PartitionData]]) -> FetchResponse:
    """A reply with these partitions; neighbours of one topic stand together."""
    reply = FetchResponse(error_code=0, responses=[])
    last: FetchTopic | None = None
    for partition, data in parts:
        topic = partition.topic
        if last is None or (topic.topic, topic.topic_id) != (last.topic, last.topic_id):
            reply.responses.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[]))
            last = topic
        reply.responses[-1].partitions.append(data)
    if call.version >= _ENDPOINTS_FROM and any(
            part.error_code == KafkaError.NOT_LEADER_FOR_PARTITION for topic in reply.responses
            for part in topic.partitions):
        reply.node_endpoints = [NodeEndpoint(node_id=node.id, host=node.host, port=node.port)
                                for node in call.cluster.up_nodes]
    return reply


def _topic_of(call: ApiCall, wanted: FetchingPartition) -> Topic:
    """The topic that is wanted. An id that was known is followed by its topic's name, as in Kafka: so a session learns
    that the topic is gone, or is another one now.

    Raises:
        ApiError: there is none, or it is another one.
    """
    try:
        topic = call.topic(wanted.topic.topic, wanted.topic.topic_id, _IDS_FROM)
    except ApiError:
        if wanted.name is None:
            raise
        anew = call.cluster.catalog.topics.get(wanted.name)
        if anew is None:
            raise ApiError(KafkaError.UNKNOWN_TOPIC_OR_PART) from None
        call.led_partition(anew, wanted.asked.partition)
        raise ApiError(KafkaError.INCONSISTENT_TOPIC_ID) from None
    wanted.name = topic.name
    return topic


def _read_partition(
    call: ApiCall, is_committed: bool, wanted: FetchingPartition, room: int, *, whole_first: bool
) -> tuple[PartitionData, int]:
    topic: Topic | None = None
    part = wanted.asked
    try:
        topic = _topic_of(call, wanted)
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
              "With sessions (KIP-227), 1,000 of them at each node. Versions 0 "
              "and 1 get messages of format 0, versions 2 and 3 of format 1, at most 8 MiB of batches in one reply; "
              "zstd batches are refused there, as are zstd topics before version 10."),
)
