"""Incremental fetch sessions (KIP-227): send a broker only what changed since the last fetch.

A broker remembers the partitions of a session; a request then names the partitions that are new or moved, and those
to forget. This module plans one request at a time for one broker and must not know about partitions' states or time.

Source: Java's `FetchSessionHandler`. Read next: `machines.consumer.fetcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from headrace.error_codes import ErrorCodes
from headrace.machines.consumer.lone_fetch import LoneFetch
from headrace.machines.consumer.subscription import Key, PartitionState
from headrace.slotted import slotted
from headrace.wire.messages.consumer.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

__all__ = ["SessionPartition", "FetchSession"]

_INITIAL_EPOCH, _MAX_EPOCH = 0, 2**31 - 1
_SESSION_LOST = (
    ErrorCodes.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCodes.INVALID_FETCH_SESSION_EPOCH,
    ErrorCodes.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCodes.INCONSISTENT_TOPIC_ID,
)


@slotted(eq=False)
class SessionPartition:
    """What is asked for one partition: what was asked already is not sent again.

    Attributes:
        lone: the short way of a request that names this partition only, once there is one.
    """

    topic_id: UUID
    fetch_offset: int
    leader_epoch: int
    max_bytes: int
    lone: LoneFetch | None = None

    def is_as(self, other: SessionPartition) -> bool:
        """True when both ask the same."""
        return (self.fetch_offset == other.fetch_offset and self.leader_epoch == other.leader_epoch
                and self.max_bytes == other.max_bytes and self.topic_id == other.topic_id)


class FetchSession:
    """The session with one broker; at most one request of it may be on the wire."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = _INITIAL_EPOCH
        self._known: dict[Key, SessionPartition] = {}
        self._uses_ids = False
        self.names: dict[int, str] = {}
        """Topic names by their ids as integers, for replies that carry ids only."""

    def asked(self, key: Key, topic_id: UUID, fetch_offset: int, leader_epoch: int, max_bytes: int) -> SessionPartition:
        """What to ask for a partition: last time's object if nothing has changed, so that it is not sent again."""
        before = self._known.get(key)
        if (before is not None and before.fetch_offset == fetch_offset and before.topic_id is topic_id
                and before.leader_epoch == leader_epoch and before.max_bytes == max_bytes):
            return before
        return SessionPartition(topic_id, fetch_offset, leader_epoch, max_bytes)

    def only_moved(self, wanted: Sequence[tuple[PartitionState, UUID, int]], max_bytes: int) -> Key | None:
        """The only partition whose offset has changed since last time; None if there is none, or if more has changed.

        With a broker that keeps no session: the only partition that there is, whatever its offset.

        Args:
            wanted: partitions, ids of their topics, epochs of their leaders.
            max_bytes: most bytes of each.
        """
        known, moved = self._known, None
        is_full = self._epoch == _INITIAL_EPOCH
        if len(known) != len(wanted) or (is_full and (self._id or len(wanted) > 1)):
            return None
        for state, topic_id, leader_epoch in wanted:
            key = (state.topic, state.partition)
            before = known.get(key)
            if before is None or before.leader_epoch != leader_epoch or before.max_bytes != max_bytes:
                return None
            if before.topic_id is not topic_id:
                if before.topic_id != topic_id:
                    return None
                before.topic_id = topic_id  # so that nothing has changed next time
            if is_full or before.fetch_offset != state.fetch_offset:
                if moved is not None:
                    return None
                moved = key
        return moved

    def fill_alone(self, key: Key, fetch_offset: int, make: Callable[[], FetchRequest]) -> LoneFetch:
        """The request that names one partition of the session, which `only_moved` has found.

        Args:
            key: the partition.
            fetch_offset: where it is to be read now.
            make: makes a request with the consumer's settings, the first time.
        """
        asked = self._known.pop(key)
        self._known[key] = asked  # Kafka serves a session's partitions in the order in which they were last sent
        lone = asked.lone
        if lone is None or lone.request.session_id != self._id:
            request = make()
            request.session_id = self._id
            lone = asked.lone = LoneFetch(request, key[0], asked.topic_id, _partition(key[1], asked))
        asked.fetch_offset = lone.asked.fetch_offset = fetch_offset
        lone.request.session_epoch = self._epoch
        return lone

    def fill(self, request: FetchRequest, wanted: Mapping[Key, SessionPartition]) -> int | None:
        """Write the session, the partitions to send and those to forget into `request`.

        Returns:
            The highest version that may be used: 12 when a topic has no id, None for no limit.
        """
        uses_ids = True
        for asked in wanted.values():
            uses_ids = uses_ids and asked.topic_id.int != 0
        if uses_ids != self._uses_ids and self._id:
            self.reset()
        self._uses_ids = uses_ids
        if self._epoch == _INITIAL_EPOCH:
            wanted, self._known = _in_turn(wanted, self._known), {}
        request.session_id, request.session_epoch = self._id, self._epoch
        changed, forgotten = self._change(wanted)
        request.topics, request.forgotten_topics_data = _topics(changed), _forgotten(forgotten) if forgotten else []
        return None if uses_ids else 12

    def _change(
        self, wanted: Mapping[Key, SessionPartition],
    ) -> tuple[list[tuple[Key, SessionPartition]], dict[Key, SessionPartition]]:
        """Make `wanted` what is known; gives what is new to the broker, and what it is to forget."""
        known, count = self._known, 0
        changed: list[tuple[Key, SessionPartition]] = []
        forgotten: dict[Key, SessionPartition] = {}
        for key, asked in wanted.items():
            before = known.get(key)
            count += before is not None
            if before is None:
                changed.append((key, asked))
            elif before is not asked and not before.is_as(asked):
                changed.append((key, asked))
                if before.topic_id != asked.topic_id:
                    forgotten[key] = before
        fresh = len(wanted) > count
        if len(known) > count:
            forgotten.update((key, asked) for key, asked in known.items() if key not in wanted)
        for key in forgotten:
            del known[key]
        for key, asked in changed:  # Kafka serves a session's partitions in the order in which they were last sent
            known.pop(key, None)
            known[key] = asked
        if fresh or forgotten:
            self.names = {asked.topic_id.int: topic for (topic, _), asked in known.items()}
        return changed, forgotten

    def on_reply(self, reply: FetchResponse) -> bool:
        """Take the broker's answer; False when the session was lost and the reply holds no data."""
        if reply.error_code in _SESSION_LOST:
            if reply.error_code == ErrorCodes.FETCH_SESSION_ID_NOT_FOUND:
                self._id = 0
            self.reset()
            return False
        if reply.error_code:
            self.reset()
            return False
        if self._epoch == _INITIAL_EPOCH:
            self._id = reply.session_id
        if self._id == 0:  # the broker keeps no session for us: every request stays a full one
            return True
        self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        return True

    def reset(self) -> None:
        """Start again with a full request; the old session, if there is one, is closed by it."""
        self._epoch = _INITIAL_EPOCH
        self._known = {}


