"""Avro's serializers: confluent_kafka's `schema_registry.avro`. `pip install headrace[avro]`."""

from __future__ import annotations

from headrace.client.schema_serdes.avro_serdes import (
    AVRO_TYPE,
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from headrace.client.schema_serdes.serde_builders import (
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializerBuilder,
    AvroDeserializerBuilder,
    AvroSerializerBuilder,
)

__all__ = [
    "AVRO_TYPE",
    "AsyncAvroDeserializer",
    "AsyncAvroDeserializerBuilder",
    "AsyncAvroSerializer",
    "AsyncAvroSerializerBuilder",
    "AvroDeserializer",
    "AvroDeserializerBuilder",
    "AvroSerializer",
    "AvroSerializerBuilder",
]
