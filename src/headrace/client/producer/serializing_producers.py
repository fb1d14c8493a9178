"""`SerializingProducer` and `AsyncSerializingProducer`: producers of objects, which serializers turn into bytes.

They must not know formats: serializers do. Read next: `client.serdes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from typing import Any, Generic, TypeVar

from headrace.client.producer.aio_producer import AIOProducer
from headrace.client.producer.producer import DeliveryCallback, Producer
from headrace.client.producer.topics import producer_closed
from headrace.client.serdes import (
    MessageField,
    SerializationContext,
    all_built,
    all_built_async,
    close_all,
    close_all_async,
    offer_cluster_id,
    offer_cluster_id_async,
    parts_of,
    settled,
)
from headrace.errors import KeySerializationError, ValueSerializationError
from headrace.records import Message
from headrace.types.records import Headers

__all__ = ["AsyncSerializingProducer", "SerializingProducer"]

K = TypeVar("K")
V = TypeVar("V")


class SerializingProducer(Producer, Generic[K, V]):
    """Sends objects (confluent_kafka's `SerializingProducer`).

    Args:
        conf: properties, see `headrace.config`, and `key.serializer`, `value.serializer`: called as
            serializer(object, `SerializationContext`), they return bytes or None. `key.serializer.builder` and
            `value.serializer.builder` have one made (`serialization.SerializerBuilder`), which is closed with the
            producer.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        ValueError: a serializer and its builder are both given.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        parts, left = parts_of(conf, "serializer")
        self._built: list[Any] = []
        with all_built(parts, left, self._built) as (serdes, rest):
            self._key_serializer, self._value_serializer = serdes
            super().__init__(rest)
            offer_cluster_id(serdes, self.cluster_id)

    def produce(  # type: ignore[override]
        self,
        topic: str,
        key: K | None = None,
        value: V | None = None,
        partition: int = -1,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Serialize key and value and put the record on its way.

        Args:
            topic: topic name.
            key: object for `key.serializer`; without one bytes, str or None.
            value: the same for `value.serializer`.
            partition: partition number; -1 lets the partitioner choose.
            on_delivery: called as on_delivery(error, message) from `poll()` or `flush()`; the message has bytes.
            timestamp: milliseconds since the epoch; 0 takes the time of the call.
            headers: names and values; serializers see them, and may add to them.

        Raises:
            BufferError: too much waits already; call `poll()` and try again.
            ClientClosedError: the producer is closed; no serializer was called.
            KafkaException: the record is too large, or its partition does not exist.
            KeySerializationError: `key.serializer` raised.
            TypeError: the topic is not str; no serializer was called.
            ValueSerializationError: `value.serializer` raised.
        """
        if self._engine.closed and not self._engine.deliveries.in_callback():  # `close()` calls callbacks as well
            raise self._engine.refusal()
        context = _context_of_key(topic, headers)
        raw_key: Any = key
        raw_value: Any = value
        if self._key_serializer is not None:
            try:
                raw_key = self._key_serializer(key, context)
            except Exception as error:
                raise KeySerializationError(error) from error
        context.field = MessageField.VALUE
        if self._value_serializer is not None:
            try:
                raw_value = self._value_serializer(value, context)
            except Exception as error:
                raise ValueSerializationError(error) from error
        self._produce(topic, raw_value, raw_key, partition, None, on_delivery, timestamp, headers)

    def close(self, timeout: float | None = None) -> bool:
        """Deliver what waits and stop, as `Producer.close` does; then close the serializers that builders made.

        Args:
            timeout: without effect, as in confluent_kafka.
        """
        closed = super().close()
        close_all(self.__dict__.get("_built", []))
        return closed


class AsyncSerializingProducer(AIOProducer, Generic[K, V]):
    """Sends objects (confluent_kafka.aio's `AsyncSerializingProducer`): `await AsyncSerializingProducer(conf)`.

    Args:
        conf: properties, see `headrace.config`, and `key.serializer`, `value.serializer`: called as
            serializer(object, `SerializationContext`), they return bytes or None, or a coroutine of that.
            `key.serializer.builder` and `value.serializer.builder` have one made, which is closed with the producer.
        options: the other arguments of `AIOProducer`.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        ValueError: a serializer and its builder are both given.
    """

    def __init__(self, conf: Mapping[str, Any], **options: Any) -> None:
        self._parts, self._left = parts_of(conf, "serializer")
        self._options = options
        self._built: list[Any] = []
        self._made = False

    def __await__(self) -> Generator[Any, None, AsyncSerializingProducer[K, V]]:
        return self._make().__await__()

    async def _make(self) -> AsyncSerializingProducer[K, V]:
        if self._made:
            return self
        async with all_built_async(self._parts, self._left, self._built) as (serdes, rest):
            self._key_serializer, self._value_serializer = serdes
            super().__init__(rest, **self._options)
        offer_cluster_id_async(serdes, self.cluster_id)
        self._made = True
        return self

    async def produce(  # type: ignore[override]
        self,
        topic: str,
        key: K | None = None,
        value: V | None = None,
        partition: int = -1,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> asyncio.Future[Message]:
        """As `SerializingProducer.produce`, awaited; it waits while the buffer is full.

        Returns:
            A future of the delivered message, as of `AIOProducer.produce`.

        Raises:
            RuntimeError: the producer was not awaited.
        """
        if not self._made:
            raise RuntimeError("an AsyncSerializingProducer must be awaited: producer = await "
                               "AsyncSerializingProducer(conf)")
        if self._closing is not None:
            raise producer_closed()
        context = _context_of_key(topic, headers)
        raw_key: Any = key
        raw_value: Any = value
        if self._key_serializer is not None:
            try:
                raw_key = await settled(self._key_serializer(key, context))
            except Exception as error:
                raise KeySerializationError(error) from error
        context.field = MessageField.VALUE
        if self._value_serializer is not None:
            try:
                raw_value = await settled(self._value_serializer(value, context))
            except Exception as error:
                raise ValueSerializationError(error) from error
        return await super().produce(topic, raw_value, raw_key, partition, None, timestamp, headers)

    async def close(self) -> None:
        """Deliver what waits and stop, as `AIOProducer.close` does; then close the serializers that builders made."""
        if self._made:
            await super().close()
        await close_all_async(self._built)

    async def __aenter__(self) -> AsyncSerializingProducer[K, V]:
        return await self._make()


def _context_of_key(topic: object, headers: Headers | None) -> SerializationContext:
    """Where a record goes to: no serializer is to be called for a topic that cannot be one."""
    if not isinstance(topic, str):
        raise TypeError(f"topic must be a str, not {type(topic).__name__}")
    return SerializationContext(topic, MessageField.KEY, headers)
