"""ShareFetch and ShareAcknowledge: records that a share group hands out, and what became of them (KIP-932).

A fetch first takes what is acknowledged with it, then hands out what there is, or waits for it. What waits is looked at
again when something is written, comes back, or is led by another node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar
from uuid import UUID

from headrace.broker.apis.list_offsets import offset_at_time
from headrace.broker.cluster import ApiCall
from headrace.broker.coordinators.group_configs import duration_ms
from headrace.broker.coordinators.target_assignors import TopicIndex
from headrace.broker.deadlines import Now
from headrace.broker.purgatory import DelayedReply
from headrace.broker.served_api import ServedApi
from headrace.broker.shares.aborted_records import aborted_ranges
from headrace.broker.shares.share_partition import GAP, RENEW, Acknowledgement, SharePartition
from headrace.broker.shares.share_partitions import ShareKey
from headrace.broker.shares.share_sessions import SessionKey, SharingSession
from headrace.broker.storage.partition import ApiError, Partition
from headrace.errors import KafkaError
from headrace.records import scan
from headrace.wire.messages.groups.share_groups import (
    AcknowledgeLeaderIdAndEpoch,
    AcknowledgementBatch,
    AcknowledgeNodeEndpoint,
    AcknowledgePartitionData,
    AcquiredRecords,
    FetchAcknowledgementBatch,
    FetchLeaderIdAndEpoch,
    FetchNodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchPartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)

__all__ = ["SERVES", "share_acknowledge", "share_fetch"]

T = TypeVar("T")
_FIRST, _LAST = 0, -1
_STRICT = 1
_ALL = range(GAP, RENEW + 1)
_LARGEST_REPLY_BYTES = 64 << 20
_IDS_FROM = 0

Errors = dict[TopicIndex, ApiError | None]
"""What became of acknowledgements, by partition."""


class _Readable(NamedTuple):
    """What a member can get of a partition, before it is handed out."""

    share: SharePartition
    partition: Partition
    data: bytes | memoryview


# Sessions

def _key(call: ApiCall, request: ShareFetchRequest | ShareAcknowledgeRequest) -> SessionKey:
    if not call.cluster.settings.share_version:
        raise ApiError(KafkaError.UNSUPPORTED_VERSION)
    if not request.member_id or not request.group_id:
        raise ApiError(KafkaError.INVALID_REQUEST)
    return SessionKey(call.node_id, request.group_id, request.member_id)


# What is acknowledged

def _acknowledge(
    call: ApiCall, key: SessionKey, said: Iterable[tuple[TopicIndex, Iterable[AcknowledgementBatch |
                                                                               FetchAcknowledgementBatch]]],
    *, renews: bool
) -> Errors:
    """Take over what became of records, each partition's by itself."""
    found: Errors = {}
    for place, batches in said:
        try:
            wanted = list(_checked(call, key.group_id, batches, renews=renews))
            if wanted:
                share, _ = _share(call, key.group_id, place, begins=False)
                share.acknowledge(key.member_id, wanted, call.now)
                found[place] = None
        except ApiError as error:
            found[place] = error
    return found


def _checked(call: ApiCall, group_id: str, batches: Iterable[AcknowledgementBatch | FetchAcknowledgementBatch], *,
             renews: bool) -> Iterator[Acknowledgement]:
    before = -1
    can_renew = renews and call.cluster.group_configs.value(group_id, "share.renew.acknowledge.enable") == "true"
    for each in batches:
        count, types = each.last_offset - each.first_offset + 1, each.acknowledge_types
        if count < 1 or len(types) not in (1, count) or each.first_offset < before or not set(types) <= set(_ALL) or (
                RENEW in types and not can_renew):
            raise ApiError(KafkaError.INVALID_REQUEST)
        before = each.last_offset
        yield Acknowledgement(each.first_offset, each.last_offset, types)


