"""How far a copy is, and where that is kept.

Mostly as the group's offsets of the topic that is read: there everybody looks for them. Exactly once into another
cluster needs a place that its transactions reach. There the same group keeps them, as texts beside its offsets of the
topic that is written: a broker takes offsets of topics only that it has.

Read next: `headrace.cli.copying.copy_plan`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from headrace.cli.consuming.beginnings import committed_offsets, offsets_of
from headrace.cli.shared.exits import CONFLICT, RefusedError
from headrace.errors import ConfigError
from headrace.types.records import TopicPartition

__all__ = ["CopyPositions", "OffsetsOfSource", "TextsAtTarget"]

Key = tuple[str, int]
_MOST_PER_TEXT: Final = 128  # brokers take 4,096 bytes (offset.metadata.max.bytes); a position has up to 30


class CopyPositions(Protocol):
    """The offsets of a source from which a copy goes on."""

    def load(self, partitions: Collection[Key]) -> dict[Key, int]:
        """What is kept; no offset, or a negative one, for a partition of which nothing is.

        Raises:
            KafkaException: the coordinator did not answer, or refused.
            RefusedError: what is kept belongs to another copy.
        """
        ...

    def committable(self, positions: Mapping[Key, int]) -> list[TopicPartition]:
        """As offsets to be committed."""
        ...


class OffsetsOfSource:
    """As offsets of the source.

    Args:
        reading: properties of what reads.
        group: keeps them.
    """

    def __init__(self, reading: Mapping[str, Any], group: str) -> None:
        self._properties = {**reading, "group.id": group}

    def load(self, partitions: Collection[Key]) -> dict[Key, int]:
        """See `CopyPositions`."""
        return offsets_of(committed_offsets(self._properties, partitions))

    def committable(self, positions: Mapping[Key, int]) -> list[TopicPartition]:
        """See `CopyPositions`."""
        return [TopicPartition(*key, offset) for key, offset in positions.items()]


class TextsAtTarget:
    """As texts beside offsets of the target, each for the partitions of the source whose turn it is.

    Args:
        writing: properties of what writes.
        group: keeps them.
        source: topic to read.
        topic_id: its id, by which one that was made anew is told from the one before.
        target: topic to write.
        places: its partitions.
    """

    def __init__(
        self, writing: Mapping[str, Any], group: str, source: str, topic_id: str, target: str, places: Sequence[int],
    ) -> None:
        self._properties = {**writing, "group.id": group}
        self._group = group
        self._source, self._topic_id = source, topic_id
        self._target = target
        self._places = sorted(places)
        self._known: dict[int, int] = {}

    def load(self, partitions: Collection[Key]) -> dict[Key, int]:
        """See `CopyPositions`.

        Raises:
            ConfigError: there are more partitions than the texts have room for.
        """
        if len(partitions) > (most := _MOST_PER_TEXT * len(self._places)):
            raise ConfigError(f"{self._source} has {len(partitions):,} partitions, and {self._target} has room for the "
                              f"positions of {most:,}: copy some with -p, each part with a group of its own (-g)")
        for tp in committed_offsets(self._properties, [(self._target, place) for place in self._places]):
            for number, offset in self._read(tp.metadata).items():
                self._known[number] = max(offset, self._known.get(number, -1))
        return {(self._source, number): offset for number, offset in self._known.items()}

    def _read(self, text: str | None) -> Mapping[int, int]:
        """What a text keeps; partitions that were added since may have moved it, and left an older one behind."""
        if not text:
            return {}
        try:
            kept = json.loads(text)
            found = {int(number): int(offset) for number, offset in kept["next"].items()}
            source, topic_id = kept["copied"], kept["id"]
        except (ValueError, TypeError, KeyError, AttributeError):
            source = topic_id = ""
        if source != self._source:
            whose = f"a copy of {source}" if source else "something else"
            raise RefusedError(f"group {self._group} of the target has positions of {whose}: give another -g", CONFLICT)
        if topic_id != self._topic_id:
            raise RefusedError(f"group {self._group} of the target has positions of another topic called {source}, "
                               "which is of another cluster or was deleted: give another -g", CONFLICT)
        return found

    def committable(self, positions: Mapping[Key, int]) -> list[TopicPartition]:
        """See `CopyPositions`."""
        places = self._places
        self._known.update((number, offset) for (_, number), offset in positions.items())
        touched = {number % len(places) for _, number in positions}
        return [TopicPartition(self._target, places[turn], 0, metadata=self._text(turn)) for turn in sorted(touched)]

    def _text(self, turn: int) -> str:
        kept = {number: self._known[number] for number in sorted(self._known) if number % len(self._places) == turn}
        return json.dumps({"copied": self._source, "id": self._topic_id, "next": kept}, separators=(",", ":"))
