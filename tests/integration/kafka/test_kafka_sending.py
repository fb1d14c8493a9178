"""`send()`, the sync and async producers and interceptors at a real Kafka: as at the embedded broker."""

import asyncio
import threading
from typing import Any

import pytest

from headrace import (
    EventsPollingOption,
    KafkaAsyncProducer,
    KafkaError,
    KafkaException,
    KafkaSyncProducer,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
)
from headrace.aio import AIOProducer
from tests.support.real_kafka import read_all
from tools.kafka import KafkaCluster


class Numbering(ProducerInterceptor):
    """Numbers the records, and counts what became of them."""

    def __init__(self) -> None:
        self.sent, self.acks = 0, []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.headers = [("number", str(self.sent))]
        self.sent += 1
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self.acks.append((metadata, error))


def conf(kafka: KafkaCluster, **properties: Any) -> dict[str, Any]:
    return {**kafka.connection, **properties}


def test_futures_and_callbacks_tell_where_each_record_is(kafka: KafkaCluster, topic: str) -> None:
    told: list[RecordMetadata] = []
    with Producer(conf(kafka)) as producer:
        futures = [producer.send(ProducerRecord(topic, str(n), partition=n % 3, record_id=n),
                                 lambda metadata, error: told.append(metadata)) for n in range(300)]
        found = [future.result(30) for future in futures]
    assert [(m.partition, m.offset, m.record_id) for m in found] == [(n % 3, n // 3, n) for n in range(300)]
    assert sorted(m.record_id or 0 for m in told) == list(range(300))
    stored = {(m.partition(), m.offset()): m.value() for m in read_all(kafka, topic, 300)}
    assert stored == {(m.partition, m.offset): str(m.record_id).encode() for m in found}


@pytest.mark.parametrize("option", list(EventsPollingOption))
def test_async_callbacks_come_once_for_good_and_bad_records(
    kafka: KafkaCluster, topic: str, option: EventsPollingOption
) -> None:
    told: list[tuple[int | None, KafkaError | None]] = []
    with KafkaAsyncProducer(conf(kafka), option) as producer:
        for number in range(500):
            partition = 9 if number == 250 else None
            producer.send(ProducerRecord(topic, b"v", partition=partition),
                          lambda metadata, error: told.append((metadata.record_id, error)))
    assert sorted(number or 0 for number, _ in told) == list(range(500))
    assert [(number, error) for number, error in told if error] == [(250, KafkaError._UNKNOWN_PARTITION)]
    assert len(read_all(kafka, topic, 499)) == 499


def test_sync_send_returns_or_raises_what_the_broker_says(kafka: KafkaCluster, topic: str) -> None:
    with KafkaSyncProducer(conf(kafka, **{"message.max.bytes": 5_000_000, "acks": "all"})) as producer:
        assert [producer.send(ProducerRecord(topic, b"v", partition=0)).offset for _ in range(20)] == list(range(20))
        with pytest.raises(KafkaException) as caught:
            producer.send(ProducerRecord(topic, b"x" * 3_000_000))
        assert caught.value.error == KafkaError.MSG_SIZE_TOO_LARGE  # the broker's limit is 1 MiB


def test_interceptors_and_batches_under_threads_and_asyncio(kafka: KafkaCluster, topic: str) -> None:
    numbering = Numbering()
    with Producer(conf(kafka, **{"interceptor.classes": numbering, "partitioner": lambda *of: 1})) as producer:
        assert producer.produce_batch(topic, [{"value": str(n)} for n in range(50)]) == 50
        assert producer.cluster_id(10) == producer.list_topics(timeout=10).cluster_id

    async def main() -> list[RecordMetadata]:
        async with AIOProducer(conf(kafka, **{"interceptor.classes": numbering, "partitioner": "round_robin"})) as aio:
            return await asyncio.gather(*[await aio.send(ProducerRecord(topic, str(n))) for n in range(50, 53)])

    assert [metadata.partition for metadata in asyncio.run(main())] == [0, 1, 2]
    assert [error for _, error in numbering.acks] == [None] * 53
    messages = read_all(kafka, topic, 53)
    assert sorted(int(m.value()) for m in messages) == list(range(53))
    assert all(m.headers() == [("number", m.value())] for m in messages)
    assert not [thread for thread in threading.enumerate() if thread.name == "headrace-callbacks"]
