"""Calls about the offsets of consumer groups: list, alter, delete, reset.

It must not know the faces. Read next: `machines.admin.offset_requests`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from headrace.arguments import instance_of, list_of
from headrace.client.admin.admin_area import (
    AdminArea,
    ByKey,
    Single,
    check_numbers,
    flag,
    partitions_of,
    texts_of,
    value_of,
    without_duplicates,
)
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import offset_requests as requests
from headrace.machines.admin import partition_requests
from headrace.machines.admin.admin_results import key_of
from headrace.types.admin import ListOffsetsResultInfo, OffsetSpec
from headrace.types.cluster import ConsumerGroupTopicPartitions
from headrace.types.groups import OffsetReset
from headrace.types.records import OFFSET_INVALID, TopicPartition

__all__ = ["OffsetCalls"]

_LATEST, _EARLIEST = OffsetSpec.latest().timestamp, OffsetSpec.earliest().timestamp
_NOWHERE = -1


class OffsetCalls(AdminArea):
    """Offsets of consumer groups."""

    def list_consumer_group_offsets(
        self, list_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions], *,
        require_stable: bool = False, request_timeout: float | None = None,
    ) -> ByKey[str, ConsumerGroupTopicPartitions]:
        """Find the offsets of a group. Futures by group id.

        Each resolves to the group, with a partition for each that was asked for, in that order: its offset or its
        error; the offset is -1001 where the group has none.

        Args:
            list_consumer_group_offsets_request: one group, and partitions; None stands for all that it has offsets of.
            require_stable: fail with UNSTABLE_OFFSET_COMMIT where a transaction is about to set an offset.
            request_timeout: seconds for the whole call.
        """
        group = _group_of(list_consumer_group_offsets_request, "list_consumer_group_offsets_request")
        partitions = None if group.topic_partitions is None else _some(group.topic_partitions)
        for tp in partitions or ():
            if tp.offset != OFFSET_INVALID:
                raise ValueError(f"{tp!r} has an offset: it is what is to be found")
        stable, limit_s = flag(require_stable, "require_stable"), self.limit(request_timeout)

        async def find() -> dict[str, ConsumerGroupTopicPartitions | KafkaError]:
            without_duplicates(map(key_of, partitions or ()), "partitions")
            return _wrapped(await self._committed(group.group_id, partitions, stable, limit_s))

        return ByKey([group.group_id], find)

    def alter_consumer_group_offsets(
        self, alter_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions], *,
        request_timeout: float | None = None,
    ) -> ByKey[str, ConsumerGroupTopicPartitions]:
        """Set offsets of a group without members. Futures by group id.

        Each resolves to the group, with the partitions as they were given, and the error of each.

        Args:
            alter_consumer_group_offsets_request: one group, and partitions with their new offsets.
            request_timeout: seconds for the whole call.
        """
        group = _group_of(alter_consumer_group_offsets_request, "alter_consumer_group_offsets_request")
        if group.topic_partitions is None:
            raise ValueError("topic_partitions is None: give the partitions and their new offsets")
        partitions = _some(group.topic_partitions)
        for tp in partitions:
            if tp.offset < 0:
                raise ValueError(f"{tp!r} has no offset")
        limit_s = self.limit(request_timeout)

        async def alter() -> dict[str, ConsumerGroupTopicPartitions | KafkaError]:
            without_duplicates(map(key_of, partitions), "partitions")
            return _wrapped(await self._set(group.group_id, partitions, limit_s))

        return ByKey([group.group_id], alter)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: list[TopicPartition], *, request_timeout: float | None = None
    ) -> ByKey[TopicPartition, None]:
        """Forget a group's offsets of partitions of which no member reads. Futures by partition."""
        (name,) = texts_of([group_id], "group_id")
        given = partitions_of(partitions, "partitions", filled=True)
        limit_s = self.limit(request_timeout)

        async def delete() -> dict[TopicPartition, KafkaError | None]:
            found = await self.engine.at_coordinators(
                [name], limit_s, lambda _: requests.delete_offsets(name, given),
                lambda reply, _: {name: requests.read_deleted_offsets(reply, name, given)})
            return {tp: tp.error for tp in value_of(found, name)}

        return ByKey(dict.fromkeys(given), delete)

    def reset_consumer_group_offsets(
        self, group_id: str, partitions: list[TopicPartition] | None = None, *, to: OffsetSpec | None = None,
        shift_by: int | None = None, by_duration: float | None = None, dry_run: bool = False,
        request_timeout: float | None = None,
    ) -> Single[dict[TopicPartition, OffsetReset]]:
        """Set the offsets of a group without members. The result says where each was, and where it is now.

        One of `to`, `shift_by` and `by_duration` says where. What lies before the first record, or behind the last, is
        moved there; a time behind the last record is the end.

        Args:
            group_id: the group.
            partitions: which; None for all that it has offsets of.
            to: the first, the last, or those at a time.
            shift_by: so many records forward, or with a negative number back.
            by_duration: so many seconds before now.
            dry_run: say what would be done, and do nothing.
            request_timeout: seconds for the whole call.

        Raises:
            KafkaException: the group has members, a right is missing, or a partition has an error.
        """
        (name,) = texts_of([group_id], "group_id")
        given = None if partitions is None else partitions_of(partitions, "partitions", filled=True)
        if [to, shift_by, by_duration].count(None) != 2:
            raise ValueError("give one of to, shift_by and by_duration")
        if by_duration is not None:
            to = OffsetSpec.for_timestamp(max(int((time.time() - by_duration) * 1000), 0))
        only_said, limit_s = flag(dry_run, "dry_run"), self.limit(request_timeout)

        async def reset() -> dict[TopicPartition, OffsetReset]:
            committed = value_of(await self._committed(name, given, False, limit_s), name)
            for tp in committed:
                if tp.error is not None:
                    raise KafkaException(tp.error)
            before = {tp: tp.offset if tp.offset >= 0 else _NOWHERE for tp in committed}
            after = await (self._found(before, to, limit_s) if to is not None
                           else self._shifted(before, shift_by or 0, limit_s))
            if not only_said and after:
                wanted = [TopicPartition(tp.topic, tp.partition, offset) for tp, offset in after.items()]
                for tp in value_of(await self._set(name, wanted, limit_s), name):
                    if tp.error is not None:
                        raise KafkaException(tp.error)
            return {tp: OffsetReset(before[tp], after[tp]) for tp in before}

        return reset()

    async def _found(
        self, before: Mapping[TopicPartition, int], to: OffsetSpec, limit_s: float
    ) -> dict[TopicPartition, int]:
        """Offsets at a time; the end where no record is that late."""
        found = await self._offsets(dict.fromkeys(before, to.timestamp), limit_s)
        beyond = [tp for tp, offset in found.items() if offset < 0]
        return {**found, **await self._offsets(dict.fromkeys(beyond, _LATEST), limit_s)}

    async def _shifted(
        self, before: Mapping[TopicPartition, int], by: int, limit_s: float
    ) -> dict[TopicPartition, int]:
        """Offsets that are some records away, and still in the partition."""
        nowhere = [tp for tp, offset in before.items() if offset < 0]
        if nowhere:
            raise KafkaException(KafkaError(KafkaError._NO_OFFSET, f"{nowhere[0].topic}[{nowhere[0].partition}] has no "
                                                                   "offset that could be shifted"))
        first = await self._offsets(dict.fromkeys(before, _EARLIEST), limit_s)
        last = await self._offsets(dict.fromkeys(before, _LATEST), limit_s)
        return {tp: min(max(offset + by, first[tp]), last[tp]) for tp, offset in before.items()}

    async def _offsets(self, times: Mapping[TopicPartition, int], limit_s: float) -> dict[TopicPartition, int]:
        if not times:
            return {}
        found: dict[TopicPartition, ListOffsetsResultInfo | KafkaError] = await self.engine.at_leaders(
            times, limit_s, lambda part, left_s: partition_requests.list_offsets(part, 0, left_s),
            partition_requests.read_offsets)
        return {tp: value_of(found, tp).offset for tp in found}

    async def _committed(
        self, name: str, partitions: list[TopicPartition] | None, stable: bool, limit_s: float
    ) -> dict[str, list[TopicPartition] | KafkaError]:
        return await self.engine.at_coordinators(
            [name], limit_s, lambda _: requests.fetch_offsets(name, partitions, stable),
            lambda reply, _: {name: requests.read_fetched(reply, name, partitions)},
            max_version=requests.LAST_FETCH_OF_ONE)

    async def _set(
        self, name: str, partitions: list[TopicPartition], limit_s: float
    ) -> dict[str, list[TopicPartition] | KafkaError]:
        return await self.engine.at_coordinators(
            [name], limit_s, lambda _: requests.alter_offsets(name, partitions),
            lambda reply, _: {name: requests.read_altered_offsets(reply, name, partitions)},
            max_version=requests.LAST_COMMIT_BY_NAME)


def _group_of(given: Any, name: str) -> ConsumerGroupTopicPartitions:
    groups = list_of(ConsumerGroupTopicPartitions, given, name)
    if len(groups) != 1:
        raise ValueError(f"{name} has {len(groups)} groups: give one")
    if not instance_of(str, groups[0].group_id, "group_id"):
        raise ValueError("group_id is empty")
    return groups[0]


def _some(given: Any) -> list[TopicPartition]:
    partitions = list_of(TopicPartition, given, "topic_partitions", filled=True)
    check_numbers(partitions, named=True)
    return partitions


def _wrapped(
    found: Mapping[str, list[TopicPartition] | KafkaError]
) -> dict[str, ConsumerGroupTopicPartitions | KafkaError]:
    return {name: each if isinstance(each, KafkaError) else ConsumerGroupTopicPartitions(name, each)
            for name, each in found.items()}
