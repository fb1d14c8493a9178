"""The clients of a Schema Registry and the values that they speak of."""

from __future__ import annotations

from headrace.client.registry.async_schema_registry_client import AsyncSchemaRegistryClient
from headrace.client.registry.schema_registry_client import SchemaRegistryClient
from headrace.errors import SchemaRegistryError
from headrace.types.associations import (
    Association,
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    AssociationInfo,
    AssociationResponse,
)
from headrace.types.registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    RegisteredSchema,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RulePhase,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaVersion,
    ServerConfig,
)

__all__ = [
    "VALID_AUTH_PROVIDERS",
    "Association",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationInfo",
    "AssociationResponse",
    "AsyncSchemaRegistryClient",
    "ConfigCompatibilityLevel",
    "Metadata",
    "MetadataProperties",
    "MetadataTags",
    "RegisteredSchema",
    "Rule",
    "RuleKind",
    "RuleMode",
    "RuleParams",
    "RulePhase",
    "RuleSet",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
    "SchemaRegistryError",
    "SchemaVersion",
    "ServerConfig",
]

VALID_AUTH_PROVIDERS = ["URL", "USER_INFO"]
"""Where user name and password may come from: the URL, or a property."""
