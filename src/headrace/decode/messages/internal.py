"""What Kafka keeps in its own topics: `__consumer_offsets`, `__transaction_state`, and secrets in the metadata log.

Keys and values begin with their version, an int16. Of the metadata log only the records are read that can hold
secrets, so that these are never shown.

Sources: Java's `OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey`, `GroupMetadataValue`,
`TransactionLogKey`, `TransactionLogValue`, `UserScramCredentialRecord`, `ConfigRecord`. Read next: `record_nodes`.
"""

from __future__ import annotations

from typing import Final

from headrace.errors import ProtocolError
from headrace.wire.codec import decode_from, decode_prefixed
from headrace.wire.schema import ApiMessage, Array, Bytes, Int8, Int16, Int32, Int64, String, Struct, Uuid, field

__all__ = ["ConfigRecord", "UserScramCredentialRecord", "metadata_record", "read_internal"]


class OffsetCommitKey(ApiMessage, versions="0-1"):
    """Key of a committed offset."""

    group: String = field()
    topic: String = field()
    partition: Int32 = field()


class OffsetCommitValue(ApiMessage, versions="0-4", flexible="4+"):
    """A committed offset."""

    offset: Int64 = field()
    leader_epoch: Int32 = field("3+", default=-1)
    metadata: String = field()
    commit_timestamp: Int64 = field()
    expire_timestamp: Int64 = field("1", default=-1)
    topic_id: Uuid = field("4+", tag=0)


class GroupMetadataKey(ApiMessage, versions="2"):
    """Key of a classic group."""

    group: String = field()


class StoredGroupMember(Struct):
    """A member of a classic group."""

    member_id: String = field()
    group_instance_id: String | None = field("3+", default=None)
    client_id: String = field()
    client_host: String = field()
    rebalance_timeout: Int32 = field("1+")
    session_timeout: Int32 = field()
    subscription: Bytes = field()
    assignment: Bytes = field()


class GroupMetadataValue(ApiMessage, versions="0-4", flexible="4+"):
    """A classic group."""

    protocol_type: String = field()
    generation: Int32 = field()
    protocol: String | None = field()
    leader: String | None = field()
    current_state_timestamp: Int64 = field("2+", default=-1)
    members: Array[StoredGroupMember] = field()


class TransactionLogKey(ApiMessage, versions="0"):
    """Key of a transactional id."""

    transactional_id: String = field()


class TransactionPartitions(Struct):
    """Partitions of a topic that take part in a transaction."""

    topic: String = field()
    partition_ids: Array[Int32] = field()


class TransactionLogValue(ApiMessage, versions="0-1", flexible="1+"):
    """The state of a transactional id."""

    producer_id: Int64 = field()
    previous_producer_id: Int64 = field("1+", default=-1, tag=0)
    next_producer_id: Int64 = field("1+", default=-1, tag=1)
    producer_epoch: Int16 = field()
    next_producer_epoch: Int16 = field("1+", default=-1, tag=3)
    transaction_timeout_ms: Int32 = field()
    transaction_status: Int8 = field()
    transaction_partitions: Array[TransactionPartitions] | None = field()
    transaction_last_update_timestamp_ms: Int64 = field()
    transaction_start_timestamp_ms: Int64 = field()
    client_transaction_version: Int16 = field("1+", tag=2)


class UserScramCredentialRecord(ApiMessage, versions="0", flexible="0+"):
    """A user's SCRAM credential in the metadata log."""

    name: String = field()
    mechanism: Int8 = field()
    salt: Bytes = field()
    stored_key: Bytes = field()
    server_key: Bytes = field()
    iterations: Int32 = field()


class ConfigRecord(ApiMessage, versions="0", flexible="0+"):
    """A configuration entry in the metadata log."""

    resource_type: Int8 = field()
    resource_name: String = field()
    name: String = field()
    value: String | None = field()


_KEYS: Final[dict[str, dict[int, tuple[type[ApiMessage], type[ApiMessage]]]]] = {
    "__consumer_offsets": {
        0: (OffsetCommitKey, OffsetCommitValue), 1: (OffsetCommitKey, OffsetCommitValue),
        2: (GroupMetadataKey, GroupMetadataValue),
    },
    "__transaction_state": {0: (TransactionLogKey, TransactionLogValue)},
}
_METADATA: Final[dict[bytes, type[ApiMessage]]] = {
    b"\x01\x0b\x00": UserScramCredentialRecord, b"\x01\x04\x00": ConfigRecord,
}
"""By frame version, type and version of the record, a byte each."""


def read_internal(
    topic: str, key: bytes | None, content: bytes | None
) -> tuple[tuple[int, ApiMessage], tuple[int, ApiMessage] | None] | None:
    """Key and value of a record of an internal topic, each with its version; None when they are of a newer kind."""
    version = int.from_bytes(key[:2], "big") if key else -1
    types = _KEYS.get(topic, {}).get(version)
    if key is None or types is None:
        return None
    try:
        return decode_prefixed(types[0], key), None if content is None else decode_prefixed(types[1], content)
    except ProtocolError:
        return None


def metadata_record(content: bytes | None) -> ApiMessage | None:
    """A record of the metadata log that may hold secrets; None when a value is anything else."""
    cls = _METADATA.get(content[:3]) if content else None
    if cls is None or content is None:
        return None
    try:
        return decode_from(cls, content, 0, 3)
    except ProtocolError:
        return None
