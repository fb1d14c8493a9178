"""What planning and tasks ask a Schema Registry: one client for each process and registry, which remembers.

Read next: `client.registry.schema_registry_client`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from headrace.client.registry.schema_cache import LruCache
from headrace.client.registry.schema_registry_client import SchemaRegistryClient
from headrace.client.schema_serdes.registry_steps import run
from headrace.client.schema_serdes.schema_references import referenced
from headrace.errors import ConfigError, SchemaRegistryError, SerializationError
from headrace.interpreter import SteadyLock
from headrace.schemas.parsed import InvalidSchemaError
from headrace.types.registry import RegisteredSchema, Schema, SchemaReference
from headrace.values.schema_formats import SchemaFormat, SchemaText
from headrace.values.value_format import ValueFormat

__all__ = ["NO_SUCH_SCHEMA_S", "RegistryAccess", "UnknownSchemaError", "registry_of"]

NO_SUCH_SCHEMA_S: Final = 30.0
"""How long a registry's word that it has no such schema holds, so that damaged payloads do not ask it for each row."""
_NOT_FOUND: Final = 404


class UnknownSchemaError(LookupError):
    """The registry has no schema of that number."""


class RegistryAccess:
    """Questions to one registry. From any thread.

    Args:
        properties: of a `SchemaRegistryClient`; they are not shown.
        clock: monotonic seconds.

    Raises:
        ConfigError: a property is unknown, missing or wrong.
    """

    def __init__(self, properties: dict[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = SchemaRegistryClient.new_client(properties)
        self._unknown = LruCache(10_000, NO_SUCH_SCHEMA_S, clock)

    def by_number(self, number: int | str) -> SchemaText:
        """The schema of an id, or of a GUID.

        Raises:
            UnknownSchemaError: there is none, or there was none a moment ago.
            SchemaRegistryError: the registry did not answer, or refused.
        """
        why = self._unknown.get(number)
        if why is not None:
            raise UnknownSchemaError(why)
        try:
            if isinstance(number, int):
                return self._text(self._client.get_schema(number))
            return self._text(self._client.get_schema_by_guid(str(uuid.UUID(number))))
        except SchemaRegistryError as error:
            if not _says_no(error):
                raise
            why = f"the registry has no schema {number}"
            self._unknown.put(number, why)
            raise UnknownSchemaError(why) from None

    def of_subject(self, subject: str, version: int | None, side: str) -> tuple[int, SchemaText]:
        """The id and the schema of a version; of the latest one, if `version` is None.

        Raises:
            ConfigError: there is no such subject or version.
            SchemaRegistryError: the registry did not answer, or refused.
        """
        try:
            if version is None:
                self._client.clear_latest_caches()  # who plans wants to know what is the latest now
                found = self._client.get_latest_version(subject)
            else:
                found = self._client.get_version(subject, version)
        except SchemaRegistryError as error:
            if not _says_no(error):
                raise
            raise ConfigError(f"the registry has no schema {'' if version is None else f'of version {version} '}under "
                              f"subject {subject}: register one, or name another by {side}.subject or {side}.schema"
                              ) from None
        assert found.schema_id is not None
        assert found.schema is not None
        return found.schema_id, self._text(found.schema)

    def number_of(self, subject: str, kind: SchemaFormat, schema: SchemaText, register: bool) -> int:
        """The id of a schema under a subject.

        Args:
            subject: its name.
            kind: Avro, Protobuf or JSON Schema.
            schema: the schema.
            register: register it, and what it imports, if it is not there.

        Raises:
            ConfigError: it is not there.
            InvalidSchemaError: what it imports comes in a wrong order.
            SchemaRegistryError: it is not compatible with earlier versions, or the registry did not answer.
        """
        given = Schema(schema.text, kind.schema_type, self._references(kind, schema, register))
        if register:
            return self._client.register_schema(subject, given)
        number = self._found(subject, given).schema_id
        assert number is not None
        return number

    def _references(self, kind: SchemaFormat, schema: SchemaText, register: bool) -> list[SchemaReference]:
        """What a schema imports, each under its own name as subject, where the registry's serializers put it."""
        texts, known = dict(schema.references), dict[str, SchemaReference]()
        if not texts:
            return []
        imports = {name: [one for one in kind.imports(text) if one in texts]
                   for name, text in (("", schema.text), *schema.references)}
        needed = _reachable(imports)
        for name, text in schema.references:  # each is behind those that it imports
            if name not in needed:
                continue
            late = [one for one in imports[name] if one not in known]
            if late:
                raise InvalidSchemaError(f"{name} imports {', '.join(late)[:200]}, which does not come before it")
            given = Schema(text, kind.schema_type, [known[one] for one in imports[name]])
            if register:
                self._client.register_schema(name, given)
            known[name] = SchemaReference(name, name, self._found(name, given).version)
        return [known[one] for one in imports[""]]

    def _found(self, subject: str, schema: Schema) -> RegisteredSchema:
        try:
            return self._client.lookup_schema(subject, schema)
        except SchemaRegistryError as error:
            if not _says_no(error):
                raise
            raise ConfigError(f"the schema is not registered under subject {subject}: register it, or allow it by "
                              "auto.register") from None

    def _text(self, schema: Schema) -> SchemaText:
        if schema.schema_str is None:
            raise SerializationError("the registry told nothing of a schema")
        others = run(referenced(schema, self._client)) if schema.references else {}
        references = tuple((name, each.schema_str or "") for name, each in others.items())
        return SchemaText(schema.schema_str, references, is_registered=True)


def _says_no(error: SchemaRegistryError) -> bool:
    """Whether the registry itself has nothing of the kind. What stands before it, or at a wrong URL, gives no code."""
    return error.http_status_code == _NOT_FOUND and error.error_code != SchemaRegistryError.UNKNOWN


def _reachable(imports: Mapping[str, Sequence[str]]) -> set[str]:
    """What the schema without a name imports, directly or not: a set of files may have others beside."""
    found, left = set[str](), [*imports[""]]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += imports[name]
    return found


_lock = SteadyLock()
_known: dict[tuple[tuple[str, str], ...], RegistryAccess] = {}


def registry_of(of: ValueFormat) -> RegistryAccess:
    """The registry of a format. A process has one client for each; it stays for the tasks that follow.

    Raises:
        ConfigError: none is named, or a property is wrong.
    """
    if not of.registry:
        raise ConfigError(f"{of.side}.format {of.name} needs a schema: give {of.side}.schema, or schema.registry.url")
    with _lock:
        found = _known.get(of.registry)
        if found is None:
            found = _known[of.registry] = RegistryAccess(of.registry_properties)
        return found
