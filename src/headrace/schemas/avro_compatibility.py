"""Whether one Avro schema reads what was written with another: the rules of Java's `SchemaCompatibility`.

Read next: `schemas.pairwise`, which runs the checks; `schemas.compatibility`, which applies this to versions.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from headrace.schemas.avro_types import ABSENT, AvroType
from headrace.schemas.pairwise import Check, Found, Place, checked
from headrace.schemas.parsed import Incompatibility

__all__ = ["incompatible_types"]

_PROMOTED: Final = {
    ("long", "int"), ("float", "int"), ("float", "long"), ("double", "int"), ("double", "long"), ("double", "float"),
    ("bytes", "string"), ("string", "bytes"),
}
"""Reader and writer of different kinds that go together."""
_DESCRIPTIONS: Final = {
    "NAME_MISMATCH": "The name of the schema has changed (path '{}')",
    "FIXED_SIZE_MISMATCH": "The size of the FIXED type at path '{}' is not the same in both schemas",
    "MISSING_ENUM_SYMBOLS": "The reader's ENUM at path '{}' lacks symbols of the writer's, and has no default",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{1}' at path '{0}' in the reader's schema has no default value "
                                          "and is missing in the writer's schema",
    "TYPE_MISMATCH": "The type at path '{}' of the reader's schema does not match the writer's",
    "AMBIGUOUS_FIELD": "The field at path '{}' of the reader's schema has the names of several of the writer's",
    "MISSING_UNION_BRANCH": "The union at path '{}' of the reader's schema lacks a type of the writer's schema",
}


def incompatible_types(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Why data of one type cannot be read as another; empty when it can.

    Args:
        reader: the type that is to be read.
        writer: the type that was written.

    Raises:
        InvalidSchemaError: they are too large to compare.
    """
    return checked(partial(_check, _Candidates()), reader, writer)


class _Candidates:
    """The branches of a reader's union that may go together with a writer's type: the others need no check."""

    def __init__(self) -> None:
        self._known: dict[int, dict[tuple[str, str], list[AvroType]]] = {}

    def of(self, union: AvroType, writer: AvroType) -> list[AvroType]:
        """Those branches, in order of kind and name."""
        known = self._known.get(id(union))
        if known is None:
            known = self._known[id(union)] = _by_name(union)
        if writer.name:
            found = known.get((writer.kind, writer.short_name), []) + known.get((writer.kind, f"={writer.name}"), [])
        else:
            kinds = (writer.kind, *(reader for reader, written in _PROMOTED if written == writer.kind))
            found = [branch for kind in kinds for branch in known.get((kind, ""), ())]
        return found


def _by_name(union: AvroType) -> dict[tuple[str, str], list[AvroType]]:
    found: dict[tuple[str, str], list[AvroType]] = {}
    for branch in union.branches:
        for name in (branch.short_name, *(f"={alias}" for alias in branch.aliases)) if branch.name else ("",):
            found.setdefault((branch.kind, name), []).append(branch)
    return found


def _check(candidates: _Candidates, reader: AvroType, writer: AvroType, place: Place) -> Check:
    if reader.kind == writer.kind:
        if reader.kind == "union":
            return (yield from _union_by_union(reader, writer, place))
        if reader.kind in ("array", "map"):
            inner = "items" if reader.kind == "array" else "values"
            return (yield reader.branches[0], writer.branches[0], (*place, inner))
        if reader.kind == "record":
            return _names(reader, writer, place) | (yield from _fields(reader, writer, place))
        return _names(reader, writer, place) | _contents(reader, writer, place)
    if writer.kind == "union":
        found: Found = {}
        for index, branch in enumerate(writer.branches):
            found |= yield reader, branch, (*place, str(index))
        return found
    if reader.kind == "union":
        return (yield from _union_by_other(candidates.of(reader, writer), writer, place))
    return {} if (reader.kind, writer.kind) in _PROMOTED else _mismatch(reader, writer, place)


def _union_by_union(reader: AvroType, writer: AvroType, place: Place) -> Check:
    found: Found = {}
    for index, branch in enumerate(writer.branches):
        if (yield reader, branch, ()):
            found |= _lacking(branch, (*place, str(index)))
    return found


def _union_by_other(branches: list[AvroType], writer: AvroType, place: Place) -> Check:
    for branch in branches:
        if not (yield branch, writer, ()):
            return {}
    return _lacking(writer, place)


def _fields(reader: AvroType, writer: AvroType, place: Place) -> Check:
    found: Found = {}
    by_name = {each.name: each for each in writer.fields}
    for index, each in enumerate(reader.fields):
        here = (*place, "fields", str(index))
        written = [by_name[name] for name in dict.fromkeys((each.name, *each.aliases)) if name in by_name]
        if len(written) > 1:
            found |= _found("AMBIGUOUS_FIELD", f"{each.name}: {', '.join(one.name for one in written)}", here)
        elif written:
            found |= yield each.type, written[0].type, (*here, "type")
        elif each.default is ABSENT and each.type.default is not None:
            found |= yield each.type, writer, (*here, "type")  # Java asks so of an enum with a default
        elif each.default is ABSENT:
            found |= _found("READER_FIELD_MISSING_DEFAULT_VALUE", each.name, here)
    return found


def _names(reader: AvroType, writer: AvroType, place: Place) -> Found:
    """Named types go together if their names without namespaces are equal, or an alias is the writer's full name."""
    if reader.short_name == writer.short_name or writer.name in reader.aliases:
        return {}
    return _found("NAME_MISMATCH", f"expected: {writer.name}", (*place, "name"))


def _contents(reader: AvroType, writer: AvroType, place: Place) -> Found:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if missing and reader.default is None:
        return _found("MISSING_ENUM_SYMBOLS", f"[{', '.join(missing)}]", (*place, "symbols"))
    if reader.size != writer.size:
        return _found("FIXED_SIZE_MISMATCH", f"expected: {writer.size}, found: {reader.size}", (*place, "size"))
    return {}


def _mismatch(reader: AvroType, writer: AvroType, place: Place) -> Found:
    kinds = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return _found("TYPE_MISMATCH", kinds, place)


def _lacking(writer: AvroType, place: Place) -> Found:
    return _found("MISSING_UNION_BRANCH", f"reader union lacking writer type: {writer.kind.upper()}", place)


def _found(kind: str, message: str, place: Place) -> Found:
    location = "/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in place)
    return {Incompatibility(kind, message, location, _DESCRIPTIONS[kind].format(location, message)): None}
