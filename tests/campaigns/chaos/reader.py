"""Who reads what is written: our consumers all the while, and in the end somebody else's from the beginning."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import confluent_kafka

from headrace import Consumer, KafkaError, KafkaException, TopicPartition

from .ledger import Found, found_of
from .progress import Progress
from .site import PARTITIONS

_LATE_S = 90.0

Log = dict[int, list[Found]]
"""All records of a topic, by partition."""


class Reader(threading.Thread):
    """Reads committed records with our consumer until it is told how many there are.

    Args:
        servers: the brokers.
        topic: read from its beginning.
        properties: what else it takes to come to the brokers.

    Attributes:
        log: what it got so far.
        errors: what it was told instead of records.
    """

    def __init__(
        self, servers: str, topic: str, properties: Mapping[str, str] | None = None, *, name: str = "reader"
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.log: Log = {partition: [] for partition in range(PARTITIONS)}
        self.errors: list[str] = []
        self.progress = Progress()
        self._config: dict[str, Any] = {
            "bootstrap.servers": servers, "group.id": f"chaos {name}", "enable.auto.commit": False,
            "isolation.level": "read_committed", "auto.offset.reset": "error", "error_cb": self._on_error,
            **(properties or {})}
        self._topic = topic
        self._wanted: int | None = None
        self._end = threading.Event()

    @property
    def count(self) -> int:
        return sum(map(len, self.log.values()))

    def run(self) -> None:
        try:
            with Consumer(self._config) as consumer:
                self._begin(consumer)
                while not self._end.is_set():
                    for message in consumer.consume(500, 0.2):
                        self._take(message)
                    self._go_on(consumer)
        except BaseException as failure:
            self.errors.append(repr(failure))

    def _begin(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(self._topic, partition, 0) for partition in range(PARTITIONS)])

    def _go_on(self, consumer: Consumer) -> None:
        pass

    def differs(self, log: Log) -> int:
        """In how many partitions it got something else than what is there."""
        return sum(self.log[partition] != log[partition] for partition in log)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._FAIL:
            self.errors.append(str(error))

    def _take(self, message: Any) -> None:
        if message.error() is not None:
            self.errors.append(str(message.error()))
        else:
            self.log[message.partition()].append(found_of(message.offset(), message.key(), message.value()))
            self.progress.moved()

    def read_up_to(self, count: int) -> None:
        """Give it time to get that many, and a moment to get too many; then stop it."""
        give_up_at = time.monotonic() + _LATE_S
        while self.count < count and self.is_alive() and time.monotonic() < give_up_at:
            time.sleep(0.1)
        time.sleep(1.0)
        self._end.set()
        self.join(30)
        if self.is_alive():
            self.errors.append("the reader did not end within 30 s")


class GroupReader(Reader):
    """The same as a member of a group that commits. It may go back to where it has committed, but must skip nothing."""

    def __init__(self, servers: str, topic: str, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(servers, topic, properties, name="group")
        self._config |= {"auto.offset.reset": "earliest", "session.timeout.ms": 6000}

    @property
    def count(self) -> int:
        return sum(len({found.offset for found in records}) for records in self.log.values())

    def _begin(self, consumer: Consumer) -> None:
        consumer.subscribe([self._topic])

    def _go_on(self, consumer: Consumer) -> None:
        with suppress(KafkaException):  # nothing to commit, or its partitions are another's: it will read them again
            consumer.commit(asynchronous=True)

    def differs(self, log: Log) -> int:
        return sum(set(self.log[partition]) != set(log[partition]) for partition in log)


def read_again(servers: str, topic: str) -> Log:
    """All committed records, by confluent_kafka.

    Raises:
        TimeoutError: a transaction stays open, or a partition cannot be read.
    """
    log: Log = {partition: [] for partition in range(PARTITIONS)}
    for message in messages_of(servers, topic):
        log[message.partition()].append(found_of(message.offset(), message.key(), message.value()))
    return log


def messages_of(
    servers: str, topic: str, partitions: int = PARTITIONS, isolation: str = "read_committed"
) -> Iterator[Any]:
    """All committed messages of a topic, by confluent_kafka, each partition's in order; or those of aborted
    transactions as well, at read_uncommitted.

    Raises:
        TimeoutError: a transaction stays open, or a partition cannot be read.
    """
    ends = _ends(servers, topic, partitions)
    consumer = _theirs(servers, isolation)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)])
        left, give_up_at = {partition for partition, end in ends.items() if end}, time.monotonic() + _LATE_S
        while left:
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    give_up_at = time.monotonic() + _LATE_S
                    yield message
                elif (message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                        and message.offset() >= ends[message.partition()]):
                    left.discard(message.partition())
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"partitions {sorted(left)} were not read to their ends")
    finally:
        consumer.close()


def committed_offset(servers: str, topic: str, group: str) -> int:
    """What a group has for the topic's first partition, by confluent_kafka; negative if nothing.

    Raises:
        TimeoutError: nobody says.
    """
    consumer, give_up_at = _theirs(servers, "read_committed", group), time.monotonic() + _LATE_S
    try:
        while time.monotonic() < give_up_at:
            try:
                [found] = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 10)
            except confluent_kafka.KafkaException:  # a broker is not back yet
                continue
            if found.error is None:
                return int(found.offset)
    finally:
        consumer.close()
    raise TimeoutError(f"the offset of {group} is not known")


def _ends(servers: str, topic: str, partitions: int) -> dict[int, int]:
    """End offsets by partition, as soon as no transaction is open."""
    stable, all_of_it = _theirs(servers, "read_committed"), _theirs(servers, "read_uncommitted")
    give_up_at = time.monotonic() + _LATE_S
    ends: list[dict[int, int]] = []
    try:
        while time.monotonic() < give_up_at:
            try:
                ends = [
                    {p: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, p), 10)[1]
                     for p in range(partitions)} for consumer in (stable, all_of_it)]
                if ends[0] == ends[1]:
                    return ends[0]
            except confluent_kafka.KafkaException:  # a broker is not back yet
                pass
            time.sleep(0.2)
    finally:
        stable.close()
        all_of_it.close()
    raise TimeoutError(f"a transaction stays open: stable offsets and ends are {ends}")


def _theirs(servers: str, isolation: str, group: str = "chaos-again") -> Any:
    return confluent_kafka.Consumer({
        "bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "log_level": 0,
        "isolation.level": isolation, "enable.partition.eof": True, "auto.offset.reset": "error"})
