"""Clients of a registry within the process, for tests of programs."""

from __future__ import annotations

from headrace.client.registry.async_schema_registry_client import AsyncMockSchemaRegistryClient
from headrace.client.registry.schema_registry_client import MockSchemaRegistryClient

__all__ = ["AsyncMockSchemaRegistryClient", "MockSchemaRegistryClient"]
