"""Fetch sessions (KIP-227): what a reader asked for last, so that its next request and its reply name what has changed.

A node keeps a bounded number of them. Who gets none, or whose session was let go for another one, asks for everything
each time. It must not know what partitions hold. Read next: `headrace.broker.apis.fetch`.

Source: Kafka's `FetchSession.scala` (`FetchSessionCache`, `FetchManager`, `CachedPartition`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from headrace.slotted import slotted
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchTopic, ForgottenTopic, PartitionData

__all__ = ["FetchingSession", "FetchingSessions", "FetchingPartition"]

_MOST_SESSIONS = 1_000
"""Of one node; `max.incremental.fetch.session.cache.slots`."""
_IDLE_S = 120.0
"""A session that was not used for so long makes room for another; `min.incremental.fetch.session.eviction.ms`."""
_LAST_EPOCH = 2**31 - 1
_ID_BITS = 2**31 - 1

_Key = tuple[str, UUID, int]


@slotted(eq=False)
class FetchingPartition:
    """What the reader asked for one partition, and what it was told last.

    Attributes:
        topic: as it was named.
        asked: the newest request for it.
        high_watermark, log_start: as of the last reply with it; -1 before, and behind an error.
        name: of the topic whose id it is, once there was one: what becomes of an id is found by it.
    """

    topic: FetchTopic
    asked: FetchPartition
    high_watermark: int = -1
    log_start: int = -1
    name: str | None = None

    def is_news(self, data: PartitionData) -> bool:
        """Whether the reader must be told; what it was told is kept."""
        is_news = bool(data.records) or data.error_code != 0 or data.preferred_read_replica >= 0 or (
            data.high_watermark, data.log_start_offset) != (self.high_watermark, self.log_start)
        self.log_start = data.log_start_offset
        self.high_watermark = -1 if data.error_code else data.high_watermark
        return is_news


class FetchingSession:
    """One reader's session.

    Attributes:
        id: its number, above zero.
        epoch: of the next request.
        uses_ids: topics are named by their ids.
        used_at: monotonic seconds of the last request.
        partitions: in the order in which they are served.
    """

    def __init__(self, number: int, uses_ids: bool, now_s: float) -> None:
        self.id, self.uses_ids, self.used_at = number, uses_ids, now_s
        self.epoch = 1
        self.partitions: dict[_Key, FetchingPartition] = {}

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        """A request names what is new or has moved, and what is not wanted any more."""
        for topic in topics:
            for part in topic.partitions:
                key = (topic.topic, topic.topic_id, part.partition)
                known = self.partitions.get(key)
                if known is None:
                    self.partitions[key] = FetchingPartition(topic, part)
                else:
                    known.asked = part
        for each in forgotten:
            for index in each.partitions:
                self.partitions.pop((each.topic, each.topic_id, index), None)

    def advance(self, now_s: float) -> None:
        """A request was taken: the next one has the next number."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1
        self.used_at = now_s

    def serve_last(self, partition: FetchingPartition) -> None:
        """A partition got records: all others come before it."""
        key = (partition.topic.topic, partition.topic.topic_id, partition.asked.partition)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = partition


class FetchingSessions:
    """The sessions of all nodes.

    Args:
        new_uuid: where their numbers come from.
    """

    def __init__(self, new_uuid: Callable[[], UUID]) -> None:
        self._new_uuid = new_uuid
        self._by_node: dict[int, dict[int, FetchingSession]] = {}  # least recently used first

    def open(self, node_id: int, partitions: Iterable[FetchingPartition], uses_ids: bool,
             now_s: float) -> FetchingSession | None:
        """A session with these partitions, whose replies are known; None if the node has no room for it."""
        sessions = self._by_node.setdefault(node_id, {})
        if len(sessions) >= _MOST_SESSIONS:
            oldest = next(iter(sessions.values()))
            if now_s - oldest.used_at < _IDLE_S:
                return None
            del sessions[oldest.id]
        number = 0
        while number == 0 or number in sessions:
            number = self._new_uuid().int & _ID_BITS
        session = sessions[number] = FetchingSession(number, uses_ids, now_s)
        session.partitions = {(each.topic.topic, each.topic.topic_id, each.asked.partition): each
                              for each in partitions}
        return session

    def get(self, node_id: int, number: int) -> FetchingSession | None:
        """The session with this number; it is the most recently used one now."""
        sessions = self._by_node.get(node_id, {})
        session = sessions.pop(number, None)
        if session is not None:
            sessions[number] = session
        return session

    def end(self, node_id: int, number: int) -> None:
        """The reader has no use for it any more."""
        self._by_node.get(node_id, {}).pop(number, None)

    def end_all(self, node_id: int) -> None:
        """The node went down."""
        self._by_node.pop(node_id, None)
