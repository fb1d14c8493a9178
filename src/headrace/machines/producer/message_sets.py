"""What brokers older than the batch format take: message sets instead of batches, and no compression that came later.

The version of a request is only known where it is written, so `Send.for_version` calls this there. What an old format
cannot say is an error and never left out silently: headers (the records that have them fail alone), the sequences
of idempotence, zstd.

It must not know queues. Source: KIP-32, KIP-98, KIP-110. Read next: `records.legacy.conversion`.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.errors import KafkaError, KafkaException
from headrace.records import ZSTD, Cursor
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.schema import Request

__all__ = ["NO_HEADERS", "UNCHANGED_FROM", "places_with_headers", "produce_for_version"]

NO_HEADERS: Final = "its leader is older than Kafka 0.11 and stores no headers: send the record without them"
_BATCHES_FROM = 3
_TIMESTAMPS_FROM = 2
UNCHANGED_FROM: Final = 7
"""From this version on, the one with zstd, requests are written as they are."""
_CODEC_AT, _CODEC = 22, 7
_PRODUCER_ID = slice(43, 51)
_NO_PRODUCER = b"\xff" * 8


def produce_for_version(request: Request, version: int) -> Request:
    """A produce request as it can be written in a version; `request` itself where nothing has to be converted.

    Raises:
        KafkaException: UNSUPPORTED_FOR_MESSAGE_FORMAT: some records have headers; `_UNSUPPORTED_FEATURE`: they
            have sequences; UNSUPPORTED_COMPRESSION_TYPE: they are compressed with zstd.
    """
    if version >= UNCHANGED_FROM:
        return request
    assert isinstance(request, ProduceRequest)
    for topic in request.topic_data:
        for part in topic.partition_data:
            _check(topic.name, part.records, version)
    if version >= _BATCHES_FROM:
        return request
    from headrace.records.legacy.conversion import downgrade

    magic = 1 if version >= _TIMESTAMPS_FROM else 0
    return ProduceRequest(
        transactional_id=request.transactional_id, acks=request.acks, timeout_ms=request.timeout_ms, topic_data=[
            TopicProduceData(name=topic.name, partition_data=[
                PartitionProduceData(index=part.index, records=downgrade(part.records, magic))
                for part in topic.partition_data])
            for topic in request.topic_data])


def places_with_headers(batch: Any) -> list[int]:
    """Which records of a batch have headers, by their places."""
    found = Cursor(batch, "", -1, 0)
    places: list[int] = []
    while not found.exhausted:
        places += [message.offset() or 0 for message in found.take(1000) if message.headers()]
    return places


def _check(topic: str, batch: Any, version: int) -> None:
    if batch[_CODEC_AT] & _CODEC == ZSTD:
        raise KafkaException(KafkaError(
            KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
            f"{topic}: its leader is older than Kafka 2.1 and does not know zstd: set compression.type to lz4"))
    if version >= _BATCHES_FROM:
        return
    if batch[_PRODUCER_ID] != _NO_PRODUCER:
        raise KafkaException(KafkaError(
            KafkaError._UNSUPPORTED_FEATURE, f"{topic}: its leader is older than Kafka 0.11 and cannot recognise "
            "repeated records: set enable.idempotence to false"))
    if places_with_headers(batch):
        raise KafkaException(KafkaError(KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"{topic}: {NO_HEADERS}"))
