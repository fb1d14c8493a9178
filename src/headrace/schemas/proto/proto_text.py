""".proto files written from their parts, always in the same way. Read next: `schemas.proto.proto_nodes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.schemas.proto.proto_nodes import (
    MAX_FIELD,
    MAX_VALUE,
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoNames,
    ProtoOption,
    ProtoService,
    by_oneof,
)

__all__ = ["proto_text"]

_Named = Callable[[str, str], str]
"""How a type is called that is written in a scope."""


def proto_text(names: ProtoNames, *, normalize: bool = False) -> str:
    """A file as text.

    Args:
        names: the file, and the types that it knows.
        normalize: full names of types; imports, options, fields and values sorted.
    """
    def full(name: str, scope: str) -> str:
        resolved = "" if name in SCALARS else names.resolve(name, scope)
        return f".{resolved}" if resolved else name

    return _Writer(full if normalize else lambda name, scope: name, normalize=normalize).file(names.own)


class _Writer:
    def __init__(self, named: _Named, *, normalize: bool) -> None:
        self._named = named
        self._normalize = normalize
        self._lines: list[str] = []
        self._is_edition = False

    def file(self, own: ProtoFile) -> str:
        """The whole file."""
        self._is_edition = not own.syntax.startswith("proto")
        self._lines.append(f'{"edition" if self._is_edition else "syntax"} = "{own.syntax}";')
        if own.package:
            self._lines.append(f"package {own.package};")
        self._section([f'import {f"{kind} " if kind else ""}"{path}";' for kind, path in self._sorted(own.imports)])
        self._section([f"option {_assigned(each)};" for each in self._sorted(own.options)])
        for message in own.messages:
            self._lines.append("")
            self._message(message, own.package, "")
        for enum in own.enums:
            self._lines.append("")
            self._enum(enum, "")
        self._extends(own.extends, own.package, "")
        for service in own.services:
            self._lines.append("")
            self._service(service, own.package)
        return "\n".join(self._lines) + "\n"

    def _section(self, lines: list[str]) -> None:
        self._lines += ["", *lines] if lines else []

    def _sorted(self, rows: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
        return sorted(rows, key=str) if self._normalize else list(rows)

    def _message(self, message: ProtoMessage, scope: str, indent: str) -> None:
        own, inner = f"{scope}.{message.name}" if scope else message.name, indent + "  "
        self._lines.append(f"{indent}message {message.name} {{")
        self._lines += [f"{inner}option {_assigned(each)};" for each in self._sorted(message.options)]
        self._reserved(message.reserved, inner, MAX_FIELD)
        self._lines += [f"{inner}extensions {_range(each, MAX_FIELD)};" for each in message.extensions]
        fields = sorted(message.fields, key=_rank) if self._normalize else message.fields
        written: set[str] = set()
        nested, members = 0, by_oneof(fields)
        for each in fields:
            for one in message.messages[nested : each.entry_at if each.key_type else 0]:
                self._message(one, own, inner)
                nested += 1
            if not each.oneof:
                self._lines.append(inner + self._field(each, own))
            elif each.oneof not in written:
                written.add(each.oneof)
                self._oneof(message, each.oneof, members[each.oneof], own, inner)
        for one in message.messages[nested:]:
            self._message(one, own, inner)
        for enum in message.enums:
            self._enum(enum, inner)
        self._extends(message.extends, own, inner)
        self._lines.append(f"{indent}}}")

    def _oneof(self, message: ProtoMessage, name: str, fields: list[ProtoField], scope: str, indent: str) -> None:
        self._lines.append(f"{indent}oneof {name} {{")
        self._lines += [f"{indent}  option {_assigned(each)};" for each in self._sorted(message.oneofs.get(name, []))]
        self._lines += [f"{indent}  {self._field(each, scope)}" for each in fields]
        self._lines.append(f"{indent}}}")

    def _field(self, each: ProtoField, scope: str) -> str:
        kind = self._named(each.type, scope)
        kind = f"map<{each.key_type}, {kind}>" if each.key_type else kind
        label = f"{each.label} " if each.label else ""
        return f"{label}{kind} {each.name} = {each.number}{self._short(each.options)};"

    def _short(self, options: Iterable[ProtoOption]) -> str:
        shown = ", ".join(map(_assigned, self._sorted(options)))
        return f" [{shown}]" if shown else ""

    def _extends(self, fields: list[ProtoField], scope: str, indent: str) -> None:
        for each in fields:
            self._lines += [f"{indent}extend {self._named(each.extendee, scope)} {{",
                            f"{indent}  {self._field(each, scope)}", f"{indent}}}"]

    def _enum(self, enum: ProtoEnum, indent: str) -> None:
        self._lines.append(f"{indent}enum {enum.name} {{")
        self._lines += [f"{indent}  option {_assigned(each)};" for each in self._sorted(enum.options)]
        self._reserved(enum.reserved, f"{indent}  ", MAX_VALUE)
        values = enum.values
        if self._normalize:  # the first value is the default
            values = [values[0], *sorted(values[1:], key=lambda each: each.number)]
        self._lines += [f"{indent}  {each.name} = {each.number}{self._short(each.options)};" for each in values]
        self._lines.append(f"{indent}}}")

    def _reserved(self, reserved: list[tuple[int, int] | str], indent: str, highest: int) -> None:
        numbers = [_range(each, highest) for each in reserved if not isinstance(each, str)]
        names = [each for each in reserved if isinstance(each, str)]
        named = names if self._is_edition else [f'"{each}"' for each in names]  # protoc takes no other form
        self._lines += [f"{indent}reserved {', '.join(each)};" for each in (numbers, named) if each]

    def _service(self, service: ProtoService, scope: str) -> None:
        self._lines.append(f"service {service.name} {{")
        self._lines += [f"  option {_assigned(each)};" for each in self._sorted(service.options)]
        for each in service.methods:
            given, returned = (f"{'stream ' if streams else ''}{self._named(kind, scope)}" for kind, streams in (
                (each.input, each.streams_in), (each.output, each.streams_out)))
            head = f"  rpc {each.name} ({given}) returns ({returned})"
            options = [f"    option {_assigned(one)};" for one in self._sorted(each.options)]
            self._lines += [f"{head} {{", *options, "  }"] if options else [f"{head};"]
        self._lines.append("}")


def _rank(each: ProtoField) -> tuple[int, int]:
    """Fields by their numbers, and maps so that messages keep their positions among those of entries."""
    return each.entry_at if each.key_type else 0, each.number


def _assigned(option: tuple[object, ...]) -> str:
    name, value = option
    assert isinstance(value, tuple)
    return f"{name} = {_joined(value)}"


def _joined(tokens: tuple[str, ...]) -> str:
    return "".join(tokens) if tokens[0] in "+-" else " ".join(tokens)


def _range(each: tuple[int, int], highest: int) -> str:
    first, last = each
    if first == last:
        return str(first)
    return f"{first} to {'max' if last == highest else last}"
