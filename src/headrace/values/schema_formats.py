"""What each format knows of its schemas: one small class for each, imported when an option names it.

Read next: `headrace.values.avro_format`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from headrace.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.column_codec import ColumnCodec

__all__ = ["SchemaFormat", "SchemaText", "schema_format"]


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as it travels to tasks.

    Attributes:
        text: the schema.
        references: name and text of each schema that it refers to, each behind those that it refers to itself.
        is_registered: a registry has let it in: what does no harm to payloads is not held against it.
    """

    text: str
    references: tuple[tuple[str, str], ...] = ()
    is_registered: bool = False


class SchemaFormat(Protocol):
    """What a format does with schemas; it asks nobody.

    Attributes:
        schema_type: the registry's name of the kind, AVRO, PROTOBUF or JSON; empty where no registry has it.
        has_messages: a payload names one of the schema's messages, as Protobuf's do, behind the schema's number.
    """

    schema_type: str
    has_messages: bool

    def codec(
        self, writer: SchemaText, reader: SchemaText | None = None, *, message: str = "", indexes: Sequence[int] = (),
        flags: frozenset[str] = frozenset(),
    ) -> ColumnCodec:
        """The codec of a schema, or of a pair.

        Args:
            writer: schema of the payloads.
            reader: schema of the values; None for the writer's.
            message: full name of the type of the values, where a schema has several; empty for the first.
            indexes: place of the payloads' message in the writer's schema, where a format has that.
            flags: `validate` and `emit.default.values`, if they are set; for the formats that have them.

        Raises:
            InvalidSchemaError: a text is no schema, or one that a column cannot have.
        """

    def given(self, text: str, message: str = "") -> SchemaText:
        """The schema that an option gives.

        Args:
            text: of the option.
            message: name of the type of the values; empty for the first.

        Raises:
            InvalidSchemaError: the text lacks a part.
        """

    def derived(self, data_type: pyarrow.DataType, name: str) -> SchemaText:
        """The schema of a column that has none.

        Args:
            data_type: Arrow type of the values.
            name: full name of the record; empty for the format's own.

        Raises:
            SerializationError: the format has no such type.
        """

    def imports(self, text: str) -> Sequence[str]:
        """The names by which the text of a given schema refers to others, without those that each registry has."""

    def record_name(self, schema: SchemaText, message: str = "") -> str:
        """The full name that subjects are named by."""

    def message_indexes(self, schema: SchemaText, message: str = "") -> tuple[int, ...] | None:
        """The place of a message in its schema, which is written before payloads; None where a format has none."""


_FORMATS: Final = {
    "avro": ("headrace.values.avro_format", "AvroFormat"),
    "protobuf": ("headrace.values.protobuf_format", "ProtobufFormat"),
    "json": ("headrace.values.json_format", "JsonFormat"),
    "json-schema": ("headrace.values.json_format", "JsonSchemaFormat"),
}


def schema_format(name: str) -> SchemaFormat:
    """The format of a name.

    Args:
        name: one of `headrace.values.value_format.FORMATS` that has a schema.

    Raises:
        ConfigError: the format is not there.
    """
    found = _FORMATS.get(name)
    if found is None:
        raise ConfigError(f"the format {name} is not available: choose {', '.join(_FORMATS)}")
    made: SchemaFormat = getattr(importlib.import_module(found[0]), found[1])()
    return made
