"""Serializers and deserializers, and the context that they get: confluent_kafka's `serialization`.

`SerializingProducer` calls them; any function of the same arguments will do as well.
"""

from __future__ import annotations

from headrace.client.serdes import (
    Deserializer,
    DeserializerBuilder,
    DoubleDeserializer,
    DoubleSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    Serializer,
    SerializerBuilder,
    StringDeserializer,
    StringSerializer,
)
from headrace.errors import SerializationError

__all__ = [
    "Deserializer",
    "DeserializerBuilder",
    "DoubleDeserializer",
    "DoubleSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "MessageField",
    "SerializationContext",
    "SerializationError",
    "Serializer",
    "SerializerBuilder",
    "StringDeserializer",
    "StringSerializer",
]