def _in_turn(wanted: Mapping[Key, SessionPartition], before: Mapping[Key, SessionPartition]) -> (
        Mapping[Key, SessionPartition]):
    """A broker without sessions serves partitions in the order of the request: those that got something come last."""
    if not before:
        return wanted
    served = {key for key, asked in wanted.items() if key in before and before[key].fetch_offset != asked.fetch_offset}
    order = [key for key in before if key in wanted and key not in served]
    order += [key for key in wanted if key not in before]
    order += [key for key in before if key in served]
    return {key: wanted[key] for key in order}


def _topics(partitions: Sequence[tuple[Key, SessionPartition]]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (topic, partition), asked in partitions:
        entry = topics.get(topic)
        if entry is None:
            entry = topics[topic] = FetchTopic(topic=topic, topic_id=asked.topic_id, partitions=[])
        entry.partitions.append(_partition(partition, asked))
    return list(topics.values())


def _partition(partition: int, asked: SessionPartition) -> FetchPartition:
    return FetchPartition(
        partition=partition,
        current_leader_epoch=asked.leader_epoch,
        fetch_offset=asked.fetch_offset,
        partition_max_bytes=asked.max_bytes,
    )


def _forgotten(partitions: Mapping[Key, SessionPartition]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, UUID], ForgottenTopic] = {}
    for (topic, partition), asked in partitions.items():
        entry = topics.setdefault(
            (topic, asked.topic_id), ForgottenTopic(topic=topic, topic_id=asked.topic_id, partitions=[]))
        entry.partitions.append(partition)
    return list(topics.values())
