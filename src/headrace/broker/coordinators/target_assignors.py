"""Who shall have which partition of a group that the coordinator plans for (KIP-848): `uniform` and `range`.

They are functions of what members want and what they have, and know nothing of epochs. Which of several equal plans
comes out is not Kafka's choice in every case; how many partitions each member has is.
Source: KIP-848, Java's `UniformAssignor` and `RangeAssignor`. Read next: `broker.coordinators.planned_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

__all__ = ["ASSIGNORS", "DEFAULT_ASSIGNOR", "TopicIndex", "Wish", "by_topic"]

TopicIndex = tuple[UUID, int]
"""A partition: id of the topic and number."""


def by_topic(partitions: Iterable[TopicIndex]) -> list[tuple[UUID, list[int]]]:
    """Partitions as answers name them: the numbers of each topic, in order."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return list(topics.items())


class Wish(NamedTuple):
    """What one member wants and has.

    Attributes:
        topics: ids of the topics that it reads.
        owned: what it was to have so far.
        name: what orders members: the instance id of a static one, so that its place outlives its member id.
    """

    topics: frozenset[UUID]
    owned: frozenset[TopicIndex]
    name: str


Plan = dict[str, frozenset[TopicIndex]]


def uniform(wishes: Mapping[str, Wish], counts: Mapping[UUID, int]) -> Plan:
    """As many partitions for each as can be, and nothing moves without need.

    Args:
        wishes: by member id.
        counts: number of partitions of each topic.
    """
    every = [(topic, index) for topic in sorted(counts) for index in range(counts[topic])]
    held: dict[str, set[TopicIndex]] = {}
    taken: set[TopicIndex] = set()
    for member, wish in wishes.items():
        kept = {key for key in wish.owned if key[0] in wish.topics and key[1] < counts.get(key[0], 0)} - taken
        held[member] = kept
        taken |= kept
    for key in every:
        if key not in taken:
            readers = [member for member, wish in wishes.items() if key[0] in wish.topics]
            if readers:
                held[min(readers, key=lambda member: len(held[member]))].add(key)
    while _level(wishes, held):
        pass
    return {member: frozenset(keys) for member, keys in held.items()}


def _level(wishes: Mapping[str, Wish], held: dict[str, set[TopicIndex]]) -> bool:
    """Move one partition from who has most to who has at least two fewer, if there is one that both read."""
    for giver in sorted(held, key=lambda member: -len(held[member])):
        for taker in sorted(held, key=lambda member: len(held[member])):
            if len(held[giver]) - len(held[taker]) < 2:
                break
            movable = [key for key in held[giver] if key[0] in wishes[taker].topics]
            if movable:
                held[giver].remove(max(movable))
                held[taker].add(max(movable))
                return True
    return False


def ranges(wishes: Mapping[str, Wish], counts: Mapping[UUID, int]) -> Plan:
    """Neighbouring partitions of each topic, the same numbers of topics with equally many partitions."""
    held: dict[str, set[TopicIndex]] = {member: set() for member in wishes}
    for topic, count in counts.items():
        readers = sorted((member for member, wish in wishes.items() if topic in wish.topics),
                         key=lambda member: wishes[member].name)
        first = 0
        for place, member in enumerate(readers):
            size = count // len(readers) + (place < count % len(readers))
            held[member].update((topic, index) for index in range(first, first + size))
            first += size
    return {member: frozenset(keys) for member, keys in held.items()}


DEFAULT_ASSIGNOR = "uniform"
ASSIGNORS: dict[str, Callable[[Mapping[str, Wish], Mapping[UUID, int]], Plan]] = {
    DEFAULT_ASSIGNOR: uniform, "range": ranges}
"""By the names that clients use, in the order in which Kafka names them."""
