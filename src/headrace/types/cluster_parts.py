"""What lies inside of a cluster: replicas and their moves, directories, features, controllers, transactions.

confluent_kafka has none of this; names are those of Java's client, in Python's spelling. Plain values without
behaviour. Read next: `machines.admin.cluster_requests`.
"""

from __future__ import annotations

from headrace.slotted import field, slotted
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


@slotted()
class PartitionReassignment:
    """A partition that moves: broker ids of all its replicas, of those that come and of those that go.

    Attributes:
        replicas: all of them.
        adding_replicas: those that come.
        removing_replicas: those that go.
    """

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


@slotted()
class ReplicaInfo:
    """A replica in a directory: bytes, and how many records it is behind; `is_future` while it moves there.

    Attributes:
        size: in bytes.
        offset_lag: records that it is behind.
        is_future: whether it is on its way to this directory.
    """

    size: int
    offset_lag: int
    is_future: bool


@slotted()
class LogDirDescription:
    """A directory of a broker; bytes of its volume are -1 when the broker is too old to say.

    Attributes:
        replicas: what lies in it, by partition.
        total_bytes: size of the volume in bytes.
        usable_bytes: bytes that are free of it.
        is_cordoned: whether no new replica is put there.
    """

    replicas: dict[TopicPartition, ReplicaInfo] = field(default_factory=dict)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@slotted()
class FeatureMetadata:
    """Features of the cluster: the level of each that is in use, and the lowest and highest that a broker supports.

    Attributes:
        finalized: levels in use, by feature.
        supported: lowest and highest level, by feature.
        finalized_epoch: grows with each change of a level; None where the broker does not say.
    """

    finalized: dict[str, int]
    supported: dict[str, tuple[int, int]]
    finalized_epoch: int | None = None


@slotted()
class QuorumReplicaState:
    """A controller, or a broker that follows: how far it is. Times are milliseconds since the epoch, -1 unknown.

    Attributes:
        replica_id: its node id.
        log_end_offset: behind its last record.
        last_fetch_timestamp: when it last asked the leader.
        last_caught_up_timestamp: when it last had everything.
        directory_id: of its log; None when unknown.
    """

    replica_id: int
    log_end_offset: int
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    directory_id: Uuid | None = None


@slotted()
class QuorumInfo:
    """The controllers: who leads since which epoch, what is committed, who votes and who only follows.

    Attributes:
        leader_id: node id of the leader.
        leader_epoch: its term.
        high_watermark: the offset up to which all is committed.
        voters: who votes.
        observers: who only follows.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplicaState]
    observers: list[QuorumReplicaState]


@slotted()
class TransactionListing:
    """A transactional id, its producer and the state that its transaction is in, for example Ongoing.

    Attributes:
        transactional_id: its name.
        producer_id: number of its producer.
        state: of its transaction.
    """

    transactional_id: str
    producer_id: int
    state: str


@slotted()
class TransactionDescription:
    """A transactional id: its transaction's state, producer, timeout, begin and partitions.

    Attributes:
        coordinator_id: node id of its coordinator.
        state: of the transaction, for example Ongoing.
        producer_id: number of its producer.
        producer_epoch: epoch of its producer.
        transaction_timeout_ms: milliseconds that it may be open.
        transaction_start_time_ms: its begin, in milliseconds since the epoch; None when no transaction is open.
        partitions: in which it has written.
    """

    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    partitions: set[TopicPartition]


@slotted()
class PartitionProducer:
    """A producer that a partition's leader knows. What is not known is None. Times are milliseconds since the epoch.

    Attributes:
        producer_id: its number.
        producer_epoch: its epoch.
        last_sequence: number of its last record.
        last_timestamp: of its last record.
        coordinator_epoch: of the coordinator that ended its last transaction.
        transaction_start_offset: first offset of its open transaction.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp: int | None
    coordinator_epoch: int | None
    transaction_start_offset: int | None
