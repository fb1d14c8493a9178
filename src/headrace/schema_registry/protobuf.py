"""Protobuf's serializers: confluent_kafka's `schema_registry.protobuf`. `pip install headrace[protobuf]`."""

from __future__ import annotations

from headrace.client.schema_serdes.protobuf_serdes import (
    PROTOBUF_TYPE,
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from headrace.client.schema_serdes.serde_builders import (
    AsyncProtobufDeserializerBuilder,
    AsyncProtobufSerializerBuilder,
    ProtobufDeserializerBuilder,
    ProtobufSerializerBuilder,
)

__all__ = [
    "PROTOBUF_TYPE",
    "AsyncProtobufDeserializer",
    "AsyncProtobufDeserializerBuilder",
    "AsyncProtobufSerializer",
    "AsyncProtobufSerializerBuilder",
    "ProtobufDeserializer",
    "ProtobufDeserializerBuilder",
    "ProtobufSerializer",
    "ProtobufSerializerBuilder",
]
