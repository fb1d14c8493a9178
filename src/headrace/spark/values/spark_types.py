"""Arrow's types as Spark's, and back: a column of a data source must have exactly the type that Spark expects.

Read next: `headrace.values.value_planning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from headrace.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["arrow_type_of", "spark_schema_of", "spark_type_of"]

_HEADER: Final = StructType().add("key", StringType()).add("value", BinaryType())
_NAMED: Final[dict[str, Any]] = {
    "binary": BinaryType(), "string": StringType(), "int": IntegerType(), "bigint": LongType(),
    "timestamp": TimestampType(), "array<struct<key:string,value:binary>>": ArrayType(_HEADER),
}
"""What columns have without a format, by the text that Spark shows; its own parser needs a session."""
_STAND_INS: Final = {"variant": "its text: to_json(...) or CAST(... AS STRING)", "geometry": "ST_AsBinary(...)",
                     "geography": "ST_AsBinary(...)"}
"""Types that Arrow gets as structs of Spark's own encoding, which no reader of a topic knows; what to write instead."""


def spark_type_of(data_type: pyarrow.DataType) -> Any:
    """Spark's type for Arrow's, nullability within it included."""
    return from_arrow_type(data_type, prefer_timestamp_ntz=True)


def arrow_type_of(data_type: Any, place: str) -> pyarrow.DataType:
    """Arrow's type for Spark's, as data sources get and give it.

    Args:
        data_type: of a column.
        place: the column's name, for errors.

    Raises:
        ConfigError: a type within has none, or one that says nothing to others; the text names the field.
    """
    _check(data_type, True, place)
    return to_arrow_type(data_type, timezone="UTC")


def _check(kind: Any, nullable: bool, place: str) -> None:
    """Refuse a type that cannot be written. Parts of arrays and maps are named as in Parquet: element, key, value."""
    if isinstance(kind, StructType):
        for each in kind.fields:
            _check(each.dataType, each.nullable, f"{place}.{each.name}")
    elif isinstance(kind, ArrayType):
        _check(kind.elementType, kind.containsNull, f"{place}.element")
    elif isinstance(kind, MapType):
        _check(kind.keyType, False, f"{place}.key")
        _check(kind.valueType, kind.valueContainsNull, f"{place}.value")
    elif kind.typeName() in _STAND_INS:
        raise ConfigError(f"field {place} is a {kind.simpleString()}, which no format has: write "
                          f"{_STAND_INS[kind.typeName()]}")
    elif kind.typeName() == "void" and not nullable:
        raise ConfigError(f"field {place} has no type (void): cast what it is in, for example array() as "
                          "CAST(array() AS ARRAY<STRING>)")
    else:
        try:
            to_arrow_type(kind, timezone="UTC")
        except PySparkException:
            raise ConfigError(f"field {place} is {kind.simpleString()}, which no format has: cast it, for example to "
                              "string") from None


def spark_schema_of(columns: dict[str, Any]) -> StructType:
    """A schema of nullable columns.

    Args:
        columns: types by name; those that columns have without a format may be texts.
    """
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name, _NAMED[kind] if isinstance(kind, str) else kind, nullable=True)
    return schema
