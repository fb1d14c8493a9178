"""Which members of a share group read which partitions (KIP-932): the assignor `simple`.

A partition may have several readers. All partitions have equally many, as few as give each member work; members have
equally many partitions, but for one; and nothing moves without need. Which of several equal plans comes out is not
Kafka's choice in every case; how many partitions each member has is.

It is a function of what members want and have. Source: KIP-932, Java's `SimpleAssignor`.
Read next: `broker.coordinators.sharing_groups`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from headrace.broker.coordinators.target_assignors import TopicIndex

__all__ = ["SIMPLE", "simple"]

SIMPLE = "simple"
"""What Kafka calls it."""


def simple(
    wishes: Mapping[str, frozenset[UUID]], owned: Mapping[str, frozenset[TopicIndex]],
    partitions: Mapping[UUID, Sequence[int]],
) -> dict[str, frozenset[TopicIndex]]:
    """Who shall read what.

    Args:
        wishes: ids of the topics that each member reads, by member id.
        owned: what each was to read so far.
        partitions: numbers of the partitions of each topic.
    """
    every = [(topic, index) for topic in sorted(partitions) for index in partitions[topic]]
    if len(set(wishes.values())) == 1:
        topics = next(iter(wishes.values()))
        return _spread(list(wishes), owned, [each for each in every if each[0] in topics])
    plan = dict.fromkeys(wishes, frozenset[TopicIndex]())
    for topic in sorted(partitions):
        readers = [member for member, wanted in wishes.items() if topic in wanted]
        for member, part in _spread(readers, owned, [each for each in every if each[0] == topic]).items():
            plan[member] |= part
    return plan


def _spread(members: Sequence[str], owned: Mapping[str, frozenset[TopicIndex]],
            every: Sequence[TopicIndex]) -> dict[str, frozenset[TopicIndex]]:
    """Partitions of one kind over members that read all of them."""
    if not members or not every:
        return dict.fromkeys(members, frozenset())
    sharing = -(-len(members) // len(every))
    total, wanted = sharing * len(every), dict[str, int]()
    for place, member in enumerate(members):
        wanted[member] = -(-total * (place + 1) // len(members)) - -(-total * place // len(members))
    plan = {member: set(owned.get(member, ())) & set(every) for member in members}
    readers = {key: [member for member in members if key in plan[member]] for key in every}
    _take_away(plan, readers, wanted, sharing)
    _give(plan, readers, wanted, sharing)
    return {member: frozenset(keys) for member, keys in plan.items()}


def _take_away(plan: Mapping[str, set[TopicIndex]], readers: Mapping[TopicIndex, list[str]],
               wanted: Mapping[str, int], sharing: int) -> None:
    """Of partitions with too many readers, those that have most go; then what members have too much."""
    for key, those in readers.items():
        while len(those) > sharing:
            _part(plan, readers, max(those, key=lambda member: len(plan[member]) - wanted[member]), key)
    for member, keys in plan.items():
        while len(keys) > wanted[member]:
            _part(plan, readers, member, max(keys, key=lambda key: (len(readers[key]), key)))


def _part(plan: Mapping[str, set[TopicIndex]], readers: Mapping[TopicIndex, list[str]], member: str,
          key: TopicIndex) -> None:
    plan[member].discard(key)
    readers[key].remove(member)


def _give(plan: Mapping[str, set[TopicIndex]], readers: Mapping[TopicIndex, list[str]], wanted: Mapping[str, int],
          sharing: int) -> None:
    """To each partition as many readers as it shall have, those first that lack most; at least one to each."""
    for round_ in range(sharing):
        for key, those in readers.items():
            free = [member for member in plan if key not in plan[member] and len(plan[member]) < wanted[member]]
            if len(those) <= round_ and (free or not those):
                member = max(free or plan, key=lambda member: wanted[member] - len(plan[member]))
                plan[member].add(key)
                those.append(member)
