"""What administration speaks of: new topics, configurations, offsets, what is described. confluent_kafka's classes.

Plain values without behaviour: what a call cannot use, the call refuses. Access rules, groups, users and what lies
inside of a cluster are in the modules beside. Read next: `types.acls`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import total_ordering
from typing import Any, ClassVar, Self

from headrace.arguments import instance_of, list_of, mapping_of, member_of
from headrace.errors import KafkaError
from headrace.slotted import LateInDict, hashed_by
from headrace.types.acls import AclOperation, ResourceType, operations_of
from headrace.types.cluster import Node, OrderedEnum, TopicPartitionInfo
from headrace.types.records import Uuid

__all__ = [
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "DeletedRecords",
    "DescribeClusterResult",
    "EarliestSpec",
    "IsolationLevel",
    "LatestSpec",
    "ListOffsetsResultInfo",
    "MaxTimestampSpec",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "TimestampSpec",
    "TopicDescription",
]


@total_ordering
class _Wanted:
    """Equal, and in order, by topic and count."""

    topic: str

    def _key(self) -> tuple[str, int]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, type(self)) else NotImplemented

    def __lt__(self, other: Self) -> bool:
        return self._key() < other._key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


class NewTopic(_Wanted):
    """A topic to create. Equal, and in order, by name and number of partitions.

    Args:
        topic: its name.
        num_partitions: partitions; -1 takes the broker's default.
        replication_factor: copies of each partition; -1 takes the broker's default.
        replica_assignment: broker ids of each partition in order, instead of the two counts.
        config: topic properties.

    Raises:
        TypeError: one is of another type.
    """

    def __init__(
        self,
        topic: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignment: list[list[int]] | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        self.topic = instance_of(str, topic, "topic")
        self.num_partitions = operator.index(num_partitions)
        self.replication_factor = operator.index(replication_factor)
        self.replica_assignment = _brokers(replica_assignment)
        self.config = None if config is None else mapping_of(str, object, config, "config")

    def _key(self) -> tuple[str, int]:
        return self.topic, self.num_partitions

    def __repr__(self) -> str:
        count = "" if self.num_partitions == -1 else f",num_partitions={self.num_partitions}"
        return f"NewTopic(topic={self.topic}{count})"


class NewPartitions(_Wanted):
    """Partitions to add to a topic. Equal, and in order, by name and number of partitions.

    Args:
        topic: its name.
        new_total_count: partitions that it shall have in all.
        replica_assignment: broker ids of each new partition in order; the broker chooses when it is not given.

    Raises:
        TypeError: one is of another type.
    """

    def __init__(
        self, topic: str, new_total_count: int, replica_assignment: list[list[int]] | None = None
    ) -> None:
        self.topic = instance_of(str, topic, "topic")
        self.new_total_count = operator.index(new_total_count)
        self.replica_assignment = _brokers(replica_assignment)

    def _key(self) -> tuple[str, int]:
        return self.topic, self.new_total_count

    def __repr__(self) -> str:
        return f"NewPartitions(topic={self.topic},new_total_count={self.new_total_count})"


def _brokers(assignment: list[list[int]] | None) -> list[list[int]] | None:
    if assignment is None:
        return None
    return [list_of(int, brokers, f"replica_assignment[{place}]")
            for place, brokers in enumerate(list_of(list, assignment, "replica_assignment"))]


class ConfigSource(IntEnum):
    """Where the value of a configuration entry comes from.

    Equal to its number, for that is what confluent_kafka gives with what it describes; written by its name.
    """

    __str__ = Enum.__str__
    __format__ = Enum.__format__

    UNKNOWN_CONFIG = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class AlterConfigOpType(Enum):
    """What to do with an entry in `incremental_alter_configs()`. APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@hashed_by("name")
@dataclass
class ConfigEntry(LateInDict):
    """One property of a resource: its value, where it comes from, and the values that it hides (`synonyms`).

    Attributes:
        name: of the property.
        value: as text; None where it is a secret.
        source: where the value comes from.
        is_read_only: whether it cannot be changed while the broker runs.
        is_default: whether nobody has set it.
        is_sensitive: whether it is a secret.
        is_synonym: whether it stands among the values that another one hides.
        synonyms: the values that this one hides, by name.
        incremental_operation: what `incremental_alter_configs()` does with it.
    """

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN_CONFIG
    is_read_only: bool = False
    is_default: bool = False
    is_sensitive: bool = False
    is_synonym: bool = False
    synonyms: dict[str, ConfigEntry] = field(default_factory=dict)
    incremental_operation: AlterConfigOpType | None = None

    def __repr__(self) -> str:
        return f"ConfigEntry({self})"

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


