"""JSON Schemas as types of columns: what can be said of a value in one type, and a refusal that names the place else.

object with properties: struct     object with additionalProperties alone: map of strings     array with items: list
integer: bigint     number: double     string: string, with format date-time timestamp (UTC), with date date, with
contentEncoding base64 binary     null beside one other type: that type     enum and const: the type of their values

Every value can be null or absent; properties that a schema does not name are left out. Those that it requires, and lets
be null, are marked with `KEEPS_NULL`: written without them, an object would not be valid. Refused are schemas that
allow values of several types, that refer to themselves, and that say nothing. Read next:
`schemas.columns.json_columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace.schemas.columns.json.json_shapes import KEEPS_NULL
from headrace.schemas.json_nodes import JsonDocuments
from headrace.schemas.json_schema import ParsedJson
from headrace.schemas.parsed import InvalidSchemaError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["type_of_schema"]

_MAX_DEPTH: Final = 64
_MAX_COLUMNS: Final = 20_000
_SUMS: Final = ("anyOf", "oneOf", "allOf")
_OF_VALUES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_OBJECT: Final = ("properties", "additionalProperties", "required")


def type_of_schema(schema: ParsedJson) -> pyarrow.DataType:
    """The type of the column of values of a schema.

    Raises:
        InvalidSchemaError: the values have no single type, or one that holds itself; the text has the JSON pointer.
    """
    return _Typing(schema.documents).of(schema.root, "#", ())


class _Typing:
    def __init__(self, documents: JsonDocuments) -> None:
        self._documents = documents
        self._columns = 0

    def of(self, schema: Any, at: str, path: tuple[int, ...]) -> Any:
        """The type of a schema.

        Args:
            schema: the schema.
            at: its JSON pointer.
            path: identities of the schemas that it is within.
        """
        self._columns += 1
        if self._columns > _MAX_COLUMNS or len(path) > _MAX_DEPTH:
            raise _refused(at, f"there are more than {_MAX_COLUMNS} columns, or {_MAX_DEPTH} levels")
        followed = self._documents.followed(schema)
        if id(followed) in path:
            raise _refused(at, "the schema refers to itself")
        if not isinstance(followed, dict):
            raise _refused(at, "the schema says nothing of the value")
        return self._typed(followed, at, (*path, id(followed)))

    def _typed(self, schema: dict[str, Any], at: str, path: tuple[int, ...]) -> Any:
        sums: list[str] = [key for key in _SUMS if key in schema]
        if sums:
            return self._sum(schema, sums, at, path)
        names = schema.get("type")
        names = list(names) if isinstance(names, list) else [names] if names else self._implied(schema, at)
        kinds = [name for name in names if name != "null"]
        if len(kinds) == 2 and set(kinds) == {"integer", "number"}:
            kinds = ["number"]
        if len(kinds) != 1:
            raise _refused(f"{at}/type", f"the value can be {' or '.join(map(str, kinds)) or 'null alone'}")
        return self._named(kinds[0], schema, at, path)

    def _sum(self, schema: dict[str, Any], sums: list[str], at: str, path: tuple[int, ...]) -> Any:
        """One schema, beside which there may be null."""
        parts = [(f"{at}/{key}/{index}", part) for key in sums for index, part in enumerate(schema[key])]
        own = [each for each in parts if not self._is_null(each[1])]
        beside = [key for key in ("type", *_OBJECT, "items") if key in schema]
        if len(own) != 1 or (beside and beside != ["type"]):
            raise _refused(f"{at}/{sums[0]}", "the value is described by more than one schema; only null may be "
                                              "beside one")
        return self.of(own[0][1], own[0][0], path)

    def _is_null(self, schema: Any) -> bool:
        followed = self._documents.followed(schema)
        return isinstance(followed, dict) and (followed.get("type") == "null" or followed.get("const", 0) is None)

    def _allows_null(self, schema: Any) -> bool:
        """Whether null is valid, of a schema that has a type."""
        followed = self._documents.followed(schema)
        names, values = followed.get("type", "null"), followed.get("enum", [followed.get("const")])
        if "null" not in (names if isinstance(names, list) else [names]) or None not in values:
            return False
        parts = [part for key in _SUMS for part in followed.get(key, ())]
        if not parts:
            return "type" in followed or "enum" in followed or "const" in followed
        return any(self._is_null(part) or self._allows_null(part) for part in parts)

    def _implied(self, schema: dict[str, Any], at: str) -> list[str]:
        """Types of a schema that does not name any."""
        values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
        if values is not None:
            found = {_OF_VALUES.get(type(each), "object") for each in values}
            if "object" in found:
                raise _refused(at, "a value of the enum is no scalar")
            return sorted(found)
        if any(key in schema for key in _OBJECT):
            return ["object"]
        if "items" in schema:
            return ["array"]
        raise _refused(at, "the schema says nothing of the value's type")

    def _named(self, name: str, schema: dict[str, Any], at: str, path: tuple[int, ...]) -> Any:
        import pyarrow as pa

        if name == "object":
            return self._object(schema, at, path)
        if name == "array":
            items = schema.get("items")
            if items is None or isinstance(items, list) or "prefixItems" in schema:
                raise _refused(f"{at}/items", "the elements of the array have no single schema")
            return pa.list_(pa.field("element", self.of(items, f"{at}/items", path)))
        if name == "string":
            if schema.get("contentEncoding") == "base64":
                return pa.binary()
            return {"date-time": pa.timestamp("us", tz="UTC"), "date": pa.date32()}.get(
                str(schema.get("format")), pa.string())
        return {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}[name]

    def _object(self, schema: dict[str, Any], at: str, path: tuple[int, ...]) -> Any:
        import pyarrow as pa

        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        if "patternProperties" in schema:
            raise _refused(f"{at}/patternProperties", "the names of the object's properties are not known")
        if isinstance(others, dict) and others:
            if properties:
                raise _refused(f"{at}/additionalProperties", "the object has properties of its own and others as well")
            return pa.map_(pa.string(), self.of(others, f"{at}/additionalProperties", path))
        if not properties:
            raise _refused(at, "the object has neither properties nor a schema of additionalProperties")
        required = schema.get("required")
        wanted = set(required) if isinstance(required, list) else set()
        return pa.struct([pa.field(name, self.of(each, f"{at}/properties/{_escaped(name)}", path),
                                   metadata=KEEPS_NULL if name in wanted and self._allows_null(each) else None)
                          for name, each in properties.items()])


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _refused(at: str, reason: str) -> InvalidSchemaError:
    return InvalidSchemaError(f"{at} of the JSON Schema has no type of a column: {reason}")
