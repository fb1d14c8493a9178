"""Clients that write and read Avro themselves: `AvroProducer` and `AvroConsumer`, confluent_kafka's `avro`.

New programs take `headrace.schema_registry.avro`. `pip install headrace[avro]`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from headrace.avro.cached_schema_registry_client import CachedSchemaRegistryClient
from headrace.avro.error import ClientError
from headrace.avro.load import load, loads
from headrace.avro.serializer import KeySerializerError, SerializerError, ValueSerializerError
from headrace.avro.serializer.message_serializer import MessageSerializer
from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.records import Message

__all__ = [
    "AvroConsumer",
    "AvroProducer",
    "CachedSchemaRegistryClient",
    "ClientError",
    "KeySerializerError",
    "MessageSerializer",
    "SerializerError",
    "ValueSerializerError",
    "load",
    "loads",
]

_OF_REGISTRY = "schema.registry."


class AvroProducer(Producer):
    """A producer of values that Avro writes.

    Args:
        config: the producer's properties, and those of `CachedSchemaRegistryClient` behind "schema.registry.".
        default_key_schema: for keys, as `loads` gives it.
        default_value_schema: for values.
        schema_registry: a `CachedSchemaRegistryClient` that is there; it stays the application's.
        kwargs: more properties of the producer.

    Raises:
        ValueError: a registry client and its URL are both given, or a property will not do.
    """

    def __init__(
        self, config: Mapping[str, Any], default_key_schema: Any = None, default_value_schema: Any = None,
        schema_registry: Any = None, **kwargs: Any,
    ) -> None:
        warnings.warn("AvroProducer is of before 1.4: take headrace.schema_registry.avro.AvroSerializer",
                      DeprecationWarning, stacklevel=2)
        registry, conf = _registry_and_rest(config, schema_registry)
        super().__init__(conf, **kwargs)
        self._serializer = MessageSerializer(registry)
        self._key_schema = default_key_schema
        self._value_schema = default_value_schema

    def produce(self, **kwargs: Any) -> None:  # type: ignore[override]
        """Write key and value and put the record on its way.

        Args:
            kwargs: those of `Producer.produce`, and `key_schema` and `value_schema` where they are not the defaults.

        Raises:
            ClientError: there is no topic, or the registry refused.
            SerializerError: there is no schema, or no id of it.
        """
        key_schema = kwargs.pop("key_schema", self._key_schema)
        value_schema = kwargs.pop("value_schema", self._value_schema)
        topic = kwargs.pop("topic", None)
        if not topic:
            raise ClientError("Topic name not specified.")
        value, key = kwargs.pop("value", None), kwargs.pop("key", None)
        if value is not None:
            if not value_schema:
                raise ValueSerializerError("Avro schema required for values")
            value = self._serializer.encode_record_with_schema(topic, value_schema, value)
        if key is not None:
            if not key_schema:
                raise KeySerializerError("Avro schema required for key")
            key = self._serializer.encode_record_with_schema(topic, key_schema, key, True)
        super().produce(topic, value, key, **kwargs)


class AvroConsumer(Consumer):
    """A consumer of values that Avro reads.

    Args:
        config: the consumer's properties, and those of `CachedSchemaRegistryClient` behind "schema.registry.".
        schema_registry: a `CachedSchemaRegistryClient` that is there; it stays the application's.
        reader_key_schema: that keys are to have, as `loads` gives it; None for the one they were written with.
        reader_value_schema: the same for values.
        kwargs: more properties of the consumer.

    Raises:
        ValueError: a registry client and its URL are both given, or a property will not do.
    """

    def __init__(
        self, config: Mapping[str, Any], schema_registry: Any = None, reader_key_schema: Any = None,
        reader_value_schema: Any = None, **kwargs: Any,
    ) -> None:
        warnings.warn("AvroConsumer is of before 1.4: take headrace.schema_registry.avro.AvroDeserializer",
                      DeprecationWarning, stacklevel=2)
        registry, conf = _registry_and_rest(config, schema_registry)
        super().__init__(conf, **kwargs)
        self._serializer = MessageSerializer(registry, reader_key_schema, reader_value_schema)

    def poll(self, timeout: float | None = None) -> Message | None:
        """Wait for one message, whose key and value are what Avro reads.

        Args:
            timeout: seconds to wait at most; None for as long as it takes.

        Returns:
            A message, or None if there was none in time.

        Raises:
            SerializerError: key or value cannot be read; the message names its place.
        """
        message: Message | None = super().poll(-1 if timeout is None else timeout)
        if message is None or message.error():
            return message
        try:
            value, key = message.value(), message.key()
            if value is not None:
                message.set_value(self._serializer.decode_message(value))
            if key is not None:
                message.set_key(self._serializer.decode_message(key, is_key=True))
        except SerializerError as error:
            raise SerializerError(f"Message deserialization failed for message at {message.topic()} "
                                  f"[{message.partition()}] offset {message.offset()}: {error}") from error
        return message


def _registry_and_rest(config: Mapping[str, Any], schema_registry: Any) -> tuple[Any, dict[str, Any]]:
    """The registry client, and the properties of the Kafka client."""
    of_registry = {name.removeprefix(_OF_REGISTRY): value for name, value in config.items()
                   if name.startswith(_OF_REGISTRY)}
    rest = {name: value for name, value in config.items() if not name.startswith(_OF_REGISTRY)}
    if of_registry.get("basic.auth.credentials.source") == "SASL_INHERIT":
        mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", ""))
        of_registry |= {"sasl.mechanism": mechanism, "sasl.username": config.get("sasl.username", ""),
                        "sasl.password": config.get("sasl.password", "")}
    if schema_registry is None:
        return CachedSchemaRegistryClient(of_registry), rest
    if of_registry.get("url") is not None:
        raise ValueError("Cannot pass schema_registry along with schema.registry.url config")
    return schema_registry, rest
