"""What a JSON Schema says, one thing at a time, and where its references lead; drafts 4 to 2020-12.

A schema object may say several things at once; each is a part of one kind, and what has more than one part is the
`allOf` of them, as in the library that Confluent's registry uses. Read next: `schemas.json_compatibility`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from headrace.schemas.parsed import MAX_DEPTH, InvalidSchemaError, compact
from headrace.slotted import slotted

__all__ = ["JsonDocuments", "JsonNode"]

_TYPES: Final = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null",
                 "object": "object", "array": "array"}
_IMPLIED: Final = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "dependencies",
               "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames"),
    "array": ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "prefixItems"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that say of which type a schema speaks that does not name one."""
_SUMS: Final = ("allOf", "anyOf", "oneOf")
_MAX_REFERENCES: Final = 100
"""Most references from one to the next before there is a schema."""


@slotted(eq=False)
class JsonNode:
    """One thing that a schema says.

    Attributes:
        kind: `empty`, `false`, a type (`number` for integers too), `enum`, `const`, `not`, `conditional`, `allOf`,
            `anyOf` or `oneOf`.
        keywords: the schema object that it stands in; {} for `true` and `false`.
        parts: of `allOf`, `anyOf`, `oneOf`: the schemas, of `not`: the one.
        base: the address against which references in it are resolved.
    """

    kind: str
    keywords: Mapping[str, Any]
    parts: tuple[Any, ...] = ()
    base: str = ""


class JsonDocuments:
    """A schema, the schemas that it refers to, and what references in them lead to.

    Args:
        root: the schema.
        others: those that it refers to, by the names that it calls them.
    """

    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        self._named: dict[str, Any] = dict(others)
        self._bases: dict[int, str] = {}
        self._nodes: dict[int, JsonNode] = {}
        self._kept: list[Any] = []
        for name, each in others.items():
            self._collect(each, name, 0)
        self._named[""] = root
        self._collect(root, "", 0)

    def node(self, schema: Any) -> JsonNode:
        """What a schema says, references followed.

        Raises:
            InvalidSchemaError: a reference leads nowhere, or in a circle.
        """
        known = self._nodes.get(id(schema))
        if known is None:
            known = self._nodes[id(schema)] = _node(self.followed(schema), self._made)
        return known

    def followed(self, schema: Any) -> Any:
        """The schema that the reference of a schema leads to, from one to the next; without one it is the schema.

        Raises:
            InvalidSchemaError: a reference leads nowhere, or in a circle.
        """
        target = schema
        for _ in range(_MAX_REFERENCES):
            if not isinstance(target, dict) or not isinstance(target.get("$ref"), str):
                return target
            target = self.resolved(target["$ref"], self._bases.get(id(target), ""))
        raise InvalidSchemaError(f"the reference {schema['$ref']!r:.200} leads in a circle, or over more than "
                                 f"{_MAX_REFERENCES} others")

    def resolved(self, reference: str, base: str) -> Any:
        """The schema that a reference leads to.

        Raises:
            InvalidSchemaError: there is none.
        """
        address, fragment = urldefrag(reference)
        whole = urljoin(base, address) if address else base
        if fragment and f"{whole}#{fragment}" in self._named:
            return self._named[f"{whole}#{fragment}"]
        document = self._named.get(whole, self._named.get(address, self))
        if document is self or (fragment and not fragment.startswith("/")):
            raise InvalidSchemaError(f"the reference {reference!r:.200} leads to no schema that is known")
        return _pointed(document, fragment, reference)

    def follow(self) -> None:
        """Follow all references of the schema.

        Raises:
            InvalidSchemaError: one leads nowhere, or in a circle.
        """
        waiting = [self._named[""]]
        while waiting:
            schema = waiting.pop()
            if isinstance(schema, dict):
                if isinstance(schema.get("$ref"), str):
                    self.node(schema)
                waiting += _children(schema)

    def _made(self, schema: Any) -> Any:
        """Keep a schema that was made here: it is told from others by its identity."""
        self._kept.append(schema)
        self._bases[id(schema)] = ""
        return schema

    def knows(self, schema: Any) -> bool:
        """Whether a schema object is one of these; the same text elsewhere is another one."""
        return id(schema) in self._bases

    def _collect(self, schema: Any, base: str, depth: int) -> None:
        """Note the names of schemas within schemas, and check the forms of keywords."""
        if depth > MAX_DEPTH:
            raise InvalidSchemaError(f"schemas are nested more than {MAX_DEPTH} deep")
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise InvalidSchemaError(f"a schema is an object or a boolean, not {schema!r:.60}")
        own = schema.get("$id", schema.get("id"))
        if isinstance(own, str) and "$ref" not in schema:
            base = urljoin(base, own)
            self._named.setdefault(base.removesuffix("#"), schema)
        if isinstance(schema.get("$anchor"), str):
            self._named.setdefault(f"{base}#{schema['$anchor']}", schema)
        self._bases[id(schema)] = base
        for each in _children(schema):
            self._collect(each, base, depth + 1)


