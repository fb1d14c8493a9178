"""What administration speaks of: new topics, configurations, offsets, groups. confluent_kafka's classes and names.

Plain values without behaviour. Read next: `machines.admin.requests`, which makes requests of them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from headrace.arguments import instance_of, list_of, mapping_of
from headrace.errors import KafkaError, KafkaException
from headrace.types.cluster import Node, OrderedEnum

__all__ = [
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConsumerGroupListing",
    "DeletedRecords",
    "DescribeClusterResult",
    "IsolationLevel",
    "ListConsumerGroupsResult",
    "ListOffsetsResultInfo",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "ResourceType",
]


class NewTopic:
    """A topic to create.

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
        self.config = {} if config is None else mapping_of(str, object, config, "config")

    def __repr__(self) -> str:
        return f"NewTopic(topic={self.topic},num_partitions={self.num_partitions})"

    def __str__(self) -> str:
        return self.topic


class NewPartitions:
    """Partitions to add to a topic.

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

    def __repr__(self) -> str:
        return f"NewPartitions(topic={self.topic},new_total_count={self.new_total_count})"

    def __str__(self) -> str:
        return self.topic


def _brokers(assignment: list[list[int]] | None) -> list[list[int]]:
    given = [] if assignment is None else list_of(list, assignment, "replica_assignment")
    return [list_of(int, brokers, f"replica_assignment[{place}]") for place, brokers in enumerate(given)]


class ResourceType(OrderedEnum):
    """What a configuration belongs to. Numbers as in confluent_kafka; the wire's differ for groups."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    BROKER = 4


class ConfigSource(Enum):
    """Where the value of a configuration entry comes from."""

    UNKNOWN_CONFIG = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class AlterConfigOpType(Enum):
    """What to do with an entry in `incremental_alter_configs()`. APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(slots=True)
class ConfigEntry:
    """One property of a resource: its value, where it comes from, and the values that it hides (`synonyms`)."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN_CONFIG
    is_read_only: bool = False
    is_default: bool = False
    is_sensitive: bool = False
    is_synonym: bool = False
    synonyms: dict[str, ConfigEntry] = field(default_factory=dict)
    incremental_operation: AlterConfigOpType | None = None

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


class ConfigResource:
    """A topic, broker or group whose configuration is read or changed. Equal by type and name.

    Args:
        restype: a `ResourceType`, its name or its number.
        name: topic or group name, or broker id as text.
        set_config: values to set with `alter_configs()`.
        described_configs: entries found by `describe_configs()`.
        error: why it could not be described.
        incremental_configs: changes for `incremental_alter_configs()`.

    Raises:
        TypeError: `set_config` is no dict, or `incremental_configs` no list of `ConfigEntry`.
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
        if not name:
            raise ValueError("expected the name of a topic or group, or the id of a broker")
        self.restype = _resource_type(restype)
        self.restype_int = self.restype.value
        self.name = str(name)
        self.set_config_dict = {} if set_config is None else mapping_of(str, object, set_config, "set_config")
        self.configs = described_configs
        self.error = error
        self.incremental_configs = (
            [] if incremental_configs is None else list_of(ConfigEntry, incremental_configs, "incremental_configs"))

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Note a value for `alter_configs()`; with `overwrite=False` an earlier one stays."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Note a change for `incremental_alter_configs()`."""
        self.incremental_configs.append(instance_of(ConfigEntry, config_entry, "config_entry"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigResource):
            return NotImplemented
        return (self.restype, self.name) == (other.restype, other.name)

    def __lt__(self, other: ConfigResource) -> bool:
        return (self.restype_int, self.name) < (other.restype_int, other.name)

    def __hash__(self) -> int:
        return hash((self.restype, self.name))

    def __repr__(self) -> str:
        return f"ConfigResource({self.restype.name},{self.name})"


def _resource_type(restype: ResourceType | str | int) -> ResourceType:
    try:
        if isinstance(restype, ResourceType):
            return restype
        return ResourceType[restype.upper()] if isinstance(restype, str) else ResourceType(restype)
    except (KeyError, ValueError):
        known = ", ".join(entry.name for entry in ResourceType)
        raise ValueError(f"unknown resource type {restype!r}: expected one of {known}") from None


class IsolationLevel(OrderedEnum):
    """Whether offsets of records in open transactions count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(slots=True, frozen=True)
class OffsetSpec:
    """Which offset of a partition `list_offsets()` shall find. Make one with the class methods."""

    timestamp: int

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """The first offset that is still there."""
        return cls(-2)

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The offset that the next record will get."""
        return cls(-1)

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The offset of the record with the greatest timestamp (KIP-734)."""
        return cls(-3)

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """The first offset at or after a time, milliseconds since the epoch; -1 is found when there is none."""
        return cls(timestamp)


@dataclass(slots=True)
class ListOffsetsResultInfo:
    """An offset found by `list_offsets()`; the timestamp, in milliseconds, is -1 for earliest and latest."""

    offset: int
    timestamp: int
    leader_epoch: int | None


@dataclass(slots=True)
class DeletedRecords:
    """The first offset that is left after `delete_records()`."""

    low_watermark: int


@dataclass(slots=True)
class DescribeClusterResult:
    """The cluster, its brokers and the one that clients should take for the controller."""

    cluster_id: str
    controller: Node | None
    nodes: list[Node]


@dataclass(slots=True)
class ConsumerGroupListing:
    """A consumer group; state and type as the broker writes them, None when it is too old to send them."""

    group_id: str
    is_simple_consumer_group: bool
    state: str | None = None
    type: str | None = None


@dataclass(slots=True)
class ListConsumerGroupsResult:
    """The groups that were found, and the errors of brokers that could not be asked."""

    valid: list[ConsumerGroupListing] = field(default_factory=list)
    errors: list[KafkaException] = field(default_factory=list)
