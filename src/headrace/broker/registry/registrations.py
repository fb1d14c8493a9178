"""What one can do with a registry: register, look up, compare, delete, and what settings hold.

Every change is a record in the log, which the state then reads: there is no other way to change it. Source: the
behaviour of Confluent's `KafkaSchemaRegistry`. Read next: `broker.registry.registry_state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headrace.broker.registry.contracts import with_contract
from headrace.broker.registry.registry_log import SchemaLog
from headrace.broker.registry.registry_state import Registration, RegistryState, SchemaEntity, key_of
from headrace.broker.registry.rest_errors import (
    RestError,
    invalid_schema,
    not_permitted,
    subject_not_found,
    version_not_found,
)
from headrace.broker.registry.subject_names import context_of, in_context, normalized, referred_subject
from headrace.schemas.compatibility import LEVELS, incompatibilities
from headrace.schemas.parsed import InvalidSchemaError, ParsedSchema, ReferencedSchema
from headrace.schemas.parsing import parse
from headrace.schemas.references import KeptSchema, in_order

__all__ = ["LATEST", "SchemaRegistry", "Verdict"]

LATEST: Final = -1
"""Stands for the last version of a subject."""
READ_WRITE, READ_ONLY, READ_ONLY_OVERRIDE, IMPORT = "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"
MODES: Final = (READ_WRITE, READ_ONLY, READ_ONLY_OVERRIDE, IMPORT)
_DEFAULT_CONFIG: Final = {"compatibilityLevel": "BACKWARD"}
_MAX_PARSED: Final = 500
_MAX_VERSION: Final = (1 << 31) - 1


class Verdict(NamedTuple):
    """Whether a schema is compatible, and if not, why, in lines."""

    is_compatible: bool
    messages: list[str]


class Proposal(NamedTuple):
    """A schema that somebody asks about: as it would be kept, and parsed."""

    entity: SchemaEntity
    parsed: ParsedSchema


class SchemaRegistry:
    """A registry over a log.

    Args:
        log: its records.

    Attributes:
        state: what they say, as of the last `catch_up`.
    """

    def __init__(self, log: SchemaLog) -> None:
        self._log = log
        self.state = RegistryState()
        self._parsed: dict[str, ParsedSchema] = {}

    def catch_up(self) -> None:
        """Take in what was written since the last time, by whomever."""
        anew, rows = self._log.new()
        if anew:
            self.state = RegistryState()
        for key, value in rows:
            self.state.apply(key, value)

    def write(self, key: Mapping[str, Any], value: Mapping[str, Any] | None, now_ms: int) -> None:
        """Change something: write a record and take it in."""
        self._log.append(dict(key), None if value is None else dict(value), now_ms)
        self.catch_up()

    # What holds for a subject: its own setting, that of its context, the global one.

    def config_of(self, subject: str) -> dict[str, Any]:
        """The configuration that holds for a subject."""
        scopes = ("", in_context(context_of(subject), ""), subject)
        found = dict(_DEFAULT_CONFIG)
        for scope in dict.fromkeys(scopes):
            found |= self.state.configs.get(scope, {})
        return found

    def mode_of(self, subject: str) -> str:
        """The mode that holds for a subject."""
        modes = self.state.modes
        if modes.get("") == READ_ONLY_OVERRIDE:
            return READ_ONLY_OVERRIDE
        scopes = (subject, in_context(context_of(subject), ""), "")
        return next((modes[each] for each in scopes if each in modes), READ_WRITE)

    def check_writable(self, subject: str) -> None:
        """Refuse changes in read-only mode.

        Raises:
            RestError: 42205.
        """
        if self.mode_of(subject) in (READ_ONLY, READ_ONLY_OVERRIDE):
            raise not_permitted(f"Subject {subject} in context {context_of(subject)} is in read-only mode")

    # Schemas.

    def propose(self, subject: str, given: Mapping[str, Any], *, normalize: bool = False) -> Proposal:
        """Read a schema that came in a request.

        Args:
            subject: what its references are looked for from.
            given: `schema`, `schemaType`, `references`, `metadata`, `ruleSet`.
            normalize: keep it normalised; also where the subject's configuration says so.

        Raises:
            RestError: 42201, it is not valid.
        """
        kind, text = given.get("schemaType") or "AVRO", given.get("schema")
        if not isinstance(text, str) or not text.strip():
            raise invalid_schema("there is no schema in the request")
        if not isinstance(kind, str):
            raise invalid_schema(f"schemaType is no text: {kind!r:.60}")
        references = self._references(subject, given.get("references"))
        try:
            parsed = parse(kind, text, self._resolved(subject, references))
            wants_normal = normalize or self.config_of(subject).get("normalize") is True
            kept = parsed.normalized() if wants_normal else parsed.canonical()
        except InvalidSchemaError as error:
            raise invalid_schema(f"{kind}: {error}") from None
        metadata = _object(given, "metadata")
        _object(metadata or {}, "properties")
        entity = SchemaEntity(kind, kept, references, metadata, _object(given, "ruleSet"))
        return Proposal(entity, parsed)

    def parsed(self, subject: str, entity: SchemaEntity) -> ParsedSchema:
        """A registered schema, parsed; those used last are kept.

        Raises:
            RestError: 42201, it is not valid: somebody has written it past the API.
        """
        found = self._parsed.pop(entity.guid, None)
        if found is None:
            try:
                found = parse(entity.schema_type, entity.text, self._resolved(subject, entity.references))
            except InvalidSchemaError as error:
                raise invalid_schema(str(error)) from None
        self._parsed[entity.guid] = found
        if len(self._parsed) > _MAX_PARSED:
            del self._parsed[next(iter(self._parsed))]
        return found

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Registration:
        """One version of a subject.

        Args:
            subject: normalised name.
            number: from 1 on, or `LATEST`.
            deleted: softly deleted ones too.

        Raises:
            RestError: 40401 or 40402, there is none.
        """
        known = self.state.versions(subject, deleted=deleted)
        if not known:
            raise subject_not_found(subject)
        if number == LATEST:
            return known[-1]
        found = self.state.subjects[subject].get(number)
        if found is None or (found.is_deleted and not deleted):
            raise version_not_found(number)
        return found

    def lookup(self, subject: str, entity: SchemaEntity, *, deleted: bool = False) -> Registration:
        """The version of a subject that has a schema.

        Raises:
            RestError: 40401, no such subject; 40403, it has no such version.
        """
        known = self.state.versions(subject, deleted=deleted)
        if not known:
            raise subject_not_found(subject)
        for each in reversed(known):
            if each.guid == entity.guid and each.entity.schema_type == entity.schema_type:
                return each
        raise RestError(40403, "Schema not found")

    def register(self, subject: str, given: Mapping[str, Any], now_ms: int, *, normalize: bool = False) -> Registration:
        """Make a schema a version of a subject, if it is not one.

        Args:
            subject: normalised name.
            given: what `propose` takes, and `id` and `version` in mode IMPORT.
            now_ms: wall clock, milliseconds.
            normalize: keep it normalised.

        Raises:
            RestError: 42201 not valid, 42205 not in this mode, 42207 it has another id, 409 not compatible.
        """
        wanted_id = _number(given, "id")
        proposal = self.propose(subject, given, normalize=normalize)
        entity, known = proposal.entity, self.state.versions(subject)
        if same := _last_of(known, entity, wanted_id):
            return same  # in any mode: nothing changes
        if self.mode_of(subject) != IMPORT:
            entity = with_contract(entity, known[-1].entity if known else None, self.config_of(subject))
            if same := _last_of(known, entity, wanted_id):
                return same
        self._check_mode(subject, wanted_id)
        if wanted_id is None:
            verdict = self.compare(subject, proposal.parsed, known)
            if not verdict.is_compatible:
                raise RestError(409, "Schema being registered is incompatible with an earlier schema for subject "
                                f'"{subject}", details: [{", ".join(verdict.messages)}]')
        number = self._next_version(subject, _number(given, "version"), imported=wanted_id is not None)
        made = Registration(subject, number, self._id_for(subject, entity, wanted_id), entity, entity.guid)
        self.write(*made.as_record(), now_ms)
        return self.version(subject, number)

    def compare(self, subject: str, new: ParsedSchema, old: list[Registration]) -> Verdict:
        """Whether a schema is compatible with versions, at the level that is set for the subject."""
        level = self.config_of(subject).get("compatibilityLevel")
        level = level if level in LEVELS else _DEFAULT_CONFIG["compatibilityLevel"]
        try:
            found = incompatibilities(level, new, [self.parsed(subject, each.entity) for each in old])
        except InvalidSchemaError as error:
            raise invalid_schema(str(error)) from None
        if found is None:
            return Verdict(True, [])
        against = old[found.position]
        return Verdict(False, [*map(str, found.found), f"{{oldSchemaVersion: {against.version}}}",
                               f"{{oldSchema: '{against.entity.text}'}}", f"{{compatibility: '{level}'}}"])

    def delete_subject(self, subject: str, now_ms: int, *, permanent: bool) -> list[int]:
        """Delete all versions of a subject; returns their numbers.

        Raises:
            RestError: 40401, 40404 it is deleted softly already, 40405 it is not, 42205, 42206.
        """
        everything = self.state.versions(subject, deleted=True)
        if not everything:
            raise subject_not_found(subject)
        self.check_writable(subject)
        there = self.state.versions(subject)
        if permanent and there:
            raise RestError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
        if not permanent and not there:
            raise RestError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")
        for each in everything:
            self._check_unreferenced(each)
        if permanent:
            for each in everything:
                self.write(each.as_record()[0], None, now_ms)
            return [each.version for each in everything]
        last = there[-1].version
        self.write(key_of("DELETE_SUBJECT", subject), {"subject": subject, "version": last}, now_ms)
        self._forget_settings(subject, now_ms)
        return [each.version for each in there]

    def delete_version(self, subject: str, number: int, now_ms: int, *, permanent: bool) -> int:
        """Delete a version of a subject; returns its number.

        Raises:
            RestError: 40401, 40402, 40406 it is deleted softly already, 40407 it is not, 42205, 42206.
        """
        found = self.version(subject, number, deleted=True)
        if number == LATEST and not permanent:
            found = self.version(subject, number)
        self.check_writable(subject)
        if permanent and not found.is_deleted:
            raise RestError(40407, f"Subject '{subject}' Version {found.version} was not deleted first before being "
                            "permanently deleted")
        if not permanent and found.is_deleted:
            raise RestError(40406, f"Subject '{subject}' Version {found.version} was soft deleted.Set permanent=true "
                            "to delete permanently")
        self._check_unreferenced(found)
        key, value = found.as_record(deleted=True)
        self.write(key, None if permanent else value, now_ms)
        if not self.state.versions(subject):
            self._forget_settings(subject, now_ms)
        return found.version

    def _check_mode(self, subject: str, wanted_id: int | None) -> None:
        self.check_writable(subject)
        imports = self.mode_of(subject) == IMPORT
        if imports and wanted_id is None:
            raise not_permitted(f"Subject {subject} in context {context_of(subject)} is in import mode: give the id "
                                "of the schema")
        if wanted_id is not None and not imports:
            raise not_permitted(f"Subject {subject} in context {context_of(subject)} is not in import mode")

    def _next_version(self, subject: str, wanted: int | None, *, imported: bool) -> int:
        known = self.state.versions(subject, deleted=True)
        following = known[-1].version + 1 if known else 1
        if wanted is None or imported:
            return wanted or following
        if wanted != following:
            raise invalid_schema(f"Version is not one more than previous version {following - 1}")
        return wanted

    def _id_for(self, subject: str, entity: SchemaEntity, wanted: int | None) -> int:
        context = context_of(subject)
        if wanted is None:
            return self.state.id_of(context, entity.guid) or self.state.max_id(context) + 1
        if any(each.guid != entity.guid for each in self.state.of_id(context, wanted)):
            raise not_permitted(f"Overwrite new schema with id {wanted} is not permitted.")
        return wanted

    def _references(self, subject: str, given: Any) -> tuple[dict[str, Any], ...]:
        """The references of a request, with the true numbers of their versions."""
        if given is not None and not isinstance(given, list):
            raise invalid_schema("references are no list")
        found = []
        for each in given or ():
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or not isinstance(
                    each.get("subject"), str) or type(each.get("version")) is not int:
                raise invalid_schema("a reference has a name, a subject and the number of a version")
            version = self._referenced(subject, each, deleted=False).version
            found.append({"name": each["name"], "subject": each["subject"], "version": version})
        return tuple(found)

    def _referenced(self, subject: str, each: Mapping[str, Any], *, deleted: bool) -> Registration:
        name = each["subject"]
        try:
            named = normalized(referred_subject(subject, name))
            return self.version(named, each["version"], deleted=deleted)
        except RestError:
            raise invalid_schema(f'No schema reference found for subject "{name}" and version {each["version"]}'
                                 ) from None

    def _resolved(self, subject: str, references: tuple[Mapping[str, Any], ...]) -> list[ReferencedSchema]:
        """The schemas that are referred to, directly or not, each behind those that it refers to."""
        def target(each: Mapping[str, Any]) -> KeptSchema:
            kept = self._referenced(subject, each, deleted=True)
            return KeptSchema((kept.subject, kept.version), kept.entity.text, kept.entity.references)

        return in_order(references, target)

    def _check_unreferenced(self, each: Registration) -> None:
        if not each.is_deleted and self.state.referring_to(each.subject, each.version):
            raise RestError(42206, f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject="
                            f"{each.subject},version={each.version}}}.")

    def _forget_settings(self, subject: str, now_ms: int) -> None:
        for kind, known in (("CONFIG", self.state.configs), ("MODE", self.state.modes)):
            if subject in known:
                self.write(key_of(kind, subject), None, now_ms)


def _last_of(known: list[Registration], entity: SchemaEntity, wanted_id: int | None) -> Registration | None:
    """The last version that has this schema, where it has the id that is asked for."""
    same = [each for each in known if each.guid == entity.guid]
    return same[-1] if same and wanted_id in (None, same[-1].id) else None


def _object(given: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = given.get(key)
    if value is not None and not isinstance(value, dict):
        raise invalid_schema(f"{key} is no object")
    return value


def _number(given: Mapping[str, Any], key: str) -> int | None:
    value = given.get(key)
    if value in (None, -1, 0):
        return None
    if type(value) is not int or not 0 < value <= _MAX_VERSION:
        raise invalid_schema(f"{key} is no number from 1 on")
    return int(value)
