"""`/schemas` and `/contexts`: schemas by id, by guid, and all of them. Read next: `broker.registry.rest_api`."""

from __future__ import annotations

from typing import Any, Final

from headrace.broker.registry.registrations import SchemaRegistry
from headrace.broker.registry.registry_state import Registration
from headrace.broker.registry.rest_call import RawText, RestCall
from headrace.broker.registry.rest_errors import RestError
from headrace.broker.registry.subject_names import ALL_CONTEXTS, DEFAULT_CONTEXT, context_of, plain_name
from headrace.schemas.parsing import SCHEMA_TYPES

__all__ = ["ROUTES", "formatted"]


def formatted(registry: SchemaRegistry, call: RestCall, found: Registration) -> str:
    """The text of a schema in the `format` that a request asks for; as it is kept when it asks for none."""
    wanted = call.query.get("format", "")
    return registry.parsed(found.subject, found.entity).formatted(wanted) if wanted else found.entity.text


def _of_id(registry: SchemaRegistry, call: RestCall) -> list[Registration]:
    """Where an id is registered: in the context of the subject that is given; where that subject has it, if its
    context does not know it.
    """
    subject = call.scoped(call.query.get("subject", ""))
    found = registry.state.of_id(context_of(subject), call.schema_id)
    if not found and plain_name(subject):
        found = [each for context in registry.state.contexts
                 for each in registry.state.of_id(context, call.schema_id)
                 if plain_name(each.subject) == plain_name(subject)]
    if not found:
        raise RestError(40403, f"Schema {call.schema_id} not found")
    return found


def _by_id(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    found = _of_id(registry, call)[0]
    shown = {**found.entity.as_json(), "schema": formatted(registry, call, found), "guid": found.guid}
    return shown | {"maxId": registry.state.max_id(found.context)} if call.flag("fetchMaxId") else shown


def _text_by_id(registry: SchemaRegistry, call: RestCall) -> RawText:
    return RawText(formatted(registry, call, _of_id(registry, call)[0]))


def _places(registry: SchemaRegistry, call: RestCall) -> list[Registration]:
    wanted = call.query.get("subject")
    return [each for each in _of_id(registry, call) if (call.flag("deleted") or not each.is_deleted)
            and (not wanted or not plain_name(wanted) or each.subject == call.scoped(wanted))]


def _subjects_of_id(registry: SchemaRegistry, call: RestCall) -> list[str]:
    return call.page(sorted({each.subject for each in _places(registry, call)}))


def _versions_of_id(registry: SchemaRegistry, call: RestCall) -> list[dict[str, Any]]:
    return call.page([{"subject": each.subject, "version": each.version} for each in _places(registry, call)])


def _of_guid(registry: SchemaRegistry, call: RestCall) -> list[Registration]:
    guid = call.named["guid"].lower()
    found = [each for each in registry.state.all() if each.guid == guid]
    if not found:
        raise RestError(40403, f"Schema {call.named['guid'][:60]} not found")
    return found


def _by_guid(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    found = _of_guid(registry, call)[0]
    return {**found.entity.as_json(), "schema": formatted(registry, call, found), "guid": found.guid}


def _ids_of_guid(registry: SchemaRegistry, call: RestCall) -> list[dict[str, Any]]:
    ids = dict.fromkeys((each.context, each.id) for each in _of_guid(registry, call))
    return [{"context": context, "id": number} for context, number in ids]


def _all(registry: SchemaRegistry, call: RestCall) -> list[dict[str, Any]]:
    prefix = call.query.get("subjectPrefix", "")
    found = []
    for subject in sorted(registry.state.subjects):
        if prefix in ("", ALL_CONTEXTS) or subject.startswith(prefix):
            rows = registry.state.versions(subject, deleted=call.flag("deleted"))
            found += rows[-1:] if call.flag("latestOnly") else rows
    return [each.as_json() for each in call.page(found)]


def _types(registry: SchemaRegistry, call: RestCall) -> list[str]:
    return list(SCHEMA_TYPES)


def _contexts(registry: SchemaRegistry, call: RestCall) -> list[str]:
    found = {DEFAULT_CONTEXT} | {context_of(subject) for subject in registry.state.subjects}
    return call.page(sorted(found))


def _delete_context(registry: SchemaRegistry, call: RestCall) -> None:
    name = call.named["context"].strip(":")
    if any(context_of(subject) == name for subject in registry.state.subjects):
        raise RestError(42211, f"The specified context '{name}' is not empty.")


def _cluster_id(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    return {"scope": {"path": [], "clusters": {"schema-registry-cluster": "schema-registry"}}, "id": ""}


def _release(registry: SchemaRegistry, call: RestCall) -> dict[str, str]:
    return {"version": "8.0.0", "commitId": ""}


ROUTES: Final = (
    ("GET", "schemas", _all),
    ("GET", "schemas/types", _types),
    ("GET", "schemas/ids/{id}", _by_id),
    ("GET", "schemas/ids/{id}/schema", _text_by_id),
    ("GET", "schemas/ids/{id}/subjects", _subjects_of_id),
    ("GET", "schemas/ids/{id}/versions", _versions_of_id),
    ("GET", "schemas/guids/{guid}", _by_guid),
    ("GET", "schemas/guids/{guid}/ids", _ids_of_guid),
    ("GET", "contexts", _contexts),
    ("DELETE", "contexts/{context}", _delete_context),
    ("GET", "v1/metadata/id", _cluster_id),
    ("GET", "v1/metadata/version", _release),
)
