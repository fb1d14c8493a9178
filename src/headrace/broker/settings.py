"""What can be configured of the broker, when it is started. `broker.storage.topic_configs` is what can be set on a
topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headrace.broker.profiles import versions_of_kafka

__all__ = ["BrokerSettings"]

_OWN_EPOCHS_FROM = 5
"""Version of EndTxn from which on every transaction has an epoch of its own."""
_OWN_MEMBER_IDS_FROM = 1
"""Version of ConsumerGroupHeartbeat that Kafka 4.0 brought; before, it was offered and refused."""


@dataclass(slots=True, kw_only=True)
class BrokerSettings:
    """How a broker behaves; the names are Kafka's. Times are milliseconds.

    Attributes:
        auto_create_topics: make a topic when it is first asked for by name.
        default_partitions: partitions of a topic that does not say how many.
        default_replication_factor: replicas of one that does not say; None is all nodes, three at most.
        max_request_bytes: bytes of the largest request that is read (`socket.request.max.bytes`).
        initial_rebalance_delay_ms: how long an empty group waits for more members before its first generation.
        min_session_timeout_ms: shortest group session that is allowed.
        max_session_timeout_ms: longest one.
        consumer_heartbeat_interval_ms: how often members of a group that the coordinator plans for are to be heard of
            (`group.consumer.heartbeat.interval.ms`, which is 5,000 in Kafka).
        consumer_session_timeout_ms: such a member is dropped when nothing was heard of it for so long
            (`group.consumer.session.timeout.ms`).
        consumer_group_max_size: most members of such a group (`group.consumer.max.size`).
        share_heartbeat_interval_ms: how often members of a share group are to be heard of
            (`group.share.heartbeat.interval.ms`, which is 5,000 in Kafka).
        share_session_timeout_ms: such a member is dropped when nothing was heard of it for so long
            (`group.share.session.timeout.ms`).
        share_group_max_size: most members of a share group (`group.share.max.size`).
        share_record_lock_duration_ms: how long a member may hold a record (`group.share.record.lock.duration.ms`).
        share_delivery_count_limit: how often a record is handed out (`group.share.delivery.count.limit`).
        share_partition_max_record_locks: how many records of a partition a share group may be at
            (`group.share.partition.max.record.locks`).
        share_max_sessions: most share sessions of a node (`group.share.max.share.sessions`).
        max_transaction_timeout_ms: longest time that a producer may ask for (`transaction.max.timeout.ms`).
        transactional_id_expiration_ms: a transactional id is forgotten when it was not used for so long.
        transaction_version: 2 as in Kafka 4, where a transaction needs no request to add partitions and each has an
            epoch of its own (KIP-890); 1 or 0 as before.
        group_version: 1 as in Kafka 4, where the coordinator may plan for groups (KIP-848); 0 refuses to
            (`group.version`).
        share_version: 1 as in Kafka 4.2, which has share groups (KIP-932); 0 refuses them (`share.version`).
        marker_delay_ms: how long after the reply to EndTxn markers are written, so that clients meet a transaction
            that is still being ended.
        api_versions: narrower ranges of versions than are served, by Kafka's name of the API: (lowest, highest), or
            None for an API that shall not be there. APIs that are not named stay as they are.
    """

    auto_create_topics: bool = True
    default_partitions: int = 1
    default_replication_factor: int | None = None
    max_request_bytes: int = 100 << 20
    initial_rebalance_delay_ms: int = 0
    min_session_timeout_ms: int = 100
    max_session_timeout_ms: int = 1_800_000
    consumer_heartbeat_interval_ms: int = 500
    consumer_session_timeout_ms: int = 45_000
    consumer_group_max_size: int = 2**31 - 1
    share_heartbeat_interval_ms: int = 500
    share_session_timeout_ms: int = 45_000
    share_group_max_size: int = 200
    share_record_lock_duration_ms: int = 30_000
    share_delivery_count_limit: int = 5
    share_partition_max_record_locks: int = 2000
    share_max_sessions: int = 2000
    max_transaction_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_version: int = 2
    group_version: int = 1
    share_version: int = 1
    marker_delay_ms: int = 0
    api_versions: Mapping[str, tuple[int, int] | None] | None = None

    def __post_init__(self) -> None:
        if self.transaction_version not in (0, 1, 2):
            raise ValueError(f"transaction_version is {self.transaction_version!r}; it can be 0, 1 or 2")

    @classmethod
    def of_kafka(cls, release: str, **settings: Any) -> Self:
        """Settings under which the broker offers no more than a release of Kafka did.

        Args:
            release: one of `broker.profiles.RELEASES`: "0.8.0" to "4.4". A patch number behind it is ignored.
            settings: further attributes.

        Raises:
            ValueError: the release is not known.
        """
        own_epochs, heartbeats = (versions_of_kafka(release)[name] for name in ("EndTxn", "ConsumerGroupHeartbeat"))
        version = 2 if own_epochs is not None and own_epochs[1] >= _OWN_EPOCHS_FROM else 0
        group_version = 1 if heartbeats is not None and heartbeats[1] >= _OWN_MEMBER_IDS_FROM else 0
        return cls(**{"api_versions": versions_of_kafka(release), "transaction_version": version,
                      "group_version": group_version, **settings})
