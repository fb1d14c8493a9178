"""Whether what is valid by one JSON Schema is valid by another: the rules of Confluent's registry.

They are rules of thumb for open and closed content models, not a proof: an open model may hold any property already, so
a property can be added only to a closed one. The types of incompatibilities are Confluent's. Only those are found that
make schemas incompatible.

Read next: `schemas.pairwise`, which runs the checks; `schemas.json_nodes` for the parts of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from headrace.schemas.json_nodes import JsonDocuments, JsonNode
from headrace.schemas.pairwise import Check, Found, Place, checked
from headrace.schemas.parsed import Incompatibility, compact

__all__ = ["incompatible_schemas"]

_SUMS: Final = ("allOf", "anyOf", "oneOf")
_COUNTED: Final = {
    "string": (("maxLength", "MAX_LENGTH", False), ("minLength", "MIN_LENGTH", True)),
    "object": (("maxProperties", "MAX_PROPERTIES", False), ("minProperties", "MIN_PROPERTIES", True)),
    "array": (("maxItems", "MAX_ITEMS", False), ("minItems", "MIN_ITEMS", True),
              ("maxContains", "MAX_CONTAINS", False), ("minContains", "MIN_CONTAINS", True)),
    "number": (("maximum", "MAXIMUM", False), ("minimum", "MINIMUM", True),
               ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", False), ("exclusiveMinimum", "EXCLUSIVE_MINIMUM", True)),
}
"""Bounds of each type: the keyword, its name in errors, and whether it is a lower one."""
_ABSENT: Final[Any] = object()
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_OPEN_ENDED = re.compile(r"[*+]|\{\d*,\}")
_MAX_OPEN_ENDED, _MAX_PATTERN, _MAX_NAME = 3, 200, 200


def incompatible_schemas(written: tuple[Any, JsonDocuments], reader: tuple[Any, JsonDocuments]
                         ) -> list[Incompatibility]:
    """Why what was valid by one schema may not be valid by another; empty when it is.

    Args:
        written: the old schema, and where its references lead.
        reader: the new one.

    Raises:
        InvalidSchemaError: they are too large to compare.
    """
    return checked(_Comparison(written[1], reader[1]).check, written[0], reader[0])


class _Comparison:
    """Compares the old schema of a pair with the new one."""

    def __init__(self, old: JsonDocuments, new: JsonDocuments) -> None:
        self._old = old
        self._new = new

    def check(self, old_schema: Any, new_schema: Any, place: Place) -> Check:
        old, new = self._node(old_schema), self._node(new_schema)
        if (yield from self._has_branch(old, new, place)):
            return {}
        if old.kind != new.kind and not (old.kind in _SUMS and new.kind in _SUMS):
            return {} if old.kind == "false" or new.kind == "empty" else _found("TYPE_CHANGED", place)
        said = _bounds(old, new, place)
        if new.kind in _SHALLOW:
            return said | _SHALLOW[new.kind](old, new, place)
        return said | (yield from _DEEP[new.kind](self, old, new, place)) if new.kind in _DEEP else said

    def _node(self, schema: Any) -> JsonNode:
        if isinstance(schema, JsonNode):
            return schema
        return (self._new if self._new.knows(schema) else self._old).node(schema)

    def _has_branch(self, old: JsonNode, new: JsonNode, place: Place) -> Generator[Any, Found, bool]:
        """Whether one branch of a combined schema fits, where the other schema is not combined."""
        if old.kind not in _SUMS and new.kind in _SUMS and (len(new.parts) == 1 or new.kind != "allOf"):
            for part in new.parts:
                if not (yield old, part, place):
                    return True
        is_single = old.kind in _SUMS and new.kind not in _SUMS and len(old.parts) == 1
        return is_single and not (yield old.parts[0], new, place)

    def _of_not(self, old: JsonNode, new: JsonNode, place: Place) -> Check:
        """What must not match may only become less, which is the reverse of everything else."""
        narrower = yield new.parts[0], old.parts[0], (*place, "not")
        return _found("NOT_TYPE_EXTENDED", (*place, "not")) if narrower else {}

    def _of_sums(self, old: JsonNode, new: JsonNode, place: Place) -> Check:
        if not _criterion_fits(old, new):
            return _found("COMBINED_TYPE_CHANGED", place)
        olds, news = _distinct(old.parts), _distinct(new.parts)
        found: Found = {}
        if new.kind == "allOf" and len(olds) < len(news):
            found |= _found("PRODUCT_TYPE_EXTENDED", place)
        elif new.kind != "allOf" and len(olds) > len(news):
            found |= _found("SUM_TYPE_NARROWED", place)
        edges: list[list[int]] = []
        for index, one in enumerate(olds):
            here = (*place, old.kind, str(index))
            edges.append([])
            for number, other in enumerate(news):
                if not (yield one, other, here):
                    edges[-1].append(number)
        if _matched(edges, len(news)) < min(len(olds), len(news)):
            found |= _found("COMBINED_TYPE_SUBSCHEMAS_CHANGED", place)
        return found

    def _of_object(self, old: JsonNode, new: JsonNode, place: Place) -> Check:
        found = _required(old, new, place)
        before, after = (node.keywords.get("properties", {}) for node in (old, new))
        for name in dict.fromkeys((*before, *after)):
            here = (*place, "properties", name)
            if name not in after:
                found |= yield from self._property_removed(before[name], new, name, here)
            elif name not in before:
                found |= yield from self._property_added(old, new, name, here)
            else:
                found |= yield before[name], after[name], here
        found |= yield from self._dependencies(old, new, (*place, "dependencies"))
        return found | (yield from self._additional(old, new, "additionalProperties", place))

    def _property_removed(self, schema: Any, new: JsonNode, name: str, place: Place) -> Check:
        if _is_open(new):
            return {}
        cover = _cover(new, name)
        if cover is _ABSENT:
            is_false = self._node(schema).kind == "false"
            return {} if is_false else _found("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place)
        found = yield schema, cover, place
        return found and {**found, **_found("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)}

    def _property_added(self, old: JsonNode, new: JsonNode, name: str, place: Place) -> Check:
        schema = new.keywords["properties"][name]
        if _is_open(old):
            is_empty = self._node(schema).kind == "empty"
            return {} if is_empty else _found("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place)
        found: Found = {}
        cover = _cover(old, name)
        if cover is not _ABSENT:
            found |= yield cover, schema, place
            if found:
                found |= _found("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)
        if name in _names_required(new) and not _has_default(schema):
            found |= _found("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", place)
        return found

    def _dependencies(self, old: JsonNode, new: JsonNode, place: Place) -> Check:
        before, after = _dependencies_of(old), _dependencies_of(new)
        found: Found = {}
        for name, wanted in after.items():
            here, had = (*place, name), before.get(name)
            if isinstance(wanted, list):
                if not isinstance(had, list):
                    found |= _found("DEPENDENCY_ARRAY_ADDED", here)
                elif not set(wanted) <= set(had):
                    extended = set(had) <= set(wanted)
                    found |= _found("DEPENDENCY_ARRAY_EXTENDED" if extended else "DEPENDENCY_ARRAY_CHANGED", here)
            elif had is None or isinstance(had, list):
                found |= _found("DEPENDENCY_SCHEMA_ADDED", here)
            else:
                found |= yield had, wanted, here
        return found

    def _additional(self, old: JsonNode, new: JsonNode, key: str, place: Place) -> Check:
        """`additionalProperties`, `additionalItems`: what else there may be."""
        here, name = (*place, key), "ADDITIONAL_PROPERTIES" if key == "additionalProperties" else "ADDITIONAL_ITEMS"
        before, after = (_more(node, key) for node in (old, new))
        if after is False:
            return {} if before is False else _found(f"{name}_REMOVED", here)
        if before is False or not isinstance(after, dict):
            return {}
        if not isinstance(before, dict):
            return _found(f"{name}_NARROWED", here)
        return (yield before, after, here)

    def _of_array(self, old: JsonNode, new: JsonNode, place: Place) -> Check:
        found: Found = {}
        if new.keywords.get("uniqueItems") and not old.keywords.get("uniqueItems"):
            found |= _found("UNIQUE_ITEMS_ADDED", (*place, "uniqueItems"))
        before, after = _every_item(old), _every_item(new)
        if after is not _ABSENT:
            here = (*place, "items")
            found |= _found("SCHEMA_ADDED", here) if before is _ABSENT else (yield before, after, here)
        olds, news = _tuple(old), _tuple(new)
        for index in range(max(len(olds), len(news))):
            here = (*place, "items", str(index))
            if index >= len(news):
                found |= yield from self._item_removed(olds[index], new, here)
            elif index >= len(olds):
                found |= yield from self._item_added(old, news[index], here)
            else:
                found |= yield olds[index], news[index], here
        return found | (yield from self._additional(old, new, "additionalItems", place))

    def _item_removed(self, schema: Any, new: JsonNode, place: Place) -> Check:
        more = _more(new, "additionalItems")
        if isinstance(more, dict):
            found = yield schema, more, place
            return found and {**found, **_found("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)}
        is_fine = more is not False or self._node(schema).kind == "false"
        return {} if is_fine else _found("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", place)

    def _item_added(self, old: JsonNode, schema: Any, place: Place) -> Check:
        more = _more(old, "additionalItems")
        if isinstance(more, dict):
            found = yield more, schema, place
            return found and {**found, **_found("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)}
        is_fine = more is False or self._node(schema).kind == "empty"
        return {} if is_fine else _found("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", place)


def _bounds(old: JsonNode, new: JsonNode, place: Place) -> Found:
    """Upper bounds may only rise or go, lower ones only fall or go."""
    found: Found = {}
    for key, name, is_lower in _COUNTED.get(new.kind, ()):
        before, after = (None if isinstance(node.keywords.get(key), bool) else node.keywords.get(key)
                         for node in (old, new))
        if after is not None and before is None:
            found |= _found(f"{name}_ADDED", (*place, key))
        elif after is not None and after != before and (after > before) is is_lower:
            found |= _found(f"{name}_{'INCREASED' if is_lower else 'DECREASED'}", (*place, key))
    return found


def _required(old: JsonNode, new: JsonNode, place: Place) -> Found:
    found: Found = {}
    before, after = (node.keywords.get("properties", {}) for node in (old, new))
    for name in _names_required(new):
        if name in before and name in after and name not in _names_required(old) and not _has_default(after[name]):
            found |= _found("REQUIRED_ATTRIBUTE_ADDED", (*place, "required", name))
    return found


def _names_required(node: JsonNode) -> list[str]:
    names = node.keywords.get("required", [])
    return names if isinstance(names, list) else []


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _is_open(node: JsonNode) -> bool:
    return not node.keywords.get("patternProperties") and _more(node, "additionalProperties") is True


def _more(node: JsonNode, key: str) -> Any:
    """What else may be there: True, False or a schema that says something."""
    if key == "additionalItems":
        default = node.keywords.get("unevaluatedItems", True)
        key = "items" if "prefixItems" in node.keywords else key
        return node.keywords.get(key, default)
    return node.keywords.get(key, True)


def _cover(node: JsonNode, name: str) -> Any:
    """The schema of a property that is not named: of a pattern, or of all others; `_ABSENT` where it is not allowed."""
    for pattern, schema in node.keywords.get("patternProperties", {}).items():
        if _matches(pattern, name):
            return schema
    more = _more(node, "additionalProperties")
    return more if isinstance(more, dict) else _ABSENT


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern is found in a name. Patterns whose search could take long are taken for not matching."""
    if len(pattern) > _MAX_PATTERN or len(name) > _MAX_NAME or _REPEATED_GROUP.search(pattern) or len(
            _OPEN_ENDED.findall(pattern)) > _MAX_OPEN_ENDED:
        return False
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _dependencies_of(node: JsonNode) -> Mapping[str, Any]:
    return {**node.keywords.get("dependencies", {}), **node.keywords.get("dependentRequired", {}),
            **node.keywords.get("dependentSchemas", {})}