def _share(
    call: ApiCall, group_id: str, place: TopicIndex, *, begins: bool = True
) -> tuple[SharePartition, Partition]:
    """A partition that this node leads, and what the group knows of it.

    Args:
        call: of the request.
        group_id: the group.
        place: the partition.
        begins: the group may begin there.

    Raises:
        ApiError: it is not there, led elsewhere, or not the group's.
    """
    topic = call.topic("", place[0], _IDS_FROM)
    partition = call.led_partition(topic, place[1])
    key = ShareKey(group_id, *place)
    share = call.cluster.shares.get(key)
    if not call.cluster.shares.knows(key) or (share is None and not begins):
        raise ApiError(KafkaError.UNKNOWN_TOPIC_OR_PART, "The group does not read this partition")
    start = _start_offset(call, group_id, partition) if share is None else 0
    return call.cluster.shares.use(key, partition, start), partition


def _start_offset(call: ApiCall, group_id: str, partition: Partition) -> int:
    """Where a group begins in a partition."""
    reset = call.cluster.group_configs.value(group_id, "share.auto.offset.reset")
    if reset == "latest":
        return partition.log.end_offset
    ago_ms = duration_ms(reset)
    if ago_ms is None:
        return partition.log.start_offset
    offset = offset_at_time(partition, call.now.ms - ago_ms)
    return partition.log.end_offset if offset < 0 else offset


