"""What control batches hold: the ends of transactions, and the records of the metadata quorum and of its snapshots.

The key of a control record is a `ControlRecordTypeSchema`, its value one of the others. The key and `EndTxnMarker` have
their version before them as an int16 (`codec.encode_prefixed`); the records of the quorum hold it as their first field.
Source: Java's `ControlRecordType`, `EndTransactionMarker`, `ControlRecordUtils`. Read next: `records.batch`.
"""

from __future__ import annotations

from headrace.wire.schema import ApiMessage, Array, Int16, Int32, Int64, String, Struct, Uint16, Uuid, field

__all__ = [
    "AbortedTxn", "ControlRecordTypeSchema", "ElectionVoter", "EndTxnMarker", "KRaftVersionFeature",
    "KRaftVersionRecord", "LeaderChangeMessage", "SnapshotFooterRecord", "SnapshotHeaderRecord", "Voter",
    "VoterEndpoint", "VotersRecord",
]


class ControlRecordTypeSchema(ApiMessage, versions="0"):
    """The key of a control record, behind its version. Its versions only ever grow at the end."""

    type: Int16 = field()
    """0 abort, 1 commit, 2 leader change, 3 snapshot header, 4 snapshot footer, 5 KRaft version, 6 voters."""


class EndTxnMarker(ApiMessage, versions="0"):
    """The value of a commit or abort marker: where a transaction ends in this partition (KIP-98)."""

    coordinator_epoch: Int32 = field()
    """Epoch of the transaction coordinator that ended the transaction."""


class ElectionVoter(Struct):
    """A member of the metadata quorum."""

    voter_id: Int32 = field()
    """Node id of the voter."""
    voter_directory_id: Uuid = field("1+")
    """Id of the voter's log directory."""


class LeaderChangeMessage(ApiMessage, versions="0-1", flexible="0+"):
    """The first record of a new leader of the metadata quorum (KIP-595). v1: directory ids (KIP-853)."""

    version: Int16 = field()
    """Version in which the record is written."""
    leader_id: Int32 = field()
    """Node id of the new leader."""
    voters: Array[ElectionVoter] = field()
    """Every member of the quorum."""
    granting_voters: Array[ElectionVoter] = field()
    """Those who voted for it."""


class SnapshotHeaderRecord(ApiMessage, versions="0", flexible="0+"):
    """The first record of a snapshot of the metadata log (KIP-630)."""

    version: Int16 = field()
    """Version in which the record is written."""
    last_contained_log_timestamp: Int64 = field()
    """Time of the last record that the snapshot stands for, in milliseconds since 1970."""


class SnapshotFooterRecord(ApiMessage, versions="0", flexible="0+"):
    """The last record of a snapshot of the metadata log (KIP-630)."""

    version: Int16 = field()
    """Version in which the record is written."""


class KRaftVersionRecord(ApiMessage, versions="0", flexible="0+"):
    """The version of the quorum's own protocol from here on (KIP-853)."""

    version: Int16 = field()
    """Version in which the record is written."""
    k_raft_version: Int16 = field()
    """0 for fixed voters, 1 for voters that can change."""


class VoterEndpoint(Struct):
    """One listener of a voter."""

    name: String = field()
    """Name of the listener."""
    host: String = field()
    """Name or address."""
    port: Uint16 = field()
    """TCP port."""


class KRaftVersionFeature(Struct):
    """The versions of the quorum's protocol that a voter can run."""

    min_supported_version: Int16 = field()
    """Lowest version."""
    max_supported_version: Int16 = field()
    """Highest version."""


class Voter(Struct):
    """A member of the metadata quorum, where it listens and what it can."""

    voter_id: Int32 = field()
    """Node id of the voter."""
    voter_directory_id: Uuid = field()
    """Id of the voter's log directory."""
    endpoints: Array[VoterEndpoint] = field()
    """Where the voter listens."""
    k_raft_version_feature: KRaftVersionFeature = field()
    """Versions of the quorum's protocol that the voter can run."""


class VotersRecord(ApiMessage, versions="0", flexible="0+"):
    """The members of the metadata quorum from here on (KIP-853)."""

    version: Int16 = field()
    """Version in which the record is written."""
    voters: Array[Voter] = field()
    """Every member of the quorum."""


class AbortedTxn(ApiMessage, versions="0"):
    """An entry of a segment's transaction index: records that were aborted (KIP-98). Kept on disk, never sent."""

    producer_id: Int64 = field()
    """Producer id of the transaction."""
    first_offset: Int64 = field()
    """Offset of its first record."""
    last_offset: Int64 = field()
    """Offset of its abort marker."""
    last_stable_offset: Int64 = field()
    """Last stable offset when it was aborted."""
