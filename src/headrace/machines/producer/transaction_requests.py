"""The requests of a transaction, from plain values. It must not decide anything: `machines.producer.transactions`
does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.slotted import slotted
from headrace.types.records import ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.producer.produce import InitProducerIdRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.schema import Request

__all__ = ["LAST_VERSIONS", "ConsumerGroupMetadata", "TransactionalIdentity", "for_version", "offset_keys"]

LAST_VERSIONS: Final[dict[type[Request], tuple[int, int]]] = {
    # Highest version allowed with transactions version 1, and with 2.
    AddPartitionsToTxnRequest: (3, 3),  # from 4 on between brokers only
    EndTxnRequest: (4, 5),
    TxnOffsetCommitRequest: (4, 5),  # 6 names topics by id
}
_MEMBERS_FROM: Final = 3
"""From this version of TxnOffsetCommit on the member is checked (KIP-447)."""


@slotted()
class TransactionalIdentity:
    """The producer: its transactional id, and the producer id and epoch of the coordinator; -1 before it gave them."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1

    def initialise(self, timeout_ms: int) -> Request:
        """Ask for an epoch: the first one takes the id over from its last producer; later ones go on from the last."""
        return InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms, producer_id=self.producer_id,
            producer_epoch=self.epoch)

    def add_partitions(self, keys: Iterable[tuple[str, int]]) -> Request:
        """Name the partitions that will be written to (version 1)."""
        topics: dict[str, list[int]] = {}
        for topic, partition in keys:
            topics.setdefault(topic, []).append(partition)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id, v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in topics.items()])

    def add_offsets(self, group_id: str) -> Request:
        """Name the group whose offsets will be written (version 1)."""
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id, producer_id=self.producer_id, producer_epoch=self.epoch,
            group_id=group_id)

    def commit_offsets(self, member: ConsumerGroupMetadata, offsets: Iterable[TopicPartition]) -> Request:
        """Write offsets; they count once the transaction is committed."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for tp in offsets:
            topics.setdefault(tp.topic, []).append(TxnOffsetCommitRequestPartition(
                partition_index=tp.partition, committed_offset=tp.offset,
                committed_leader_epoch=-1 if tp.leader_epoch is None else tp.leader_epoch,
                committed_metadata=tp.metadata or ""))
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id, group_id=member.group_id, producer_id=self.producer_id,
            producer_epoch=self.epoch, generation_id_or_member_epoch=member.generation, member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()])

    def end(self, *, commit: bool) -> Request:
        """Commit or abort."""
        return EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=self.producer_id, producer_epoch=self.epoch,
            committed=commit)


def for_version(request: Request, version: int) -> Request:
    """What a version can carry: brokers before Kafka 2.5 do not check who commits offsets, and are not told.

    As in librdkafka. A producer that was replaced is fenced there by its transactional id alone.
    """
    if version >= _MEMBERS_FROM or not isinstance(request, TxnOffsetCommitRequest):
        return request
    return TxnOffsetCommitRequest(
        transactional_id=request.transactional_id, group_id=request.group_id, producer_id=request.producer_id,
        producer_epoch=request.producer_epoch, topics=request.topics)


def offset_keys(request: TxnOffsetCommitRequest) -> set[tuple[str, str, int]]:
    """Group, topic and partition of each offset in a request."""
    return {(request.group_id, topic.name, part.partition_index)
            for topic in request.topics for part in topic.partitions}