def share_acknowledge(call: ApiCall, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Take over what became of records; the last request of a session releases the others."""
    try:
        key = _key(call, request)
        if request.share_session_epoch == _FIRST:
            raise ApiError(KafkaError.INVALID_SHARE_SESSION_EPOCH)
        session = call.cluster.share_sessions.enter(key, request.share_session_epoch)
    except ApiError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=None, responses=[], node_endpoints=[])
    errors = _acknowledge(call, key, (((topic.topic_id, part.partition_index), part.acknowledgement_batches)
                                      for topic in request.topics for part in topic.partitions),
                          renews=request.is_renew_ack)
    if request.share_session_epoch == _LAST:
        call.cluster.end_share_session(session)
    parts = {place: _acknowledged(call, place, error) for place, error in errors.items()}
    return ShareAcknowledgeResponse(
        error_code=0, acquisition_lock_timeout_ms=_lock_ms(call, key.group_id),
        responses=[ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=found)
                   for topic_id, found in _by_topic(parts).items()],
        node_endpoints=[AcknowledgeNodeEndpoint(node_id=node.id, host=node.host, port=node.port)
                        for node in call.cluster.up_nodes] if _moved(errors.values()) else [])


def _acknowledged(call: ApiCall, place: TopicIndex, error: ApiError | None) -> AcknowledgePartitionData:
    found = AcknowledgePartitionData(partition_index=place[1], error_code=0)
    if error is not None:
        found.error_code, found.error_message = error.code, error.reason
        if (leader := _leader(call, place, error)) is not None:
            found.current_leader = AcknowledgeLeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    return found


# Handing out

def share_fetch(call: ApiCall, request: ShareFetchRequest) -> ShareFetchResponse | DelayedReply:
    """Hand records out, at once where there are some, something is wrong, or the client does not wait; else wait."""
    try:
        return _ShareFetch(call, request).begin()
    except ApiError as error:
        return ShareFetchResponse(error_code=error.code, error_message=None, responses=[], node_endpoints=[])


class _ShareFetch:
    """One fetch, until it is answered."""

    def __init__(self, call: ApiCall, request: ShareFetchRequest) -> None:
        self._call, self._request = call, request
        self._key = _key(call, request)
        self._check()
        self._errors: Errors = {}
        self._passed_over = False
        """All that was read were records of aborted transactions: what follows is to be looked at."""
        self._session = self._enter()
        self._until = call.now.s + request.max_wait_ms / 1000

    def _check(self) -> None:
        request, wrong = self._request, False
        if request.share_session_epoch == _FIRST:
            wrong = any(part.acknowledgement_batches for topic in request.topics for part in topic.partitions)
        if request.is_renew_ack:
            wrong |= any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms))
        if wrong:
            raise ApiError(KafkaError.INVALID_REQUEST)
        if request.share_acquire_mode not in (0, _STRICT):
            raise ApiError(KafkaError.UNKNOWN)

    def _enter(self) -> SharingSession:
        """The session of this request, with the partitions that it names."""
        request, sessions = self._request, self._call.cluster.share_sessions
        if request.share_session_epoch == _FIRST:
            session = sessions.begin(self._key, self._call.connection)
        else:
            session = sessions.enter(self._key, request.share_session_epoch)
        session.change(((topic.topic_id, part.partition_index) for topic in request.topics
                        for part in topic.partitions),
                       ((topic.topic_id, index) for topic in request.forgotten_topics_data
                        for index in topic.partitions))
        return session

    def begin(self) -> ShareFetchResponse | DelayedReply:
        """Take what is acknowledged, then hand out or wait."""
        call, request = self._call, self._request
        self._errors = _acknowledge(call, self._key, (
            ((topic.topic_id, part.partition_index), part.acknowledgement_batches)
            for topic in request.topics for part in topic.partitions), renews=request.is_renew_ack)
        if request.share_session_epoch == _LAST:
            call.cluster.end_share_session(self._session)
            return self._reply({place: _part(place) for place in self._errors})
        reply = self._look(call.now)
        if reply is not None:
            return reply
        delayed = DelayedReply(list(self._waits_for()), self._until,
                               lambda now: self._look_again(now) or delayed)
        return delayed

    def _look_again(self, now: Now) -> ShareFetchResponse | None:
        if self._call.cluster.share_sessions.get(self._key) is not self._session:
            return ShareFetchResponse(error_code=KafkaError.SHARE_SESSION_NOT_FOUND, responses=[], node_endpoints=[])
        return self._look(now)

    def _waits_for(self) -> Iterator[Partition | SharePartition]:
        for place in self._session.partitions:
            share, partition = _share(self._call, self._key.group_id, place)
            yield share
            yield partition

    def _look(self, now: Now) -> ShareFetchResponse | None:
        """The reply, if it is not better to wait."""
        request, self._passed_over = self._request, False
        parts: dict[TopicIndex, ShareFetchPartitionData] = {}
        readable: dict[TopicIndex, _Readable] = {}
        room = min(request.max_bytes, _LARGEST_REPLY_BYTES) if request.max_records > 0 else 0
        for place in self._session.partitions:
            if place[0] in self._call.cluster.catalog.by_id:
                self._session.known_topics.add(place[0])
            try:
                found = self._readable(place, room, whole_first=not readable)
            except ApiError as error:
                parts[place] = self._failed(place, error)
                continue
            if found is not None:
                readable[place] = found
                room -= len(found.data)
        size = sum(len(each.data) for each in readable.values())
        is_due = now.s >= self._until or request.max_wait_ms <= 0
        if not parts and not is_due and size < max(request.min_bytes, 1):
            return None
        parts |= self._hand_out(readable, now)
        got = any(part.acquired_records or part.error_code for part in parts.values())
        if got or is_due:
            return self._reply(parts)
        return self._look(now) if self._passed_over else None

    def _readable(self, place: TopicIndex, room: int, *, whole_first: bool) -> _Readable | None:
        """What the log has for the member; None where nothing is to be had."""
        share, partition = _share(self._call, self._key.group_id, place)
        if room <= 0 or not share.has_room:
            return None
        end = partition.last_stable_offset if self._is_committed else partition.log.end_offset
        data = partition.log.read(share.next_offset, room, end).data
        return _Readable(share, partition, data) if data and (whole_first or len(data) <= room) else None

    @property
    def _is_committed(self) -> bool:
        return self._call.cluster.group_configs.value(self._key.group_id, "share.isolation.level") == "read_committed"

    def _hand_out(self, readable: dict[TopicIndex, _Readable], now: Now) -> dict[TopicIndex, ShareFetchPartitionData]:
        parts: dict[TopicIndex, ShareFetchPartitionData] = {}
        left = self._request.max_records
        for place, found in readable.items():
            part = parts[place] = self._acquired(place, found, left, now)
            left -= sum(each.last_offset - each.first_offset + 1 for each in part.acquired_records)
            self._session.served(place, with_records=bool(part.acquired_records))
        return parts

    def _acquired(self, place: TopicIndex, found: _Readable, left: int, now: Now) -> ShareFetchPartitionData:
        """Acquire records of what was read, and cut it to the batches that have them."""
        share, infos = found.share, scan(found.data)
        acquired = share.acquire(
            self._key.member_id, [(info.base_offset, info.last_offset) for info in infos], left,
            self._request.batch_size, now, strict=self._request.share_acquire_mode == _STRICT)
        if acquired and self._is_committed:
            acquired = share.without(acquired, aborted_ranges(found.partition, infos))
            self._passed_over |= not acquired
        part = _part(place)
        if acquired:
            sent = [info for info in infos
                    if info.last_offset >= acquired[0].first and info.base_offset <= acquired[-1].last]
            part.records = found.data[sent[0].position:sent[-1].position + sent[-1].size]
            part.acquired_records = [AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                                     for first, last, count in acquired]
        return part

    def _failed(self, place: TopicIndex, error: ApiError) -> ShareFetchPartitionData:
        if error.code == KafkaError.UNKNOWN_TOPIC_ID and place[0] in self._session.known_topics:  # it has its name yet
            error = ApiError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        part = _part(place)
        part.error_code, part.error_message = error.code, error.reason
        if (leader := _leader(self._call, place, error)) is not None:
            part.current_leader = FetchLeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
        return part

    def _reply(self, parts: dict[TopicIndex, ShareFetchPartitionData]) -> ShareFetchResponse:
        """Partitions with records or errors, such as are new to the session, and what became of acknowledgements."""
        session, call = self._session, self._call
        told = {place: part for place, part in parts.items() if part.acquired_records or part.error_code}
        for place, is_known in list(session.partitions.items()):
            if not is_known and self._request.max_records > 0:
                told.setdefault(place, _part(place))
                session.served(place, with_records=False)
        for place, error in self._errors.items():
            part = told.setdefault(place, _part(place))
            if error is not None:
                part.acknowledge_error_code, part.acknowledge_error_message = error.code, error.reason
        moved = any(part.current_leader is not None and part.current_leader.leader_epoch > 0 for part in told.values())
        return ShareFetchResponse(
            error_code=0, acquisition_lock_timeout_ms=_lock_ms(call, self._key.group_id),
            responses=[ShareFetchableTopicResponse(topic_id=topic_id, partitions=found)
                       for topic_id, found in _by_topic(told).items()],
            node_endpoints=[FetchNodeEndpoint(node_id=node.id, host=node.host, port=node.port)
                            for node in call.cluster.up_nodes] if moved or _moved(self._errors.values()) else [])


def _part(place: TopicIndex) -> ShareFetchPartitionData:
    return ShareFetchPartitionData(partition_index=place[1], error_code=0, records=b"", acquired_records=[])


def _leader(call: ApiCall, place: TopicIndex, error: ApiError) -> tuple[int, int] | None:
    """Who leads a partition now, and in which epoch, where that is what is wrong."""
    topic = call.cluster.catalog.by_id.get(place[0])
    if topic is None or error.code != KafkaError.NOT_LEADER_FOR_PARTITION:
        return None
    partition = topic.partitions[place[1]]
    return partition.leader_id, partition.leader_epoch


def _moved(errors: Iterable[ApiError | None]) -> bool:
    return any(error is not None and error.code == KafkaError.NOT_LEADER_FOR_PARTITION for error in errors)


def _lock_ms(call: ApiCall, group_id: str) -> int:
    return call.cluster.group_configs.number(group_id, "share.record.lock.duration.ms")


def _by_topic(parts: dict[TopicIndex, T]) -> dict[UUID, list[T]]:
    topics: dict[UUID, list[T]] = {}
    for (topic_id, _), part in parts.items():
        topics.setdefault(topic_id, []).append(part)
    return topics


SERVES = (
    ServedApi(ShareFetchRequest, share_fetch,
              "What is released with a fetch may be handed out by the same one. There are no dead letter queues."),
    ServedApi(ShareAcknowledgeRequest, share_acknowledge),
)
