"""Arrow columns into topics through our producer, without a Python object per record.

`ColumnWriter` fills the producer's buffers, waits while they are full, and says at the end whether every record was
acknowledged. It belongs to one task of an executor. Interceptors, and partitioners written in Python, must see records:
with them rows become `ProducerRecord`s one by one, at the cost of the columns' speed. This module does not import
pyspark.
Read next: `client.columns`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from headrace.client.columns import Part, records_of
from headrace.client.interceptors import InterceptorChain
from headrace.client.producer import Core
from headrace.client.sending import Arguments, Entrance, arguments_of
from headrace.config import PRODUCER, Config
from headrace.errors import BufferFullError, KafkaError, KafkaException
from headrace.net.thread import loop_thread
from headrace.records import Message

__all__ = ["ColumnWriter"]

_DEFAULTS: Final = {"linger.ms": "50", "queue.buffering.max.messages": "1000000"}
"""Bulk loads want full batches. `finish()` does not linger."""
_WAIT_S: Final = 1.0
_OPENING_S: Final = 0.02


class ColumnWriter:
    """Writes columns to topics; a context manager.

    Args:
        client: a producer's properties.

    Raises:
        ConfigError: an unknown property or a bad value, or an interceptor that can not be imported here.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        self._config = Config(PRODUCER, {**_DEFAULTS, **client})
        chain = InterceptorChain.of(self._config)
        self._changed = threading.Event()
        self._thread = loop_thread()
        self._failure: KafkaError | None = None
        self._core = self._thread.call(self._make())
        self._entrance = Entrance(self._core, chain)
        self._by_rows = chain is not None or self._core.buffers.by_function

    async def _make(self) -> Core:
        return Core(self._config, self._changed.set)

    def append(self, topic: str, key: Any, value: Any, partition: Any = None, headers: Any = None) -> None:
        """Append rows behind those that came before. Waits while the producer's buffer is full.

        Args:
            topic: topic name.
            key: Arrow array of binary or string, or None for no keys.
            value: Arrow array of binary or string.
            partition: Arrow array of int32, or None for the partitioner.
            headers: Arrow array of lists of (key, value), or None.

        Raises:
            KafkaException: records were lost, or the topic does not exist.
        """
        given = {"key": key, "value": value, "partition": partition, "headers": headers}
        arrays = {role: array for role, array in given.items() if array is not None}
        if self._by_rows:
            for record in records_of(topic, arrays):
                self._append_row(arguments_of(record))
            return
        part = Part(arrays)
        if part.left and topic not in self._core.buffers.open:
            (first,) = records_of(topic, {role: array.slice(0, 1) for role, array in arrays.items()})
            self._open(topic, arguments_of(first))
            part.done = 1
        while part.left:
            self._changed.clear()
            part.append_to(self._core.buffers.open[topic])
            self._core.wake()
            self._check()
            if part.left:
                self._core.relieve()
                self._changed.wait(_WAIT_S)

    def _open(self, topic: str, row: Arguments) -> None:
        """Send a topic's first row by itself: the producer opens a buffer for the columns when the topic is known."""
        self._append_row(row)
        while topic not in self._core.buffers.open:
            self._changed.wait(_OPENING_S)
            self._check()

    def _append_row(self, row: Arguments) -> None:
        arguments, record_id = self._entrance.intercept(row)
        report = self._entrance.reporting(self._on_lost, record_id)
        with self._entrance.refusals(arguments, record_id):
            while True:
                self._changed.clear()
                self._check()  # makes room
                try:
                    return self._core.produce(*arguments, report)
                except BufferFullError:
                    self._changed.wait(_WAIT_S)

    def finish(self) -> None:
        """Wait until every record is acknowledged.

        Raises:
            KafkaException: a record was not delivered within message.timeout.ms, or was refused.
        """
        self._thread.call_soon(self._core.flush, True)
        while len(self._core):
            self._changed.clear()
            self._check()
            self._changed.wait(_WAIT_S)
        self._check()

    def _check(self) -> None:
        self._core.deliveries.serve()
        failure = self._failure or self._core.deliveries.lost
        if failure is not None:
            raise KafkaException(failure)

    def _on_lost(self, error: KafkaError | None, message: Message) -> None:
        self._failure = self._failure or error

    def close(self) -> None:
        """Close the connections and interceptors; what was not acknowledged is given up."""
        try:
            self._thread.call(self._core.close())
            self._core.deliveries.serve()
        finally:
            self._entrance.close()

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