def _every_item(node: JsonNode) -> Any:
    """The schema of all items; `_ABSENT` where there is none, or one for each place."""
    items = node.keywords.get("items", _ABSENT)
    return _ABSENT if isinstance(items, list) or "prefixItems" in node.keywords else items


def _tuple(node: JsonNode) -> list[Any]:
    items = node.keywords.get("prefixItems", node.keywords.get("items"))
    return items if isinstance(items, list) else []


def _criterion_fits(old: JsonNode, new: JsonNode) -> bool:
    if old.kind == new.kind or new.kind == "anyOf":
        return True
    return len(old.parts) == 1 and (new.kind == "oneOf" or len(new.parts) == 1)


def _distinct(parts: tuple[Any, ...]) -> list[Any]:
    """The schemas of a combined one, each once."""
    return list({(compact(part) if not isinstance(part, JsonNode) else f"{part.kind} {id(part)}"): part
                 for part in parts}.values())


def _matched(edges: list[list[int]], count: int) -> int:
    """How many of the left can each have a partner of their own among `count` on the right, along the edges."""
    owner: list[int] = [-1] * count
    return sum(_augment(left, edges, owner) for left in range(len(edges)))


def _augment(left: int, edges: list[list[int]], owner: list[int]) -> bool:
    """Find a partner for one more, by a breadth-first search of those who can move on."""
    came_from: dict[int, int] = {}
    waiting = [left]
    for one in waiting:
        for right in edges[one]:
            if right not in came_from:
                came_from[right] = one
                if owner[right] == -1:
                    while right != -1:
                        one = came_from[right]
                        previous = next((each for each, held in enumerate(owner) if held == one), -1)
                        owner[right] = one
                        right = previous if one != left else -1
                    return True
                waiting.append(owner[right])
    return False


