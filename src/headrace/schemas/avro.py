"""Avro schemas, parsed by the rules of the Avro specification 1.12.

It must not know a registry. Read next: `schemas.avro_types` for what comes out, then `schemas.avro_text`, which writes
it down again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headrace.schemas.avro_compatibility import incompatible_types
from headrace.schemas.avro_defaults import check_defaults, leave_out_unfit
from headrace.schemas.avro_text import canonical_text, normalized_text
from headrace.schemas.avro_types import ABSENT, PRIMITIVES, AvroField, AvroType
from headrace.schemas.parsed import MAX_DEPTH, Incompatibility, InvalidSchemaError, ReferencedSchema, load_json
from headrace.slotted import slotted

__all__ = ["ParsedAvro", "parse_avro"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RECORD, _FIXED = frozenset(("record", "error")), "fixed"
_ORDERS = ("ascending", "descending", "ignore")
_OF_TYPES = frozenset(("type", "name", "namespace", "aliases", "doc", "fields", "items", "values", "symbols", "size"))
_OF_FIELDS = frozenset(("type", "name", "aliases", "doc", "default", "order"))


@slotted(frozen=True, eq=False)
class ParsedAvro:
    """An Avro schema.

    Attributes:
        root: its type.
        names: the named types in it, and those of the schemas that it refers to, by full name.
        referenced: the full names that belong to the schemas that it refers to.
    """

    root: AvroType
    names: Mapping[str, AvroType]
    referenced: frozenset[str]

    @property
    def schema_type(self) -> str:
        """`AVRO`."""
        return "AVRO"

    def canonical(self) -> str:
        """The schema without spaces, as Java's `Schema.toString` writes it; references stay names."""
        return canonical_text(self.root, self.referenced)

    def normalized(self) -> str:
        """The schema with full names and attributes in one order, as Confluent's registry normalises it."""
        return normalized_text(self.root, self.referenced)

    def formatted(self, name: str) -> str:
        """The schema in a format that a client asks for: `resolved` writes the types of references out."""
        return canonical_text(self.root) if name == "resolved" else self.canonical()

    def can_read(self, written: ParsedAvro) -> list[Incompatibility]:
        """Why this schema cannot read what was written with another."""
        return incompatible_types(self.root, written.root)


def parse_avro(text: str, references: Sequence[ReferencedSchema] = (), *, is_strict: bool = True) -> ParsedAvro:
    """Read an Avro schema.

    Args:
        text: JSON.
        references: schemas whose named types it uses, in an order in which each knows those before it.
        is_strict: as a registry takes new ones. Else names may have any characters, and defaults that do not fit are
            left out: older libraries have let such schemas in, and what was written with them can be read.

    Raises:
        InvalidSchemaError: the text, or a reference, breaks a rule of the specification or a limit.
    """
    parser = _Parser(is_strict)
    for each in _by_text(references):
        parser.read(load_json(each.text, f"the referenced schema {each.name!r}"), "", each.name, 0)
    referenced = frozenset(parser.names)
    root = parser.read(load_json(text), "", "", 0)
    if is_strict:
        check_defaults(parser.places)
    else:
        leave_out_unfit(parser.places)
    return ParsedAvro(root, parser.names, referenced)


def _by_text(references: Sequence[ReferencedSchema]) -> Iterable[ReferencedSchema]:
    """Each once: what is referred to by two names declares its types once."""
    found: dict[str, ReferencedSchema] = {}
    for each in references:
        found.setdefault(each.text, each)
    return found.values()


