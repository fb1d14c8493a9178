"""Avro schemas as text: as Java writes them, normalised, and in Parsing Canonical Form with its fingerprint.

Source: the Avro specification 1.12, "Parsing Canonical Form" and "Schema Fingerprints"; Java's `Schema.toJson` for the
order of attributes. Read next: `schemas.avro`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from typing import Any, Final

from headrace.schemas.avro_types import ABSENT, PRIMITIVES, AvroField, AvroType
from headrace.schemas.parsed import compact

__all__ = ["canonical_text", "fingerprint", "normalized_text", "parsing_canonical_form"]

_EMPTY_64: Final = 0xC15D213AA4D7A795
_CONTAINED: Final = {"array": "items", "map": "values"}


def canonical_text(root: AvroType, referenced: Collection[str] = ()) -> str:
    """A type as Java's `Schema.toString` writes it: no spaces, attributes in Java's order, names as short as they can
    be.

    Args:
        root: the type.
        referenced: full names of types that stay names: they are declared elsewhere.
    """
    return compact(_Java(set(referenced)).type(root, ""))


def normalized_text(root: AvroType, referenced: Collection[str] = ()) -> str:
    """A type with full names, and other attributes sorted behind those of the Parsing Canonical Form.

    Args:
        root: the type.
        referenced: full names of types that stay names: they are declared elsewhere.
    """
    return compact(_Normal(set(referenced)).type(root))


def parsing_canonical_form(root: AvroType) -> str:
    """The Parsing Canonical Form: only what matters for reading. Types of references are written out once."""
    return compact(_Canonical(set()).type(root))


def fingerprint(root: AvroType, algorithm: str = "CRC-64-AVRO") -> bytes:
    """The fingerprint of the Parsing Canonical Form.

    Args:
        root: the type.
        algorithm: `CRC-64-AVRO` (big-endian bytes), `MD5` or `SHA-256`.

    Raises:
        ValueError: another algorithm is named.
    """
    form = parsing_canonical_form(root).encode()
    if algorithm == "CRC-64-AVRO":
        return _rabin(form).to_bytes(8, "big")
    if algorithm not in ("MD5", "SHA-256"):
        raise ValueError(f"algorithm is {algorithm!r}; it can be CRC-64-AVRO, MD5 or SHA-256")
    return hashlib.new(algorithm.replace("-", "").lower(), form, usedforsecurity=False).digest()


def _rabin(data: bytes) -> int:
    value = _EMPTY_64
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value


def _table() -> list[int]:
    rows = []
    for row in range(256):
        for _ in range(8):
            row = (row >> 1) ^ (_EMPTY_64 if row & 1 else 0)
        rows.append(row)
    return rows


_TABLE: Final = _table()


class _Java:
    """Java's way; `known` has the full names that are written out already."""

    def __init__(self, known: set[str]) -> None:
        self._known = known

    def type(self, kind: AvroType, space: str) -> Any:
        if kind.kind == "union":
            return [self.type(each, space) for each in kind.branches]
        if kind.kind in PRIMITIVES:
            return {"type": kind.kind, **kind.properties} if kind.properties else kind.kind
        if kind.kind in _CONTAINED:
            inner = self.type(kind.branches[0], space)
            return {"type": kind.kind, _CONTAINED[kind.kind]: inner, **kind.properties}
        if kind.name in self._known:
            return _short(kind, space)
        self._known.add(kind.name)
        return self._named(kind, space)

    def _named(self, kind: AvroType, space: str) -> dict[str, Any]:
        written: dict[str, Any] = {"type": "error" if kind.is_error else kind.kind, "name": kind.short_name}
        if kind.namespace != space:
            written["namespace"] = kind.namespace
        if kind.doc is not None:
            written["doc"] = kind.doc
        if kind.kind == "record":
            written["fields"] = [self._field(each, kind.namespace) for each in kind.fields]
        elif kind.kind == "enum":
            written["symbols"] = list(kind.symbols)
            written |= {} if kind.default is None else {"default": kind.default}
        else:
            written["size"] = kind.size
        written |= kind.properties
        if kind.aliases:
            written["aliases"] = [_relative(each, kind.namespace) for each in kind.aliases]
        return written

    def _field(self, each: AvroField, space: str) -> dict[str, Any]:
        written = {"name": each.name, "type": self.type(each.type, space)}
        written |= {} if each.doc is None else {"doc": each.doc}
        written |= {} if each.default is ABSENT else {"default": each.default}
        written |= {} if each.order == "ascending" else {"order": each.order}
        written |= {"aliases": list(each.aliases)} if each.aliases else {}
        return written | each.properties


class _Canonical:
    """Parsing Canonical Form."""

    def __init__(self, known: set[str]) -> None:
        self._known = known

    def type(self, kind: AvroType) -> Any:
        if kind.kind == "union":
            return [self.type(each) for each in kind.branches]
        if kind.kind in PRIMITIVES:
            return self._primitive(kind)
        if kind.kind in _CONTAINED:
            return self._container(kind)
        if kind.name in self._known:
            return kind.name
        self._known.add(kind.name)
        return self._named(kind)

    def _primitive(self, kind: AvroType) -> Any:
        return kind.kind

    def _container(self, kind: AvroType) -> dict[str, Any]:
        return {"type": kind.kind, _CONTAINED[kind.kind]: self.type(kind.branches[0])}

    def _named(self, kind: AvroType) -> dict[str, Any]:
        return {"name": kind.name, "type": kind.kind, **_OWN[kind.kind](self, kind)}

    def own_fields(self, kind: AvroType) -> dict[str, Any]:
        return {"fields": [self._field(each) for each in kind.fields]}

    def _field(self, each: AvroField) -> dict[str, Any]:
        return {"name": each.name, "type": self.type(each.type)}


class _Normal(_Canonical):
    """As the canonical form, with all that it leaves out."""

    def _primitive(self, kind: AvroType) -> Any:
        return {"type": kind.kind, **_sorted(kind.properties)} if kind.properties else kind.kind

    def _container(self, kind: AvroType) -> dict[str, Any]:
        return {**super()._container(kind), **_sorted(kind.properties)}

    def _named(self, kind: AvroType) -> dict[str, Any]:
        more = {"aliases": sorted(kind.aliases) or None, "default": kind.default, "doc": kind.doc}
        given = {key: value for key, value in more.items() if value is not None}
        return {**super()._named(kind), **given, **_sorted(kind.properties)}

    def _field(self, each: AvroField) -> dict[str, Any]:
        written = super()._field(each)
        written |= {"aliases": sorted(each.aliases)} if each.aliases else {}
        written |= {} if each.default is ABSENT else {"default": _sorted(each.default)}
        written |= {} if each.doc is None else {"doc": each.doc}
        written |= {} if each.order == "ascending" else {"order": each.order}
        return {**written, **_sorted(each.properties)}


_OWN: Final[dict[str, Callable[[_Canonical, AvroType], dict[str, Any]]]] = {
    "record": lambda form, kind: form.own_fields(kind),
    "enum": lambda form, kind: {"symbols": list(kind.symbols)},
    "fixed": lambda form, kind: {"size": kind.size},
}


def _sorted(value: Any) -> Any:
    """JSON with sorted keys, at every depth."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _short(kind: AvroType, space: str) -> str:
    """How a type is called where `space` is the namespace; a name without one is never called by a word of the
    language.
    """
    return kind.short_name if kind.namespace == space and kind.short_name not in PRIMITIVES else kind.name


def _relative(name: str, space: str) -> str:
    own, _, short = name.rpartition(".")
    return short if own == space and short not in PRIMITIVES else name
