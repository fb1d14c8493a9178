"""A measured process: one client reads a topic, or sends and reads at once; it prints its figures as `worker` does.

`python -m headrace.cli.measuring.reading_worker` takes its request from standard input. Some records are read before
the clock starts.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from headrace.cli.measuring.figures import WARM_UP
from headrace.cli.measuring.worker import WorkerMeter, answer, with_tls

__all__ = ["main"]

_MANY = 10_000
_SILENCE_S = 30.0
_TURN_S = 0.1
_STAMP = struct.Struct("<d")
_SETTINGS = {"group.id": "headrace-perf", "enable.auto.commit": False}

Batch = Sequence[bytes]
"""The values of some records."""


class _SilentError(Exception):
    """No more records come."""


class _Reading:
    """Counts what is read; the first records are not counted.

    Args:
        meter: counts.

    Attributes:
        wanted: most records to read next.
    """

    def __init__(self, meter: WorkerMeter) -> None:
        self._meter = meter
        self._warm = 0
        self._heard_at = time.monotonic()
        self.wanted = WARM_UP

    def take(self, batch: Batch) -> bool:
        """Some records, or none, came; True when it was enough."""
        if batch:
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at > _SILENCE_S:
            raise _SilentError(f"no records came for {_SILENCE_S:g} s")
        meter = self._meter
        if self._warm < WARM_UP:
            self._warm += len(batch)
            self.wanted = WARM_UP - self._warm
            if self._warm >= WARM_UP:
                self.wanted = _MANY
                meter.begin()
            return False
        meter.sent += len(batch)
        meter.size += sum(map(len, batch))
        meter.wait_s()
        if meter.over:
            meter.end()
            return True
        return False


def _read(meter: WorkerMeter, poll: Callable[[int], Batch]) -> None:
    """Read until it is enough."""
    reading = _Reading(meter)
    while not reading.take(poll(reading.wanted)):
        pass


def _confluent_consumer(request: dict[str, Any], settings: dict[str, Any], at_end: bool) -> Any:
    """A consumer of all partitions, ours or the one with the same calls."""
    client: Any = import_module("headrace" if request["client"] == "headrace" else "confluent_kafka")
    if request["client"] != "headrace":
        settings = {"log_level": 0, **settings}
    consumer = client.Consumer({**_SETTINGS, **settings})
    numbers = consumer.list_topics(request["topic"], timeout=30).topics[request["topic"]].partitions
    partitions = [client.TopicPartition(request["topic"], number, 0) for number in numbers]
    for tp in partitions:
        tp.offset = consumer.get_watermark_offsets(tp, timeout=30)[int(at_end)]
    consumer.assign(partitions)
    return consumer


def _confluent_values(consumer: Any, count: int, timeout_s: float) -> Batch:
    values = []
    for message in consumer.consume(count, timeout_s):
        if message.error() is not None:
            raise RuntimeError(message.error())
        values.append(message.value())
    return values


def _read_confluent(request: dict[str, Any], meter: WorkerMeter) -> None:
    consumer = _confluent_consumer(request, request["settings"], at_end=False)
    _read(meter, lambda count: _confluent_values(consumer, count, _TURN_S))
    consumer.close()


def _kafka_python_consumer(request: dict[str, Any], settings: dict[str, Any], at_end: bool) -> Any:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(enable_auto_commit=False, max_poll_records=_MANY, **settings)
    partitions = [TopicPartition(request["topic"], number)
                  for number in consumer.partitions_for_topic(request["topic"])]
    consumer.assign(partitions)
    (consumer.seek_to_end if at_end else consumer.seek_to_beginning)(*partitions)
    for tp in partitions:
        consumer.position(tp)  # it is found now, not with the first records
    return consumer


def _kafka_python_values(consumer: Any, count: int = _MANY) -> Batch:
    found = consumer.poll(timeout_ms=int(_TURN_S * 1000), max_records=count)
    return [record.value for records in found.values() for record in records]


def _read_kafka_python(request: dict[str, Any], meter: WorkerMeter) -> None:
    consumer = _kafka_python_consumer(request, request["settings"], at_end=False)
    _read(meter, lambda count: _kafka_python_values(consumer, count))
    consumer.close()


async def _aiokafka_consumer(request: dict[str, Any], settings: dict[str, Any], at_end: bool) -> Any:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(request["topic"], enable_auto_commit=False,
                                auto_offset_reset="latest" if at_end else "earliest", **with_tls(settings))
    await consumer.start()
    for tp in consumer.assignment():
        await consumer.position(tp)  # it is found now, not with the first records
    return consumer


async def _aiokafka_values(consumer: Any, count: int = _MANY) -> Batch:
    found = await consumer.getmany(timeout_ms=int(_TURN_S * 1000), max_records=count)
    return [record.value for records in found.values() for record in records]


async def _read_aiokafka(request: dict[str, Any], meter: WorkerMeter) -> None:
    consumer = await _aiokafka_consumer(request, request["settings"], at_end=False)
    reading = _Reading(meter)
    while not reading.take(await _aiokafka_values(consumer, reading.wanted)):
        pass
    await consumer.stop()


# Both ends


class _Receiver:
    """Takes what comes back, and the time that it took.

    Args:
        meter: counts.
    """

    def __init__(self, meter: WorkerMeter) -> None:
        self.meter = meter
        self.received = 0
        self.ended = threading.Event()

    def take(self, batch: Batch) -> None:
        """Some records came."""
        now = time.perf_counter()
        for value in batch:
            self.received += 1
            if self.received > WARM_UP:
                self.meter.times.append(now - _STAMP.unpack_from(value)[0])

    def run(self, poll: Callable[[], Batch]) -> None:
        """Receive until told to end, on a thread."""
        while not self.ended.is_set():
            self.take(poll())

    def missing(self, sent: int) -> int:
        """Records that were sent and did not come yet."""
        return sent + WARM_UP - self.received

    def end(self) -> None:
        """Print the figures; what did not come back is lost."""
        for _ in range(self.missing(self.meter.sent)):
            self.meter.lost(f"records did not come back within {_SILENCE_S:g} s")
        self.meter.end()


def _stamped(size: int) -> bytes:
    return _STAMP.pack(time.perf_counter()) + bytes(max(size - _STAMP.size, 0))


def _both_ends(request: dict[str, Any], meter: WorkerMeter, send: Callable[[bytes], object],
               serve: Callable[[float], object], poll: Callable[[], Batch]) -> None:
    """Send at an even rate while a thread receives."""
    receiver, size = _Receiver(meter), request["size"]
    thread = threading.Thread(target=receiver.run, args=(poll,), daemon=True)
    thread.start()
    for _ in range(WARM_UP):
        send(_stamped(size))
        serve(0)
    _await(receiver, 0, serve)
    meter.begin()
    while not meter.over:
        while (wait_s := meter.wait_s()) > 0 and not meter.stopped:
            serve(min(wait_s, _TURN_S))
        for _ in range(meter.portion()):
            send(_stamped(size))
            meter.sent += 1
            meter.size += max(size, _STAMP.size)
        serve(0)
    _await(receiver, meter.sent, serve)
    receiver.ended.set()
    thread.join()
    receiver.end()


def _await(receiver: _Receiver, sent: int, serve: Callable[[float], object]) -> None:
    until = time.monotonic() + _SILENCE_S
    while receiver.missing(sent) > 0 and time.monotonic() < until:
        serve(0.001)


def _end_to_end_confluent(request: dict[str, Any], meter: WorkerMeter) -> None:
    consumer = _confluent_consumer(request, request["reading"], at_end=True)
    producer: Any
    if request["client"] == "headrace":
        from headrace import Producer

        producer = Producer(request["settings"])
    else:
        import confluent_kafka

        producer = confluent_kafka.Producer({"log_level": 0, **request["settings"]})

    def send(value: bytes) -> None:
        while True:
            try:
                producer.produce(request["topic"], value)
                return
            except BufferError:
                producer.poll(_TURN_S)

    def poll() -> Batch:
        message = consumer.poll(_TURN_S)
        if message is None:
            return ()
        if message.error() is not None:
            raise RuntimeError(message.error())
        return (message.value(),)

    _both_ends(request, meter, send, producer.poll, poll)
    producer.flush(10)
    consumer.close()


def _end_to_end_kafka_python(request: dict[str, Any], meter: WorkerMeter) -> None:
    from kafka import KafkaProducer

    consumer = _kafka_python_consumer(request, request["reading"], at_end=True)
    producer = KafkaProducer(**request["settings"])
    _both_ends(request, meter, lambda value: producer.send(request["topic"], value), time.sleep,
               lambda: _kafka_python_values(consumer))
    producer.close(5)
    consumer.close()


async def _end_to_end_aiokafka(request: dict[str, Any], meter: WorkerMeter) -> None:
    from aiokafka import AIOKafkaProducer

    consumer = await _aiokafka_consumer(request, request["reading"], at_end=True)
    producer = AIOKafkaProducer(**with_tls(request["settings"]))
    await producer.start()
    receiver, size, topic = _Receiver(meter), request["size"], request["topic"]

    async def receive() -> None:
        while not receiver.ended.is_set():
            receiver.take(await _aiokafka_values(consumer))

    async def settled(sent: int) -> None:
        until = time.monotonic() + _SILENCE_S
        while receiver.missing(sent) > 0 and time.monotonic() < until:
            await asyncio.sleep(0.001)

    task = asyncio.create_task(receive())
    for _ in range(WARM_UP):
        await producer.send(topic, _stamped(size))
    await settled(0)
    meter.begin()
    while not meter.over:
        while (wait_s := meter.wait_s()) > 0 and not meter.stopped:
            await asyncio.sleep(min(wait_s, _TURN_S))
        for _ in range(meter.portion()):
            await producer.send(topic, _stamped(size))
            meter.sent += 1
            meter.size += max(size, _STAMP.size)
    await settled(meter.sent)
    receiver.ended.set()
    await task
    receiver.end()
    await producer.stop()
    await consumer.stop()


def _confluent(request: dict[str, Any], meter: WorkerMeter) -> None:
    (_read_confluent if request["way"] == "read" else _end_to_end_confluent)(request, meter)


def _kafka_python(request: dict[str, Any], meter: WorkerMeter) -> None:
    (_read_kafka_python if request["way"] == "read" else _end_to_end_kafka_python)(request, meter)


def _aiokafka(request: dict[str, Any], meter: WorkerMeter) -> None:
    asyncio.run((_read_aiokafka if request["way"] == "read" else _end_to_end_aiokafka)(request, meter))


def main() -> None:
    """Read, or send and read, as the request on standard input says."""
    answer({"headrace": _confluent, "confluent-kafka": _confluent, "kafka-python": _kafka_python,
            "aiokafka": _aiokafka})


if __name__ == "__main__":
    main()
