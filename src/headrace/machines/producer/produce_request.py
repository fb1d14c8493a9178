"""Batches for one broker as a produce request, and the highest version in which it may be written.

It must not know brokers, time or what becomes of the request. Read next: `machines.producer.sender`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headrace.machines.machine import ANY_VERSION
from headrace.machines.producer.batch_queue import ProducerBatch
from headrace.machines.producer.sequences import topic_id
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from headrace.machines.producer.transactional_sequences import OpenTransaction

__all__ = ["produce_request"]

_LAST_WITH_NAMES: Final = 12


def produce_request(
    batches: Iterable[ProducerBatch], acks: int, timeout_s: float, transactions: OpenTransaction | None
) -> tuple[ProduceRequest, int]:
    """The request and its highest version.

    Args:
        batches: at most one for each partition.
        acks: how many replicas have to store them: -1 for all in sync.
        timeout_s: seconds that the broker may wait for these.
        transactions: the producer's transactions, if it has any.
    """
    topics: dict[str, TopicProduceData] = {}
    highest = ANY_VERSION if transactions is None else transactions.max_produce_version
    for batch in batches:
        name = batch.queue.topic
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id(batch.queue), partition_data=[])
            if not topic.topic_id.int:
                highest = min(highest, _LAST_WITH_NAMES)
        data = batch.sealed.data if batch.sealed is not None else None
        topic.partition_data.append(PartitionProduceData(index=batch.queue.partition, records=data))
    request = ProduceRequest(
        transactional_id=None if transactions is None else transactions.transactional_id,
        acks=acks,
        timeout_ms=int(timeout_s * 1000),
        topic_data=list(topics.values()),
    )
    return request, highest
