"""The short way of a fetch in which one partition has moved on and all others of the session are as they were.

At low rates that is each fetch (decision 0026). What stays the same from one to the next is kept for each topic, for as
long as the session lasts: the request, and the bytes around the fields that change in it and in the reply.

It must not know which partitions are wanted. Read next: `wire.templates`; `machines.consumer.fetch_session`, which
keeps it.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from headrace.wire.frame import encode_request, encode_response
from headrace.wire.messages.consumer.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.wire.templates import ExchangeTemplate, RecordsReplyTemplate, RequestTemplate

__all__ = ["LoneFetch"]

_EPOCHS_FROM: Final = 9  # sessions from 7 on, but not all of the numbers that change
_ASKED: Final = ("partition", "current_leader_epoch", "fetch_offset")
_NUMBERS: Final = ("high_watermark", "last_stable_offset", "log_start_offset")
_READ_COMMITTED: Final = 1
_HEAD_BYTES: Final = 8  # length and correlation id


class LoneFetch:
    """The request with one partition, and the reply with records of that partition only.

    Args:
        request: with the session and the settings of the consumer, without partitions.
        topic: name of the topic.
        topic_id: its id; zero while it is not known.
        asked: a partition.

    Attributes:
        request: as given, now with the partition. The session's epoch is to be changed before each use.
        topic_id: as given.
        asked: as given; to be changed before each use: partition, epoch of its leader, offset.
        expected: what comes of the partition in the reply; its number is to be changed before each use.
        exchange: writes the request and reads the reply.
        max_version: the highest version that may be used; None for any.
    """

    __slots__ = ("asked", "exchange", "expected", "max_version", "request", "topic_id")

    def __init__(self, request: FetchRequest, topic: str, topic_id: UUID, asked: FetchPartition) -> None:
        self.request, self.topic_id, self.asked = request, topic_id, asked
        self.max_version = None if topic_id.int else 12
        request.topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])]
        # With read_uncommitted a broker sends null for the aborted transactions, not an empty list.
        aborted: list[AbortedTransaction] | None = [] if request.isolation_level == _READ_COMMITTED else None
        data = PartitionData(partition_index=asked.partition, aborted_transactions=aborted)
        reply = FetchResponse(session_id=request.session_id, responses=[
            FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[data])])
        self.expected = data
        self.exchange = ExchangeTemplate(
            RequestTemplate(request, numbers=[(request, "session_epoch"), *((asked, name) for name in _ASKED)]),
            RecordsReplyTemplate(reply, data, _NUMBERS, "partition_index"), _EPOCHS_FROM)

    def shapes(self, version: int, client_id: str | None) -> Any:
        """What a thread needs that takes replies by itself: see `headrace.buffers.lanes.fetch_lane`.

        Returns:
            None if the bytes of this version are left to the codec.
        """
        reply = self.exchange.reply
        assert isinstance(reply, RecordsReplyTemplate)
        shape = reply.shape(version) if version >= _EPOCHS_FROM else None
        if shape is None:
            return None
        request = self.request
        topics, request.topics = request.topics, []
        try:
            nothing = RequestTemplate(request, numbers=[(request, "session_epoch")]).whole(version, client_id)
        finally:
            request.topics = topics
        empty = b"".join(encode_response(FetchResponse(session_id=request.session_id, responses=[]), version, 0))
        one = self.exchange.request.whole(version, client_id)
        partition_bytes = self._bytes_of_two(version, client_id) - len(one[0])
        return (((*one, partition_bytes), (*nothing, 0)), (shape, empty[_HEAD_BYTES:]))

    def _bytes_of_two(self, version: int, client_id: str | None) -> int:
        """The size of a request with two partitions."""
        (topic,) = self.request.topics
        topic.partitions = [self.asked, self.asked]
        try:
            return sum(map(len, encode_request(self.request, version, 0, client_id)))
        finally:
            topic.partitions = [self.asked]
