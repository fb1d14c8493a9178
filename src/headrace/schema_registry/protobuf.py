"""Protobuf's serializers: confluent_kafka's `schema_registry.protobuf`. `pip install headrace[protobuf]`."""

from __future__ import annotations

from headrace.client.schema_serdes.codecs.protobuf_codec import file_text, message_indexes
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

_schema_to_str = file_text
"""confluent_kafka's name for it: programs call it to register a message's schema by themselves."""
_create_index_array = message_indexes
"""As above: where in its file a message stands."""
