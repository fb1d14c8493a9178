"""For a fault that answers with an error: the reply to any request in which every part carries one error code.

The reply has the request's shape: for each topic, partition, group or id that was asked about there is a part of the
reply, which is found by the name of its key. What a part says beside its key and its code is what a broker says that
knows nothing. So no request needs code of its own here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.wire.layout import UNSET, FieldColumn, columns
from headrace.wire.messages.consumer.fetch import FetchResponse
from headrace.wire.schema import Request, Response

__all__ = ["error_response"]

_CODES = ("error_code", "partition_error_code")
_KEYS = ("name", "topic", "topic_id", "index", "partition", "partition_index", "partition_id", "group_id", "member_id",
         "group_instance_id", "key", "transactional_id", "producer_id", "resource_type", "resource_name")
"""Fields that say which part of a request is answered."""
_ASKED_AS = {"partition_index": "partition"}
"""Keys that some request calls otherwise."""
_UNKNOWN_NUMBERS = ("base_offset", "high_watermark", "node_id", "port", "producer_id", "producer_epoch")
"""What is -1 where there is none."""


def error_response(request: Request, code: int) -> Response:
    """The reply to `request` that says `code` in every place that can."""
    reply: Response = _part(request.response_type, request, code, ("member_id",))
    if isinstance(reply, FetchResponse):
        reply.error_code = 0  # which is the session's
    return reply


def _part(kind: type[Any], asked: Any, code: int, keys: Iterable[str] = _KEYS) -> Any:
    """One structure of the reply, for the structure, the name or the number that the request has in its place."""
    values = {column.name: _value(column, asked, code, keys) for column in columns(kind)}
    return kind(**{name: value for name, value in values.items() if value is not UNSET})


def _value(column: FieldColumn, asked: Any, code: int, keys: Iterable[str]) -> Any:
    name = column.name
    if name in _CODES:
        return code
    if name in keys:
        return _key_of(asked, column)
    if name in _UNKNOWN_NUMBERS:
        return -1
    if column.nullable == column.versions and column.type.name != "Records":
        return None
    return _parts(column.type.struct, asked, code) if column.type.is_array else UNSET


def _key_of(asked: Any, column: FieldColumn) -> Any:
    """A key as the request has it; a part that is only a name or a number is its own key."""
    if not hasattr(asked, "fields"):
        return asked if isinstance(asked, str) == (column.type.name == "String") else UNSET
    name = column.name if column.name in asked.fields else _ASKED_AS.get(column.name, column.name)
    return getattr(asked, name, UNSET)


def _parts(kind: type[Any] | None, asked: Any, code: int) -> list[Any]:
    """A part of the reply for each that was asked about: for the first list in the request with such a key."""
    if kind is None or not _can_say(kind) or not hasattr(asked, "fields"):
        return []
    key = next((column for column in columns(kind) if column.name in _KEYS), None)
    for column in columns(type(asked)):
        if key is not None and column.type.is_array and _has_key(column, key) and getattr(asked, column.name):
            return [_part(kind, each, code) for each in getattr(asked, column.name)]
    return []


def _has_key(column: FieldColumn, key: FieldColumn) -> bool:
    kind = column.type.struct
    if kind is None:
        return column.type.name == key.type.name
    return key.name in kind.fields or _ASKED_AS.get(key.name) in kind.fields


def _can_say(kind: type[Any]) -> bool:
    """Whether a structure, or one in it, has a place for an error code."""
    return any(column.name in _CODES or (column.type.struct is not None and _can_say(column.type.struct))
               for column in columns(kind))
