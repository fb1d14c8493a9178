"""What a registry is asked about schemas, by id, GUID or text, and how one is registered. Each call is a rule.

Their arguments, results and errors are documented at `client.registry.schema_registry_client`. Read next:
`client.registry.subject_calls`.
"""

from __future__ import annotations

from typing import Any

from headrace.client.registry.http_transport import RegistryRequest
from headrace.client.registry.registry_engine import RegistryEngine, page, part_of, registered, some_of, value_of
from headrace.client.registry.schema_cache import SchemaForm
from headrace.client.waits import Steps
from headrace.slotted import replace
from headrace.types.registry import RegisteredSchema, Schema, SchemaVersion

__all__ = ["SchemaCalls"]


class SchemaCalls:
    """The calls about schemas.

    Args:
        engine: what sends and remembers.
    """

    def __init__(self, engine: RegistryEngine) -> None:
        self._engine, self._cache = engine, engine.cache

    def register(self, subject_name: str, schema: Schema, normalize: bool) -> Steps[RegisteredSchema]:
        """Register a schema under a subject."""
        def known() -> RegisteredSchema | None:
            found = self._cache.registered(subject_name, schema, normalize)
            return None if found is None or found.schema_id is None else found

        def request() -> RegistryRequest:
            path = ("subjects", part_of("subject_name", subject_name), "versions")
            return RegistryRequest("POST", path, {"normalize": normalize}, schema.to_dict())

        def keep(answer: Any) -> RegisteredSchema:
            said = registered(answer)
            # Older registries answer the id alone.
            result = replace(said, subject=said.subject or subject_name,
                             schema=said.schema if said.schema.schema_str is not None else schema)
            self._cache.put_registered(subject_name, schema, normalize, result)
            return result

        return (yield from self._engine.ask_once(known, request, keep))

    def lookup(
        self, subject_name: str, schema: Schema, normalize: bool, fmt: str | None, deleted: bool
    ) -> Steps[RegisteredSchema]:
        """Find where a schema is registered under a subject."""
        def known() -> RegisteredSchema | None:
            since = self._cache.changes
            found = self._cache.registered(subject_name, schema, normalize)
            if found is None or found.version is None:
                return None
            result = found if found.schema is schema else replace(found, schema=schema)
            # What was looked up has the caller's text from here on, as if the registry had been asked.
            if found.schema != schema or self._cache.version(subject_name, found.version, None) is None:
                self._cache.put_looked_up_again(subject_name, schema, normalize, result, since)
            return result

        def request() -> RegistryRequest:
            query = {"normalize": normalize, "deleted": deleted, **_format(fmt)}
            return RegistryRequest("POST", ("subjects", part_of("subject_name", subject_name)), query, schema.to_dict())

        def keep(answer: Any) -> RegisteredSchema:
            result = replace(registered(answer), schema=schema)
            if not deleted:  # one that is may have to be registered once more
                self._cache.put_looked_up(subject_name, schema, normalize, result)
            return result

        return (yield from self._engine.ask_once(known, request, keep))

    def by_id(
        self, schema_id: int, subject_name: str | None, fmt: str | None, reference_format: str | None
    ) -> Steps[Schema]:
        """Find the schema of an id."""
        form = SchemaForm(fmt, reference_format)

        def known() -> Schema | None:
            return self._cache.schema(subject_name, schema_id, form)

        def request() -> RegistryRequest:
            given = {"subject": subject_name, "format": fmt, "reference_format": reference_format}
            query = {name: value for name, value in given.items() if value is not None}
            return RegistryRequest("GET", ("schemas", "ids", str(schema_id)), query)

        def keep(answer: Any) -> Schema:
            found = registered(answer)
            self._cache.put_schema(subject_name, schema_id, found.guid, found.schema, form)
            return found.schema

        return (yield from self._engine.ask_once(known, request, keep))

    def by_guid(self, guid: str, fmt: str | None) -> Steps[Schema]:
        """Find the schema of a GUID."""
        def known() -> Schema | None:
            return self._cache.schema_of_guid(guid, fmt)

        def request() -> RegistryRequest:
            return RegistryRequest("GET", ("schemas", "guids", part_of("guid", guid)), _format(fmt))

        def keep(answer: Any) -> Schema:
            found = registered(answer)
            self._cache.put_guid(guid, found.schema, fmt)
            return found.schema

        return (yield from self._engine.ask_once(known, request, keep))

    def types(self) -> Steps[list[str]]:
        """List the types of schemas."""
        return some_of(list, (yield from self._engine.ask(RegistryRequest("GET", ("schemas", "types"), {}))))

    def subjects_of(
        self, schema_id: int, subject_name: str | None, deleted: bool, offset: int, limit: int
    ) -> Steps[list[str]]:
        """List the subjects that have the schema of an id."""
        return some_of(list, (yield from self._of_id("subjects", schema_id, subject_name, deleted, offset, limit)))

    def versions_of(
        self, schema_id: int, subject_name: str | None, deleted: bool, offset: int, limit: int
    ) -> Steps[list[SchemaVersion]]:
        """List the subjects and versions that have the schema of an id."""
        answer = yield from self._of_id("versions", schema_id, subject_name, deleted, offset, limit)
        return [value_of(SchemaVersion, one) for one in some_of(list, answer)]

    def _of_id(
        self, what: str, schema_id: int, subject_name: str | None, deleted: bool, offset: int, limit: int
    ) -> Steps[Any]:
        query = {**page(offset, limit), **_subject(subject_name), **({"deleted": True} if deleted else {})}
        return (yield from self._engine.ask(RegistryRequest("GET", ("schemas", "ids", str(schema_id), what), query)))


def _subject(subject_name: str | None) -> dict[str, Any]:
    return {} if subject_name is None else {"subject": subject_name}


def _format(fmt: str | None) -> dict[str, Any]:
    return {} if fmt is None else {"format": fmt}
