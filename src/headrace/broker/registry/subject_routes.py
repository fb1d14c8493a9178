"""`/subjects` and `/compatibility`: register, look up, list, delete, compare. Read next: `broker.registry.rest_api`."""

from __future__ import annotations

from typing import Any, Final

from headrace.broker.registry.registrations import LATEST, SchemaRegistry
from headrace.broker.registry.registry_state import Registration
from headrace.broker.registry.rest_call import RawText, RestCall
from headrace.broker.registry.rest_errors import RestError, subject_not_found
from headrace.broker.registry.schema_routes import formatted
from headrace.broker.registry.subject_names import ALL_CONTEXTS, in_context

__all__ = ["ROUTES"]


def _subjects(registry: SchemaRegistry, call: RestCall) -> list[str]:
    prefix = call.query.get("subjectPrefix", ALL_CONTEXTS if call.context is None else "")
    if call.context is not None:
        prefix = in_context(call.context, prefix)
    found = []
    for subject in sorted(registry.state.subjects):
        if prefix == ALL_CONTEXTS or _begins(subject, prefix):
            rows = _shown(registry, call, subject)
            found += [subject] if rows else []
    return call.page(found)


def _begins(subject: str, prefix: str) -> bool:
    """Whether a subject begins with a prefix; `:.:` is the default context."""
    if prefix.startswith(":.:"):
        return not subject.startswith(":.") and subject.startswith(prefix[3:])
    return subject.startswith(prefix)


def _shown(registry: SchemaRegistry, call: RestCall, subject: str) -> list[Registration]:
    """The versions that `deleted` and `deletedOnly` ask for; `deletedOnly` subjects have no others."""
    rows = registry.state.versions(subject, deleted=call.flag("deleted") or call.flag("deletedOnly"))
    if call.flag("deletedOnly"):
        rows = [each for each in rows if each.is_deleted]
        if "subject" not in call.named and registry.state.versions(subject):
            return []
    return rows


def _versions(registry: SchemaRegistry, call: RestCall) -> list[int]:
    subject = call.subject
    if not registry.state.versions(subject, deleted=call.flag("deleted") or call.flag("deletedOnly")):
        raise subject_not_found(subject)
    return call.page([each.version for each in _shown(registry, call, subject)])


def _version(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    found = registry.version(call.subject, call.version, deleted=call.flag("deleted"))
    return found.as_json() | {"schema": formatted(registry, call, found)}


def _version_text(registry: SchemaRegistry, call: RestCall) -> RawText:
    found = registry.version(call.subject, call.version, deleted=call.flag("deleted"))
    return RawText(formatted(registry, call, found))


def _referenced_by(registry: SchemaRegistry, call: RestCall) -> list[int]:
    found = registry.version(call.subject, call.version, deleted=True)
    return sorted({each.id for each in registry.state.referring_to(found.subject, found.version)})


def _register(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    made = registry.register(call.subject, call.body, call.now_ms, normalize=call.flag("normalize"))
    shown = {"id": made.id, "version": made.version, "guid": made.guid, **made.entity.as_json()}
    if made.entity.schema_type == "PROTOBUF":
        shown["schema"] = call.body["schema"]  # clients keep it, and read no text where they sent a descriptor
    return shown


def _lookup(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    subject, deleted = call.subject, call.flag("deleted")
    if not registry.state.versions(subject, deleted=deleted):
        raise subject_not_found(subject)
    proposal = registry.propose(subject, call.body, normalize=call.flag("normalize"))
    found = registry.lookup(subject, proposal.entity, deleted=deleted)
    return found.as_json() | {"schema": formatted(registry, call, found)}


def _with_metadata(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    """The latest version whose metadata has all properties that are asked for."""
    versions = registry.state.versions(call.subject, deleted=call.flag("deleted"))
    if not versions:
        raise subject_not_found(call.subject)
    wanted = dict(zip(call.each("key"), call.each("value"), strict=False)).items()
    for found in reversed(versions):
        properties = (found.entity.metadata or {}).get("properties")
        if not wanted or (isinstance(properties, dict) and wanted <= properties.items()):
            return found.as_json() | {"schema": formatted(registry, call, found)}
    raise RestError(40403, "Schema not found")


def _delete_subject(registry: SchemaRegistry, call: RestCall) -> list[int]:
    return registry.delete_subject(call.subject, call.now_ms, permanent=call.flag("permanent"))


def _delete_version(registry: SchemaRegistry, call: RestCall) -> int:
    return registry.delete_version(call.subject, call.version, call.now_ms, permanent=call.flag("permanent"))


def _compare_with_one(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    if call.version == LATEST:
        old = registry.state.versions(call.subject)[-1:]
    else:
        old = [registry.version(call.subject, call.version)]
    return _compared(registry, call, old)


def _compare_with_all(registry: SchemaRegistry, call: RestCall) -> dict[str, Any]:
    return _compared(registry, call, registry.state.versions(call.subject))


def _compared(registry: SchemaRegistry, call: RestCall, old: list[Registration]) -> dict[str, Any]:
    proposal = registry.propose(call.subject, call.body, normalize=call.flag("normalize"))
    verdict = registry.compare(call.subject, proposal.parsed, old)
    shown: dict[str, Any] = {"is_compatible": verdict.is_compatible}
    return shown | {"messages": verdict.messages} if call.flag("verbose") else shown


ROUTES: Final = (
    ("GET", "subjects", _subjects),
    ("POST", "subjects/{subject}", _lookup),
    ("DELETE", "subjects/{subject}", _delete_subject),
    ("GET", "subjects/{subject}/metadata", _with_metadata),
    ("GET", "subjects/{subject}/versions", _versions),
    ("POST", "subjects/{subject}/versions", _register),
    ("GET", "subjects/{subject}/versions/{version}", _version),
    ("DELETE", "subjects/{subject}/versions/{version}", _delete_version),
    ("GET", "subjects/{subject}/versions/{version}/schema", _version_text),
    ("GET", "subjects/{subject}/versions/{version}/referencedby", _referenced_by),
    ("POST", "compatibility/subjects/{subject}/versions", _compare_with_all),
    ("POST", "compatibility/subjects/{subject}/versions/{version}", _compare_with_one),
)