@total_ordering
class ConfigResource:
    """A topic, broker or group whose configuration is read or changed. Equal, and in order, by type and name.

    Its length is the number of values to set; one without any counts as false.

    Args:
        restype: a `ResourceType`, its name or its number.
        name: topic or group name, or broker id as text; empty for what holds for all brokers.
        set_config: values to set with `alter_configs()`.
        described_configs: entries found by `describe_configs()`.
        error: why it could not be described.
        incremental_configs: changes for `incremental_alter_configs()`.

    Raises:
        TypeError: `set_config` is no dict.
        ValueError: no such resource type, or no name.
    """

    Type: ClassVar[type[ResourceType]] = ResourceType

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str,
        set_config: dict[str, str] | None = None,
        described_configs: Mapping[str, ConfigEntry] | None = None,
        error: KafkaError | None = None,
        incremental_configs: list[ConfigEntry] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("expected the name of a topic or group, or the id of a broker")
        self.restype: ResourceType = member_of(ResourceType, restype, "resource type")
        self.restype_int = self.restype.value
        self.name = name
        self.set_config_dict = {} if set_config is None else mapping_of(str, object, set_config, "set_config")
        self.configs = described_configs
        self.error = error
        self.incremental_configs = list(incremental_configs or ())

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Note a value for `alter_configs()`; with `overwrite=False` an earlier one stays."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Note a change for `incremental_alter_configs()`."""
        self.incremental_configs.append(config_entry)

    def __len__(self) -> int:
        return len(self.set_config_dict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype, self.name) == (other.restype, other.name)

    def __lt__(self, other: ConfigResource) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype_int, self.name) < (other.restype_int, other.name)

    def __hash__(self) -> int:
        return hash((self.restype, self.name))

    def __repr__(self) -> str:
        error = "" if self.error is None else f",{self.error!r}"
        return f"ConfigResource({self.restype},{self.name}{error})"


class IsolationLevel(OrderedEnum):
    """Whether offsets of records in open transactions count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec:
    """Which offset of a partition `list_offsets()` shall find. Make one with the class methods.

    `OffsetSpec(index)` gives the one that has this number on the wire, or for a time.

    Attributes:
        timestamp: milliseconds since the epoch, or a negative number that stands for something else.
    """

    __slots__ = ("timestamp",)
    timestamp: int
    _by_number: ClassVar[dict[int, OffsetSpec]] = {}

    def __new__(cls, index: int) -> OffsetSpec:
        """The one with a number."""
        return cls._by_number[index] if index < 0 else TimestampSpec(index)

    def __lt__(self, other: object) -> bool:
        return self.timestamp < other.timestamp if isinstance(other, OffsetSpec) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.timestamp if isinstance(self, TimestampSpec) else ''})"

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """The first offset that is still there."""
        return cls._by_number[-2]

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The offset that the next record will get."""
        return cls._by_number[-1]

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The offset of the record with the greatest timestamp (KIP-734)."""
        return cls._by_number[-3]

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """The first offset at or after a time, milliseconds since the epoch; -1 is found when there is none."""
        return TimestampSpec(timestamp)


class TimestampSpec(OffsetSpec):
    """The first offset at or after a time.

    Args:
        timestamp: milliseconds since the epoch.
    """

    __slots__ = ()

    def __new__(cls, timestamp: int) -> TimestampSpec:
        """A new one."""
        made = object.__new__(cls)
        made.timestamp = operator.index(timestamp)
        return made

    def __getnewargs__(self) -> tuple[int]:
        return (self.timestamp,)

    def __eq__(self, other: object) -> bool:
        return self.timestamp == other.timestamp if isinstance(other, OffsetSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.timestamp)


class _NamedSpec(OffsetSpec):
    """The only one of its kind."""

    __slots__ = ()
    number: ClassVar[int]

    def __new__(cls) -> Self:
        known = OffsetSpec._by_number.get(cls.number)
        if isinstance(known, cls):
            return known
        made = object.__new__(cls)
        made.timestamp = cls.number
        OffsetSpec._by_number[cls.number] = made
        return made


class LatestSpec(_NamedSpec):
    """The offset that the next record will get."""

    __slots__ = ()
    number = -1


class EarliestSpec(_NamedSpec):
    """The first offset that is still there."""

    __slots__ = ()
    number = -2


class MaxTimestampSpec(_NamedSpec):
    """The offset of the record with the greatest timestamp."""

    __slots__ = ()
    number = -3


LatestSpec()
EarliestSpec()
MaxTimestampSpec()


@hashed_by("offset")
@dataclass
class ListOffsetsResultInfo:
    """An offset found by `list_offsets()`; the timestamp, in milliseconds, is -1 for earliest and latest.

    Attributes:
        offset: of the record.
        timestamp: of the record, in milliseconds since the epoch.
        leader_epoch: of the leader that wrote it; None when unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int | None

    def __post_init__(self) -> None:
        if self.leader_epoch is not None and self.leader_epoch < 0:
            self.leader_epoch = None


@hashed_by("low_watermark")
@dataclass
class DeletedRecords:
    """The first offset that is left after `delete_records()`.

    Attributes:
        low_watermark: that offset.
    """

    low_watermark: int


@hashed_by("name")
@dataclass
class TopicDescription(LateInDict):
    """A topic, its id and its partitions; what the client may do with it is None unless it was asked for.

    Attributes:
        name: of the topic.
        topic_id: its id, which another topic of this name does not have.
        is_internal: whether it is the brokers' own.
        partitions: these, by number from 0.
        authorized_operations: what this client may do with it; None unless it was asked for.
    """

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: list[TopicPartitionInfo]
    authorized_operations: list[AclOperation] | None = None

    def __post_init__(self) -> None:
        self.authorized_operations = operations_of(self.authorized_operations)


@hashed_by("cluster_id")
@dataclass
class DescribeClusterResult:
    """The cluster, its brokers and the one that clients should take for the controller.

    What the client may do with it is None unless it was asked for.

    Attributes:
        controller: that broker.
        nodes: the brokers.
        cluster_id: the cluster's name of itself.
        authorized_operations: what this client may do with it; None unless it was asked for.
    """

    controller: Node | None
    nodes: list[Node]
    cluster_id: str | None = None
    authorized_operations: list[AclOperation] | None = None

    def __post_init__(self) -> None:
        self.authorized_operations = operations_of(self.authorized_operations)
