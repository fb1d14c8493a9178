"""What a Protobuf message type means for columns: fields with their kinds, defaults and types, resolved once.

The types are those of Spark's `from_protobuf`: enums are strings, `google.protobuf.Timestamp` is a timestamp and
`google.protobuf.Duration` an interval, unsigned numbers are signed ones of their width, wrappers are structs, a field
without presence is null when it is zero, and messages without fields are left out. A message that holds itself has no
columns and is refused. It must not know bytes. Read next: `schemas.columns.protobuf_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.schemas.columns.protobuf.protobuf_known import known_files
from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.proto_literals import real, unquoted, whole
from headrace.schemas.proto.proto_nodes import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoNames,
    ProtoOption,
)
from headrace.schemas.protobuf import ParsedProtobuf
from headrace.slotted import slotted

if TYPE_CHECKING:
    import pyarrow

__all__ = ["EnumPlan", "FieldPlan", "MessagePlan", "arrow_type", "message_at", "message_named", "place_of", "plan_of"]

_MAX_DEPTH: Final = 32
"""Messages within messages: each is a struct within a struct, and a call within a call."""
_MAX_COLUMNS: Final = 20_000
"""A type that is used in many places has columns in each; a few lines can say more of them than memory holds."""
_SPECIAL: Final = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
_UNPACKED: Final = ("string", "bytes", "message", "timestamp", "duration")


@slotted(frozen=True, eq=False)
class EnumPlan:
    """An enum.

    Attributes:
        name: without the package.
        is_closed: a number that it does not have is as good as absent (proto2); an open one keeps it (proto3).
        names: by number; of several names of a number the first.
        numbers: by name.
    """

    name: str
    is_closed: bool
    names: dict[int, str]
    numbers: dict[str, int]

    @property
    def unknown_prefix(self) -> str:
        """What is before the number in the name of a value that the enum does not have, as Java names it."""
        return f"UNKNOWN_ENUM_VALUE_{self.name}_"


@slotted(frozen=True, eq=False)
class FieldPlan:
    """A field.

    Attributes:
        kind: a scalar type's name, `enum`, `message`, `timestamp` or `duration`.
        shape: `one`, `many`, or `map`, whose `message` is that of the entries.
        is_implicit: it has no presence, so that zero and absent are the same.
        zero_is_null: without presence; zero is read as null, as Spark does.
        default: what is read where the field is absent; None for null, or for zero if `zero_is_null` is not set.
        oneof: its oneof, or empty.
    """

    name: str
    number: int
    kind: str
    shape: str = "one"
    is_required: bool = False
    is_implicit: bool = False
    zero_is_null: bool = False
    is_packed: bool = False
    default: Any = None
    oneof: str = ""
    message: MessagePlan | None = None
    enum: EnumPlan | None = None


@slotted(frozen=True, eq=False)
class MessagePlan:
    """A message type: its full name, and its fields in the order of their declaration."""

    name: str
    fields: tuple[FieldPlan, ...]


def plan_of(schema: ParsedProtobuf, message: str = "", *, emit_defaults: bool = False) -> MessagePlan:
    """The plan of a message type.

    Args:
        schema: the file, and those that it imports.
        message: its name, as for `message_named`.
        emit_defaults: zero of a field without presence is read as zero and not as null.

    Raises:
        InvalidSchemaError: there is no such type, or it has no columns: it holds itself, is empty, or is too large.
    """
    return _Planning(_with_known(schema.names), emit_defaults).root(message_named(schema, message))


def message_at(schema: ParsedProtobuf, indexes: Sequence[int]) -> str:
    """Full name of the message type at a place in its file, as records name it.

    Args:
        schema: the file.
        indexes: the place of the outermost type, and then of each one within.

    Raises:
        InvalidSchemaError: there is none.
    """
    own = schema.names.own
    names, types = [own.package] if own.package else [], own.messages
    for index in indexes:
        if not 0 <= index < len(types):
            raise InvalidSchemaError(f"message index {index} is out of range: there are {len(types)} message types")
        names.append(types[index].name)
        types = _nested(types[index])
    return ".".join(names)


def message_named(schema: ParsedProtobuf, name: str) -> str:
    """Full name of a message type.

    Args:
        schema: the file, and those that it imports.
        name: full, or as it is written in the file's package, or the end of one name, of the file's own before others;
            empty for the first of the file.

    Raises:
        InvalidSchemaError: there is no such type, or several have the name.
    """
    own, wanted = schema.names.own, name.lstrip(".")
    if not wanted:
        if not own.messages:
            raise InvalidSchemaError("the Protobuf schema has no message type")
        return ".".join(filter(None, (own.package, own.messages[0].name)))
    names = _with_known(schema.names)
    messages = sorted(full for full, kind in names.types.items() if isinstance(kind, ProtoMessage))
    for full in (wanted, f"{own.package}.{wanted}"):
        if full in messages:
            return full
    here = ProtoNames(own, {}).types
    declared = [full for full in messages if full in here]
    ending = [[full for full in among if full.endswith(f".{wanted}")] for among in (declared, messages)]
    found = ending[0] or ending[1]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidSchemaError(f"the Protobuf schema has several message types {wanted!r:.200}: choose among "
                                 f"{', '.join(found)[:400]}")
    rest = [full for full in messages if full not in declared]
    rest.sort(key=lambda full: full.startswith("google."))
    raise InvalidSchemaError(f"the Protobuf schema has no message type {wanted!r:.200}; it has "
                             f"{', '.join((*declared, *rest))[:400] or 'none'}")


def _with_known(names: ProtoNames) -> ProtoNames:
    return ProtoNames(names.own, {**known_files(names), **names.others})


def place_of(schema: ParsedProtobuf, message: str) -> tuple[int, ...]:
    """The place of a message type in its file, as records name it; the other way than `message_at`.

    Args:
        schema: the file.
        message: full name of the type.

    Raises:
        InvalidSchemaError: the file does not declare it.
    """
    own = schema.names.own
    types, found = own.messages, []
    inner = message.removeprefix(f"{own.package}.") if own.package else message
    for name in inner.split("."):
        index = next((at for at, each in enumerate(types) if each.name == name), None)
        if index is None:
            raise InvalidSchemaError(f"the Protobuf schema does not declare the message type {message!r:.200}")
        found.append(index)
        types = _nested(types[index])
    return tuple(found)


def _nested(message: ProtoMessage) -> list[ProtoMessage]:
    """The types within, those of maps' entries at their places."""
    found = list(message.messages)
    entries = [each for each in message.fields if each.key_type]
    for at, each in enumerate(sorted(entries, key=lambda field: field.entry_at)):
        found.insert(each.entry_at + at, ProtoMessage(f"{each.name} (entry)"))
    return found


