"""A Schema Registry in memory for tests of serializers: it keeps schemas, and counts what it is asked."""

import uuid
from collections import Counter
from typing import Any

from headrace.types.registry import RegisteredSchema, Schema

NOT_FOUND = 404


class NotThereError(Exception):
    http_status_code = NOT_FOUND


class KeptRegistry:
    """The calls of a registry client that serializers make."""

    def __init__(self) -> None:
        self.versions: dict[str, list[RegisteredSchema]] = {}
        self.calls: Counter[str] = Counter()
        self.associations: list[Any] = []
        self.closed = False

    def register_schema(self, subject: str, schema: Schema, normalize_schemas: bool = False) -> int:
        return self.register_schema_full_response(subject, schema, normalize_schemas).schema_id or 0

    def register_schema_full_response(
        self, subject: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        self.calls["register"] += 1
        known = self.versions.setdefault(subject, [])
        for each in known:
            if each.schema == schema:
                return each
        same = next((one for each in self.versions.values() for one in each if one.schema == schema), None)
        number = same.schema_id if same else 1 + sum(map(len, self.versions.values()))
        guid = str(uuid.UUID(int=number or 0))
        known.append(RegisteredSchema(subject, len(known) + 1, number, guid, schema))
        return known[-1]

    def lookup_schema(
        self, subject: str, schema: Schema, normalize_schemas: bool = False, fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        self.calls["lookup"] += 1
        return self._one(each for each in self.versions.get(subject, []) if each.schema == schema)

    def get_schema(self, schema_id: int, subject: str | None = None, fmt: str | None = None) -> Schema:
        self.calls["get_schema"] += 1
        return self._one(each for each in self._all() if each.schema_id == schema_id).schema

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        self.calls["get_schema"] += 1
        return self._one(each for each in self._all() if each.guid == guid).schema

    def get_version(
        self, subject: str, version: int, deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        self.calls["get_version"] += 1
        return self._one(each for each in self.versions.get(subject, []) if each.version == version)

    def get_latest_version(self, subject: str, fmt: str | None = None) -> RegisteredSchema:
        self.calls["latest"] += 1
        return self._one(iter(self.versions.get(subject, [])[-1:]))

    def get_latest_with_metadata(
        self, subject: str, metadata: dict[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        self.calls["metadata"] += 1
        return self._one(each for each in reversed(self.versions.get(subject, [])) if each.schema.metadata is not None
                         and each.schema.metadata.properties is not None
                         and metadata.items() <= each.schema.metadata.properties.properties.items())

    def get_associations_by_resource_name(self, **asked: Any) -> list[Any]:
        self.calls["associations"] += 1
        if not self.associations:
            raise NotThereError
        return self.associations

    def close(self) -> None:
        self.closed = True

    def _all(self) -> list[RegisteredSchema]:
        return [each for versions in self.versions.values() for each in versions]

    def _one(self, found: Any) -> RegisteredSchema:
        one: RegisteredSchema | None = next(found, None)
        if one is None:
            raise NotThereError
        return one


class AsyncKeptRegistry:
    """The same, awaited."""

    def __init__(self) -> None:
        self.kept = KeptRegistry()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.kept, name)

        async def awaited(*arguments: Any, **named: Any) -> Any:
            return call(*arguments, **named)

        return awaited
