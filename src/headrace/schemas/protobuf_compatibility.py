"""Whether one Protobuf schema reads what was written with another: the rules of Confluent's registry.

Fields are known by their numbers; their names do not matter. Types whose encodings are the same can be exchanged. The
types of incompatibilities are Confluent's. Read next: `schemas.pairwise`, which runs the checks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.schemas.pairwise import Check, Found, Place, checked
from headrace.schemas.parsed import Incompatibility
from headrace.schemas.proto.proto_nodes import SCALARS, ProtoField, ProtoMessage, ProtoNames, by_oneof

__all__ = ["incompatible_files"]

_ENCODINGS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "general number"),
    **dict.fromkeys(("sint32", "sint64"), "signed number"), **dict.fromkeys(("string", "bytes"), "string or bytes"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"), **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float", "double": "double",
}
"""Types that are encoded in the same way."""
_MESSAGE, _MAP = "message", "map"


class _Scoped(NamedTuple):
    """A type as a field names it, and where the field stands."""

    type: str
    key_type: str
    scope: str


def incompatible_files(old: ProtoNames, new: ProtoNames) -> list[Incompatibility]:
    """Why what was written with one file cannot be read with another; empty when it can.

    Raises:
        InvalidSchemaError: they are too large to compare.
    """
    return checked(_Comparison(old, new).check, old.own, new.own)


class _Comparison:
    """Compares the old file of a pair with the new one, and their messages."""

    def __init__(self, old: ProtoNames, new: ProtoNames) -> None:
        self._old = old
        self._new = new
        self._full = {id(kind): full for names in (old, new) for full, kind in names.types.items()}

    def check(self, old: object, new: object, place: Place) -> Check:
        """Two files, or two messages."""
        if isinstance(old, ProtoMessage) and isinstance(new, ProtoMessage):
            return (yield from self._messages(old, new, place))
        before, after = self._old.own, self._new.own
        found = {} if before.package == after.package else _found("PACKAGE_CHANGED", place)
        return found | (yield from self._types(before.messages, after.messages, place))

    def _types(self, old: list[ProtoMessage], new: list[ProtoMessage], place: Place) -> Check:
        found: Found = {}
        after = {each.name: each for each in new}
        for each in old:
            here = (*place, each.name)
            found |= (yield each, after[each.name], here) if each.name in after else _found("MESSAGE_REMOVED", here)
        return found

    def _messages(self, old: ProtoMessage, new: ProtoMessage, place: Place) -> Check:
        found = _oneofs(old, new, place)
        before, after = ({each.number: each for each in message.fields} for message in (old, new))
        for number in sorted(before.keys() | after.keys()):
            one, other, here = before.get(number), after.get(number), (*place, str(number))
            if one is not None and other is not None:
                found |= yield from self._fields(one, other, self._full[id(old)], self._full[id(new)], here)
            elif one is not None and (one.label == "required" or one.oneof in new.oneofs):
                kind = "REQUIRED_FIELD_REMOVED" if one.label == "required" else "ONEOF_FIELD_REMOVED"
                found |= _found(kind, here)
            elif other is not None and other.label == "required":
                found |= _found("REQUIRED_FIELD_ADDED", here)
        return found | (yield from self._types(old.messages, new.messages, place))

    def _fields(self, old: ProtoField, new: ProtoField, old_scope: str, new_scope: str, place: Place) -> Check:
        before, after = (_Scoped(each.type, each.key_type, scope)
                         for each, scope in ((old, old_scope), (new, new_scope)))
        found = yield from self._kinds(before, after, place)
        is_repeated = (old.label == "repeated", new.label == "repeated")
        if not found and is_repeated[0] != is_repeated[1] and self._encoding(self._old, before) not in (
                _MESSAGE, _MAP, "string or bytes"):
            found |= _found("FIELD_NUMERIC_LABEL_CHANGED", place)
        return found

    def _kinds(self, old: _Scoped, new: _Scoped, place: Place) -> Check:
        before, after = self._encoding(self._old, old), self._encoding(self._new, new)
        if before == after == _MAP:
            found = yield from self._kinds(_Scoped(old.key_type, "", ""), _Scoped(new.key_type, "", ""), place)
            return found | (yield from self._kinds(old._replace(key_type=""), new._replace(key_type=""), place))
        if before == after == _MESSAGE:
            return (yield from self._named(old, new, place))
        if before == after:
            return {}
        is_kind = _MESSAGE in (before, after) or _MAP in (before, after)
        return _found("FIELD_KIND_CHANGED" if is_kind else "FIELD_SCALAR_KIND_CHANGED", place)

    def _named(self, old: _Scoped, new: _Scoped, place: Place) -> Check:
        """Messages must have the same name within their packages, and go together themselves."""
        before, after = self._old.resolve(old.type, old.scope), self._new.resolve(new.type, new.scope)
        if self._old.local(before) != self._new.local(after):
            return _found("FIELD_NAMED_TYPE_CHANGED", place)
        one, other = self._old.types.get(before), self._new.types.get(after)
        found: Found = {}
        if one is not None and other is not None:
            found = yield one, other, (before,)
        return {**found, **_found("FIELD_NAMED_TYPE_CHANGED", place)} if found else {}

    def _encoding(self, names: ProtoNames, given: _Scoped) -> str:
        if given.key_type:
            return _MAP
        if given.type in SCALARS:
            return _ENCODINGS[given.type]
        is_enum = names.kind(names.resolve(given.type, given.scope)) == "enum"
        return _ENCODINGS["enum"] if is_enum else _MESSAGE


def _oneofs(old: ProtoMessage, new: ProtoMessage, place: Place) -> Found:
    """A oneof may take in one field that was outside of all, and only if it is new itself."""
    found: Found = {}
    before = {each.number: each.oneof for each in old.fields}
    fields = by_oneof(new.fields)
    for name in new.oneofs:
        members = [before[each.number] for each in fields.get(name, ()) if each.number in before]
        moved = members.count("")
        if moved > 1:
            found |= _found("MULTIPLE_FIELDS_MOVED_TO_ONEOF", (*place, name))
        elif moved and len(members) > 1:
            found |= _found("FIELD_MOVED_TO_EXISTING_ONEOF", (*place, name))
    return found


def _found(kind: str, place: Place) -> Found:
    location = "#/" + "/".join(place)
    words = kind.replace("_", " ").lower()
    return {Incompatibility(kind, location, location, f"{words} (path '{location}')"): None}
