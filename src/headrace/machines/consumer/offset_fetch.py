"""OffsetFetch in both its forms: one group up to version 7, a list of groups with member epochs and topic ids after.

A member of a group that the coordinator plans for (KIP-848) names itself, so that one that was replaced reads no
offsets. Which form it is follows from the version, which is known where the request is written (`Send.for_version`).
It must not decide anything: `machines.consumer.group_offsets` does. Source: KIP-709, KIP-848, KIP-516.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from headrace.machines.consumer.subscription import Key
from headrace.slotted import slotted
from headrace.types.records import ConsumerGroupMetadata
from headrace.wire.messages.consumer.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from headrace.wire.schema import Request

__all__ = ["LAST_AS_NOBODY", "CommittedOffsetsQuestion"]

LAST_AS_NOBODY: Final = 7
"""The last version of the form for one group, which names no member."""
_LAST_BY_NAME: Final = 9
_STABLE_FROM: Final = 7
_NO_ID: Final = UUID(int=0)

Answer = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


@slotted(eq=False)
class CommittedOffsetsQuestion:
    """What one request asks for.

    Attributes:
        topics: partitions by topic.
        ids: topic ids by name, of those that are known.
        member: who asks; None where no member is named.
    """

    topics: Mapping[str, list[int]]
    ids: Mapping[str, UUID]
    member: ConsumerGroupMetadata | None

    def request(self, group_id: str, *, require_stable: bool) -> OffsetFetchRequest:
        """The request, in the form for one group."""
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                  for name, numbers in self.topics.items()]
        return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)

    @property
    def max_version(self) -> int | None:
        """The highest version in which it can be asked; None for any."""
        if self.member is None:
            return LAST_AS_NOBODY
        return None if all(name in self.ids for name in self.topics) else _LAST_BY_NAME

    def for_version(self, request: Request, version: int) -> Request:
        """The request in the form of a version. Brokers that wait for no transactions are not asked to, as in Java."""
        assert isinstance(request, OffsetFetchRequest)
        if version < _STABLE_FROM and request.require_stable:
            return OffsetFetchRequest(group_id=request.group_id, topics=request.topics)
        if version <= LAST_AS_NOBODY:
            return request
        member = self.member
        is_member = member is not None and member.generation >= 0
        topics = [OffsetFetchRequestTopics(name=name, topic_id=self.ids.get(name, _NO_ID), partition_indexes=numbers)
                  for name, numbers in self.topics.items()]
        group = OffsetFetchRequestGroup(
            group_id=request.group_id, topics=topics,
            member_id=member.member_id if member is not None and is_member else None,
            member_epoch=member.generation if member is not None and is_member else -1)
        return OffsetFetchRequest(groups=[group], require_stable=request.require_stable)

    def answers(self, reply: OffsetFetchResponse) -> tuple[int, dict[Key, Answer]]:
        """The error of the whole answer, and the answers by partition."""
        if not reply.groups:
            return reply.error_code, {
                (topic.name, part.partition_index): part for topic in reply.topics for part in topic.partitions}
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return reply.groups[0].error_code, {
            (topic.name or names.get(topic.topic_id, ""), part.partition_index): part
            for topic in reply.groups[0].topics for part in topic.partitions}
