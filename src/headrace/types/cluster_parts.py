"""What lies inside of a cluster: replicas and their moves, directories, features, controllers, transactions.

confluent_kafka has none of this; names are those of Java's client, in Python's spelling. Plain values without
behaviour. Read next: `machines.admin.cluster_requests`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.types.records import TopicPartition, Uuid

__all__ = [
    "FeatureMetadata",
    "LogDirDescription",
    "PartitionProducer",
    "PartitionReassignment",
    "QuorumInfo",
    "QuorumReplicaState",
    "ReplicaInfo",
    "TransactionDescription",
    "TransactionListing",
]


@dataclass(slots=True)
class PartitionReassignment:
    """A partition that moves: broker ids of all its replicas, of those that come and of those that go."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


@dataclass(slots=True)
class ReplicaInfo:
    """A replica in a directory: bytes, and how many records it is behind; `is_future` while it moves there."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(slots=True)
class LogDirDescription:
    """A directory of a broker; bytes of its volume are -1 when the broker is too old to say."""

    replicas: dict[TopicPartition, ReplicaInfo] = field(default_factory=dict)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@dataclass(slots=True)
class FeatureMetadata:
    """Features of the cluster: the level of each that is in use, and the lowest and highest that a broker supports."""

    finalized: dict[str, int]
    supported: dict[str, tuple[int, int]]
    finalized_epoch: int | None = None


@dataclass(slots=True)
class QuorumReplicaState:
    """A controller, or a broker that follows: how far it is. Times are milliseconds since the epoch, -1 unknown."""

    replica_id: int
    log_end_offset: int
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    directory_id: Uuid | None = None


@dataclass(slots=True)
class QuorumInfo:
    """The controllers: who leads since which epoch, what is committed, who votes and who only follows."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplicaState]
    observers: list[QuorumReplicaState]


@dataclass(slots=True)
class TransactionListing:
    """A transactional id, its producer and the state that its transaction is in, for example Ongoing."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(slots=True)
class TransactionDescription:
    """A transactional id: its transaction's state, producer, timeout in milliseconds, begin and partitions.

    The begin is in milliseconds since the epoch, None when no transaction is open.
    """

    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    partitions: set[TopicPartition]


@dataclass(slots=True)
class PartitionProducer:
    """A producer that a partition's leader knows. What is not known is None; times are milliseconds since the epoch."""

    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp: int | None
    coordinator_epoch: int | None
    transaction_start_offset: int | None
