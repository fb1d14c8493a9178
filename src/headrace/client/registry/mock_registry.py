"""A registry within the process, for tests of programs: what a client with a URL `mock://NAME` asks.

It answers requests as a registry does over HTTP. What it does not have: contexts, modes and levels that forbid to
register anything, and versions that are deleted but still there. confluent_kafka's mock has the same limits. Schemas
are read when they are compared, and only then. Read next: `client.registry.registry_engine`.
"""

from __future__ import annotations

import json
import uuid
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from headrace.client.registry.http_transport import RegistryRequest, Sessions
from headrace.client.registry.registry_settings import MOCK
from headrace.errors import SchemaRegistryError
from headrace.interpreter import SteadyLock
from headrace.types.registry import ConfigCompatibilityLevel, RegisteredSchema, Schema

if TYPE_CHECKING:
    from headrace.schemas.parsed import ParsedSchema

__all__ = ["MockRegistry", "MockTransport", "mock_registry"]

_Handler = Callable[..., Any]


class MockRegistry:
    """Schemas, subjects, configurations, modes and associations, in memory. From any thread."""

    def __init__(self) -> None:
        self._lock = SteadyLock()
        self._schemas: dict[int, RegisteredSchema] = {}
        self._subjects: dict[str, dict[int, RegisteredSchema]] = {}
        self._configs: dict[str | None, dict[str, Any]] = {None: {"compatibilityLevel": "BACKWARD"}}
        self._modes: dict[str | None, str] = {None: "READWRITE"}
        self._associations: list[dict[str, Any]] = []

    def answer(self, request: RegistryRequest) -> Any:
        """The JSON that answers a request.

        Raises:
            SchemaRegistryError: there is no such thing, or no such request.
        """
        request = _as_sent(request)
        with self._lock:
            return self._dispatch(request)

    def _dispatch(self, request: RegistryRequest) -> Any:
        kind, *rest = request.path
        handler: _Handler | None = {
            "subjects": self._subject_calls, "schemas": self._schema_calls, "config": self._config_calls,
            "mode": self._mode_calls, "compatibility": self._compatible, "contexts": self._contexts,
            "associations": self._association_calls,
        }.get(kind)
        return _unknown(request) if handler is None else handler(request, rest)

    def _subject_calls(self, request: RegistryRequest, rest: list[str]) -> Any:
        query = request.query
        match request.method, rest:
            case "GET", []:
                prefix = query.get("subjectPrefix", "")
                return _page([name for name in self._subjects if name.startswith(prefix)], query)
            case "POST", [subject]:
                return self._registered(subject, Schema.from_dict(request.body)).to_dict()
            case "DELETE", [subject]:
                return list(self._subjects.pop(subject, {}))
            case "GET", [subject, "metadata"]:
                return self._with_metadata(subject, query).to_dict()
            case "GET", [subject, "versions"]:
                return _page(list(self._subjects.get(subject, {})), query)
            case "POST", [subject, "versions"]:
                return self._register(subject, Schema.from_dict(request.body)).to_dict()
            case "GET", [subject, "versions", version]:
                return self._version(subject, version).to_dict()
            case "DELETE", [subject, "versions", version]:
                number = self._version(subject, version).version
                self._subjects[subject].pop(number or 0)
                return number
            case "GET", [subject, "versions", version, "referencedby"]:
                return _page(self._referring(self._version(subject, version)), query)
        return _unknown(request)

    def _schema_calls(self, request: RegistryRequest, rest: list[str]) -> Any:
        match request.method, rest:
            case "GET", ["types"]:
                return ["JSON", "PROTOBUF", "AVRO"]
            case "GET", ["ids", schema_id]:
                return self._schema(schema_id).to_dict()
            case "GET", ["guids", guid]:
                return next((known.to_dict() for known in self._schemas.values() if known.guid == guid), None) or \
                    _missing()
            case "GET", ["ids", schema_id, "subjects" | "versions" as what]:
                number = self._schema(schema_id).schema_id
                found = [known for known in self._all() if known.schema_id == number]
                named = [known for known in found if known.subject == request.query.get("subject", known.subject)]
                whole = [{"subject": known.subject, "version": known.version} for known in named]
                return _page(whole if what == "versions" else [known.subject for known in named], request.query)
        return _unknown(request)

    def _config_calls(self, request: RegistryRequest, rest: list[str]) -> Any:
        subject = rest[0] if rest else None
        if request.method == "PUT":
            given = dict(request.body)
            level = given.pop("compatibility", given.pop("compatibilityLevel", None))
            if level is not None and level not in ConfigCompatibilityLevel.__members__:
                raise SchemaRegistryError(422, 42203, f"Invalid compatibility level: {level}")
            changed = given if level is None else {**given, "compatibilityLevel": level}
            self._configs[subject] = {**self._configs.get(subject, {}), **changed}
            return request.body
        found = self._configs.get(subject)
        if found is None:
            raise SchemaRegistryError(404, 40408, f"Subject '{subject}' does not have subject-level compatibility "
                                                  "configured")
        if request.method == "DELETE":
            self._configs.pop(subject)
            self._configs.setdefault(None, {"compatibilityLevel": "BACKWARD"})
        return found

    def _mode_calls(self, request: RegistryRequest, rest: list[str]) -> Any:
        subject = rest[0] if rest else None
        if request.method == "PUT":
            self._modes[subject] = request.body["mode"]
        found = self._modes.get(subject)
        if found is None:
            raise SchemaRegistryError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")
        if request.method == "DELETE" and subject is not None:
            self._modes.pop(subject)
        return {"mode": found}

    def _compatible(self, request: RegistryRequest, rest: list[str]) -> Any:
        match request.method, rest:
            case "POST", ["subjects", subject, "versions"]:
                old = list(self._subjects.get(subject, {}).values())
            case "POST", ["subjects", subject, "versions", "latest" | "-1"]:
                old = list(self._subjects.get(subject, {}).values())[-1:]
            case "POST", ["subjects", subject, "versions", version]:
                old = [self._version(subject, version)]
            case _:
                return _unknown(request)
        level = {**self._configs[None], **self._configs.get(subject, {})}.get("compatibilityLevel", "BACKWARD")
        return {"is_compatible": self._verdict(level, Schema.from_dict(request.body), old)}

    def _verdict(self, level: str, new: Schema, old: list[RegisteredSchema]) -> bool:
        from headrace.schemas.compatibility import incompatibilities
        from headrace.schemas.parsed import InvalidSchemaError

        try:
            return incompatibilities(level, self._parsed(new), [self._parsed(each.schema) for each in old]) is None
        except InvalidSchemaError as error:
            raise SchemaRegistryError(422, 42201, f"Invalid schema: {error}") from None

    def _parsed(self, schema: Schema) -> ParsedSchema:
        from headrace.schemas.parsed import InvalidSchemaError
        from headrace.schemas.parsing import parse
        from headrace.schemas.references import KeptSchema, in_order

        def target(each: Mapping[str, Any]) -> KeptSchema:
            try:
                found = self._version(each["subject"], str(each["version"]))
            except SchemaRegistryError:
                raise InvalidSchemaError(f'No schema reference found for subject "{each["subject"]}" and version '
                                         f'{each["version"]}') from None
            return KeptSchema((found.subject, found.version), found.schema.schema_str or "", references(found.schema))

        def references(of: Schema) -> list[dict[str, Any]]:
            return [each.to_dict() for each in of.references or ()]

        return parse(schema.schema_type or "AVRO", schema.schema_str or "", in_order(references(schema), target))

    def _contexts(self, request: RegistryRequest, rest: list[str]) -> Any:
        return _page(["."], request.query)

    def _association_calls(self, request: RegistryRequest, rest: list[str]) -> Any:
        query = request.query
        match request.method, rest:
            case "POST", []:
                return self._associate(request.body)
            case "GET", ["resources", namespace, name]:
                found = [one for one in self._associations if one.get("resourceName") == name
                         and namespace in ("-", one.get("resourceNamespace")) and _is_of(one, query)]
                return _page(found, query)
            case "DELETE", ["resources", resource_id]:
                self._associations = [one for one in self._associations
                                      if one.get("resourceId") != resource_id or not _is_of(one, query)]
                return None
        return _unknown(request)

    def _associate(self, given: dict[str, Any]) -> dict[str, Any]:
        about = {name: value for name, value in given.items() if name != "associations"}
        made = given.get("associations") or []
        for one in made:
            one.setdefault("frozen", False)
            kept = {name: one[name] for name in ("subject", "associationType", "frozen") if name in one}
            self._associations.append({**about, **kept})
        return {**about, "associations": made}

    def _register(self, subject: str, schema: Schema) -> RegisteredSchema:
        known = self._found(subject, schema)
        if known is not None:
            return known
        versions = self._subjects.setdefault(subject, {})
        same = next((each for each in self._schemas.values() if each.schema == schema), None)
        schema_id, guid = (len(self._schemas) + 1, str(uuid.uuid4())) if same is None else (same.schema_id, same.guid)
        made = RegisteredSchema(subject, max(versions, default=0) + 1, schema_id, guid, schema)
        self._schemas.setdefault(schema_id or 0, RegisteredSchema(None, None, schema_id, guid, schema))
        versions[made.version or 0] = made
        return made

    def _registered(self, subject: str, schema: Schema) -> RegisteredSchema:
        return self._found(subject, schema) or _missing()

    def _found(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        return next((known for known in self._subjects.get(subject, {}).values() if known.schema == schema), None)

    def _version(self, subject: str, version: str) -> RegisteredSchema:
        versions = self._subjects.get(subject, {})
        number = str(max(versions, default=0)) if version in ("latest", "-1") else version
        return next((known for place, known in versions.items() if str(place) == number), None) or _missing()

    def _with_metadata(self, subject: str, query: Mapping[str, Any]) -> RegisteredSchema:
        wanted = dict(zip(query.get("key", ()), query.get("value", ()), strict=True)).items()
        for _, known in sorted(self._subjects.get(subject, {}).items(), reverse=True):
            properties = known.schema.metadata.properties if known.schema.metadata is not None else None
            if properties is not None and wanted <= properties.properties.items():
                return known
        return _missing()

    def _schema(self, schema_id: str) -> RegisteredSchema:
        return self._schemas.get(int(schema_id)) or _missing()

    def _referring(self, version: RegisteredSchema) -> list[Any]:
        return [known.schema_id for known in self._all() if any(
            (each.subject, each.version) == (version.subject, version.version)
            for each in known.schema.references or ())]

    def _all(self) -> list[RegisteredSchema]:
        return [known for versions in self._subjects.values() for known in versions.values()]


class MockTransport:
    """Carries requests to a registry within the process.

    Args:
        registry: who answers.
    """

    def __init__(self, registry: MockRegistry) -> None:
        self._registry = registry
        self.sessions = Sessions()

    async def send(self, request: RegistryRequest, headers: Mapping[str, str]) -> Any:
        """See `client.registry.http_transport.Transport`."""
        return self._registry.answer(request)


_shared: weakref.WeakValueDictionary[str, MockRegistry] = weakref.WeakValueDictionary()


def mock_registry(url: str) -> MockRegistry:
    """The registry of a URL: `mock://NAME` is the same for all clients of the process, as long as one has it.

    `mock://` alone is a registry of one client, as in confluent_kafka.
    """
    name = url.removeprefix(MOCK)
    return _shared.setdefault(name, MockRegistry()) if name else MockRegistry()


def _as_sent(request: RegistryRequest) -> RegistryRequest:
    """A copy, as JSON makes it of the body."""
    return request._replace(body=json.loads(json.dumps(request.body)))


def _page(found: list[Any], query: Mapping[str, Any]) -> list[Any]:
    start, limit = max(query.get("offset", 0), 0), query.get("limit", -1)
    return found[start:] if limit < 0 else found[start:start + limit]


def _is_of(association: Mapping[str, Any], query: Mapping[str, Any]) -> bool:
    kinds = query.get("associationType")
    return query.get("resourceType") in (None, association.get("resourceType")) and (
        kinds is None or association.get("associationType") in kinds)


def _missing() -> NoReturn:
    raise SchemaRegistryError(404, 40400, "Schema Not Found")


def _unknown(request: RegistryRequest) -> NoReturn:
    raise SchemaRegistryError(404, 404, f"the mock registry does not know {request.method} {request.target()}")
