"""Where a leader's term ended in its log (KIP-320): the request, and what its reply means: pure functions.

It must not know who asks. Read next: `machines.consumer.truncation`, which asks for partitions that are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import KafkaError
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.fetch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

__all__ = ["ask_epoch_ends", "read_epoch_ends"]

_CONSUMER = -1


def ask_epoch_ends(epochs: Mapping[TopicPartition, int]) -> OffsetForLeaderEpochRequest:
    """Ask one leader where the terms of some leaders ended."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, epoch in epochs.items():
        topic = topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic, partitions=[]))
        topic.partitions.append(OffsetForLeaderPartition(partition=tp.partition, leader_epoch=epoch))
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def read_epoch_ends(reply: OffsetForLeaderEpochResponse) -> dict[TopicPartition, int | KafkaError]:
    """The offset behind the last record of each term, or of the one before it; -1 where the leader cannot say."""
    return {
        TopicPartition(topic.topic, end.partition):
            KafkaError(end.error_code, f"{topic.topic}[{end.partition}]: {KafkaError(end.error_code).str()}")
            if end.error_code else end.end_offset
        for topic in reply.topics for end in topic.partitions
    }
