"""Committed offsets of groups, those that wait for the end of a transaction, and the journal that keeps both.

Offsets of a transaction become the group's when it commits, unless the group has committed the same partition after
them. Until then they are unstable: a client that asks for stable offsets has to wait.

The journal has one line per commit (see `broker.storage.journal`) and is rewritten without history when the broker
starts. Source: KIP-98, KIP-447, Java's `OffsetMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from headrace.broker.storage.journal import Journal

__all__ = ["Committed", "OffsetStore"]


class Committed(NamedTuple):
    """A committed offset: the next one to read, its leader epoch (-1 unknown), the application's note, and how many
    were committed before it.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    order: int = 0


TopicIndex = tuple[str, int]
Offsets = dict[TopicIndex, Committed]


class OffsetStore:
    """Committed offsets by group, topic and partition.

    Args:
        path: the journal; None keeps offsets in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._groups: dict[str, Offsets] = {}
        self._pending: dict[int, dict[str, Offsets]] = {}
        """By producer id and group."""
        self._order = 0
        self._journal = Journal(path, self._entries)
        for entry in self._journal.read():
            self._replay(entry)
        self._journal.begin()

    def commit(self, group: str, entries: Iterable[tuple[TopicIndex, Committed]]) -> None:
        """Store offsets of one group, durably before it returns."""
        entries = list(entries)
        self._journal.append([group, *where, *committed[:3]] for where, committed in entries)
        self._groups.setdefault(group, {}).update(self._numbered(entries))

    def fetch(self, group: str) -> Offsets:
        """All offsets of a group."""
        return self._groups.get(group, {})

    def groups(self) -> list[str]:
        """Every group that has committed, or was about to."""
        return list(self._groups)

    def knows(self, group: str) -> bool:
        """Whether a group has committed, or was about to."""
        return group in self._groups

    def stage(self, producer_id: int, group: str, entries: Iterable[tuple[TopicIndex, Committed]]) -> None:
        """Keep offsets until the producer's transaction ends, durably before it returns."""
        entries = list(entries)
        self._journal.append([group, *where, *committed[:3], producer_id] for where, committed in entries)
        self._groups.setdefault(group, {})
        self._pending.setdefault(producer_id, {}).setdefault(group, {}).update(self._numbered(entries))

    def settle(self, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended: its offsets become the groups', or are forgotten."""
        if producer_id in self._pending:
            self._journal.append([{"producer_id": producer_id, "commit": commit}])
            self._settle(producer_id, commit)

    def unstable(self, group: str) -> set[TopicIndex]:
        """The partitions of a group whose offsets an open transaction may change."""
        return {where for each in self._pending.values() for where in each.get(group, {})}

    def forget_group(self, group: str) -> None:
        """Remove a group's offsets."""
        if self.knows(group):
            self._journal.append([[group]])
            self._drop_group(group)

    def forget(self, group: str, where: Iterable[TopicIndex]) -> None:
        """Remove single offsets of a group."""
        known = self.unstable(group) | self.fetch(group).keys()
        gone = [each for each in where if each in known]
        self._journal.append([group, *each] for each in gone)
        for each in gone:
            self._drop(group, each)

    def forget_topics(self, topics: Collection[str]) -> None:
        """Remove the offsets of topics that were deleted: of all at once, for all offsets are looked through."""
        for group in self.groups():
            self.forget(group, [where for where in self.unstable(group) | self.fetch(group).keys()
                                if where[0] in topics])

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _numbered(self, entries: Iterable[tuple[TopicIndex, Committed]]) -> Iterator[tuple[TopicIndex, Committed]]:
        for where, committed in entries:
            self._order += 1
            yield where, committed._replace(order=self._order)

    def _settle(self, producer_id: int, commit: bool) -> None:
        for group, entries in self._pending.pop(producer_id, {}).items():
            offsets = self._groups.setdefault(group, {}) if commit else {}
            for where, found in entries.items():
                if where not in offsets or offsets[where].order < found.order:
                    offsets[where] = found

    def _drop_group(self, group: str) -> None:
        self._groups.pop(group, None)
        for each in self._pending.values():
            each.pop(group, None)

    def _drop(self, group: str, where: TopicIndex) -> None:
        for entries in (self._groups.get(group, {}), *(each.get(group, {}) for each in self._pending.values())):
            entries.pop(where, None)

    def _replay(self, entry: Any) -> None:
        if isinstance(entry, dict):
            self._settle(entry["producer_id"], entry["commit"])
            return
        group, *rest = entry
        if not rest:
            self._drop_group(group)
            return
        topic, partition, *value = rest
        if not value:
            self._drop(group, (topic, partition))
            return
        offset, epoch, metadata, *producer_id = value
        self._groups.setdefault(group, {})
        groups = self._pending.setdefault(producer_id[0], {}) if producer_id else self._groups
        groups.setdefault(group, {}).update(self._numbered([((topic, partition), Committed(offset, epoch, metadata))]))

    def _entries(self) -> list[Any]:
        """What the journal must say for the present state, in the order in which it came about."""
        found = [(each.order, [group, *where, *each[:3]])
                 for group, offsets in self._groups.items() for where, each in offsets.items()]
        found += [(each.order, [group, *where, *each[:3], producer_id])
                  for producer_id, groups in self._pending.items()
                  for group, offsets in groups.items() for where, each in offsets.items()]
        return [line for _, line in sorted(found)]
