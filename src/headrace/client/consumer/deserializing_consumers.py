"""`DeserializingConsumer` and `AsyncDeserializingConsumer`: consumers of objects, which deserializers make of bytes.

They must not know formats: deserializers do. Read next: `client.serdes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar

from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.consumer.consumer import Consumer
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
from headrace.errors import ClientClosedError, ConsumeError, KeyDeserializationError, ValueDeserializationError
from headrace.records import Message

__all__ = ["AsyncDeserializingConsumer", "DeserializingConsumer"]

K = TypeVar("K")
V = TypeVar("V")


class DeserializingConsumer(Consumer, Generic[K, V]):
    """Reads objects (confluent_kafka's `DeserializingConsumer`). Key and value of a message are what was made of them.

    Args:
        conf: properties, see `headrace.config`, and `key.deserializer`, `value.deserializer`: called as
            deserializer(bytes or None, `SerializationContext`), they return the object. `key.deserializer.builder` and
            `value.deserializer.builder` have one made (`serialization.DeserializerBuilder`), which is closed with the
            consumer.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        ValueError: a deserializer and its builder are both given.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        parts, left = parts_of(conf, "deserializer")
        self._built: list[Any] = []
        with all_built(parts, left, self._built) as (serdes, rest):
            self._key_deserializer, self._value_deserializer = serdes
            super().__init__(rest)
            offer_cluster_id(serdes, self.cluster_id)

    def poll(self, timeout: float | None = -1) -> Message | None:
        """The next message with its key and value deserialized, or None. Runs callbacks.

        A message that cannot be deserialized counts as read: the next call gives the one behind it.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Raises:
            ClientClosedError: the consumer is closed (a `RuntimeError`).
            ConsumeError: an event came in place of a record; `kafka_message` is the event.
            KeyDeserializationError: `key.deserializer` raised; `kafka_message` has the bytes.
            ValueDeserializationError: `value.deserializer` raised.
        """
        message = super().poll(timeout)
        if message is None:
            return None
        try:
            return self._deserialized(message)
        except Exception:
            raise
        except BaseException:  # Ctrl-C: nobody has seen it
            self._waits.call(self._engine.give_back([message]))
            raise

    def _deserialized(self, message: Message) -> Message:
        context = _context_of(message)
        key, value = message.key(), message.value()
        if self._key_deserializer is not None:
            try:
                key = self._key_deserializer(key, context)
            except Exception as error:
                raise KeyDeserializationError(error, message) from error
        if self._value_deserializer is not None:
            context.field = MessageField.VALUE
            try:
                value = self._value_deserializer(value, context)
            except Exception as error:
                raise ValueDeserializationError(error, message) from error
        message.set_key(key)
        message.set_value(value)
        return message

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> Never:
        """Not there, as in confluent_kafka: use `poll()`.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a DeserializingConsumer has poll(), and can be iterated over, but has no consume()")

    def close(self) -> None:
        """Close the consumer, as `Consumer.close` does; then the deserializers that builders made."""
        super().close()
        close_all(self._built)


class AsyncDeserializingConsumer(AIOConsumer, Generic[K, V]):
    """Reads objects (confluent_kafka.aio's `AsyncDeserializingConsumer`): `await AsyncDeserializingConsumer(conf)`.

    Args:
        conf: properties, see `headrace.config`, and `key.deserializer`, `value.deserializer`: called as
            deserializer(bytes or None, `SerializationContext`), they return the object, or a coroutine of it.
            `key.deserializer.builder` and `value.deserializer.builder` have one made, which is closed with the
            consumer.
        options: the other arguments of `AIOConsumer`.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        ValueError: a deserializer and its builder are both given.
    """

    def __init__(self, conf: Mapping[str, Any], **options: Any) -> None:
        self._parts, self._left = parts_of(conf, "deserializer")
        self._options = options
        self._built: list[Any] = []
        self._made = False

    if not TYPE_CHECKING:  # as in `Consumer`

        def __getattr__(self, name: str) -> Any:
            if name in ("_fast_path", "_waits"):
                raise ClientClosedError("an AsyncDeserializingConsumer must be awaited: consumer = await "
                                        "AsyncDeserializingConsumer(conf)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __await__(self) -> Generator[Any, None, Self]:
        return self._make().__await__()

    async def _make(self) -> Self:
        if self._made:
            return self
        async with all_built_async(self._parts, self._left, self._built) as (serdes, rest):
            self._key_deserializer, self._value_deserializer = serdes
            super().__init__(rest, **self._options)
        offer_cluster_id_async(serdes, self.cluster_id)
        self._made = True
        return self

    async def poll(self, timeout: float | None = -1) -> Message | None:
        """As `DeserializingConsumer.poll`, awaited."""
        message = await super().poll(timeout)
        try:
            return None if message is None else await self._deserialized(message)
        except asyncio.CancelledError:
            await self._engine.give_back([message] if message is not None else [])
            raise

    async def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """As `Consumer.consume`, awaited, with keys and values deserialized; events are among the messages as they are.

        One that cannot be deserialized ends the batch; the next call raises it, and the one after that goes on.

        Raises:
            KeyDeserializationError: `key.deserializer` raised for the first message; `kafka_message` has the bytes.
            ValueDeserializationError: `value.deserializer` did.
        """
        messages = await super().consume(num_messages, timeout)
        for done, message in enumerate(messages):
            try:
                if message.error() is None:
                    await self._deserialized(message)
            except BaseException as error:
                if done and isinstance(error, ConsumeError):
                    await self._engine.give_back(messages[done:])
                    return messages[:done]
                await self._engine.give_back(messages[1 if isinstance(error, ConsumeError) else 0:])
                raise
        return messages

    async def _deserialized(self, message: Message) -> Message:
        context = _context_of(message)
        key, value = message.key(), message.value()
        if self._key_deserializer is not None:
            try:
                key = await settled(self._key_deserializer(key, context))
            except Exception as error:
                raise KeyDeserializationError(error, message) from error
        if self._value_deserializer is not None:
            context.field = MessageField.VALUE
            try:
                value = await settled(self._value_deserializer(value, context))
            except Exception as error:
                raise ValueDeserializationError(error, message) from error
        message.set_key(key)
        message.set_value(value)
        return message

    async def close(self) -> None:
        """As `DeserializingConsumer.close`, awaited."""
        if self._made:
            await super().close()
        await close_all_async(self._built)

    async def __aenter__(self) -> Self:
        return await self._make()


def _context_of(message: Message) -> SerializationContext:
    """What deserializers get beside the bytes; raises `ConsumeError` for an event."""
    error, topic = message.error(), message.topic()
    if error is not None:
        raise ConsumeError(error, kafka_message=message)
    assert topic is not None, "a record has a topic"
    return SerializationContext(topic, MessageField.KEY, message.headers())
