"""Members of groups, of headrace's and of confluent_kafka's: polled in a thread of their own until they leave."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from types import ModuleType
from typing import Any

import headrace
from headrace import KafkaError

from .client import PATIENCE_S

_FIRST_DELIVERY = 1
_REFUSALS = (KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID)


class Member:
    """A member; what kind it is, is said by the classes below."""

    def __init__(self) -> None:
        self._held: list[list[Any]] = []
        self._values: list[bytes] = []
        self._told: dict[int, None] = {}
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._take()
        except Exception as error:
            self._error = error

    def _take(self) -> None:
        """Read until it is to leave, and say goodbye."""
        raise NotImplementedError

    def assignment(self) -> list[list[Any]]:
        """Topics and partitions that it holds."""
        with self._lock:
            self._complain()
            return self._held

    def received(self) -> list[bytes]:
        """Values that it has read."""
        with self._lock:
            self._complain()
            return list(self._values)

    def errors(self) -> list[int]:
        """Codes of what it was refused. It is not told as a failure of the next operation then."""
        with self._lock:
            if self._error is not None:
                self._told[self._error.args[0].code()] = None
                self._error = None
            return list(self._told)

    def leave(self) -> list[bytes]:
        """Commit and say goodbye; everything that it has read."""
        self._leaving.set()
        self._thread.join(PATIENCE_S)
        return self.received()

    def _complain(self) -> None:
        if self._error is not None:
            raise self._error


class GroupMember(Member):
    """A member of a consumer group of either protocol. What it has read is committed often, and before it is given up.

    Args:
        kafka: `confluent_kafka` or `headrace`.
        properties: what its consumer is configured with.
        topics: what it reads.
    """

    def __init__(self, kafka: ModuleType, properties: dict[str, Any], topics: Sequence[str]) -> None:
        self._kafka = kafka
        self._consumer = kafka.Consumer({
            "auto.offset.reset": "earliest", "enable.auto.commit": True, "auto.commit.interval.ms": 100,
            "fetch.wait.max.ms": 200, **properties})
        self._consumer.subscribe(list(topics))
        super().__init__()

    def _take(self) -> None:
        with closing(self._consumer) as consumer:
            while not self._leaving.is_set():
                messages = self._read(consumer)
                held = [[part.topic, part.partition] for part in consumer.assignment()]
                with self._lock:
                    self._held = held
                    self._values += [message.value() for message in messages if message.error() is None]
                for error in (message.error() for message in messages):
                    if error is not None:
                        self._on_error(error)

    def _read(self, consumer: Any) -> list[Any]:
        """What comes next. librdkafka's `consume` rebalances in its middle, and commits nothing of what it has then."""
        if self._kafka is headrace:
            return consumer.consume(100, 0.05)
        message = consumer.poll(0.05)
        return [] if message is None else [message]

    def _on_error(self, error: Any) -> None:
        kinds = self._kafka.KafkaError
        if error.code() == kinds._FATAL:  # librdkafka names the reason in words
            named = [kinds(code) for code in _REFUSALS if kinds(code).str() in error.str()]
            if not named:
                raise self._kafka.KafkaException(error)
            [error] = named
        if error.code() > 0:
            with self._lock:
                self._told[error.code()] = None


class ShareMember(Member):
    """A member of a share group.

    Args:
        kafka: `confluent_kafka` or `headrace`.
        properties: what its consumer is configured with.
        topics: what it reads.
        explicit: acknowledge each record by itself.
        releases: and give back each that comes for the first time.
    """

    def __init__(self, kafka: ModuleType, properties: dict[str, Any], topics: Sequence[str], *,
                 explicit: bool = False, releases: bool = False) -> None:
        self._explicit = explicit or releases
        self._releases = releases
        self._types = kafka.AcknowledgeType
        self._consumer = kafka.ShareConsumer({
            **properties, "fetch.wait.max.ms": 200, "max.poll.records": 10,
            "share.acknowledgement.mode": "explicit" if self._explicit else "implicit"})
        self._consumer.subscribe(list(topics))
        super().__init__()

    def _take(self) -> None:
        with closing(self._consumer) as consumer:
            while not self._leaving.is_set():
                for message in consumer.poll(0.05):
                    if message.error() is None:
                        self._acknowledge(message)
            consumer.commit_sync(PATIENCE_S)

    def _acknowledge(self, message: Any) -> None:
        if self._releases and message.delivery_count() == _FIRST_DELIVERY:
            self._consumer.acknowledge(message, self._types.RELEASE)
            return
        with self._lock:
            self._values.append(message.value())
        if self._explicit:
            self._consumer.acknowledge(message, self._types.ACCEPT)
