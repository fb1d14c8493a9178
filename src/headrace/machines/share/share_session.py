"""The share session with one broker: which partitions it covers, and the number of its next request (KIP-932).

A broker keeps the records that a member holds together with its session, and releases them when the session ends: by
the last request, by a new session, or with the connection. So what was acquired in a session is acknowledged in it or
not at all. This module plans one request at a time and must not know who leads partitions, or time.

Source: Java's `ShareSessionHandler`. Read next: `machines.share.share_fetcher`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar
from uuid import UUID

from headrace.machines.consumer.subscription import Key
from headrace.machines.share.acknowledgements import Acknowledgements, batches_of
from headrace.wire.messages.groups.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchAcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
    ShareForgottenTopic,
)

__all__ = ["ShareSession"]

T = TypeVar("T")
Place = tuple[UUID, int]
"""A topic's id and a partition's number."""

_FIRST_EPOCH: Final = 0
_LAST_REQUEST: Final = -1
_MAX_EPOCH: Final = 2**31 - 1


class ShareSession:
    """One session with one broker. At most one request of it may be on the wire.

    Args:
        node: id of the broker.

    Attributes:
        node: as given.
        epoch: number of the next request; 0 before the broker knows the session.
        lost: it has ended: what was acquired in it is not held any more.
        known: the partitions that it covers, with their topics' ids.
    """

    def __init__(self, node: int) -> None:
        self.node = node
        self.epoch = _FIRST_EPOCH
        self.lost = False
        self.known: dict[Key, UUID] = {}

    @property
    def is_open(self) -> bool:
        """Whether the broker knows it."""
        return self.epoch != _FIRST_EPOCH and not self.lost

    def fill_fetch(
        self, request: ShareFetchRequest, wanted: Mapping[Key, UUID], acknowledgements: Iterable[Acknowledgements]
    ) -> None:
        """Write the session, the partitions that are new to it, those to forget, and acknowledgements into a request.

        Args:
            request: with the settings of the consumer.
            wanted: partitions to fetch from.
            acknowledgements: of partitions that are wanted.
        """
        new = {key: topic_id for key, topic_id in wanted.items() if self.known.get(key) != topic_id}
        gone = {key: topic_id for key, topic_id in self.known.items() if wanted.get(key) != topic_id}
        self.known = dict(wanted)
        partitions = {(topic_id, key[1]): ShareFetchPartition(partition_index=key[1])
                      for key, topic_id in new.items()}
        for place, parts in _by_partition(acknowledgements).items():
            part = partitions.setdefault(place, ShareFetchPartition(partition_index=place[1]))
            part.acknowledgement_batches = [
                FetchAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                for first, last, types in batches_of(parts)]
        request.share_session_epoch = self.epoch
        request.topics = [ShareFetchTopic(topic_id=topic_id, partitions=parts)
                          for topic_id, parts in _by_topic(partitions).items()]
        request.forgotten_topics_data = [
            ShareForgottenTopic(topic_id=topic_id, partitions=numbers) for topic_id, numbers in _by_topic(
                {(topic_id, key[1]): key[1] for key, topic_id in gone.items()}).items()]

    def fill_acknowledge(
        self, request: ShareAcknowledgeRequest, acknowledgements: Iterable[Acknowledgements], *, last: bool = False
    ) -> None:
        """Write the session and acknowledgements into a request.

        Args:
            request: with the group and the member.
            acknowledgements: of records that were acquired in this session.
            last: end the session: the broker releases what is left.
        """
        partitions: dict[Place, AcknowledgePartition] = {}
        for place, parts in _by_partition(acknowledgements).items():
            partitions[place] = AcknowledgePartition(partition_index=place[1], acknowledgement_batches=[
                AcknowledgementBatch(first_offset=start, last_offset=end, acknowledge_types=types)
                for start, end, types in batches_of(parts)])
            request.is_renew_ack |= any(part.renews for part in parts)
        request.share_session_epoch = _LAST_REQUEST if last else self.epoch
        request.topics = [AcknowledgeTopic(topic_id=topic_id, partitions=parts)
                          for topic_id, parts in _by_topic(partitions).items()]

    def answered(self) -> None:
        """The broker took the request: the next one has the next number."""
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1

    def end(self) -> None:
        """The session is over, or nobody knows: the next request begins another one."""
        self.lost = True


def _by_partition(acknowledgements: Iterable[Acknowledgements]) -> dict[Place, list[Acknowledgements]]:
    found: dict[Place, list[Acknowledgements]] = {}
    for each in acknowledgements:
        found.setdefault((each.topic_id, each.key[1]), []).append(each)
    return found


def _by_topic(partitions: Mapping[Place, T]) -> dict[UUID, list[T]]:
    topics: dict[UUID, list[T]] = {}
    for (topic_id, _), part in partitions.items():
        topics.setdefault(topic_id, []).append(part)
    return topics
