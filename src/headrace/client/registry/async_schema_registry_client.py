"""`AsyncSchemaRegistryClient`: `SchemaRegistryClient` for asyncio.

It signs the same calls and sends their requests on the loop that awaits them. Read next:
`client.registry.schema_registry_client`, where they are documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from headrace.client.registry.configuration_calls import ConfigurationCalls
from headrace.client.registry.registry_engine import RegistryEngine, id_of
from headrace.client.registry.registry_settings import MOCK, with_mock_url
from headrace.client.registry.schema_calls import SchemaCalls
from headrace.client.registry.subject_calls import SubjectCalls
from headrace.client.waits import LoopWaits
from headrace.types.associations import Association, AssociationCreateOrUpdateRequest, AssociationResponse
from headrace.types.registry import RegisteredSchema, Schema, SchemaVersion, ServerConfig

__all__ = ["AsyncMockSchemaRegistryClient", "AsyncSchemaRegistryClient"]


class AsyncSchemaRegistryClient:
    """As `SchemaRegistryClient`, for asyncio. It may be made before there is a loop.

    Args:
        conf: properties, as there; bearer.auth.custom.provider.function may be a coroutine function.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = conf
        self._engine = RegistryEngine(conf)
        self._schemas = SchemaCalls(self._engine)
        self._subjects = SubjectCalls(self._engine)
        self._configuration = ConfigurationCalls(self._engine)
        self._waits = LoopWaits()

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> AsyncSchemaRegistryClient:
        """As `SchemaRegistryClient.new_client`."""
        url = conf.get("url")
        mocked = isinstance(url, str) and url.startswith(MOCK)
        return AsyncMockSchemaRegistryClient(conf) if mocked else AsyncSchemaRegistryClient(conf)

    async def __aenter__(self) -> AsyncSchemaRegistryClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """As `SchemaRegistryClient.close`, awaited."""
        await self._engine.aclose()

    def config(self) -> Mapping[str, Any]:
        """The properties, as they were given."""
        return self._conf

    async def clear_latest_caches(self) -> None:
        """As `SchemaRegistryClient.clear_latest_caches`, awaited."""
        self._engine.cache.drop_latest()

    async def clear_caches(self) -> None:
        """As `SchemaRegistryClient.clear_caches`, awaited."""
        self._engine.cache.clear()

    async def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """As `SchemaRegistryClient.register_schema`, awaited."""
        return id_of(await self.register_schema_full_response(subject_name, schema, normalize_schemas))

    async def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """As `SchemaRegistryClient.register_schema_full_response`, awaited."""
        return await self._waits.run(self._schemas.register(subject_name, schema, normalize_schemas))

    async def get_schema(
        self, schema_id: int, subject_name: str | None = None, fmt: str | None = None,
        reference_format: str | None = None
    ) -> Schema:
        """As `SchemaRegistryClient.get_schema`, awaited."""
        return await self._waits.run(self._schemas.by_id(schema_id, subject_name, fmt, reference_format))

    async def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """As `SchemaRegistryClient.get_schema_by_guid`, awaited."""
        return await self._waits.run(self._schemas.by_guid(guid, fmt))

    async def get_schema_types(self) -> list[str]:
        """As `SchemaRegistryClient.get_schema_types`, awaited."""
        return await self._waits.run(self._schemas.types())

    async def get_subjects_by_schema_id(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0,
        limit: int = -1
    ) -> list[str]:
        """As `SchemaRegistryClient.get_subjects_by_schema_id`, awaited."""
        return await self._waits.run(self._schemas.subjects_of(schema_id, subject_name, deleted, offset, limit))

    async def get_schema_versions(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0,
        limit: int = -1
    ) -> list[SchemaVersion]:
        """As `SchemaRegistryClient.get_schema_versions`, awaited."""
        return await self._waits.run(self._schemas.versions_of(schema_id, subject_name, deleted, offset, limit))

    async def lookup_schema(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False, fmt: str | None = None,
        deleted: bool = False
    ) -> RegisteredSchema:
        """As `SchemaRegistryClient.lookup_schema`, awaited."""
        return await self._waits.run(self._schemas.lookup(subject_name, schema, normalize_schemas, fmt, deleted))

    async def get_subjects(
        self, subject_prefix: str | None = None, deleted: bool = False, deleted_only: bool = False, offset: int = 0,
        limit: int = -1
    ) -> list[str]:
        """As `SchemaRegistryClient.get_subjects`, awaited."""
        return await self._waits.run(self._subjects.names(subject_prefix, deleted, deleted_only, offset, limit))

    async def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """As `SchemaRegistryClient.delete_subject`, awaited."""
        return await self._waits.run(self._subjects.delete(subject_name, permanent))

    async def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """As `SchemaRegistryClient.get_latest_version`, awaited."""
        return await self._waits.run(self._subjects.latest(subject_name, fmt))

    async def get_latest_with_metadata(
        self, subject_name: str, metadata: dict[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """As `SchemaRegistryClient.get_latest_with_metadata`, awaited."""
        return await self._waits.run(self._subjects.latest_with(subject_name, metadata, deleted, fmt))

    async def get_version(
        self, subject_name: str, version: int | Literal["latest"] = "latest", deleted: bool = False,
        fmt: str | None = None
    ) -> RegisteredSchema:
        """As `SchemaRegistryClient.get_version`, awaited."""
        return await self._waits.run(self._subjects.version(subject_name, version, deleted, fmt))

    async def get_referenced_by(
        self, subject_name: str, version: int | Literal["latest"] = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """As `SchemaRegistryClient.get_referenced_by`, awaited."""
        return await self._waits.run(self._subjects.referenced_by(subject_name, version, offset, limit))

    async def get_versions(
        self, subject_name: str, deleted: bool = False, deleted_only: bool = False, offset: int = 0, limit: int = -1
    ) -> list[int]:
        """As `SchemaRegistryClient.get_versions`, awaited."""
        return await self._waits.run(self._subjects.versions(subject_name, deleted, deleted_only, offset, limit))

    async def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """As `SchemaRegistryClient.delete_version`, awaited."""
        return await self._waits.run(self._subjects.delete_version(subject_name, version, permanent))

    async def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> dict[str, Any]:
        """As `SchemaRegistryClient.set_compatibility`, awaited."""
        return await self._waits.run(self._configuration.set_compatibility(subject_name, level))

    async def get_compatibility(self, subject_name: str | None = None) -> str:
        """As `SchemaRegistryClient.get_compatibility`, awaited."""
        return await self._waits.run(self._configuration.compatibility(subject_name))

    async def test_compatibility(
        self, subject_name: str, schema: Schema, version: int | str = "latest", normalize: bool = False,
        verbose: bool = False
    ) -> bool:
        """As `SchemaRegistryClient.test_compatibility`, awaited."""
        return await self._waits.run(
            self._configuration.is_compatible(subject_name, schema, version, normalize, verbose))

    async def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """As `SchemaRegistryClient.test_compatibility_all_versions`, awaited."""
        return await self._waits.run(self._configuration.is_compatible(subject_name, schema, None, normalize, verbose))

    async def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> dict[str, Any]:
        """As `SchemaRegistryClient.set_config`, awaited."""
        return await self._waits.run(self._configuration.set_config(subject_name, config))

    async def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """As `SchemaRegistryClient.delete_config`, awaited."""
        return await self._waits.run(self._configuration.delete_config(subject_name))

    async def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """As `SchemaRegistryClient.get_config`, awaited."""
        return await self._waits.run(self._configuration.config(subject_name))

    async def get_mode(self, subject_name: str) -> str:
        """As `SchemaRegistryClient.get_mode`, awaited."""
        return await self._waits.run(self._configuration.mode(subject_name))

    async def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """As `SchemaRegistryClient.update_mode`, awaited."""
        return await self._waits.run(self._configuration.update_mode(subject_name, mode, force))

    async def delete_mode(self, subject_name: str) -> str:
        """As `SchemaRegistryClient.delete_mode`, awaited."""
        return await self._waits.run(self._configuration.delete_mode(subject_name))

    async def get_global_mode(self) -> str:
        """As `SchemaRegistryClient.get_global_mode`, awaited."""
        return await self._waits.run(self._configuration.mode(None))

    async def update_global_mode(self, mode: str, force: bool = False) -> str:
        """As `SchemaRegistryClient.update_global_mode`, awaited."""
        return await self._waits.run(self._configuration.update_mode(None, mode, force))

    async def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """As `SchemaRegistryClient.get_contexts`, awaited."""
        return await self._waits.run(self._configuration.contexts(offset, limit))

    async def get_associations_by_resource_name(
        self, resource_name: str, resource_namespace: str, resource_type: str | None = None,
        association_types: list[str] | None = None, offset: int = 0, limit: int = -1
    ) -> list[Association]:
        """As `SchemaRegistryClient.get_associations_by_resource_name`, awaited."""
        return await self._waits.run(self._configuration.associations(
            resource_name, resource_namespace, resource_type, association_types, offset, limit))

    async def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        """As `SchemaRegistryClient.create_association`, awaited."""
        return await self._waits.run(self._configuration.associate(request))

    async def delete_associations(
        self, resource_id: str, resource_type: str | None = None, association_types: list[str] | None = None,
        cascade_lifecycle: bool = False
    ) -> None:
        """As `SchemaRegistryClient.delete_associations`, awaited."""
        await self._waits.run(self._configuration.dissociate(
            resource_id, resource_type, association_types, cascade_lifecycle))


class AsyncMockSchemaRegistryClient(AsyncSchemaRegistryClient):
    """As `MockSchemaRegistryClient`, for asyncio.

    Args:
        conf: properties; a URL that does not begin with mock:// counts as mock://.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        super().__init__(with_mock_url(conf))