def _found(kind: str, place: Place) -> Found:
    location = "#" + "".join(f"/{each.replace('~', '~0').replace('/', '~1')}" for each in place)
    words = kind.replace("_", " ").lower()
    return {Incompatibility(kind, location, location, f"{words} (path '{location}')"): None}


def _of_string(old: JsonNode, new: JsonNode, place: Place) -> Found:
    before, after = old.keywords.get("pattern"), new.keywords.get("pattern")
    if after is None or before == after:
        return {}
    return _found("PATTERN_ADDED" if before is None else "PATTERN_CHANGED", (*place, "pattern"))


def _of_number(old: JsonNode, new: JsonNode, place: Place) -> Found:
    before, after = old.keywords.get("multipleOf"), new.keywords.get("multipleOf")
    found: Found = {}
    if after is not None and before != after:
        if before is None:
            found |= _found("MULTIPLE_OF_ADDED", (*place, "multipleOf"))
        elif before % after:
            kind = "MULTIPLE_OF_CHANGED" if after % before else "MULTIPLE_OF_EXPANDED"
            found |= _found(kind, (*place, "multipleOf"))
    if new.keywords.get("type") == "integer" != old.keywords.get("type"):
        found |= _found("TYPE_NARROWED", place)
    return found


def _of_enum(old: JsonNode, new: JsonNode, place: Place) -> Found:
    before, after = ({compact(each) for each in node.keywords["enum"]} for node in (old, new))
    if before <= after:
        return {}
    return _found("ENUM_ARRAY_NARROWED" if after < before else "ENUM_ARRAY_CHANGED", (*place, "enum"))


def _of_const(old: JsonNode, new: JsonNode, place: Place) -> Found:
    same = compact(old.keywords["const"]) == compact(new.keywords["const"])
    return {} if same else _found("CONST_CHANGED", (*place, "const"))


_SHALLOW: Final[dict[str, Callable[[JsonNode, JsonNode, Place], Found]]] = {
    "string": _of_string, "number": _of_number, "enum": _of_enum, "const": _of_const,
}
"""Rules that look at the keywords of one schema only."""
_DEEP: Final[dict[str, Callable[[_Comparison, JsonNode, JsonNode, Place], Check]]] = {
    "object": _Comparison._of_object, "array": _Comparison._of_array, "not": _Comparison._of_not,
    **dict.fromkeys(_SUMS, _Comparison._of_sums),
}
"""Rules that depend on the schemas within."""
