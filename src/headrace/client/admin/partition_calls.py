"""Calls about partitions: offsets, deleted records, leaders, and moves to other brokers.

It must not know the faces. Read next: `machines.admin.partition_requests`.
"""

from __future__ import annotations

from typing import Any

from headrace.arguments import instance_of, mapping_of
from headrace.client.admin.admin_area import (
    AdminArea,
    ByKey,
    Single,
    check_numbers,
    partitions_of,
    without_duplicates,
)
from headrace.client.admin.admin_engine import CONTROLLER
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import partition_requests as requests
from headrace.machines.admin.admin_results import key_of
from headrace.types.admin import DeletedRecords, IsolationLevel, ListOffsetsResultInfo, OffsetSpec
from headrace.types.cluster import ElectionType
from headrace.types.cluster_parts import PartitionReassignment
from headrace.types.records import OFFSET_END, TopicPartition

__all__ = ["PartitionCalls"]

_LEAST_TIMESTAMP = OffsetSpec.max_timestamp().timestamp
"""Lower numbers mean something to some brokers, and nothing in confluent_kafka."""


class PartitionCalls(AdminArea):
    """Partitions."""

    def list_offsets(
        self, topic_partition_offsets: dict[TopicPartition, OffsetSpec], *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED, request_timeout: float | None = None,
    ) -> ByKey[TopicPartition, ListOffsetsResultInfo]:
        """Find offsets: the first, the last, by time. Futures by partition.

        Each resolves to the offset, -1 where no record is that late, with the timestamp of its record.

        Args:
            topic_partition_offsets: what to find, by partition.
            isolation_level: whether the last offset may lie behind open transactions.
            request_timeout: seconds for the whole call.
        """
        specs = mapping_of(TopicPartition, OffsetSpec, topic_partition_offsets, "topic_partition_offsets")
        check_numbers(specs, named=True)
        level = instance_of(IsolationLevel, isolation_level, "isolation_level").value
        limit_s = self.limit(request_timeout)
        times = {tp: spec.timestamp for tp, spec in specs.items()}

        async def find() -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
            for tp, timestamp in times.items():
                if timestamp < _LEAST_TIMESTAMP:
                    raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"{key_of(tp)}: {timestamp} is no time"))
            return await self.engine.at_leaders(
                times, limit_s, lambda part, left_s: requests.list_offsets(part, level, left_s), requests.read_offsets)

        return ByKey(specs, find)

    def delete_records(
        self, topic_partition_offsets: list[TopicPartition], *, request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> ByKey[TopicPartition, DeletedRecords]:
        """Drop the records before each partition's offset; offset -1 drops all. Futures by partition.

        Each resolves to the first offset that is left.
        """
        given = _partitions_in("topic_partition_offsets", topic_partition_offsets, "Request", "request")
        limit_s, operation_s = self.times(request_timeout, operation_timeout)
        offsets = {tp: tp.offset for tp in given}

        async def delete() -> dict[TopicPartition, DeletedRecords | KafkaError]:
            without_duplicates(map(key_of, given), "partitions")
            wrong = {tp: KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, f"{key_of(tp)}: {offset} is no offset")
                     for tp, offset in offsets.items() if offset < 0 and offset != OFFSET_END}
            right = {tp: offset for tp, offset in offsets.items() if tp not in wrong}
            return {**wrong, **await self.engine.at_leaders(
                right, limit_s, lambda part, _: requests.delete_records(part, operation_s),
                requests.read_deleted_records)} if right else {**wrong}

        return ByKey(offsets, delete)

    def elect_leaders(
        self, election_type: ElectionType, partitions: list[TopicPartition] | None = None, *,
        request_timeout: float | None = None, operation_timeout: float | None = None,
    ) -> Single[dict[TopicPartition, KafkaError | None]]:
        """Elect leaders anew. The result has None for each partition that got one, else the error, as `tp.error` too.

        Args:
            election_type: the preferred replica, or one that is behind when no other is left.
            partitions: of which; None for all that need a leader: the result has those that had an election.
            request_timeout: seconds for the whole call.
            operation_timeout: seconds that the brokers may take.
        """
        kind = instance_of(ElectionType, election_type, "election_type").value
        given = None if partitions is None else _partitions_in(
            "partitions", partitions, "'partitions'", "'partitions'")
        limit_s, operation_s = self.times(request_timeout, operation_timeout)

        async def elect() -> dict[TopicPartition, KafkaError | None]:
            without_duplicates(map(key_of, given or ()), "partitions")
            return await self.engine.at(CONTROLLER, requests.elect_leaders(kind, given, operation_s), limit_s,
                                        lambda reply: requests.read_elected(reply, given is None))

        return elect()

    def alter_partition_reassignments(
        self, reassignments: dict[TopicPartition, list[int] | None], *, request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> ByKey[TopicPartition, None]:
        """Move partitions to other brokers. Futures by partition: they resolve when a move begins, not when it ends.

        Args:
            reassignments: broker ids by partition, the preferred leader first; None stops a move.
            request_timeout: seconds for the whole call.
            operation_timeout: seconds that the brokers may take.
        """
        moves = mapping_of(TopicPartition, object, reassignments, "reassignments")
        check_numbers(moves)
        limit_s, operation_s = self.times(request_timeout, operation_timeout)
        request = requests.reassign(reassignments, operation_s)
        return ByKey(moves, lambda: self.engine.at(CONTROLLER, request, limit_s, requests.read_reassigned))

    def list_partition_reassignments(
        self, partitions: list[TopicPartition] | None = None, *, request_timeout: float | None = None
    ) -> Single[dict[TopicPartition, PartitionReassignment]]:
        """Find which partitions move, of some or, with None, of all. The result has their replicas by partition."""
        given = None if partitions is None else partitions_of(partitions, "partitions")
        limit_s = self.limit(request_timeout)
        return self.engine.single(CONTROLLER, requests.list_reassignments(given, limit_s), limit_s,
                                  requests.read_reassignments)


def _partitions_in(name: str, given: Any, whole: str, members_of: str) -> list[TopicPartition]:
    """As `partitions_of`, in confluent_kafka's words: programs match them."""
    if not isinstance(given, list):
        raise TypeError(f"Expected {whole} to be a list, got '{type(given).__name__}': {name} takes TopicPartition")
    for place, member in enumerate(given):
        if not isinstance(member, TopicPartition):
            raise TypeError(f"Element of the {members_of} list must be of type 'TopicPartition' got "
                            f"'{type(member).__name__}' ({name}[{place}])")
    check_numbers(given)
    return list(given)
