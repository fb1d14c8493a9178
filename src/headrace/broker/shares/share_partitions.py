"""All that share groups know of partitions, by group, topic and partition, and the journal that keeps it.

A group knows a partition from when its coordinator has heard that it is read; where it begins is found out by the first
fetch. The journal has one line for each change, with the whole state of the partition: a few runs as a rule, and never
more than a group may be at. Who holds what is not written down.

It knows no requests and no sessions. Read next: `broker.shares.share_partition`, `broker.apis.share_records`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from headrace.broker.coordinators.group_configs import GroupConfigs
from headrace.broker.deadlines import Deadlines
from headrace.broker.purgatory import Purgatory
from headrace.broker.shares.share_partition import SharePartition, ShareRules
from headrace.broker.storage.journal import Journal
from headrace.broker.storage.partition import Partition

__all__ = ["ShareKey", "SharePartitions"]


class ShareKey(NamedTuple):
    """A partition of a group."""

    group_id: str
    topic_id: UUID
    partition: int


class SharePartitions:
    """The partitions of all share groups.

    Args:
        configs: what is set on groups.
        deadlines: where the ends of locks are noted.
        purgatory: fetches wait there for what comes back.
        path: the journal; None keeps all in memory.
    """

    def __init__(self, configs: GroupConfigs, deadlines: Deadlines, purgatory: Purgatory,
                 path: Path | None = None) -> None:
        self._configs, self._deadlines, self._purgatory = configs, deadlines, purgatory
        self._known: dict[ShareKey, SharePartition | None] = {}
        self._epochs: dict[ShareKey, int] = {}
        """The leader's epoch in which a partition was last used."""
        self._journal = Journal(path, self._entries)
        for entry in self._journal.read():
            self._replay(entry)
        self._journal.begin()

    def prepare(self, keys: Iterable[ShareKey]) -> None:
        """Know partitions from now on, wherever the group will begin there."""
        for key in keys:
            if key not in self._known:
                self._known[key] = None
                self._journal.append([[key.group_id, str(key.topic_id), key.partition]])

    def knows(self, key: ShareKey) -> bool:
        """Whether a group has this partition."""
        return key in self._known

    def get(self, key: ShareKey) -> SharePartition | None:
        """What a group knows of a partition; None before it has begun there."""
        return self._known.get(key)

    def use(self, key: ShareKey, log_partition: Partition, start_offset: int) -> SharePartition:
        """What a group knows of a partition, for its leader.

        Args:
            key: it must be known.
            log_partition: the partition; it must be led.
            start_offset: where the group begins, if it has not begun there.
        """
        found = self._known[key]
        if found is None:
            found = self._known[key] = self._made(key, start_offset)
        if self._epochs.setdefault(key, log_partition.leader_epoch) != log_partition.leader_epoch:
            found.forget_holders()
            self._epochs[key] = log_partition.leader_epoch
        if found.records.start_offset < log_partition.log.start_offset:
            found.records.skip_to(log_partition.log.start_offset)
        return found

    def begin_at(self, key: ShareKey, offset: int) -> None:
        """Let a group without members go on from an offset."""
        made = self._known[key] = self._made(key, offset)
        made.written_start = offset
        self._journal.append([self._entry(key, made)])

    def begin_anew(self, group_id: str) -> None:
        """A group has no members any more. Where it has done nothing, it begins by its settings the next time: leaders
        in Kafka let go then of what is not written down.
        """
        for key in self.of_group(group_id):
            found = self._known[key]
            if found is not None and found.written_start < 0 and not found.records:
                self._known[key] = None

    def groups(self) -> set[str]:
        """Every group that has a partition."""
        return {key.group_id for key in self._known}

    def of_group(self, group_id: str) -> list[ShareKey]:
        """The partitions of a group, in order."""
        return sorted(key for key in self._known if key.group_id == group_id)

    def forget(self, keys: Iterable[ShareKey]) -> None:
        """Know nothing of partitions."""
        for key in list(keys):
            self._known.pop(key, None)
            self._epochs.pop(key, None)
            self._journal.append([[key.group_id, str(key.topic_id), key.partition, None]])

    def forget_topics(self, topic_ids: Collection[UUID]) -> None:
        """Topics were deleted."""
        self.forget([key for key in self._known if key.topic_id in topic_ids])

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _made(self, key: ShareKey, start_offset: int) -> SharePartition:
        def changed(partition: SharePartition) -> None:
            if self._known.get(key) is partition:
                self._journal.append([self._entry(key, partition)])
                self._purgatory.wake(partition)

        return SharePartition(start_offset, lambda: self._rules(key.group_id), self._deadlines, changed)

    def _rules(self, group_id: str) -> ShareRules:
        number = self._configs.number
        return ShareRules(number(group_id, "share.record.lock.duration.ms") / 1000,
                          number(group_id, "share.delivery.count.limit"),
                          number(group_id, "share.partition.max.record.locks"))

    def _entry(self, key: ShareKey, partition: SharePartition) -> list[Any]:
        return [key.group_id, str(key.topic_id), key.partition, partition.records.start_offset, partition.kept()]

    def _entries(self) -> Iterator[list[Any]]:
        """What the journal must say for the present state."""
        for key, partition in self._known.items():
            yield [key.group_id, str(key.topic_id), key.partition] if partition is None else self._entry(key, partition)

    def _replay(self, entry: list[Any]) -> None:
        group_id, topic_id, index, *state = entry
        key = ShareKey(group_id, UUID(topic_id), index)
        if not state:
            self._known[key] = None
        elif state[0] is None:
            self._known.pop(key, None)
        else:
            made = self._known[key] = self._made(key, state[0])
            made.restore(state[1])
            made.written_start = state[0]
