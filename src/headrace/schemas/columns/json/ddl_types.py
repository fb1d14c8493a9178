"""Types as Spark's DDL writes them, `id BIGINT, tags ARRAY<STRING>`, as Arrow's: Spark's own parser needs a session.

Read next: `schemas.columns.json_columns`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SerializationError
from headrace.schemas.parsed import MAX_DEPTH, InvalidSchemaError, checked_size

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ddl_text", "parse_ddl"]

_TOKEN: Final = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
                           r"|(?P<word>\w+)|(?P<sign>[<>(),:]))", re.DOTALL)
_NESTED: Final = ("array", "map", "struct")


def parse_ddl(text: str) -> pyarrow.DataType:
    """Read a type, or the fields of a struct.

    Args:
        text: such as `id BIGINT, name STRING` or `STRUCT<id: BIGINT>`; NOT NULL and COMMENT are passed over.

    Raises:
        InvalidSchemaError: the text is no type that Spark's DDL has, or JSON has no values of it.
    """
    return _Ddl(checked_size(text)).whole()


def ddl_text(kind: pyarrow.DataType) -> str:
    """A type as text that `parse_ddl` reads.

    Raises:
        SerializationError: JSON has no values of the type, or of one inside it, whose field the text names.
    """
    return _ddl_text(kind, ())


def _ddl_text(kind: pyarrow.DataType, path: tuple[str, ...]) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        fields = (f"{_quoted(each.name)}: {_ddl_text(each.type, (*path, each.name))}" for each in kind)
        return f"STRUCT<{', '.join(fields)}>"
    if types.is_map(kind):
        return f"MAP<{_ddl_text(kind.key_type, path)}, {_ddl_text(kind.item_type, path)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"ARRAY<{_ddl_text(kind.value_type, path)}>"
    if types.is_decimal128(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if kind in (pa.large_string(), pa.large_binary()):
        kind = pa.string() if kind == pa.large_string() else pa.binary()
    if types.is_timestamp(kind) and kind.tz:
        kind = pa.timestamp(kind.unit, tz="UTC")  # a moment is the same in every zone; a session's frames have its own
    found = next((name for name, each in _scalars().items() if each == kind), None)
    if found is None:
        where = f"field {'.'.join(path)}: " if path else ""
        raise SerializationError(f"{where}JSON has no values of the type {kind}: cast the column")
    return found.upper()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _scalars() -> dict[str, Any]:
    import pyarrow as pa

    named = {
        pa.bool_(): ("boolean",), pa.int8(): ("tinyint", "byte"), pa.int16(): ("smallint", "short"),
        pa.int32(): ("int", "integer"), pa.int64(): ("bigint", "long"), pa.float32(): ("float", "real"),
        pa.float64(): ("double",), pa.string(): ("string",), pa.binary(): ("binary",), pa.date32(): ("date",),
        pa.timestamp("us", tz="UTC"): ("timestamp", "timestamp_ltz"), pa.timestamp("us"): ("timestamp_ntz",),
    }
    return {name: kind for kind, names in named.items() for name in names}


class _Ddl:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._at = 0
        self._scalars = _scalars()
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise InvalidSchemaError(f"the DDL is not understood at {text[at:at + 30].strip()!r}")
            self._tokens.append(found[0].strip())
            at = found.end()

    def whole(self) -> Any:
        """The type of the whole text."""
        import pyarrow as pa

        if not self._tokens:
            raise InvalidSchemaError("the DDL is empty: give fields, such as id BIGINT, name STRING")
        if (self._peek().lower() in _NESTED and self._peek(1) == "<") or self._is_single():
            kind = self._type(0)
        else:
            kind = pa.struct(self._fields("", 0))
        if self._peek():
            raise self._error("the end")
        return kind

    def _is_single(self) -> bool:
        """Whether the text is a type alone, such as BIGINT or DECIMAL(5, 2)."""
        return len(self._tokens) == 1 or self._peek(1) == "("

    def _fields(self, end: str, depth: int) -> list[Any]:
        import pyarrow as pa

        found: list[Any] = []
        while self._peek() != end:
            if found:
                self._expect(",")
            name = self._next()
            if name[:1] == "`":
                name = name[1:-1].replace("``", "`")
            elif not re.fullmatch(r"\w+", name):
                raise self._error("the name of a field", 1)
            self._is(":")
            found.append(pa.field(name, self._type(depth)))
            if self._is("not"):
                self._expect("null")
            if self._is("comment"):
                while self._peek()[:1] in ("'", '"'):
                    self._next()
        return found

    def _type(self, depth: int) -> Any:
        import pyarrow as pa

        if depth > MAX_DEPTH:
            raise InvalidSchemaError(f"types are nested more than {MAX_DEPTH} deep")
        name = self._next().lower()
        if name == "array":
            return self._within(lambda: pa.list_(pa.field("element", self._type(depth + 1))))
        if name == "map":
            return self._within(lambda: self._map(depth + 1))
        if name == "struct":
            return self._within(lambda: pa.struct(self._fields(">", depth + 1)))
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name in ("varchar", "char") and self._is("("):
            self._number(1, 1 << 31)
            self._expect(")")
            return pa.string()
        kind = self._scalars.get(name)
        if kind is None:
            raise InvalidSchemaError(f"the DDL has the type {name!r:.60}, of which JSON has no values")
        return kind

    def _within(self, read: Any) -> Any:
        self._expect("<")
        kind = read()
        self._expect(">")
        return kind

    def _map(self, depth: int) -> Any:
        import pyarrow as pa

        key = self._type(depth)
        self._expect(",")
        return pa.map_(key, self._type(depth))

    def _decimal(self) -> Any:
        import pyarrow as pa

        precision, scale = 10, 0
        if self._is("("):
            precision = self._number(1, 38)
            scale = self._number(0, precision) if self._is(",") else 0
            self._expect(")")
        return pa.decimal128(precision, scale)

    def _number(self, low: int, high: int) -> int:
        token = self._next()
        if not token.isdecimal() or not low <= int(token[:12]) <= high:
            raise self._error(f"a number from {low} to {high}", 1)
        return int(token)

    def _expect(self, token: str) -> None:
        if not self._is(token):
            raise self._error(repr(token))

    def _is(self, token: str) -> bool:
        if self._peek().lower() != token:
            return False
        self._at += 1
        return True

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise self._error("a type")
        self._at += 1
        return token

    def _error(self, wanted: str, back: int = 0) -> InvalidSchemaError:
        at = self._at - back
        found = repr(self._tokens[at][:40]) if at < len(self._tokens) else "the end"
        return InvalidSchemaError(f"the DDL has {found} where {wanted} is expected")
