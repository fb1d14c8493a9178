"""What a Schema Registry knows: schemas, references, configurations. confluent_kafka's classes and names.

Plain values, made from JSON and turned into it by the table `JSON` of each class. Read next: `types.contracts` and
`types.associations`, which have the rest of them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Self

from headrace.slotted import field, slotted
from headrace.types.contracts import (
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RulePhase,
    RuleSet,
)
from headrace.types.contracts import SchemaMetadata as Metadata
from headrace.types.json_values import FromJson, Json, described, named_by, object_of, objects_of

__all__ = [
    "ConfigCompatibilityLevel",
    "Metadata",
    "MetadataProperties",
    "MetadataTags",
    "RegisteredSchema",
    "Rule",
    "RuleKind",
    "RuleMode",
    "RuleParams",
    "RulePhase",
    "RuleSet",
    "Schema",
    "SchemaReference",
    "SchemaVersion",
    "ServerConfig",
]


class ConfigCompatibilityLevel(StrEnum):
    """Which of the earlier versions a new schema must be compatible with, and in which direction."""

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


@slotted(frozen=True)
class SchemaVersion(FromJson):
    """A version of a subject.

    Args:
        subject: its name.
        version: from 1.
    """

    subject: str | None
    version: int | None

    JSON: ClassVar[tuple[Json, ...]] = (Json("subject", "subject"), Json("version", "version"))


@slotted(frozen=True)
class SchemaReference(FromJson):
    """Another schema that a schema uses.

    Args:
        name: how the schema calls it: an Avro name, a URI of JSON Schema, a file of Protobuf.
        subject: under which it is registered.
        version: of the subject.
    """

    name: str | None
    subject: str | None
    version: int | None

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("name", "name"), Json("subject", "subject"), Json("version", "version"))


@slotted()
class ServerConfig(FromJson):
    """What a registry, or one of its subjects, is set to.

    Args:
        compatibility: the level, where it is to be changed.
        compatibility_level: the level, where it is told.
        compatibility_group: name of the metadata property whose values divide the versions into groups.
        default_metadata: for schemas without metadata.
        override_metadata: in the place of a schema's own.
        default_rule_set: for schemas without rules.
        override_rule_set: in the place of a schema's own.
    """

    compatibility: ConfigCompatibilityLevel | None = None
    compatibility_level: ConfigCompatibilityLevel | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None

    JSON: ClassVar[tuple[Json, ...]] = (
        named_by(ConfigCompatibilityLevel, "compatibility", "compatibility"),
        named_by(ConfigCompatibilityLevel, "compatibility_level", "compatibilityLevel"),
        Json("compatibility_group", "compatibilityGroup"),
        object_of(Metadata, "default_metadata", "defaultMetadata"),
        object_of(Metadata, "override_metadata", "overrideMetadata"),
        object_of(RuleSet, "default_rule_set", "defaultRuleSet"),
        object_of(RuleSet, "override_rule_set", "overrideRuleSet"),
    )


@slotted(frozen=True)
class Schema(FromJson):
    """A schema as a text, with what it refers to.

    Args:
        schema_str: the text.
        schema_type: AVRO, JSON or PROTOBUF.
        references: the schemas that it uses.
        metadata: what is known about it.
        rule_set: its rules.
    """

    schema_str: str | None
    schema_type: str | None = "AVRO"
    references: list[SchemaReference] | None = field(default_factory=list)
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("schema_str", "schema"),
        Json("schema_type", "schemaType", absent="AVRO"),
        objects_of(SchemaReference, "references", "references"),
        object_of(Metadata, "metadata", "metadata"),
        object_of(RuleSet, "rule_set", "ruleSet"),
    )

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the schema, without the fields that are None; the list of references is always there."""
        return {"references": [], **FromJson.to_dict(self)}

    def __hash__(self) -> int:
        return hash((self.schema_str, self.schema_type, self.metadata, self.rule_set))


@slotted(frozen=True)
class RegisteredSchema(FromJson):
    """A schema and where it is registered.

    Args:
        subject: the subject's name.
        version: of the subject, from 1.
        schema_id: number of the schema in the registry.
        guid: number of the schema in all registries, as a text.
        schema: the schema; one without a text where the registry did not tell it.
    """

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None = None
    schema: Schema = field(default_factory=lambda: Schema(None))

    JSON: ClassVar[tuple[Json, ...]] = (
        Json("subject", "subject"), Json("version", "version"), Json("schema_id", "id"), Json("guid", "guid"))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the schema, with where it is registered."""
        return {**self.schema.to_dict(), **FromJson.to_dict(self)}

    @classmethod
    def from_dict(cls, src_dict: dict[str, Any]) -> Self:
        """The schema that a JSON object describes, and where it is registered. Raises as `Schema.from_dict`."""
        found = described(cls, src_dict)
        return cls(schema=Schema.from_dict(src_dict), **{row.name: found.get(row.key) for row in cls.JSON})
