"""Every record gets exactly one report; what a callback raises does not lose the others."""

import math

import pytest

from headrace.buffers import BufferPool, RecordAccumulator
from headrace.client.producer.reports import DeliveryReportQueue
from headrace.errors import KafkaError
from headrace.machines.producer.batch_queue import PartitionQueue, ProducerBatch
from headrace.machines.producer.sender import BatchDone


class Producer:
    """The parts round a `DeliveryReportQueue`: a buffer, a buffer_pool and a count of changes."""

    def __init__(self, only_errors=False):
        self.buffer_pool = BufferPool(100, 1_000_000)
        self.buffer = RecordAccumulator("t", 1, self.buffer_pool)
        self.changes = 0
        self.deliveries = DeliveryReportQueue(self.buffer_pool, only_errors, self.on_change)

    def on_change(self):
        self.changes += 1

    def done(self, error=None, base_offset=7):
        (opened,) = self.buffer.ready(math.inf)
        self.deliveries.add(BatchDone(ProducerBatch(PartitionQueue("t", 0), 0, opened, 0.0), error, base_offset))


def test_records_without_a_callback_are_released_when_their_batch_is_done():
    producer = Producer()
    producer.buffer.append(b"a")
    producer.buffer.append(b"b")
    assert producer.buffer_pool.messages == 2
    producer.done()
    assert (producer.buffer_pool.messages, producer.buffer_pool.bytes) == (0, 0)
    assert producer.changes == 1
    assert producer.deliveries.serve() == 0


def test_records_with_a_callback_are_counted_until_it_is_called():
    producer, got = Producer(), []
    for value in (b"a", b"b"):
        producer.buffer.append(value, callback=lambda error, message: got.append((error, message)))
    producer.done()
    assert producer.buffer_pool.messages == 2
    assert producer.buffer_pool.ahead_bytes == 0  # no broker is behind for their sake
    assert producer.deliveries.pending
    assert producer.deliveries.serve() == 2
    assert producer.buffer_pool.bytes == 0
    assert [(error, message.value(), message.offset()) for error, message in got] == [(None, b"a", 7), (None, b"b", 8)]
    assert got[0][1].latency() >= 0
    assert producer.buffer_pool.messages == 0
    assert not producer.deliveries.pending


def test_a_failed_batch_reports_its_error_for_each_record():
    producer, got = Producer(), []
    producer.buffer.append(b"a", b"key", headers={"h": b"1"}, callback=lambda e, m: got.append((e, m)))
    error = KafkaError(KafkaError._MSG_TIMED_OUT, "too late")
    producer.done(error, -1)
    producer.deliveries.serve()
    ((reported, message),) = got
    assert reported == KafkaError._MSG_TIMED_OUT
    assert message.error() == KafkaError._MSG_TIMED_OUT
    assert (message.key(), message.value(), message.offset()) == (b"key", b"a", None)


def test_a_callback_that_raises_does_not_lose_the_reports_behind_it():
    producer, got = Producer(), []

    def report(error, message):
        got.append(message.value())
        if message.value() == b"b":
            raise ValueError("mine")

    for value in (b"a", b"b", b"c"):
        producer.buffer.append(value, callback=report)
    producer.done()
    with pytest.raises(ValueError, match="mine"):
        producer.deliveries.serve()
    assert len(producer.deliveries) == 1
    assert producer.deliveries.serve() == 1
    assert got == [b"a", b"b", b"c"]


def test_a_callback_may_serve_reports_itself():
    producer, got = Producer(), []

    def report(error, message):
        got.append(message.value())
        producer.deliveries.serve()

    for value in (b"a", b"b"):
        producer.buffer.append(value, callback=report)
    producer.done()
    producer.deliveries.serve()
    assert got == [b"a", b"b"]


def test_only_errors_are_reported_if_so_configured():
    producer, got = Producer(only_errors=True), []
    producer.buffer.append(b"a", callback=lambda error, message: got.append(error))
    producer.done()
    assert producer.deliveries.serve() == 0
    producer.buffer.append(b"b", callback=lambda error, message: got.append(error))
    producer.done(KafkaError(KafkaError._PURGE_QUEUE))
    assert producer.deliveries.serve() == 1
    assert got == [KafkaError._PURGE_QUEUE]
