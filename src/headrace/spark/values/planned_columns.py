"""The columns of a read whose keys or values have a format, with their types in Spark.

Read next: `headrace.values.value_planning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigError
from headrace.spark.options import SourceOptions
from headrace.spark.values.spark_types import spark_schema_of, spark_type_of
from headrace.values.value_planning import DecodedRead, planned_read

__all__ = ["PlannedColumns"]


class PlannedColumns:
    """What a read decodes, and the types that Spark is told.

    Args:
        decoded: what was settled.

    Attributes:
        decoded: as given.
    """

    def __init__(self, decoded: DecodedRead) -> None:
        self.decoded = decoded
        self._types: dict[str, Any] = {name: spark_type_of(each.data_type) for name, each in decoded.sides.items()}
        self._types |= dict.fromkeys(decoded.texts, "string")

    @classmethod
    def of(cls, options: SourceOptions) -> PlannedColumns:
        """Settle what the options of a read ask for.

        Args:
            options: of a batch or of a stream.

        Raises:
            ConfigError: no schema can be found.
            InvalidSchemaError: a schema is none, or one that a column cannot have.
            SchemaRegistryError: the registry did not answer, or refused.
        """
        wanted = options.columns or ("value", "key")
        formats = {each.side: each for each in (options.value, options.key) if each.side in wanted}
        names = options.subscription.names
        sides = {name: planned_read(each, names) for name, each in formats.items() if each.has_schema}
        texts = tuple(name for name, each in formats.items() if each.name == "string")
        return cls(DecodedRead(sides, texts, options.dead_letter_topic, options.client))

    def spark_schema(self, columns: Mapping[str, str]) -> Any:
        """The schema for Spark.

        Args:
            columns: all columns, with the types that they have without a format.
        """
        return spark_schema_of({name: self._types.get(name, kind) for name, kind in columns.items()})

    def kinds(self, columns: Mapping[str, str]) -> dict[str, str]:
        """The same as `simpleString` of each type."""
        types = {name: self._types.get(name, kind) for name, kind in columns.items()}
        return {name: kind if isinstance(kind, str) else kind.simpleString() for name, kind in types.items()}

    def check(self, schema: Any) -> None:
        """Refuse a schema that differs in what may be null: Spark would stop the tasks for it.

        Args:
            schema: of the read, which the user may have given.

        Raises:
            ConfigError: a column's type is not the planned one.
        """
        for each in schema.fields:
            wanted = self._types.get(each.name)
            if wanted is not None and not isinstance(wanted, str) and each.dataType != wanted:
                raise ConfigError(f"column {each.name} must have the schema's type, {wanted.json()}, not "
                                  f"{each.dataType.json()}: leave its type to the source, or give another "
                                  f"{each.name}.schema")
