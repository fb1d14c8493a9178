"""What goes into the chain, and what comes out of it so far."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import confluent_kafka

from headrace import Producer
from tests.campaigns.chaos.ledger import found_of, value_of
from tests.campaigns.chaos.progress import Backpressure
from tests.campaigns.chaos.site import PARTITIONS

NAME: Final = "feeder"
_AHEAD: Final = 150_000
"""It does not go further ahead of the end than this, so that the chain is hurt while it works."""
_LATE_S: Final = 90.0


class Feeder(threading.Thread):
    """Writes numbered records, each once, to all partitions in turn.

    Args:
        way_in: properties of its producer.
        topic: where to.
        rate: records per second.
        most: records, then it ends; None until it is stopped.
        out: how many have come out at the end.

    Attributes:
        sent: how many there are.
        failure: why it could not go on.
    """

    def __init__(
        self, way_in: dict[str, Any], topic: str, rate: float, most: int | None, out: Callable[[], int]
    ) -> None:
        super().__init__(name=NAME, daemon=True)
        self.sent = 0
        self.failure: BaseException | None = None
        self._way_in, self._topic, self._rate, self._most, self._out = way_in, topic, rate, most, out
        self._end = threading.Event()

    def stop(self) -> None:
        """Write no more."""
        self._end.set()

    def run(self) -> None:
        try:
            self._feed()
        except BaseException as failure:
            self.failure = failure

    def _feed(self) -> None:
        pace = Backpressure(self._rate)
        with Producer({**self._way_in, "enable.idempotence": True, "linger.ms": 5, "log_level": 0,
                       "error_cb": lambda error: None}) as producer:
            while self._left() and not self._end.wait(0.02):
                for _ in range(min(pace.due(), self._left())):
                    try:
                        producer.produce(
                            self._topic, value_of(NAME, self.sent), NAME, partition=self.sent % PARTITIONS)
                    except BufferError:  # a broker is away
                        break
                    self.sent += 1
                producer.poll(0)
            if left := producer.flush(_LATE_S):
                raise TimeoutError(f"{left} records are not delivered")

    def _left(self) -> int:
        """How many may be written now; at least one as long as there will be more."""
        if self._most is not None and self.sent >= self._most:
            return 0
        room = _AHEAD - (self.sent - self._out())
        return max(room if self._most is None else min(room, self._most - self.sent), 1)


class Tail(threading.Thread):
    """Counts the records that come out at the end, each once, by confluent_kafka.

    Args:
        servers: the brokers.
        topic: the last one.

    Attributes:
        count: how many different records there are.
    """

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(name="tail", daemon=True)
        self.count = 0
        self._servers, self._topic = servers, topic
        self._seen = bytearray()
        self._end = threading.Event()

    def stop(self) -> None:
        self._end.set()
        self.join()

    def run(self) -> None:
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": self._servers, "group.id": "chaos-tail", "enable.auto.commit": False, "log_level": 0,
            "isolation.level": "read_committed", "auto.offset.reset": "error"})
        consumer.assign([confluent_kafka.TopicPartition(self._topic, partition, 0) for partition in range(PARTITIONS)])
        try:
            while not self._end.is_set():
                for message in consumer.consume(5000, 0.5):
                    if message.error() is None:
                        self._take(found_of(message.offset(), message.key(), message.value()).number)
        finally:
            consumer.close()

    def _take(self, number: int) -> None:
        if number >= len(self._seen):
            self._seen.extend(bytes(number + 1 - len(self._seen)))
        self.count += not self._seen[number]
        self._seen[number] = 1
