"""JSON Schema's serializers: confluent_kafka's `schema_registry.json_schema`. `pip install headrace[json]`."""

from __future__ import annotations

from headrace.client.schema_serdes.json_serdes import (
    JSON_TYPE,
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from headrace.client.schema_serdes.serde_builders import (
    AsyncJSONDeserializerBuilder,
    AsyncJSONSerializerBuilder,
    JSONDeserializerBuilder,
    JSONSerializerBuilder,
)

__all__ = [
    "JSON_TYPE",
    "AsyncJSONDeserializer",
    "AsyncJSONDeserializerBuilder",
    "AsyncJSONSerializer",
    "AsyncJSONSerializerBuilder",
    "JSONDeserializer",
    "JSONDeserializerBuilder",
    "JSONSerializer",
    "JSONSerializerBuilder",
]
