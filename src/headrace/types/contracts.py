"""Data contracts: the rules and the metadata of a schema. They are kept and passed on; nothing here runs a rule.

Read next: `types.registry`, whose schemas have them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Self

from headrace.slotted import field, slotted
from headrace.types.json_values import FromJson, Json, described, list_or_none, named_by, object_of, objects_of

__all__ = [
    "MetadataProperties",
    "MetadataTags",
    "Rule",
    "RuleKind",
    "RuleMode",
    "RuleParams",
    "RulePhase",
    "RuleSet",
    "SchemaMetadata",
]


class RuleKind(StrEnum):
    """What a rule does: it checks, or it changes."""

    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


class RulePhase(StrEnum):
    """When a rule is due."""

    MIGRATION = "MIGRATION"
    DOMAIN = "DOMAIN"
    ENCODING = "ENCODING"


class RuleMode(StrEnum):
    """For which way of a record, or of a schema, a rule is."""

    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    READ = "READ"
    WRITE = "WRITE"
    WRITEREAD = "WRITEREAD"


@slotted()
class RuleParams(FromJson):
    """What a rule is called with.

    Args:
        params: texts by name.
    """

    params: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The parameters themselves."""
        return dict(self.params)

    @classmethod
    def from_dict(cls, src_dict: dict[str, Any]) -> Self:
        """The parameters that a JSON object describes. Raises TypeError when it is none."""
        return cls(params=dict(described(cls, src_dict)))

    def __hash__(self) -> int:
        return hash(frozenset(self.params.items()))


@slotted(frozen=True)
class Rule(FromJson):
    """One rule of a data contract.

    Args:
        name: its name.
        doc: what it is for.
        kind: whether it checks or changes.
        mode: for which way it is.
        type: which engine runs it, for example CEL.
        tags: of the fields that it is for.
        params: what the engine is given.
        expr: the rule in the engine's language.
        on_success: what follows when it holds.
        on_failure: what follows when it does not.
        disabled: it is not run.
    """

    name: str | None
    doc: str | None
    kind: RuleKind | None
    mode: RuleMode | None
    type: str | None
    tags: list[str] | None
    params: RuleParams | None
    expr: str | None
    on_success: str | None
    on_failure: str | None
    disabled: bool | None

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("name", "name"),
        Json("doc", "doc"),
        named_by(RuleKind, "kind", "kind"),
        named_by(RuleMode, "mode", "mode"),
        Json("type", "type"),
        Json("tags", "tags"),
        object_of(RuleParams, "params", "params"),
        Json("expr", "expr"),
        Json("on_success", "onSuccess"),
        Json("on_failure", "onFailure"),
        Json("disabled", "disabled"),
    )

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the rule, without the fields that are None; the type is always there."""
        return {"type": None, **FromJson.to_dict(self)}

    def __hash__(self) -> int:
        return hash((self.name, self.doc, self.kind, self.mode, self.type, self.params, self.expr, self.on_success,
                     self.on_failure, self.disabled))


@slotted()
class RuleSet(FromJson):
    """The rules of a schema, by the phase in which they are due.

    Args:
        migration_rules: between versions of a schema.
        domain_rules: about the values.
        encoding_rules: about the bytes.
        enable_at: from when on.
    """

    migration_rules: list[Rule] | None
    domain_rules: list[Rule] | None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None

    JSON: ClassVar[tuple[Json, ...]] = (
        objects_of(Rule, "migration_rules", "migrationRules"),
        objects_of(Rule, "domain_rules", "domainRules"),
        objects_of(Rule, "encoding_rules", "encodingRules"),
        Json("enable_at", "enableAt"),
    )

    def __hash__(self) -> int:
        rules = [*(self.migration_rules or []), *(self.domain_rules or []), *(self.encoding_rules or [])]
        return hash((frozenset(rules), self.enable_at))


@slotted()
class MetadataTags(FromJson):
    """Tags of the fields of a schema.

    Args:
        tags: lists of tags by the path of the field.
    """

    tags: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The tags themselves."""
        return dict(self.tags)

    @classmethod
    def from_dict(cls, src_dict: dict[str, Any]) -> Self:
        """The tags that a JSON object describes. Raises TypeError when it is none."""
        return cls(tags=dict(described(cls, src_dict)))

    def __hash__(self) -> int:
        return hash(frozenset((path, tuple(tags or ())) for path, tags in self.tags.items()))


@slotted()
class MetadataProperties(FromJson):
    """Properties of a schema.

    Args:
        properties: texts by name.
    """

    properties: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The properties themselves."""
        return dict(self.properties)

    @classmethod
    def from_dict(cls, src_dict: dict[str, Any]) -> Self:
        """The properties that a JSON object describes. Raises TypeError when it is none."""
        return cls(properties=dict(described(cls, src_dict)))

    def __hash__(self) -> int:
        return hash(frozenset(self.properties.items()))


@slotted(frozen=True)
class SchemaMetadata(FromJson):
    """What is known about a schema besides the schema. confluent_kafka and `types.registry` call it `Metadata`.

    Args:
        tags: of its fields.
        properties: of the whole.
        sensitive: names of properties that are not to be shown.
    """

    tags: MetadataTags | None
    properties: MetadataProperties | None
    sensitive: list[str] | None

    JSON: ClassVar[tuple[Json, ...]] = (
        object_of(MetadataTags, "tags", "tags"),
        object_of(MetadataProperties, "properties", "properties"),
        Json("sensitive", "sensitive", list_or_none, list),
    )

    def __repr__(self) -> str:
        return f"Metadata(tags={self.tags!r}, properties={self.properties!r}, sensitive={self.sensitive!r})"

    def __hash__(self) -> int:
        return hash((self.tags, self.properties))
