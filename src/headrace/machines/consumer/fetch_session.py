"""Incremental fetch sessions (KIP-227): send a broker only what changed since the last fetch.

A broker remembers the partitions of a session; a request then names the partitions that are new or moved, and those
to forget. The session keeps what is wanted beside what the broker knows, and where the two may differ: a partition to
which nothing has happened is not even looked at. This module plans one request at a time for one broker and must not
know about partitions' phases or time.

Source: Java's `FetchSessionHandler`. Read next: `machines.consumer.fetch_plan`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.error_codes import ErrorCodes
from headrace.machines.consumer.subscription import Key, PartitionState
from headrace.slotted import slotted
from headrace.wire.messages.consumer.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

if TYPE_CHECKING:  # made when the first record comes alone
    from headrace.machines.consumer.lone_fetch import LoneFetch

__all__ = ["FetchSession", "SessionPartition", "WantedPartition"]

_INITIAL_EPOCH, _MAX_EPOCH, _NO_SESSION = 0, 2**31 - 1, -1
_SESSION_LOST = (
    ErrorCodes.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCodes.INVALID_FETCH_SESSION_EPOCH,
    ErrorCodes.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCodes.INCONSISTENT_TOPIC_ID,
)

WantedPartition = tuple[PartitionState, UUID, int]
"""A partition to fetch: its state, its topic's id, and the epoch of its leader."""


@slotted(eq=False)
class SessionPartition:
    """What the broker was asked last for one partition.

    Attributes:
        state: of the partition; epoch: its epoch at that time.
    """

    state: PartitionState
    epoch: int
    topic_id: UUID
    leader_epoch: int
    fetch_offset: int
    max_bytes: int


