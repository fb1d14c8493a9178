"""Arrow's types as Spark's, and back: a column of a data source must have exactly the type that Spark expects.

Read next: `headrace.values.value_planning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = ["arrow_type_of", "spark_schema_of", "spark_type_of"]

_HEADER: Final = StructType().add("key", StringType()).add("value", BinaryType())
_NAMED: Final[dict[str, Any]] = {
    "binary": BinaryType(), "string": StringType(), "int": IntegerType(), "bigint": LongType(),
    "timestamp": TimestampType(), "array<struct<key:string,value:binary>>": ArrayType(_HEADER),
}
"""What columns have without a format, by the text that Spark shows; its own parser needs a session."""


def spark_type_of(data_type: pyarrow.DataType) -> Any:
    """Spark's type for Arrow's, nullability within it included."""
    return from_arrow_type(data_type, prefer_timestamp_ntz=True)


def arrow_type_of(data_type: Any) -> pyarrow.DataType:
    """Arrow's type for Spark's, as data sources get and give it."""
    return to_arrow_type(data_type, timezone="UTC")


def spark_schema_of(columns: dict[str, Any]) -> StructType:
    """A schema of nullable columns.

    Args:
        columns: types by name; those that columns have without a format may be texts.
    """
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name, _NAMED[kind] if isinstance(kind, str) else kind, nullable=True)
    return schema
