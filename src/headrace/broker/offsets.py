"""Committed offsets of groups, and the journal that keeps them.

The journal is a file of one JSON line per commit, written through to the operating system before the commit is
acknowledged; reading it from the start gives the state, and a torn last line is a commit that nobody was told of. It is
rewritten without history when the broker starts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Committed", "OffsetStore"]


class Committed(NamedTuple):
    """A committed offset: the next one to read, its leader epoch (-1 unknown) and the application's note."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


TopicIndex = tuple[str, int]


class OffsetStore:
    """Committed offsets by group, topic and partition.

    Args:
        path: the journal; None keeps offsets in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._groups: dict[str, dict[TopicIndex, Committed]] = {}
        self._fd = -1
        if path is not None:
            self._read(path)
            self._fd = self._rewrite(path)

    def commit(self, group: str, entries: Iterable[tuple[TopicIndex, Committed]]) -> None:
        """Store offsets of one group, durably before it returns."""
        entries = list(entries)
        self._append([_line(group, where, committed) for where, committed in entries])
        self._groups.setdefault(group, {}).update(entries)

    def fetch(self, group: str) -> dict[TopicIndex, Committed]:
        """All offsets of a group."""
        return self._groups.get(group, {})

    def groups(self) -> list[str]:
        """Every group that has committed."""
        return list(self._groups)

    def forget_group(self, group: str) -> None:
        """Remove a group's offsets."""
        if self._groups.pop(group, None) is not None:
            self._append([json.dumps([group])])

    def forget(self, group: str, where: Iterable[TopicIndex]) -> None:
        """Remove single offsets of a group."""
        entries = self._groups.get(group, {})
        gone = [each for each in where if entries.pop(each, None) is not None]
        self._append([json.dumps([group, *each]) for each in gone])

    def forget_topic(self, topic: str) -> None:
        """Remove the offsets of a topic that was deleted."""
        for group, entries in self._groups.items():
            gone = [where for where in entries if where[0] == topic]
            for where in gone:
                del entries[where]
            self._append([json.dumps([group, *where]) for where in gone])

    def close(self) -> None:
        """Close the journal."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _append(self, lines: list[str]) -> None:
        """Write lines through; a full disk leaves the journal as it was, so that no line is torn in its middle."""
        if self._fd < 0 or not lines:
            return
        data = memoryview("".join(f"{line}\n" for line in lines).encode())
        size = os.fstat(self._fd).st_size
        try:
            while data:
                data = data[os.write(self._fd, data):]
        except OSError:
            os.ftruncate(self._fd, size)
            raise

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                self._replay(json.loads(line))
            except ValueError:
                continue  # a line torn by a sudden end, with a later one behind it

    def _replay(self, entry: list[str | int]) -> None:
        group, *rest = entry
        if not rest:
            self._groups.pop(str(group), None)
            return
        topic, partition, *value = rest
        offsets = self._groups.setdefault(str(group), {})
        if value:
            offset, epoch, metadata = value
            offsets[str(topic), int(partition)] = Committed(int(offset), int(epoch), str(metadata))
        else:
            offsets.pop((str(topic), int(partition)), None)

    def _rewrite(self, path: Path) -> int:
        draft = path.with_suffix(".draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self._fd = fd
        for group, entries in self._groups.items():
            self._append([_line(group, where, committed) for where, committed in entries.items()])
        os.replace(draft, path)
        return fd


def _line(group: str, where: TopicIndex, committed: Committed) -> str:
    return json.dumps([group, *where, *committed])