class FetchSession:
    """The session with one broker; at most one request of it may be on the wire.

    Attributes:
        wanted: the partitions to ask for; changed by `want` and `leave` only.
        known: what the broker was asked for last, which is what a reply on its way answers. After `reset` another one.
        left_out: partitions that are not wanted for now, because too much of them is in the queue.
        is_brief: the broker does not hold the request on the wire back, as something was left out.
        late: partitions that came to be wanted, or moved by more than reading, since the request on the wire was sent.
        names: topic names by their ids as integers, for replies that carry ids only.
    """

    def __init__(self) -> None:
        self._id = 0
        self._epoch = _INITIAL_EPOCH
        self._uses_ids = False
        self._is_thinned = False
        self._changed: dict[Key, None] = {}  # where `wanted` and `known` may differ
        self._without_id: set[Key] = set()
        self.wanted: dict[Key, WantedPartition] = {}
        self.known: dict[Key, SessionPartition] = {}
        self.left_out: set[Key] = set()
        self.is_brief = False
        self.late: dict[Key, WantedPartition] = {}
        self._asked_late: dict[Key, int] = {}  # with the offset that was asked for
        self._lone: dict[str, LoneFetch] = {}
        self.names: dict[int, str] = {}

    def want(self, key: Key, partition: WantedPartition) -> None:
        """Ask for a partition from its present offset."""
        self.wanted[key] = partition
        self._changed[key] = None
        if not partition[1].int:
            self._without_id.add(key)
        elif self._without_id:
            self._without_id.discard(key)

    def want_late(self, key: Key) -> None:
        """Have a partition in `late`, if the request on the wire does not ask for it as it is now."""
        partition, asked = self.wanted[key], self.known.get(key)
        if not _covers(asked, partition[0]):
            self.late[key] = partition

    def asks_for_all(self, wanted: Mapping[Key, WantedPartition]) -> bool:
        """Whether the request that was sent last asks for all of these as they are now."""
        return all(_covers(self.known.get(key), state) for key, (state, _, _) in wanted.items())

    def leave(self, key: Key) -> None:
        """Ask for a partition no more."""
        if self.late:
            self.late.pop(key, None)
        if self.wanted.pop(key, None) is not None:
            self._changed[key] = None
            self._without_id.discard(key)

    def leave_all(self) -> None:
        """Ask for none; those that are wanted again before the next request are not told anew."""
        self.wanted, self._changed, self._is_thinned = {}, dict.fromkeys(self.known), True
        self._without_id.clear()
        self.left_out.clear()
        self.late.clear()

    def only_moved(self, max_bytes: int) -> Key | None:
        """The only partition whose offset has changed since last time; None if there is none, or if more has changed.

        With a broker that keeps no session: the only partition that there is, whatever its offset.

        Args:
            max_bytes: most bytes of each partition.
        """
        known, wanted, moved = self.known, self.wanted, None
        is_full = self._epoch == _INITIAL_EPOCH
        if len(known) != len(wanted) or (is_full and (self._id or len(wanted) > 1)):
            return None
        for key in wanted if is_full else self._changed:
            partition, before = wanted.get(key), known.get(key)
            if partition is None or before is None:
                return None
            state, topic_id, leader_epoch = partition
            if before.leader_epoch != leader_epoch or before.max_bytes != max_bytes:
                return None
            if before.topic_id is not topic_id:
                if before.topic_id != topic_id:
                    return None
                before.topic_id = topic_id  # so that nothing has changed next time
            if is_full or before.fetch_offset != state.fetch_offset:
                if moved is not None:
                    return None
                moved = key
            else:  # perhaps sought to where it is
                before.state, before.epoch = state, state.epoch
        return moved

    def fill_alone(self, key: Key, most_bytes: int, make: Callable[[], FetchRequest]) -> LoneFetch:
        """The request that names one partition of the session, which `only_moved` has found.

        Args:
            key: the partition.
            most_bytes: of the reply. Where it has changed, a new request is made.
            make: makes a request with this limit and the consumer's settings.
        """
        asked = self.known.pop(key)
        self.known[key] = asked  # Kafka serves a session's partitions in the order in which they were last sent
        self._changed.clear()
        if self.late:
            self.late.clear()
            self._asked_late.clear()
        asked.state = state = self.wanted[key][0]
        asked.epoch = state.epoch
        asked.fetch_offset = state.fetch_offset
        topic, partition = key
        lone = self._lone.get(topic)
        if lone is None or lone.request.session_id != self._id or lone.request.max_bytes != most_bytes or (
                lone.topic_id is not asked.topic_id and lone.topic_id != asked.topic_id):
            from headrace.machines.consumer.lone_fetch import LoneFetch

            request = make()
            request.session_id = self._id
            lone = self._lone[topic] = LoneFetch(request, topic, asked.topic_id, _partition(partition, asked))
        lone.topic_id = asked.topic_id  # so that they are one object next time
        part = lone.asked
        part.partition = lone.expected.partition_index = partition
        part.current_leader_epoch, part.fetch_offset = asked.leader_epoch, asked.fetch_offset
        lone.request.session_epoch = self._epoch
        return lone

    def fill(self, request: FetchRequest, max_bytes: int) -> int | None:
        """Write the session, the partitions to send and those to forget into `request`.

        Args:
            request: with the consumer's settings.
            max_bytes: most bytes of each partition.

        Returns:
            The highest version that may be used: 12 when a topic has no id, None for no limit.
        """
        uses_ids = not self._without_id
        if uses_ids != self._uses_ids and self._id:
            self.reset()
        self._uses_ids = uses_ids
        if self._epoch == _INITIAL_EPOCH:
            keys, self.known, self._is_thinned = _in_turn(self.wanted, self.known), {}, True
        else:
            keys = self._changed
        request.session_id, request.session_epoch = self._id, self._epoch
        changed, forgotten = self._change(keys, max_bytes)
        self._changed.clear()
        self.late.clear()
        self._asked_late.clear()
        request.topics, request.forgotten_topics_data = _topics(changed), _forgotten(forgotten) if forgotten else []
        return None if uses_ids else 12

    def fill_late(self, request: FetchRequest, max_bytes: int, most: int) -> tuple[FetchSession, int | None]:
        """Write late partitions into a request that belongs to no session, those first that wait longest.

        Args:
            request: with the consumer's settings. The broker is not to hold it back while other partitions wait that
                were never asked for.
            max_bytes: most bytes of each partition.
            most: partitions to ask for at most.

        Returns:
            What keeps that request in place of a session, and the highest version, as of `fill`.
        """
        once, late, asked = FetchSession(), self.late, self._asked_late
        chosen = list(itertools.islice(late, most))
        # Those that got something last time come last: the broker fills its reply in this order.
        chosen.sort(key=lambda key: asked.get(key) not in (None, late[key][0].fetch_offset))
        for key in chosen:
            partition = late.pop(key)
            once.want(key, partition)
            asked[key] = partition[0].fetch_offset
        if late and next(iter(late)) not in asked:
            request.max_wait_ms = 0
        max_version = once.fill(request, max_bytes)
        request.session_epoch = _NO_SESSION
        return once, max_version

    def _change(
        self, keys: Iterable[Key], max_bytes: int
    ) -> tuple[list[tuple[Key, SessionPartition]], dict[Key, SessionPartition]]:
        """Make what is wanted of these partitions known; gives what is new to the broker, and what it is to forget."""
        known, wanted, names = self.known, self.wanted, self.names
        changed: list[tuple[Key, SessionPartition]] = []
        forgotten: dict[Key, SessionPartition] = {}
        for key in keys:
            partition, before = wanted.get(key), known.get(key)
            if partition is None:
                if before is not None:
                    forgotten[key] = known.pop(key)
                continue
            state, topic_id, leader_epoch = partition
            if before is None:
                names[topic_id.int] = key[0]
            elif before.topic_id is not topic_id and before.topic_id != topic_id:
                forgotten[key] = before
                names[topic_id.int] = key[0]
            elif (before.fetch_offset == state.fetch_offset and before.leader_epoch == leader_epoch
                    and before.max_bytes == max_bytes):
                before.state, before.epoch = state, state.epoch
                continue
            changed.append((key, SessionPartition(
                state, state.epoch, topic_id, leader_epoch, state.fetch_offset, max_bytes)))
        for key, asked in changed:  # Kafka serves a session's partitions in the order in which they were last sent
            known.pop(key, None)
            known[key] = asked
        if self._is_thinned:  # some topics may have gone for good
            self._is_thinned = False
            self.names = {asked.topic_id.int: topic for (topic, _), asked in known.items()}
            self._lone.clear()
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

    def lone_of(self, topic: str) -> LoneFetch | None:
        """How one partition of a topic is asked for in this session; None if that never was, or there is no session."""
        lone = self._lone.get(topic)
        return lone if self._id and lone is not None and lone.request.session_id == self._id else None

    def taken_back(self, topic: str, epoch: int, partition: int) -> None:
        """A thread went on with the session. The offsets of its partitions have moved already.

        Args:
            topic: of the partitions.
            epoch: of the request in flight.
            partition: what that asks for; -1 for nothing new, and for several.
        """
        self._epoch = epoch
        lone = self._lone[topic]
        lone.request.session_epoch = epoch
        if partition >= 0:
            lone.asked.partition = lone.expected.partition_index = partition

    def reset(self) -> None:
        """Start again with a full request; the old session, if there is one, is closed by it."""
        self._epoch = _INITIAL_EPOCH
        self.known = {}


def _covers(asked: SessionPartition | None, state: PartitionState) -> bool:
    return asked is not None and asked.state is state and asked.epoch == state.epoch


def _in_turn(wanted: Mapping[Key, WantedPartition], before: Mapping[Key, SessionPartition]) -> Iterable[Key]:
    """A broker without sessions serves partitions in the order of the request: those that got something come last."""
    if not before:
        return wanted
    served = {key for key, (state, _, _) in wanted.items()
              if key in before and before[key].fetch_offset != state.fetch_offset}
    order = [key for key in before if key in wanted and key not in served]
    order += [key for key in wanted if key not in before]
    return order + [key for key in before if key in served]


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
