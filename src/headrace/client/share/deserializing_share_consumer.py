"""`DeserializingShareConsumer`: a share consumer of objects, which deserializers make of bytes.

It must not know formats: deserializers do. Read next: `client.serdes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.client.serdes import MessageField, SerializationContext
from headrace.client.share.polled_messages import Messages
from headrace.client.share.share_consumer import ShareConsumer
from headrace.errors import KafkaError
from headrace.records import Message

__all__ = ["DeserializingShareConsumer"]

_Deserializer = Callable[[bytes | None, SerializationContext], Any]


class DeserializingShareConsumer(ShareConsumer):
    """Reads objects as a member of a share group (confluent_kafka's `DeserializingShareConsumer`).

    A record that cannot be deserialized costs no other one: its message keeps the bytes and has an `error()`,
    `_KEY_DESERIALIZATION` or `_VALUE_DESERIALIZATION`. It is held as the others are, and needs a word as they do,
    REJECT for example.

    Args:
        conf: properties, see `headrace.config`, and `key.deserializer`, `value.deserializer`: called as
            deserializer(bytes or None, `SerializationContext`).

    Raises:
        ConfigError: an unknown property, a bad value, one that share groups do not have, or no "group.id".
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        left = dict(conf)
        self._key_deserializer: _Deserializer | None = left.pop("key.deserializer", None)
        self._value_deserializer: _Deserializer | None = left.pop("value.deserializer", None)
        super().__init__(left)

    def poll(self, timeout: float | None = -1) -> Messages:
        """As `ShareConsumer.poll`, with objects in place of bytes."""
        messages = super().poll(timeout)
        for message in messages:
            if message.error() is None:
                self._deserialize(message)
        return messages

    def _deserialize(self, message: Message) -> None:
        """Key first, for its deserializer may leave something for the other; both are replaced, or none."""
        key, value = message.key(), message.value()
        context = SerializationContext(message.topic() or "", MessageField.KEY, message.headers())
        code = KafkaError._KEY_DESERIALIZATION
        try:
            if self._key_deserializer is not None:
                key = self._key_deserializer(key, context)
            code, context.field = KafkaError._VALUE_DESERIALIZATION, MessageField.VALUE
            if self._value_deserializer is not None:
                value = self._value_deserializer(value, context)
        except Exception as error:
            message.set_error(KafkaError(code, str(error)))
        else:
            message.set_key(key)
            message.set_value(value)