def full_name(name: str, namespace: str) -> str:
    """A name with the namespace that it stands in; a name with dots has its own."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


class _Parser:
    """Reads types; `place` is the path to one, for errors."""

    def __init__(self, is_strict: bool) -> None:
        self._is_strict = is_strict
        self.names: dict[str, AvroType] = {}
        self.places: list[tuple[str, AvroField]] = []

    def read(self, given: Any, namespace: str, place: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise _invalid(place, f"types are nested more than {MAX_DEPTH} deep")
        if isinstance(given, str):
            return self._named(given, namespace, place)
        if isinstance(given, list):
            return self._union(given, namespace, place, depth)
        if isinstance(given, dict):
            return self._declared(given, namespace, place, depth)
        raise _invalid(place, f"a type is a name, an object or a list, not {given!r:.60}")

    def _named(self, name: str, namespace: str, place: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        found = self.names.get(full_name(name, namespace)) or self.names.get(name)
        if found is None:
            raise _invalid(place, f"{full_name(name, namespace)!r:.200} is not a type, and none of that name is "
                                  "declared before or in a reference")
        return found

    def _union(self, given: list[Any], namespace: str, place: str, depth: int) -> AvroType:
        branches: dict[str, AvroType] = {}
        for index, one in enumerate(given):
            each = self.read(one, namespace, f"{place}/{index}", depth + 1)
            own = each.name or each.kind
            if each.kind == "union":
                raise _invalid(place, "a union cannot hold a union directly")
            if own in branches:
                raise _invalid(place, f"the union has {own!r} twice")
            branches[own] = each
        return AvroType("union", branches=tuple(branches.values()))

    def _declared(self, given: dict[str, Any], namespace: str, place: str, depth: int) -> AvroType:
        kind = given.get("type")
        if not isinstance(kind, str):
            raise _invalid(place, 'an object needs a "type", which is the name of one')
        read = _READERS.get(kind)
        if read is not None:
            return read(self, given, namespace, place, depth)
        made = self._named(kind, namespace, place)
        if kind in PRIMITIVES:
            made.properties = {key: given[key] for key in given if key not in _OF_TYPES}
        return made

    def _record(self, given: dict[str, Any], namespace: str, place: str, depth: int) -> AvroType:
        made = self._declare("record", given, namespace, place)
        made.is_error = given["type"] == "error"
        place = f"{place}/{made.name}"
        rows = given.get("fields")
        if not isinstance(rows, list):
            raise _invalid(place, 'a record needs a list of "fields"')
        found: dict[str, AvroField] = {}
        for row in rows:
            one = self._field(row, made.namespace, place, depth)
            if one.name in found:
                raise _invalid(place, f"the record has the field {one.name!r} twice")
            found[one.name] = one
        made.fields = tuple(found.values())
        return made

    def _field(self, row: Any, namespace: str, place: str, depth: int) -> AvroField:
        if not isinstance(row, dict):
            raise _invalid(place, f"a field is an object, not {row!r:.60}")
        name = self._checked_name(row.get("name"), place)
        place = f"{place}/{name}"
        if "type" not in row:
            raise _invalid(place, 'the field has no "type"')
        order = row.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise _invalid(place, f"the order can be {', '.join(_ORDERS)}, not {order!r:.60}")
        made = AvroField(
            name, self.read(row["type"], namespace, place, depth + 1), row.get("default", ABSENT), _text(row, "doc"),
            order.lower(), _alias_list(row, place), {key: row[key] for key in row if key not in _OF_FIELDS})
        if made.default is not ABSENT:
            self.places.append((place, made))
        return made

    def _enum(self, given: dict[str, Any], namespace: str, place: str, depth: int) -> AvroType:
        made = self._declare("enum", given, namespace, place)
        place = f"{place}/{made.name}"
        symbols = given.get("symbols")
        if not isinstance(symbols, list):
            raise _invalid(place, 'an enum needs a list of "symbols"')
        made.symbols = tuple(self._checked_name(each, place, "symbol") for each in symbols)
        if len(set(made.symbols)) < len(made.symbols):
            raise _invalid(place, "the enum has a symbol twice")
        made.default = given.get("default")
        if made.default is not None and made.default not in made.symbols:
            if self._is_strict:
                raise _invalid(place, f"the default {made.default!r:.60} is none of the symbols")
            made.default = None
        made.properties.pop("default", None)
        return made

    def _fixed(self, given: dict[str, Any], namespace: str, place: str, depth: int) -> AvroType:
        made = self._declare(_FIXED, given, namespace, place)
        size = given.get("size")
        if type(size) is not int or not 0 <= size < 1 << 31:
            raise _invalid(f"{place}/{made.name}", f'a fixed needs a "size" from 0 on, not {size!r:.60}')
        made.size = size
        return made

    def _array(self, given: dict[str, Any], namespace: str, place: str, depth: int) -> AvroType:
        return self._container("array", "items", given, namespace, place, depth)

    def _map(self, given: dict[str, Any], namespace: str, place: str, depth: int) -> AvroType:
        return self._container("map", "values", given, namespace, place, depth)

    def _container(self, kind: str, key: str, given: dict[str, Any], namespace: str, place: str,
                   depth: int) -> AvroType:
        if key not in given:
            raise _invalid(place, f'the {kind} has no "{key}"')
        inner = self.read(given[key], namespace, f"{place}/{key}", depth + 1)
        properties = {name: given[name] for name in given if name not in _OF_TYPES}
        return AvroType(kind, branches=(inner,), properties=properties)

    def _declare(self, kind: str, given: dict[str, Any], namespace: str, place: str) -> AvroType:
        """A named type, known from now on: it may hold itself."""
        short = given.get("name")
        if not isinstance(short, str):
            raise _invalid(place, f'the {kind} has no "name"')
        own = given.get("namespace")
        own = namespace if own is None else own
        if not isinstance(own, str):
            raise _invalid(place, f"the namespace of {short!r:.60} is no text")
        name = full_name(short, own).removeprefix(".")
        for part in name.split("."):
            self._checked_name(part, place)
        if name in PRIMITIVES:
            raise _invalid(place, f"{name!r} is a primitive type: no other type can have the name")
        if name in self.names:
            raise _invalid(place, f"{name!r} is declared twice")
        space = name.rpartition(".")[0]
        aliases = tuple(dict.fromkeys(full_name(each, space) for each in _alias_list(given, place)))
        properties = {key: given[key] for key in given if key not in _OF_TYPES}
        self.names[name] = AvroType(kind, name, aliases=aliases, doc=_text(given, "doc"), properties=properties)
        return self.names[name]

    def _checked_name(self, name: Any, place: str, what: str = "name") -> str:
        if not isinstance(name, str) or not (_NAME.fullmatch(name) or (name and not self._is_strict)):
            raise _invalid(place, f"{name!r:.100} is not a {what}: letters, digits and _, and no digit first")
        return name


_READERS: Final = {
    "record": _Parser._record, "error": _Parser._record, "enum": _Parser._enum, "fixed": _Parser._fixed,
    "array": _Parser._array, "map": _Parser._map,
}


def _alias_list(given: Mapping[str, Any], place: str) -> tuple[str, ...]:
    aliases = given.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
        raise _invalid(place, f"aliases are a list of names, not {aliases!r:.60}")
    return tuple(dict.fromkeys(aliases))


def _text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    return value if isinstance(value, str) else None


def _invalid(place: str, reason: str) -> InvalidSchemaError:
    shown = place if len(place) <= 300 else f"{place[:140]} ... {place[-140:]}"
    return InvalidSchemaError(f"at {shown or '/'}: {reason}")
