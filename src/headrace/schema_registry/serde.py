"""What the serializers of all formats have in common: confluent_kafka's `schema_registry.serde`, rules left out."""

from __future__ import annotations

from headrace.client.registry.schema_ids import SchemaId
from headrace.client.schema_serdes.schema_deserializers import AsyncBaseDeserializer, BaseDeserializer
from headrace.client.schema_serdes.schema_serializers import (
    AsyncBaseSerde,
    AsyncBaseSerializer,
    BaseSerde,
    BaseSerializer,
)
from headrace.client.schema_serdes.serde_builders import async_build_serde, build_serde
from headrace.client.schema_serdes.serde_settings import ValidationRulesExecution
from headrace.client.schema_serdes.subject_choice import (
    DEFAULT_CACHE_CAPACITY,
    FALLBACK_TYPE,
    KAFKA_CLUSTER_ID,
    NAMESPACE_WILDCARD,
    STRATEGY_TYPE_MAP,
    AssociatedNameStrategy,
    AsyncAssociatedNameStrategy,
    SubjectNameStrategyType,
)

__all__ = [
    "DEFAULT_CACHE_CAPACITY",
    "FALLBACK_TYPE",
    "KAFKA_CLUSTER_ID",
    "NAMESPACE_WILDCARD",
    "STRATEGY_TYPE_MAP",
    "AssociatedNameStrategy",
    "AsyncAssociatedNameStrategy",
    "AsyncBaseDeserializer",
    "AsyncBaseSerde",
    "AsyncBaseSerializer",
    "BaseDeserializer",
    "BaseSerde",
    "BaseSerializer",
    "SchemaId",
    "SubjectNameStrategyType",
    "ValidationRulesExecution",
    "async_build_serde",
    "build_serde",
]
