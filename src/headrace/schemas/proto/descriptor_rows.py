"""Numbers of fields in `google/protobuf/descriptor.proto`, and the wire format that descriptors are in.

Read next: `schemas.proto.descriptor_reader`, `schemas.proto.descriptor_writer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.schemas.parsed import InvalidSchemaError

__all__ = ["ENUM_TYPE", "FEATURES", "FEATURES_AT", "LABELS", "MESSAGE_TYPE", "OPTIONS", "OptionRows", "Wire",
           "bytes_field", "number_field", "wire_fields"]

LABELS: Final = ("", "optional", "required", "repeated")
MESSAGE_TYPE, ENUM_TYPE = 11, 14
_FLAG, _TEXT = "flag", "text"
_Kind = str | Mapping[str, int]
OptionRows = Mapping[str, tuple[int, _Kind]]
"""Options by name: number, and kind of value."""

OPTIONS: Final[dict[str, OptionRows]] = {
    "file": {
        "java_package": (1, _TEXT), "java_outer_classname": (8, _TEXT),
        "optimize_for": (9, {"SPEED": 1, "CODE_SIZE": 2, "LITE_RUNTIME": 3}), "java_multiple_files": (10, _FLAG),
        "go_package": (11, _TEXT), "cc_generic_services": (16, _FLAG), "java_generic_services": (17, _FLAG),
        "py_generic_services": (18, _FLAG), "deprecated": (23, _FLAG), "java_string_check_utf8": (27, _FLAG),
        "cc_enable_arenas": (31, _FLAG), "objc_class_prefix": (36, _TEXT), "csharp_namespace": (37, _TEXT),
        "swift_prefix": (39, _TEXT), "php_class_prefix": (40, _TEXT), "php_namespace": (41, _TEXT),
        "php_metadata_namespace": (44, _TEXT), "ruby_package": (45, _TEXT),
    },
    "message": {"message_set_wire_format": (1, _FLAG), "no_standard_descriptor_accessor": (2, _FLAG),
                "deprecated": (3, _FLAG)},
    "field": {"ctype": (1, {"STRING": 0, "CORD": 1, "STRING_PIECE": 2}), "packed": (2, _FLAG), "deprecated": (3, _FLAG),
              "lazy": (5, _FLAG), "jstype": (6, {"JS_NORMAL": 0, "JS_STRING": 1, "JS_NUMBER": 2}), "weak": (10, _FLAG)},
    "enum": {"allow_alias": (2, _FLAG), "deprecated": (3, _FLAG)},
    "value": {"deprecated": (1, _FLAG)},
    "service": {"deprecated": (33, _FLAG)},
    "method": {"deprecated": (33, _FLAG),
               "idempotency_level": (34, {"IDEMPOTENCY_UNKNOWN": 0, "NO_SIDE_EFFECTS": 1, "IDEMPOTENT": 2})},
    "oneof": {},
}
"""Options that every compiler knows. Others are extensions, which descriptors have only after a compiler has seen their
declarations: they are kept in text and left out of descriptors."""

FEATURES: Final[OptionRows] = {
    "features.field_presence": (1, {"EXPLICIT": 1, "IMPLICIT": 2, "LEGACY_REQUIRED": 3}),
    "features.enum_type": (2, {"OPEN": 1, "CLOSED": 2}),
    "features.repeated_field_encoding": (3, {"PACKED": 1, "EXPANDED": 2}),
    "features.utf8_validation": (4, {"VERIFY": 2, "NONE": 3}),
    "features.message_encoding": (5, {"LENGTH_PREFIXED": 1, "DELIMITED": 2}),
    "features.json_format": (6, {"ALLOW": 1, "LEGACY_BEST_EFFORT": 2}),
    "features.enforce_naming_style": (7, {"STYLE2024": 1, "STYLE_LEGACY": 2}),
    "features.default_symbol_visibility": (8, {"EXPORT_ALL": 1, "EXPORT_TOP_LEVEL": 2, "LOCAL_ALL": 3, "STRICT": 4}),
}
"""What editions let a file choose, a message of its own among the options: how fields are encoded hangs on it."""
FEATURES_AT: Final = {"file": 50, "message": 12, "field": 21, "oneof": 1, "enum": 7, "value": 2, "service": 34,
                      "method": 35}
"""The number of that message, by what has the options."""


class Wire:
    """The fields of one message, by number."""

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = {}
        for number, value in wire_fields(data):
            self._found.setdefault(number, []).append(value)

    def texts(self, number: int) -> list[str]:
        """All values of a repeated field of text."""
        try:
            return [each.decode() for each in self.parts(number)]
        except UnicodeDecodeError:
            raise InvalidSchemaError("the descriptor has a text that is not UTF-8") from None

    def text(self, number: int) -> str:
        """A field of text; empty where it is not there."""
        return (self.texts(number) or [""])[-1]

    def parts(self, number: int) -> list[bytes]:
        """All values of a repeated field of messages."""
        return [each for each in self._found.get(number, []) if isinstance(each, bytes)]

    def numbers(self, number: int) -> list[int]:
        """All values of a repeated field of numbers, packed or not."""
        found: list[int] = []
        for each in self._found.get(number, []):
            if isinstance(each, int):
                found.append(each)
            else:
                at = 0
                while at < len(each):
                    value, at = _varint(each, at)
                    found.append(value)
        return found

    def number(self, number: int, default: int = 0) -> int:
        """A field that is a number; as 32 bits with a sign."""
        value = (self.numbers(number) or [default])[-1] & 0xFFFFFFFF
        return value - (1 << 32) if value >= 1 << 31 else value

    def has(self, number: int) -> bool:
        """Whether a field is there."""
        return number in self._found


def wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message.

    Raises:
        InvalidSchemaError: the bytes are no message.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise InvalidSchemaError("the bytes are no descriptor")
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise InvalidSchemaError("the bytes are no descriptor")
        if size > len(data) - at:
            raise InvalidSchemaError("the bytes are no descriptor: a field passes their end")
        yield number, data[at : at + size]
        at += size


def number_field(number: int, value: int) -> bytes:
    """A field that is a number, or an enum, or a flag."""
    return _packed(number << 3) + _packed(value & 0xFFFFFFFFFFFFFFFF)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """A field that is text or a message."""
    data = value.encode() if isinstance(value, str) else value
    return _packed(number << 3 | 2) + _packed(len(data)) + data


def _packed(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise InvalidSchemaError("the bytes are no descriptor: a number passes their end")
