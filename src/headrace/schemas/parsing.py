"""The door: read a schema of any of the three kinds.

Read next: `schemas.compatibility`, the other door; `schemas.parsed` for what a parsed schema can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.schemas.parsed import InvalidSchemaError, ParsedSchema, ReferencedSchema

__all__ = ["SCHEMA_TYPES", "parse"]

SCHEMA_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")
"""The kinds, in the order in which Confluent's registry lists them."""


def parse(schema_type: str, text: str, references: Sequence[ReferencedSchema] = ()) -> ParsedSchema:
    """Read a schema.

    Args:
        schema_type: one of `SCHEMA_TYPES`.
        text: the schema.
        references: schemas that it refers to, directly or not, each behind those that it refers to itself.

    Raises:
        InvalidSchemaError: the type is none of the three, or the text is no schema of it.
    """
    if schema_type == "AVRO":
        from headrace.schemas.avro import parse_avro

        return parse_avro(text, references)
    if schema_type == "JSON":
        from headrace.schemas.json_schema import parse_json_schema

        return parse_json_schema(text, references)
    if schema_type == "PROTOBUF":
        from headrace.schemas.protobuf import parse_protobuf

        return parse_protobuf(text, references)
    raise InvalidSchemaError(f"the schema type is {schema_type!r:.60}; it can be AVRO, JSON or PROTOBUF")