def arrow_type(plan: MessagePlan) -> pyarrow.StructType:
    """The type of the column of a message."""
    import pyarrow as pa

    return pa.struct([pa.field(each.name, _field_type(each), not each.is_required) for each in plan.fields])


def _field_type(field: FieldPlan) -> Any:
    import pyarrow as pa

    if field.shape == "map":
        assert field.message is not None
        key, value = (_field_type(each) for each in field.message.fields)
        return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value, nullable=False))
    if field.kind == "message":
        assert field.message is not None
        kind = arrow_type(field.message)
    else:
        kind = {
            "bool": pa.bool_(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
            "enum": pa.string(), "bytes": pa.binary(), "timestamp": pa.timestamp("us", tz="UTC"),
            "duration": pa.duration("us"),
        }.get(field.kind) or (pa.int64() if field.kind.endswith("64") else pa.int32())
    return pa.list_(pa.field("element", kind, nullable=False)) if field.shape == "many" else kind


class _Planning:
    """Walks through the types of a file."""

    def __init__(self, names: ProtoNames, emit_defaults: bool) -> None:
        self._names = names
        self._emits = emit_defaults
        self._files = {id(kind): file for file in (*self._names.others.values(), names.own)
                       for kind in _declared(file.messages, file.enums)}
        self._columns = 0

    def root(self, full: str) -> MessagePlan:
        made = self._message(full, (full,))
        if not made.fields:
            raise InvalidSchemaError(f"the message type {full} has no fields, so there are no columns")
        return made

    def _message(self, full: str, path: tuple[str, ...]) -> MessagePlan:
        message = self._names.types[full]
        assert isinstance(message, ProtoMessage)
        if len(path) > _MAX_DEPTH:
            raise InvalidSchemaError(f"messages are nested more than {_MAX_DEPTH} deep: {' > '.join(path)[:400]}")
        fields = (self._field(each, message, full, path) for each in message.fields)
        return MessagePlan(full, tuple(each for each in fields if each is not None))

    def _field(self, field: ProtoField, owner: ProtoMessage, full: str, path: tuple[str, ...]) -> FieldPlan | None:
        """A field; None of one that has no columns."""
        self._columns += 1
        if self._columns > _MAX_COLUMNS:
            raise InvalidSchemaError(f"the message type {path[0]} has more than {_MAX_COLUMNS} columns")
        if field.key_type:
            return self._map(field, owner, full, path)
        kind, message, enum = self._kind(field, full, path)
        if message is not None and not message.fields:
            return None
        features = self._features(owner, field)
        if kind == "message" and features.get("message_encoding") == "DELIMITED":
            raise InvalidSchemaError(f"field {full}.{field.name} is encoded as a group, which is not supported")
        is_many = field.label == "repeated"
        is_implicit = (not is_many and not field.oneof and field.label != "optional" and message is None
                       and kind not in _SPECIAL.values() and features["field_presence"] == "IMPLICIT")
        default = None if is_many else _default(field, kind, enum)
        return FieldPlan(
            field.name, field.number, kind, "many" if is_many else "one",
            is_required=field.label == "required" or features["field_presence"] == "LEGACY_REQUIRED",
            is_implicit=is_implicit, zero_is_null=is_implicit and not self._emits,
            is_packed=is_many and kind not in _UNPACKED and features["repeated_field_encoding"] == "PACKED",
            default=default, oneof=field.oneof, message=message, enum=enum)

    def _map(self, field: ProtoField, owner: ProtoMessage, full: str, path: tuple[str, ...]) -> FieldPlan | None:
        kind, message, enum = self._kind(field, full, path)
        if message is not None and not message.fields:
            return None
        entry = MessagePlan(f"{full}.{field.name}", (
            FieldPlan("key", 1, field.key_type, is_implicit=True),
            FieldPlan("value", 2, kind, is_implicit=message is None and kind not in _SPECIAL.values(),
                      message=message, enum=enum)))
        return FieldPlan(field.name, field.number, "message", "map", message=entry)

    def _kind(
        self, field: ProtoField, full: str, path: tuple[str, ...]
    ) -> tuple[str, MessagePlan | None, EnumPlan | None]:
        if field.type in SCALARS:
            return field.type, None, None
        found = self._names.resolve(field.type, full)
        declared = self._names.types.get(found)
        if found in _SPECIAL:
            return _SPECIAL[found], None, None
        if isinstance(declared, ProtoEnum):
            return "enum", None, self._enum(declared)
        if not isinstance(declared, ProtoMessage):
            raise InvalidSchemaError(f"field {full}.{field.name} has the type {field.type!r:.200}, whose file is not "
                                     "among the references of the schema")
        if found in path:
            raise InvalidSchemaError(f"the message type {found} holds itself, so it has no columns: "
                                     f"{' > '.join((*path, found))[:400]}")
        return "message", self._message(found, (*path, found)), None

    def _enum(self, declared: ProtoEnum) -> EnumPlan:
        file = self._files[id(declared)]
        features = {**_DEFAULTS[_syntax(file)], **_set(file.options), **_set(declared.options)}
        names: dict[int, str] = {}
        for each in declared.values:
            names.setdefault(each.number, each.name)
        numbers = {each.name: each.number for each in declared.values}
        return EnumPlan(declared.name, features["enum_type"] == "CLOSED", names, numbers)

    def _features(self, owner: ProtoMessage, field: ProtoField) -> dict[str, str]:
        """What holds for a field; `packed` of the older syntaxes among it."""
        file = self._files[id(owner)]
        found = {**_DEFAULTS[_syntax(file)], **_set(file.options), **_set(owner.options), **_set(field.options)}
        packed = next((each.value for each in field.options if each.name == "packed"), None)
        if packed is not None:
            found["repeated_field_encoding"] = "PACKED" if packed == ("true",) else "EXPANDED"
        return found


_DEFAULTS: Final = {
    "proto2": {"field_presence": "EXPLICIT", "enum_type": "CLOSED", "repeated_field_encoding": "EXPANDED"},
    "proto3": {"field_presence": "IMPLICIT", "enum_type": "OPEN", "repeated_field_encoding": "PACKED"},
    "": {"field_presence": "EXPLICIT", "enum_type": "OPEN", "repeated_field_encoding": "PACKED"},
}


def _syntax(file: ProtoFile) -> str:
    return file.syntax if file.syntax in _DEFAULTS else ""


def _set(options: Sequence[ProtoOption]) -> dict[str, str]:
    """The features that options set."""
    return {each.name.removeprefix("features."): "".join(each.value) for each in options
            if each.name.startswith("features.")}


def _declared(messages: list[ProtoMessage], enums: list[ProtoEnum]) -> Iterator[ProtoMessage | ProtoEnum]:
    yield from enums
    for each in messages:
        yield each
        yield from _declared(each.messages, each.enums)


def _default(field: ProtoField, kind: str, enum: EnumPlan | None) -> Any:
    """The default that a field of proto2 or an edition says, or None."""
    given = next((each.value for each in field.options if each.name == "default"), None)
    if given is None:
        return None
    text = "".join(given)
    try:
        if kind in ("string", "bytes"):
            return unquoted(given).decode() if kind == "string" else unquoted(given)
        if kind == "bool":
            return {"true": True, "false": False}[text]
        if kind == "enum":
            assert enum is not None
            return enum.names[enum.numbers[text]]
        return real(text) if kind in ("float", "double") else _whole(text, kind)
    except (ValueError, LookupError):
        raise InvalidSchemaError(f"field {field.name!r:.100} cannot have the default {text!r:.100}") from None


def _whole(text: str, kind: str) -> int:
    value, bits = whole(text), 64 if kind.endswith("64") else 32
    low, high = (0, 1 << bits) if kind[0] == "u" or kind.startswith("fixed") else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise ValueError
    return value - (1 << bits) if value >= 1 << bits - 1 else value
