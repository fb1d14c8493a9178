"""What is registered, as the records of `_schemas` say: subjects and versions, ids, configurations, modes.

`apply` takes one record after the other; nothing else changes the state. Records that are not understood are passed
over, as Confluent's registry passes over those of newer ones. Read next: `broker.registry.registrations`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from headrace.broker.registry.subject_names import context_of, referred_subject
from headrace.slotted import field, slotted

__all__ = ["Registration", "RegistryState", "SchemaEntity", "key_of"]

_MAGIC: Final = {"SCHEMA": 1}
_GLOBAL: Final = ""


@slotted(frozen=True, eq=False)
class SchemaEntity:
    """A schema as it is registered, wherever that is.

    Attributes:
        schema_type: `AVRO`, `JSON` or `PROTOBUF`.
        text: canonical or normalised.
        references: name, subject and version of each schema that it refers to.
        metadata: kept and passed on.
        rule_set: kept and passed on.
    """

    schema_type: str
    text: str
    references: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    @property
    def guid(self) -> str:
        """The MD5 of all that makes the schema, as a UUID: the same in every registry."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for each in self.references:
            digest.update(each["name"].encode() + each["subject"].encode() + int(each["version"]).to_bytes(4, "big"))
        for more in (self.metadata, self.rule_set):
            if more is not None:
                digest.update(b"\x01" + json.dumps(more, sort_keys=True).encode())
        return str(UUID(bytes=digest.digest()))

    def as_json(self) -> dict[str, Any]:
        """The attributes, without those that are not there; Avro is not named."""
        found: dict[str, Any] = {} if self.schema_type == "AVRO" else {"schemaType": self.schema_type}
        found |= {"references": [dict(each) for each in self.references]} if self.references else {}
        found |= {} if self.metadata is None else {"metadata": self.metadata}
        found |= {} if self.rule_set is None else {"ruleSet": self.rule_set}
        return found | {"schema": self.text}


@slotted(eq=False)
class Registration:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    entity: SchemaEntity
    guid: str
    is_deleted: bool = False

    @property
    def context(self) -> str:
        """The context of its subject."""
        return context_of(self.subject)

    def as_json(self) -> dict[str, Any]:
        """The version as the API shows it."""
        shown = {"subject": self.subject, "version": self.version, "id": self.id, "guid": self.guid,
                 **self.entity.as_json()}
        return shown | {"deleted": True} if self.is_deleted else shown

    def as_record(self, *, deleted: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """Key and value of its record."""
        value = {"subject": self.subject, "version": self.version, "id": self.id, **self.entity.as_json()}
        return key_of("SCHEMA", self.subject, self.version), value | {"deleted": deleted}


@slotted(eq=False)
class _Context:
    """The ids of a context."""

    by_id: dict[int, list[Registration]] = field(default_factory=dict)
    by_guid: dict[str, int] = field(default_factory=dict)
    max_id: int = 0


class RegistryState:
    """Everything that the records have said so far.

    Attributes:
        subjects: versions by number, of each subject.
        configs: configurations; that of everything has the subject "".
        modes: likewise.
    """

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Registration]] = {}
        self.configs: dict[str, dict[str, Any]] = {}
        self.modes: dict[str, str] = {}
        self.contexts: dict[str, _Context] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record in."""
        try:
            what = json.loads(key or b"")
            said = None if value is None else json.loads(value)
            _APPLIED[what["keytype"]](self, what, said)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return  # it is not for us

    def versions(self, subject: str, *, deleted: bool = False) -> list[Registration]:
        """The versions of a subject, the oldest first; `deleted`: with those that are softly deleted."""
        known = self.subjects.get(subject, {})
        return [known[number] for number in sorted(known) if deleted or not known[number].is_deleted]

    def of_id(self, context: str, schema_id: int) -> list[Registration]:
        """Where an id is registered in a context, softly deleted ones too."""
        known = self.contexts.get(context)
        return [] if known is None else known.by_id.get(schema_id, [])

    def id_of(self, context: str, guid: str) -> int | None:
        """The id that a schema has in a context."""
        known = self.contexts.get(context)
        return None if known is None else known.by_guid.get(guid)

    def max_id(self, context: str) -> int:
        """The highest id that was ever given in a context; 0 when none was."""
        known = self.contexts.get(context)
        return 0 if known is None else known.max_id

    def all(self) -> Iterator[Registration]:
        """Every version of every subject."""
        for subject in sorted(self.subjects):
            yield from self.versions(subject, deleted=True)

    def referring_to(self, subject: str, version: int | None = None) -> list[Registration]:
        """The versions that refer to a subject, or to one version of it, and are not deleted."""
        return [each for each in self.all() if not each.is_deleted and any(
            referred_subject(each.subject, one["subject"]) == subject and version in (None, one["version"])
            for one in each.entity.references)]

    def _schema(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        subject, version = str(key["subject"]), int(key["version"])
        self._forget(subject, version)
        if value is None:
            return
        entity = SchemaEntity(value.get("schemaType", "AVRO"), value["schema"], tuple(value.get("references") or ()),
                              value.get("metadata"), value.get("ruleSet"))
        made = Registration(subject, version, int(value["id"]), entity, entity.guid, bool(value.get("deleted")))
        self.subjects.setdefault(subject, {})[version] = made
        context = self.contexts.setdefault(made.context, _Context())
        context.by_id.setdefault(made.id, []).append(made)
        context.by_guid.setdefault(made.guid, made.id)
        context.max_id = max(context.max_id, made.id)

    def _forget(self, subject: str, version: int) -> None:
        known = self.subjects.get(subject, {})
        old = known.pop(version, None)
        if old is None:
            return
        context = self.contexts[old.context]
        context.by_id[old.id].remove(old)
        if not context.by_id[old.id]:
            del context.by_id[old.id]
            context.by_guid.pop(old.guid, None)
        if not known:
            del self.subjects[subject]

    def _deleted_subject(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        if value is not None:
            for each in self.versions(value["subject"]):
                each.is_deleted = each.is_deleted or each.version <= int(value["version"])

    def _config(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        subject = key.get("subject") or _GLOBAL
        self.configs.pop(subject, None)
        if value is not None:
            self.configs[subject] = {name: value[name] for name in value if name != "subject"}

    def _mode(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        subject = key.get("subject") or _GLOBAL
        self.modes.pop(subject, None)
        if value is not None:
            self.modes[subject] = str(value["mode"])


_APPLIED: Final = {
    "SCHEMA": RegistryState._schema, "DELETE_SUBJECT": RegistryState._deleted_subject,
    "CONFIG": RegistryState._config, "MODE": RegistryState._mode,
}


def key_of(kind: str, subject: str, version: int | None = None) -> dict[str, Any]:
    """The key of a record, in Confluent's format."""
    numbered = {} if version is None else {"version": version}
    return {"keytype": kind, "subject": subject or None, **numbered, "magic": _MAGIC.get(kind, 0)}
