"""Protobuf as a format of values. Read next: `headrace.schemas.columns.protobuf_columns`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.client.schema_serdes.codecs.protobuf_codec import is_builtin
from headrace.schemas.columns.protobuf.protobuf_derived import derived_protobuf
from headrace.schemas.columns.protobuf.protobuf_plan import message_at, message_named, place_of
from headrace.schemas.columns.protobuf_columns import ProtobufColumns
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema
from headrace.schemas.protobuf import ParsedProtobuf, files_of_set, imports_of, parse_protobuf
from headrace.values.schema_formats import SchemaText

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.column_codec import ColumnCodec
    from headrace.values.schema_formats import SchemaFormat

__all__ = ["ProtobufFormat", "parsed_protobuf"]


class ProtobufFormat:
    """Protobuf: see `SchemaFormat` for the methods."""

    schema_type = "PROTOBUF"
    has_messages = True

    def codec(
        self, writer: SchemaText, reader: SchemaText | None = None, *, message: str = "", indexes: Sequence[int] = (),
        flags: frozenset[str] = frozenset(),
    ) -> ColumnCodec:
        """See `SchemaFormat.codec`. The reader's schema reads all; the writer's says which message it is."""
        schema = parsed_protobuf(reader or writer)
        wanted = message_named(schema, message)
        if indexes and (written := message_at(parsed_protobuf(writer), indexes)) != wanted:
            told = "" if message else ": value.message, or key.message, names the type that is read"
            raise InvalidSchemaError(f"the message is a {written}, not a {wanted}{told}")
        return ProtobufColumns(schema, wanted, emit_defaults="emit.default.values" in flags)

    def given(self, text: str, message: str = "") -> SchemaText:
        """See `SchemaFormat.given`. It may be a descriptor set, whose other files are what the schema refers to."""
        files = files_of_set(text, message)
        return SchemaText(text) if files is None else SchemaText(files[0], files[1])

    def derived(self, data_type: pyarrow.DataType, name: str) -> SchemaText:
        """See `SchemaFormat.derived`."""
        return SchemaText(derived_protobuf(data_type, name))

    def imports(self, text: str) -> Sequence[str]:
        """See `SchemaFormat.imports`."""
        return [path for path in imports_of(text) if not is_builtin(path)]

    def record_name(self, schema: SchemaText, message: str = "") -> str:
        """See `SchemaFormat.record_name`."""
        return message_named(parsed_protobuf(schema), message)

    def message_indexes(self, schema: SchemaText, message: str = "") -> tuple[int, ...] | None:
        """See `SchemaFormat.message_indexes`."""
        parsed = parsed_protobuf(schema)
        return place_of(parsed, message_named(parsed, message))


@lru_cache(maxsize=100)
def parsed_protobuf(schema: SchemaText) -> ParsedProtobuf:
    """A schema with what it refers to, parsed once."""
    return parse_protobuf(schema.text, [ReferencedSchema(name, each) for name, each in schema.references])


if TYPE_CHECKING:
    _: type[SchemaFormat] = ProtobufFormat
