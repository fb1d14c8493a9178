"""Avro as a format of values. Read next: `headrace.schemas.columns.avro_columns`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.schemas.avro import ParsedAvro, parse_avro
from headrace.schemas.columns.avro.avro_derived import derived_avro
from headrace.schemas.columns.avro_columns import AvroColumns
from headrace.schemas.parsed import ReferencedSchema
from headrace.values.schema_formats import SchemaText

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.column_codec import ColumnCodec
    from headrace.values.schema_formats import SchemaFormat

__all__ = ["AvroFormat"]


class AvroFormat:
    """Avro: see `SchemaFormat` for the methods."""

    schema_type = "AVRO"
    has_messages = False

    def codec(
        self, writer: SchemaText, reader: SchemaText | None = None, *, message: str = "", indexes: Sequence[int] = (),
        flags: frozenset[str] = frozenset(),
    ) -> ColumnCodec:
        """See `SchemaFormat.codec`. An Avro schema has one type, so `message` chooses nothing."""
        return AvroColumns(_parsed(writer), None if reader is None else _parsed(reader))

    def given(self, text: str, message: str = "") -> SchemaText:
        """See `SchemaFormat.given`."""
        return SchemaText(text)

    def derived(self, data_type: pyarrow.DataType, name: str) -> SchemaText:
        """See `SchemaFormat.derived`."""
        return SchemaText(derived_avro(data_type, name))

    def imports(self, text: str) -> Sequence[str]:
        """See `SchemaFormat.imports`."""
        return ()

    def record_name(self, schema: SchemaText, message: str = "") -> str:
        """See `SchemaFormat.record_name`."""
        root = _parsed(schema).root
        return root.name or root.kind

    def message_indexes(self, schema: SchemaText, message: str = "") -> tuple[int, ...] | None:
        """See `SchemaFormat.message_indexes`."""
        return None


@lru_cache(maxsize=100)
def _parsed(schema: SchemaText) -> ParsedAvro:
    text = schema.text.strip()
    if text[:1] not in ('"', "{", "["):  # the name of a primitive type alone
        text = f'"{text}"'
    references = [ReferencedSchema(name, each) for name, each in schema.references]
    return parse_avro(text, references, is_strict=not schema.is_registered)


if TYPE_CHECKING:
    _: type[SchemaFormat] = AvroFormat
