"""JSON, and JSON by a JSON Schema, as formats of values. Read next: `headrace.schemas.columns.json_columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.schemas.columns.json.ddl_types import ddl_text, parse_ddl
from headrace.schemas.columns.json.json_derived import derived_json_schema
from headrace.schemas.columns.json.json_types import type_of_schema
from headrace.schemas.columns.json_columns import JsonColumns
from headrace.schemas.json_schema import ParsedJson, parse_json_schema
from headrace.schemas.parsed import ReferencedSchema
from headrace.values.schema_formats import SchemaText

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.column_codec import ColumnCodec
    from headrace.values.schema_formats import SchemaFormat

__all__ = ["JsonFormat", "JsonSchemaFormat"]


class JsonFormat:
    """JSON whose types Spark's DDL says: see `SchemaFormat` for the methods."""

    schema_type = ""
    has_messages = False

    def codec(
        self, writer: SchemaText, reader: SchemaText | None = None, *, message: str = "", indexes: Sequence[int] = (),
        flags: frozenset[str] = frozenset(),
    ) -> ColumnCodec:
        """See `SchemaFormat.codec`."""
        return JsonColumns(parse_ddl((reader or writer).text), is_loose=True)

    def given(self, text: str, message: str = "") -> SchemaText:
        """See `SchemaFormat.given`."""
        return SchemaText(text)

    def derived(self, data_type: pyarrow.DataType, name: str) -> SchemaText:
        """See `SchemaFormat.derived`."""
        return SchemaText(ddl_text(data_type))

    def imports(self, text: str) -> Sequence[str]:
        """See `SchemaFormat.imports`."""
        return ()

    def record_name(self, schema: SchemaText, message: str = "") -> str:
        """See `SchemaFormat.record_name`."""
        return message

    def message_indexes(self, schema: SchemaText, message: str = "") -> tuple[int, ...] | None:
        """See `SchemaFormat.message_indexes`."""
        return None


class JsonSchemaFormat:
    """JSON by a JSON Schema: see `SchemaFormat` for the methods."""

    schema_type = "JSON"
    has_messages = False

    def codec(
        self, writer: SchemaText, reader: SchemaText | None = None, *, message: str = "", indexes: Sequence[int] = (),
        flags: frozenset[str] = frozenset(),
    ) -> ColumnCodec:
        """See `SchemaFormat.codec`. The reader's schema reads all, and checks all if it is asked to."""
        schema = reader or writer
        check = _check_of(schema) if "validate" in flags else None
        return JsonColumns(type_of_schema(_parsed(schema)), check=check)

    def given(self, text: str, message: str = "") -> SchemaText:
        """See `SchemaFormat.given`."""
        return SchemaText(text)

    def derived(self, data_type: pyarrow.DataType, name: str) -> SchemaText:
        """See `SchemaFormat.derived`."""
        return SchemaText(derived_json_schema(data_type, name))

    def imports(self, text: str) -> Sequence[str]:
        """See `SchemaFormat.imports`."""
        return ()

    def record_name(self, schema: SchemaText, message: str = "") -> str:
        """See `SchemaFormat.record_name`. It is the title."""
        root = _parsed(schema).root
        return message or str((root.get("title") or "") if isinstance(root, dict) else "")

    def message_indexes(self, schema: SchemaText, message: str = "") -> tuple[int, ...] | None:
        """See `SchemaFormat.message_indexes`."""
        return None


@lru_cache(maxsize=100)
def _parsed(schema: SchemaText) -> ParsedJson:
    return parse_json_schema(schema.text, [ReferencedSchema(name, each) for name, each in schema.references])


def _check_of(schema: SchemaText) -> Callable[[bytes], None]:
    """What checks a text, as our deserializers do."""
    from headrace.client.schema_serdes.codecs.json_codec import json_codec, loaded, validator_of
    from headrace.errors import SerializationError

    validate = validator_of(
        loaded(schema.text, "the JSON schema"),
        {name: loaded(text, f"schema {name}, which is referred to") for name, text in schema.references})
    read = json_codec()[1]

    def check(text: bytes) -> None:
        try:
            value = read(text)
        except (ValueError, RecursionError):
            raise SerializationError("the text is not JSON") from None
        validate(value)
    return check


if TYPE_CHECKING:
    _: tuple[type[SchemaFormat], ...] = (JsonFormat, JsonSchemaFormat)
