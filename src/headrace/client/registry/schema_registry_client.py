"""`SchemaRegistryClient`: a Schema Registry for synchronous programs, under confluent_kafka's names and behaviour.

It signs the calls of `client.registry.schema_calls`, `subject_calls` and `configuration_calls`, and has their requests
sent on the process's loop thread. It must not know what a call does. Read next: `client.registry.schema_calls`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from headrace.buffers import Tether
from headrace.client.registry.configuration_calls import ConfigurationCalls
from headrace.client.registry.http_transport import Sessions
from headrace.client.registry.registry_engine import RegistryEngine, id_of
from headrace.client.registry.registry_settings import MOCK, with_mock_url
from headrace.client.registry.schema_calls import SchemaCalls
from headrace.client.registry.subject_calls import SubjectCalls
from headrace.client.waits import Steps, ThreadWaits, submit
from headrace.net.thread import loop_thread
from headrace.types.associations import Association, AssociationCreateOrUpdateRequest, AssociationResponse
from headrace.types.registry import RegisteredSchema, Schema, SchemaVersion, ServerConfig

__all__ = ["MockSchemaRegistryClient", "SchemaRegistryClient"]

_T = TypeVar("_T")


class SchemaRegistryClient:
    """Registers schemas at a Schema Registry, finds them, and changes what it is set to.

    What was found is remembered: the schema of an id and of a GUID, a version, what a schema was registered as; the
    latest version of a subject too, for cache.latest.ttl.sec. From any thread, and on both sides of a fork.

    Args:
        conf: properties; `url` is enough. `docs/how-to/registry.md` has them all.

    Raises:
        ConfigError: a property is unknown, missing or wrong; it is a ValueError.
        TypeError: a property is of another type.
        DependencyError: the package httpx2 is not installed.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = conf
        self._engine = RegistryEngine(conf)
        self._schemas = SchemaCalls(self._engine)
        self._subjects = SubjectCalls(self._engine)
        self._configuration = ConfigurationCalls(self._engine)
        self._thread_waits: ThreadWaits | None = None
        self._tether = Tether()
        weakref.finalize(self._tether, _close_forgotten, self._engine.sessions).atexit = False

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> SchemaRegistryClient:
        """A client; a `MockSchemaRegistryClient` where the URL begins with mock://."""
        url = conf.get("url")
        mocked = isinstance(url, str) and url.startswith(MOCK)
        return MockSchemaRegistryClient(conf) if mocked else SchemaRegistryClient(conf)

    def __enter__(self) -> SchemaRegistryClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Calls after it raise ClientClosedError; the second close does nothing."""
        if self._engine.connected and not sys.is_finalizing():
            self._waits().call(self._engine.aclose())
        self._engine.closed = True

    def config(self) -> Mapping[str, Any]:
        """The properties, as they were given."""
        return self._conf

    def clear_latest_caches(self) -> None:
        """Forget which versions are the latest."""
        self._engine.cache.drop_latest()

    def clear_caches(self) -> None:
        """Forget all that was remembered."""
        self._engine.cache.clear()

    def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """Register a schema under a subject. A schema that is registered already keeps its id.

        Args:
            subject_name: the subject.
            schema: the schema.
            normalize_schemas: the registry brings it into its normal form before.

        Returns:
            The schema's id.

        Raises:
            SchemaRegistryError: it is no schema, or is not compatible with earlier versions (409).
        """
        return id_of(self.register_schema_full_response(subject_name, schema, normalize_schemas))

    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """As `register_schema`. Returns all that the registry says, perhaps without a version."""
        return self._run(self._schemas.register(subject_name, schema, normalize_schemas))

    def get_schema(
        self, schema_id: int, subject_name: str | None = None, fmt: str | None = None,
        reference_format: str | None = None
    ) -> Schema:
        """The schema of an id. It is remembered.

        Args:
            schema_id: the id.
            subject_name: a subject that has it; it also says which context the id is of.
            fmt: form of the text, as the registry knows for the type, for example "resolved".
            reference_format: the same for the schemas that it refers to.

        Raises:
            SchemaRegistryError: there is none (404).
        """
        return self._run(self._schemas.by_id(schema_id, subject_name, fmt, reference_format))

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """The schema of a GUID. It is remembered.

        Args:
            guid: the GUID.
            fmt: see `get_schema`.

        Raises:
            SchemaRegistryError: there is none (404).
        """
        return self._run(self._schemas.by_guid(guid, fmt))

    def get_schema_types(self) -> list[str]:
        """The types of schemas that the registry knows, for example AVRO, JSON and PROTOBUF."""
        return self._run(self._schemas.types())

    def get_subjects_by_schema_id(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0,
        limit: int = -1
    ) -> list[str]:
        """The subjects that have a schema.

        Args:
            schema_id: the schema's id.
            subject_name: only this one.
            deleted: those too that have deleted it.
            offset: how many to leave out.
            limit: the most to return, -1 for all.

        Raises:
            SchemaRegistryError: there is no such schema (404).
        """
        return self._run(self._schemas.subjects_of(schema_id, subject_name, deleted, offset, limit))

    def get_schema_versions(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0,
        limit: int = -1
    ) -> list[SchemaVersion]:
        """The subjects and versions that have a schema. Arguments and errors as of `get_subjects_by_schema_id`."""
        return self._run(self._schemas.versions_of(schema_id, subject_name, deleted, offset, limit))

    def lookup_schema(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False, fmt: str | None = None,
        deleted: bool = False
    ) -> RegisteredSchema:
        """Where a schema is registered under a subject: its id and version. It is remembered.

        Args:
            subject_name: the subject.
            schema: the schema.
            normalize_schemas: the registry brings it into its normal form before.
            fmt: see `get_schema`.
            deleted: also if that version is deleted.

        Raises:
            SchemaRegistryError: it is not registered there (404).
        """
        return self._run(self._schemas.lookup(subject_name, schema, normalize_schemas, fmt, deleted))

    def get_subjects(
        self, subject_prefix: str | None = None, deleted: bool = False, deleted_only: bool = False, offset: int = 0,
        limit: int = -1
    ) -> list[str]:
        """The names of the subjects.

        Args:
            subject_prefix: only those that begin so.
            deleted: deleted ones too.
            deleted_only: deleted ones alone.
            offset: how many to leave out.
            limit: the most to return, -1 for all.

        Raises:
            SchemaRegistryError: the registry refused.
        """
        return self._run(self._subjects.names(subject_prefix, deleted, deleted_only, offset, limit))

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject with all of its versions.

        Args:
            subject_name: the subject.
            permanent: for good; it must have been deleted before.

        Returns:
            The versions that were deleted.

        Raises:
            SchemaRegistryError: there is no such subject (404), or a version is referred to (422).
        """
        return self._run(self._subjects.delete(subject_name, permanent))

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """The latest version of a subject. It is remembered for cache.latest.ttl.sec.

        Args:
            subject_name: the subject.
            fmt: see `get_schema`.

        Raises:
            SchemaRegistryError: there is no such subject (404).
        """
        return self._run(self._subjects.latest(subject_name, fmt))

    def get_latest_with_metadata(
        self, subject_name: str, metadata: dict[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """The latest version of a subject whose metadata has some properties; remembered as by `get_latest_version`.

        Args:
            subject_name: the subject.
            metadata: the properties.
            deleted: deleted versions too.
            fmt: see `get_schema`.

        Raises:
            SchemaRegistryError: there is none (404).
        """
        return self._run(self._subjects.latest_with(subject_name, metadata, deleted, fmt))

    def get_version(
        self, subject_name: str, version: int | Literal["latest"] = "latest", deleted: bool = False,
        fmt: str | None = None
    ) -> RegisteredSchema:
        """A version of a subject. It is remembered, but for the latest.

        Args:
            subject_name: the subject.
            version: its number, or "latest".
            deleted: also if it is deleted.
            fmt: see `get_schema`.

        Raises:
            SchemaRegistryError: there is none (404).
        """
        return self._run(self._subjects.version(subject_name, version, deleted, fmt))

    def get_referenced_by(
        self, subject_name: str, version: int | Literal["latest"] = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """The ids of the schemas that refer to a version.

        Args:
            subject_name: the subject.
            version: its number, or "latest".
            offset: how many to leave out.
            limit: the most to return, -1 for all.

        Raises:
            SchemaRegistryError: there is no such version (404).
        """
        return self._run(self._subjects.referenced_by(subject_name, version, offset, limit))

    def get_versions(
        self, subject_name: str, deleted: bool = False, deleted_only: bool = False, offset: int = 0, limit: int = -1
    ) -> list[int]:
        """The versions of a subject. Arguments as of `get_subjects`.

        Raises:
            SchemaRegistryError: there is no such subject (404).
        """
        return self._run(self._subjects.versions(subject_name, deleted, deleted_only, offset, limit))

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """Delete a version of a subject.

        Args:
            subject_name: the subject.
            version: its number.
            permanent: for good; it must have been deleted before.

        Returns:
            The version that was deleted.

        Raises:
            SchemaRegistryError: there is none (404), or it is referred to (422).
        """
        return self._run(self._subjects.delete_version(subject_name, version, permanent))

    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> dict[str, Any]:
        """Change the compatibility level.

        Args:
            subject_name: of this subject; None for the whole registry.
            level: one of `ConfigCompatibilityLevel`.

        Returns:
            What the registry answers, `{"compatibility": level}`.

        Raises:
            ValueError: no level is given.
            SchemaRegistryError: there is no such level (422).
        """
        return self._run(self._configuration.set_compatibility(subject_name, level))

    def get_compatibility(self, subject_name: str | None = None) -> str:
        """The compatibility level.

        Args:
            subject_name: of this subject; None for the whole registry.

        Raises:
            SchemaRegistryError: the subject has none of its own (404).
        """
        return self._run(self._configuration.compatibility(subject_name))

    def test_compatibility(
        self, subject_name: str, schema: Schema, version: int | str = "latest", normalize: bool = False,
        verbose: bool = False
    ) -> bool:
        """Whether a schema is compatible with a version of a subject.

        Args:
            subject_name: the subject.
            schema: the schema.
            version: the version's number, or "latest".
            normalize: the registry brings the schema into its normal form before.
            verbose: the registry says why not; nobody sees it here.

        Raises:
            SchemaRegistryError: there is no such version (404), or it is no schema (422).
        """
        return self._run(self._configuration.is_compatible(subject_name, schema, version, normalize, verbose))

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Whether a schema is compatible with all versions that the subject's level says. Arguments as above."""
        return self._run(self._configuration.is_compatible(subject_name, schema, None, normalize, verbose))

    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> dict[str, Any]:
        """Change the configuration.

        Args:
            subject_name: of this subject; None for the whole registry.
            config: what to change.

        Returns:
            What the registry answers, the configuration's JSON.

        Raises:
            ValueError: no configuration is given.
            SchemaRegistryError: it is wrong (422).
        """
        return self._run(self._configuration.set_config(subject_name, config))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Go back to the configuration one level up.

        Args:
            subject_name: of this subject; None for the whole registry.

        Returns:
            The configuration until now.

        Raises:
            SchemaRegistryError: there is none (404).
        """
        return self._run(self._configuration.delete_config(subject_name))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """The configuration.

        Args:
            subject_name: of this subject; None for the whole registry.

        Raises:
            SchemaRegistryError: the subject has none of its own (404).
        """
        return self._run(self._configuration.config(subject_name))

    def get_mode(self, subject_name: str) -> str:
        """The mode of a subject: READWRITE, READONLY, READONLY_OVERRIDE or IMPORT.

        Raises:
            SchemaRegistryError: the subject has none of its own (404).
        """
        return self._run(self._configuration.mode(subject_name))

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Change the mode of a subject.

        Args:
            subject_name: the subject.
            mode: see `get_mode`.
            force: also if there are schemas, which IMPORT does not like.

        Returns:
            The mode.

        Raises:
            SchemaRegistryError: there is no such mode, or the registry refuses it (422).
        """
        return self._run(self._configuration.update_mode(subject_name, mode, force))

    def delete_mode(self, subject_name: str) -> str:
        """Go back to the mode one level up.

        Returns:
            What the registry answers: the mode until now.

        Raises:
            SchemaRegistryError: the subject has none of its own (404).
        """
        return self._run(self._configuration.delete_mode(subject_name))

    def get_global_mode(self) -> str:
        """The mode of the whole registry, see `get_mode`."""
        return self._run(self._configuration.mode(None))

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Change the mode of the whole registry, see `update_mode`."""
        return self._run(self._configuration.update_mode(None, mode, force))

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """The contexts.

        Args:
            offset: how many to leave out.
            limit: the most to return, -1 for all.
        """
        return self._run(self._configuration.contexts(offset, limit))

    def get_associations_by_resource_name(
        self, resource_name: str, resource_namespace: str, resource_type: str | None = None,
        association_types: list[str] | None = None, offset: int = 0, limit: int = -1
    ) -> list[Association]:
        """What is associated with a resource.

        Args:
            resource_name: for example a topic's name.
            resource_namespace: where that is its name, for example a cluster's id; "-" for anywhere.
            resource_type: only of resources of this type, for example "topic".
            association_types: only these, for example ["key", "value"].
            offset: how many to leave out.
            limit: the most to return, -1 for all.

        Raises:
            SchemaRegistryError: the registry refused.
        """
        return self._run(self._configuration.associations(
            resource_name, resource_namespace, resource_type, association_types, offset, limit))

    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        """Make associations of a resource, or change them.

        Returns:
            What is associated with the resource now.

        Raises:
            SchemaRegistryError: the registry refused.
        """
        return self._run(self._configuration.associate(request))

    def delete_associations(
        self, resource_id: str, resource_type: str | None = None, association_types: list[str] | None = None,
        cascade_lifecycle: bool = False
    ) -> None:
        """Delete associations of a resource.

        Args:
            resource_id: the resource.
            resource_type: only if it is of this type.
            association_types: only these, None for all.
            cascade_lifecycle: subjects that go with the resource are deleted as well.

        Raises:
            SchemaRegistryError: the registry refused.
        """
        self._run(self._configuration.dissociate(
            resource_id, resource_type, association_types, cascade_lifecycle))

    def _run(self, steps: Steps[_T]) -> _T:
        return self._waits().run(steps)

    def _waits(self) -> ThreadWaits:
        """Waits for the loop thread, which is another one after a fork."""
        thread = loop_thread()
        waits = self._thread_waits
        if waits is None or waits.thread is not thread:
            waits = self._thread_waits = ThreadWaits(thread)
        return waits


class MockSchemaRegistryClient(SchemaRegistryClient):
    """A client of a registry within the process (`client.registry.mock_registry`).

    Args:
        conf: properties; a URL that does not begin with mock:// counts as mock://.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        super().__init__(with_mock_url(conf))


def _close_forgotten(sessions: Sessions) -> None:
    """The client was dropped without `close()`."""
    if sessions:
        submit(loop_thread(), sessions.aclose())
