"""Text of .proto files, proto2, proto3 and editions, to their parts.

Source: the Protocol Buffers language specifications. Comments are passed over. Read next: `schemas.proto.proto_nodes`,
then `schemas.proto.proto_checks` for what must hold beyond the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headrace.schemas.parsed import MAX_DEPTH, InvalidSchemaError, checked_size
from headrace.schemas.proto.proto_literals import whole
from headrace.schemas.proto.proto_nodes import (
    MAX_FIELD,
    MAX_VALUE,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoMethod,
    ProtoOption,
    ProtoService,
    ProtoValue,
)

__all__ = ["parse_proto"]

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<word>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*+)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')"
    r"|(?P<sign>[-+{}\[\]()<>=;,:./?!])", re.DOTALL)
_WORD: Final = re.compile(r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_LABELS: Final = ("optional", "required", "repeated")


def parse_proto(text: str) -> ProtoFile:
    """Read a file.

    Raises:
        InvalidSchemaError: the text breaks the grammar.
    """
    return _Parser(checked_size(text)).file()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._lines: list[int] = []
        self._at = 0
        position, line = 0, 1
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise InvalidSchemaError(f"line {line}: {text[position:position + 20]!r} is not understood")
            if found.lastgroup != "space":
                self._tokens.append(found[0])
                self._lines.append(line)
            line += found[0].count("\n")
            position = found.end()

    def file(self) -> ProtoFile:
        """All statements of a file."""
        made = ProtoFile()
        if self._is("syntax"):
            self._expect("=")
            made.syntax = self._text()
            if made.syntax not in ("proto2", "proto3"):
                raise self._error(f"the syntax is {made.syntax!r:.40}; it can be proto2 or proto3")
            self._expect(";")
        elif self._is("edition"):
            self._expect("=")
            made.syntax = self._text()
            self._expect(";")
        while self._at < len(self._tokens):
            self._statement(made)
        return made

    def _statement(self, made: ProtoFile) -> None:
        word = self._next()
        if word == "package":
            made.package = self._matching(_WORD, "a package")
            self._expect(";")
        elif word == "import":
            kind = self._next() if self._peek() in ("public", "weak") else ""
            made.imports.append((kind, self._text()))
            self._expect(";")
        elif word == "option":
            made.options.append(self._option())
        elif word == "message":
            made.messages.append(self._message(0))
        elif word == "enum":
            made.enums.append(self._enum())
        elif word == "service":
            made.services.append(self._service())
        elif word == "extend":
            made.extends += self._extend()
        elif word != ";":
            raise self._error(f"{word!r:.60} begins no statement", 1)

    def _message(self, depth: int) -> ProtoMessage:
        if depth >= MAX_DEPTH:
            raise self._error(f"messages are nested more than {MAX_DEPTH} deep")
        made = ProtoMessage(self._matching(_NAME, "the name of a message"))
        self._expect("{")
        while not self._is("}"):
            handler = _IN_MESSAGES.get(self._peek())
            if handler is not None and (self._peek(1) not in ("=", ".") or self._peek() == "option"):
                self._next()
                handler(self, made, depth)
            elif not self._is(";"):
                made.fields.append(self._field())
                made.fields[-1].entry_at = len(made.messages)
        return made

    def _inner_message(self, made: ProtoMessage, depth: int) -> None:
        made.messages.append(self._message(depth + 1))

    def _inner_enum(self, made: ProtoMessage, depth: int) -> None:
        made.enums.append(self._enum())

    def _inner_option(self, made: ProtoMessage, depth: int) -> None:
        made.options.append(self._option())

    def _inner_extend(self, made: ProtoMessage, depth: int) -> None:
        made.extends += self._extend()

    def _oneof(self, made: ProtoMessage, depth: int) -> None:
        name = self._matching(_NAME, "the name of a oneof")
        if name in made.oneofs:
            raise self._error(f"the oneof {name!r} is declared twice")
        options = made.oneofs[name] = []
        self._expect("{")
        while not self._is("}"):
            if self._is("option"):
                options.append(self._option())
            elif not self._is(";"):
                made.fields.append(self._field(oneof=name))

    def _reserved(self, made: ProtoMessage, depth: int) -> None:
        made.reserved += self._ranges_or_names(MAX_FIELD)

    def _extensions(self, made: ProtoMessage, depth: int) -> None:
        made.extensions += [each for each in self._ranges_or_names(MAX_FIELD) if not isinstance(each, str)]

    def _field(self, oneof: str = "") -> ProtoField:
        label = self._next() if self._peek() in _LABELS and self._peek(1) not in ("=",) else ""
        if label and oneof:
            raise self._error("a field of a oneof has no label")
        kind, key = self._matching(_WORD, "a type"), ""
        if kind == "group":
            raise self._error("groups are not supported")
        if kind == "map" and self._is("<"):
            key = self._matching(_NAME, "a type")
            self._expect(",")
            kind = self._matching(_WORD, "a type")
            self._expect(">")
            if label or oneof:
                raise self._error("a map has no label and is in no oneof")
        name = self._matching(_NAME, "the name of a field")
        self._expect("=")
        number = self._number(MAX_FIELD)
        options = self._short_options()
        self._expect(";")
        return ProtoField(name, number, kind, label, key, oneof, "", options)

    def _extend(self) -> list[ProtoField]:
        extended = self._matching(_WORD, "a message")
        self._expect("{")
        found = []
        while not self._is("}"):
            if not self._is(";"):
                found.append(self._field())
                found[-1].extendee = extended
        return found

    def _enum(self) -> ProtoEnum:
        made = ProtoEnum(self._matching(_NAME, "the name of an enum"))
        self._expect("{")
        while not self._is("}"):
            if self._peek() == "option" and self._peek(1) != "=":
                self._next()
                made.options.append(self._option())
            elif self._peek() == "reserved" and self._peek(1) != "=":
                self._next()
                made.reserved += self._ranges_or_names(MAX_VALUE)
            elif not self._is(";"):
                name = self._matching(_NAME, "the name of a value")
                self._expect("=")
                number = self._number(MAX_VALUE)
                made.values.append(ProtoValue(name, number, self._short_options()))
                self._expect(";")
        return made

    def _service(self) -> ProtoService:
        made = ProtoService(self._matching(_NAME, "the name of a service"))
        self._expect("{")
        while not self._is("}"):
            if self._is("option"):
                made.options.append(self._option())
            elif self._is("rpc"):
                made.methods.append(self._method())
            elif not self._is(";"):
                raise self._error(f"{self._peek()!r:.60} begins no method")
        return made

    def _method(self) -> ProtoMethod:
        name = self._matching(_NAME, "the name of a method")
        given, streams_in = self._message_type()
        if self._next() != "returns":
            raise self._error("a method returns something", 1)
        returned, streams_out = self._message_type()
        options: list[ProtoOption] = []
        if self._is("{"):
            while not self._is("}"):
                if self._is("option"):
                    options.append(self._option())
                elif not self._is(";"):
                    raise self._error(f"{self._peek()!r:.60} is no option")
        else:
            self._expect(";")
        return ProtoMethod(name, given, returned, streams_in, streams_out, tuple(options))

    def _message_type(self) -> tuple[str, bool]:
        self._expect("(")
        streams = self._peek() == "stream" and self._peek(1) != ")"
        if streams:
            self._next()
        kind = self._matching(_WORD, "a message")
        self._expect(")")
        return kind, streams

    def _option(self) -> ProtoOption:
        made = self._assigned()
        self._expect(";")
        return made

    def _short_options(self) -> tuple[ProtoOption, ...]:
        found: list[ProtoOption] = []
        if self._is("["):
            found.append(self._assigned())
            while self._is(","):
                found.append(self._assigned())
            self._expect("]")
        return tuple(found)

    def _assigned(self) -> ProtoOption:
        name = ""
        while not self._is("="):
            token = self._next()
            if not _WORD.fullmatch(token) and token not in "().":
                raise self._error(f"{token!r:.60} is in no option's name", 1)
            name += token
        return ProtoOption(name, self._constant())

    def _constant(self) -> tuple[str, ...]:
        """A value: one token, with a sign; texts in a row; or what stands in braces."""
        if self._peek() == "{":
            return self._braces()
        found = [self._next()]
        if found[0] in "+-":
            found.append(self._next())
        while found[-1][0] in "\"'" and self._peek()[:1] in ("'", '"'):
            found.append(self._next())
        if found[-1] in ";,]})":
            raise self._error("an option has no value", 1)
        return tuple(found)

    def _braces(self) -> tuple[str, ...]:
        found, depth = [self._next()], 1
        while depth:
            found.append(self._next())
            depth += (found[-1] == "{") - (found[-1] == "}")
        return tuple(found)

    def _ranges_or_names(self, highest: int) -> list[tuple[int, int] | str]:
        found: list[tuple[int, int] | str] = []
        while True:
            if self._peek()[:1] in ("'", '"'):
                found.append(self._text())
            elif _NAME.fullmatch(self._peek()):
                found.append(self._next())
            else:
                first = last = self._number(highest)
                if self._is("to"):
                    last = highest if self._is("max") else self._number(highest)
                if last < first:
                    raise self._error(f"the range ends before it begins: {first} to {last}")
                found.append((first, last))
            if not self._is(","):
                break
        self._short_options()
        self._expect(";")
        return found

    def _number(self, highest: int) -> int:
        sign = -1 if self._is("-") else 1
        token = self._next()
        try:
            value = sign * whole(token)
        except ValueError:
            raise self._error(f"{token!r:.60} is no number", 1) from None
        if not -highest - 1 <= value <= highest:
            raise self._error(f"the number {value} is too large", 1)
        return value

    def _text(self) -> str:
        token = self._next()
        if token[0] not in "\"'":
            raise self._error(f"{token!r:.60} is no text", 1)
        return token[1:-1]

    def _matching(self, pattern: re.Pattern[str], what: str) -> str:
        token = self._next()
        if not pattern.fullmatch(token):
            raise self._error(f"{token!r:.60} is not {what}", 1)
        return token

    def _expect(self, token: str) -> None:
        if not self._is(token):
            raise self._error(f"{token!r} is expected, not {self._peek()!r:.60}")

    def _is(self, token: str) -> bool:
        """Take a token if it comes next."""
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _peek(self, ahead: int = 0) -> str:
        """A token that comes; empty at the end."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._error("the file ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, reason: str, back: int = 0) -> InvalidSchemaError:
        """An error at the next token, or at one before it."""
        at = min(self._at - back, len(self._lines) - 1)
        return InvalidSchemaError(f"line {self._lines[at] if self._lines else 1}: {reason}")


_IN_MESSAGES: Final[dict[str, Callable[[_Parser, ProtoMessage, int], None]]] = {
    "message": _Parser._inner_message, "enum": _Parser._inner_enum, "option": _Parser._inner_option,
    "extend": _Parser._inner_extend, "oneof": _Parser._oneof, "reserved": _Parser._reserved,
    "extensions": _Parser._extensions,
}
