"""The default of a field, from JSON to Avro's bytes: a program reads them like what was written.

Read next: `schemas.columns.avro.avro_resolution`.
"""

from __future__ import annotations

import struct
from typing import Any

from headrace.schemas.avro_types import ABSENT, AvroType
from headrace.schemas.parsed import InvalidSchemaError

__all__ = ["default_bytes", "number_bytes"]


def number_bytes(value: int) -> bytes:
    """An int or long as Avro has it: zigzag, seven bits a byte, the least first.

    Args:
        value: of 64 bits.
    """
    left, made = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*made, left))


def default_bytes(avro: AvroType, value: Any) -> bytes:
    """The bytes of a default.

    Args:
        avro: type of the field.
        value: the default, as JSON has it.

    Raises:
        InvalidSchemaError: the default does not fit its type, or nests without an end.
    """
    try:
        return _bytes_of(avro, value)
    except (KeyError, TypeError, ValueError, struct.error, OverflowError, AttributeError, RecursionError):
        raise InvalidSchemaError(f"the default {value!r:.100} does not fit {avro.name or avro.kind}") from None


def _bytes_of(avro: AvroType, value: Any) -> bytes:
    kind = avro.kind
    if kind in ("int", "long"):
        return number_bytes(value)
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", value)
    if kind == "string":
        return _sized(value.encode())
    if kind in ("bytes", "fixed"):  # one character for each byte
        raw: bytes = value.encode("latin-1")
        return _sized(raw) if kind == "bytes" else raw
    if kind == "enum":
        return number_bytes(avro.symbols.index(value))
    if kind == "boolean":
        return b"\1" if value else b"\0"
    return b"" if kind == "null" else _nested_bytes(avro, value)


def _nested_bytes(avro: AvroType, value: Any) -> bytes:
    if avro.kind == "union":
        return _union_bytes(avro, value)
    if avro.kind == "record":
        given = ((each.type, value.get(each.name, each.default)) for each in avro.fields)
        return b"".join(_bytes_of(of, _there(each)) for of, each in given)
    if not value:
        return b"\0"
    if avro.kind == "array":
        items = b"".join(_bytes_of(avro.branches[0], each) for each in value)
    else:
        items = b"".join(_sized(key.encode()) + _bytes_of(avro.branches[0], each) for key, each in value.items())
    return number_bytes(len(value)) + items + b"\0"


def _union_bytes(avro: AvroType, value: Any) -> bytes:
    """Of the first branch that takes the value: the first of all, where schemas keep to the rule before 1.12."""
    for index, branch in enumerate(avro.branches):
        if _may_be(branch, value):
            try:
                return number_bytes(index) + _bytes_of(branch, value)
            except (KeyError, TypeError, ValueError, struct.error, OverflowError, AttributeError):
                continue
    raise ValueError


def _may_be(avro: AvroType, value: Any) -> bool:
    if value is None or avro.kind == "null":
        return value is None and avro.kind == "null"
    if isinstance(value, bool):
        return avro.kind == "boolean"
    if isinstance(value, int):
        return avro.kind in ("int", "long", "float", "double") and (avro.kind != "int" or -(1 << 31) <= value < 1 << 31)
    if isinstance(value, float):
        return avro.kind in ("float", "double")
    if isinstance(value, str):
        return avro.kind in ("string", "bytes", "fixed", "enum")
    return avro.kind == "array" if isinstance(value, list) else avro.kind in ("map", "record")


def _sized(raw: bytes) -> bytes:
    return number_bytes(len(raw)) + raw


def _there(value: Any) -> Any:
    if value is ABSENT:
        raise ValueError
    return value