def _node(schema: Any, made: Callable[[Any], Any]) -> JsonNode:
    if isinstance(schema, bool):
        return JsonNode("empty" if schema else "false", {})
    parts = _said(schema, made)
    if not parts:
        return JsonNode("empty", schema)
    if len(parts) == 1:
        return parts[0]
    return JsonNode("allOf", schema, tuple(made(part) for part in parts))


def _said(schema: Mapping[str, Any], made: Callable[[Any], Any]) -> list[JsonNode]:
    """The things that a schema object says."""
    found = _typed(schema, made)
    if "enum" in schema:
        found.append(JsonNode("enum", schema))
    if "const" in schema:
        found.append(JsonNode("const", schema))
    if "not" in schema:
        found.append(JsonNode("not", schema, (schema["not"],)))
    found += [JsonNode(key, schema, tuple(schema[key])) for key in _SUMS if key in schema]
    if "if" in schema:
        found.append(JsonNode("conditional", schema))
    return found


def _typed(schema: Mapping[str, Any], made: Callable[[Any], Any]) -> list[JsonNode]:
    named = schema.get("type")
    if isinstance(named, list):
        rest = {key: schema[key] for key in schema if key not in ("enum", "const", "not", "if", *_SUMS)}
        return [JsonNode("anyOf", schema, tuple(made({**rest, "type": each}) for each in named))]
    kinds = [_TYPES[named]] if named is not None else [
        kind for kind, keywords in _IMPLIED.items() if any(each in schema for each in keywords)]
    return [JsonNode(kind, schema) for kind in kinds]


def _children(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas directly within a schema object.

    Raises:
        InvalidSchemaError: a keyword has a wrong form.
    """
    found: list[Any] = []
    for key, value in schema.items():
        check = _FORMS.get(key)
        if check is not None and not check(value):
            raise InvalidSchemaError(f"the keyword {key!r} cannot be {compact(value)[:60]}")
        if key in _HOLDS_ONE and not (key == "items" and isinstance(value, list)):
            found.append(value)
        elif key in _HOLDS_LIST:
            found += value
        elif key in _HOLDS_MAP:
            found += [each for each in value.values() if not isinstance(each, list)]
    return found


def _pointed(document: Any, fragment: str, reference: str) -> Any:
    found = document
    for part in fragment.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (LookupError, ValueError, TypeError):
            raise InvalidSchemaError(f"the reference {reference!r:.200} leads nowhere: there is no {key!r:.60}"
                                     ) from None
    if not isinstance(found, (dict, bool)):
        raise InvalidSchemaError(f"the reference {reference!r:.200} does not lead to a schema")
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) and value else [value]
    return all(isinstance(each, str) and each in _TYPES for each in names)


_HOLDS_ONE: Final = frozenset((
    "additionalProperties", "additionalItems", "items", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties"))
_HOLDS_LIST: Final = frozenset((*_SUMS, "prefixItems", "items"))
_HOLDS_MAP: Final = frozenset((
    "properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"))
_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "$ref": lambda value: isinstance(value, (str, dict)),
    "required": lambda value: isinstance(value, bool) or _is_names(value),
    "enum": lambda value: isinstance(value, list),
    "pattern": lambda value: isinstance(value, str),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
                     "maxContains"), _is_count),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), lambda value: isinstance(value, (bool, int, float))),
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys((*_SUMS, "prefixItems"), lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(_HOLDS_MAP, lambda value: isinstance(value, dict)),
}
