"""What describes a cluster and its groups: brokers, partitions, states. confluent_kafka's classes and names.

Plain values without behaviour. Read next: `types.admin`, what administration takes and gives.
"""

from __future__ import annotations

from enum import Enum
from typing import Self

from headrace.arguments import instance_of, list_of
from headrace.slotted import hashed_by, slotted
from headrace.types.records import TopicPartition

__all__ = [
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "ElectionType",
    "Node",
    "OrderedEnum",
    "TopicCollection",
    "TopicPartitionInfo",
]


class OrderedEnum(Enum):
    """An `Enum` whose members are in the order of their numbers."""

    def __lt__(self, other: Self) -> bool:
        return self.value < other.value if isinstance(other, type(self)) else NotImplemented


class ConsumerGroupState(OrderedEnum):
    """What a consumer group is doing. Numbers and names as in confluent_kafka.

    UNKNOWN, too, is a group that the brokers plan for while they do so (Assigning, Reconciling).
    """

    UNKNOWN = 0
    UNKOWN = 0
    """The same, as confluent_kafka misspelled it once."""
    PREPARING_REBALANCING = 1
    COMPLETING_REBALANCING = 2
    STABLE = 3
    DEAD = 4
    EMPTY = 5


class ConsumerGroupType(OrderedEnum):
    """Who plans the assignment of a group: the brokers (`CONSUMER`, KIP-848) or one of its members (`CLASSIC`)."""

    UNKNOWN = 0
    CONSUMER = 1
    CLASSIC = 2


class ElectionType(OrderedEnum):
    """Which replica may be elected leader: the preferred one, or one that is behind (`UNCLEAN`)."""

    PREFERRED = 0
    UNCLEAN = 1


@slotted(frozen=True)
class Node:
    """A broker of a cluster: its id, where it listens, and its rack.

    Attributes:
        id: its number.
        host: where it listens.
        port: where it listens.
        rack: where it stands; None if nobody said.
    """

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def id_string(self) -> str:
        """The id as text."""
        return str(self.id)

    def __str__(self) -> str:
        return f"({self.id}) {self.host}:{self.port} {f'(Rack - {self.rack})' if self.rack else ''}"


@hashed_by("id")
@slotted()
class TopicPartitionInfo:
    """A partition of a topic: its number, its leader, its replicas, and those of them that are in sync.

    Attributes:
        id: its number, from 0.
        leader: the broker that leads it; None while there is none.
        replicas: brokers that have a copy.
        isr: those of them that are in sync.
    """

    id: int
    leader: Node | None
    replicas: list[Node]
    isr: list[Node]


class TopicCollection:
    """Topics by name.

    Args:
        topic_names: their names.

    Raises:
        TypeError: not a list of str.
    """

    def __init__(self, topic_names: list[str]) -> None:
        self.topic_names = list_of(str, topic_names, "topic_names")


class ConsumerGroupTopicPartitions:
    """A consumer group, and partitions with its offsets there.

    Args:
        group_id: its "group.id".
        topic_partitions: the partitions; None stands for all that it has offsets of.

    Raises:
        TypeError: not a str, or not a list of `TopicPartition`.
    """

    def __init__(self, group_id: str, topic_partitions: list[TopicPartition] | None = None) -> None:
        self.group_id = instance_of(str, group_id, "group_id")
        self.topic_partitions = (
            None if topic_partitions is None else list_of(TopicPartition, topic_partitions, "topic_partitions"))
