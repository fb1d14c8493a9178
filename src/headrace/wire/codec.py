"""Messages to bytes and back. The code for one (message, version) is compiled when it is first needed.

Every check of untrusted bytes is here: lengths, counts against the bytes that remain, nulls, text, tags. What does not
fit is a `ProtocolError`. Only `Records` fields are views into the input; everything else is copied out.

It knows no frames and no headers. Read next: `wire.frame`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.wire.schema import ZERO_UUID, Field, Struct, Versions, default_of, fields_of, struct_named

__all__ = ["decode", "encode", "encode_parts"]

_S = TypeVar("_S", bound=Struct)
_FIXED = {"Int8": "b", "Int16": "h", "Int32": "i", "Int64": "q", "Uint16": "H", "Uint32": "I", "Float64": "d",
          "Bool": "?"}
_SIZE = {kind: struct.calcsize(">" + code) for kind, code in _FIXED.items()} | {"Uuid": 16}
_SMALL = 4096
_codecs: dict[tuple[type[Struct], int], tuple[Callable[..., Any], Callable[..., Any]]] = {}


def encode(message: Struct, version: int) -> bytes:
    """Write a message.

    Args:
        message: the message.
        version: the version to write.

    Returns:
        The body, without header.

    Raises:
        ProtocolError: a value does not fit its field.
        KafkaException: `UNSUPPORTED_VERSION`, the version lacks a field that was given and may not be dropped.
    """
    return b"".join(_chunks(message, version))


def encode_parts(message: Struct, version: int) -> list[bytes | memoryview]:
    """Write a message in parts, in which large `Records` values are the caller's own objects, not copies."""
    parts: list[bytes | memoryview] = []
    small: list[bytes] = []
    for chunk in _chunks(message, version):
        if len(chunk) < _SMALL:
            small.append(chunk)
        else:
            parts.append(b"".join(small))
            parts.append(chunk)
            small = []
    if small:
        parts.append(b"".join(small))
    return parts


def decode(cls: type[_S], data: bytes | memoryview, version: int) -> _S:
    """Read a message that fills `data`.

    Args:
        cls: class of the message.
        data: the body, without header.
        version: the version it was written in.

    Raises:
        ProtocolError: the bytes are not such a message.
    """
    _, read = _codecs.get((cls, version)) or _compile(cls, version)
    try:
        message, position = read(data, 0, len(data))
    except ProtocolError as error:
        raise ProtocolError(f"{cls.__name__} v{version}: {error}") from None
    except (struct.error, IndexError):
        raise ProtocolError(f"{cls.__name__} v{version}: the bytes end in the middle of a field") from None
    except UnicodeDecodeError:
        raise ProtocolError(f"{cls.__name__} v{version}: a text is not UTF-8") from None
    if position != len(data):
        raise ProtocolError(f"{cls.__name__} v{version}: {len(data) - position} bytes left over")
    return message  # type: ignore[no-any-return]


def _chunks(message: Struct, version: int) -> list[bytes]:
    cls = type(message)
    write, _ = _codecs.get((cls, version)) or _compile(cls, version)
    out: list[bytes] = []
    try:
        write(message, out.append)
    except (struct.error, TypeError, AttributeError) as error:
        raise ProtocolError(f"{cls.__name__} v{version}: a value does not fit its field: {error}") from None
    return out


# What the compiled code calls


def _uvarint(n: int) -> bytes:
    if n < 128:
        return bytes((n,))
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _read_uvarint(d: Any, p: int) -> tuple[int, int]:
    n = shift = 0
    while shift < 35:
        byte = d[p]
        p += 1
        n |= (byte & 127) << shift
        if byte < 128:
            if n > 0xFFFFFFFF:
                break
            return n, p
        shift += 7
    raise ProtocolError("a varint is longer than 32 bits")


def _past_end(what: str, n: int) -> ProtocolError:
    return ProtocolError(f"{what} of {n} reaches past the end")


def _skip_tag(d: Any, p: int, end: int) -> int:
    n, p = _read_uvarint(d, p)
    if p + n > end:
        raise _past_end("an unknown tagged field", n)
    return p + n


def _lacks(name: str, version: int) -> KafkaException:
    return KafkaException(KafkaError(
        KafkaError.UNSUPPORTED_VERSION,
        f"{name} can not be sent: version {version} of the message, the highest that the broker knows, lacks it",
    ))


_SPACE: dict[str, Any] = {
    "ProtocolError": ProtocolError, "UUID": UUID, "ZERO_UUID": ZERO_UUID, "_lacks": _lacks, "_past_end": _past_end,
    "_read_uvarint": _read_uvarint, "_skip_tag": _skip_tag, "_uvarint": _uvarint, "_unpack": struct.unpack_from,
}


def _compile(cls: type[Struct], version: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    low, high = getattr(cls, "min_version", 0), getattr(cls, "max_version", 1 << 15)
    if not low <= version <= high:
        raise ProtocolError(f"{cls.__name__} has versions {low} to {high}, not {version}")
    compiler = _Compiler(version, version >= getattr(cls, "flexible_version", 1 << 15))
    number = compiler.add(cls)
    space = _SPACE | compiler.space
    exec(compile("\n".join(compiler.lines), f"<{cls.__name__} v{version}>", "exec"), space)
    codec = _codecs[cls, version] = (space[f"w{number}"], space[f"r{number}"])
    return codec


class _Compiler:
    """Writes the source of the functions `w0, r0, w1, r1, ...` of a message and the structs inside it."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.space: dict[str, Any] = {}
        self._numbers: dict[type[Struct], int] = {}
        self._sizes: dict[type[Struct], int] = {}

    def add(self, cls: type[Struct]) -> int:
        """Compile a struct once; returns the number in its functions' names."""
        if cls in self._numbers:
            return self._numbers[cls]
        number = self._numbers[cls] = len(self._numbers)
        plain = [f for f in fields_of(cls) if self._has(f) and not self._is_tagged(f)]
        tagged = sorted((f for f in fields_of(cls) if self._has(f) and self._is_tagged(f)), key=lambda f: f.tag or 0)
        self.space[f"c{number}"] = cls
        write = [f"def w{number}(m, out):"]
        read = [f"def r{number}(d, p, end):", f" m = c{number}.__new__(c{number})"]
        self._missing(cls, number, write, read)
        self._sizes[cls] = self._plain(cls, plain, write, read) + (1 if self.flexible else 0)
        if self.flexible:
            self._tagged(cls, number, tagged, write, read)
        read.append(" return m, p")
        self.lines += [*write, " pass", *read]
        return number

    def _has(self, f: Field) -> bool:
        return self.version in Versions(f.versions)

    def _is_tagged(self, f: Field) -> bool:
        return self.flexible and f.tag is not None and self.version in Versions(f.tagged)

    def _missing(self, cls: type[Struct], number: int, write: list[str], read: list[str]) -> None:
        """Fields that this version lacks: default on reading; on writing an error if set and not ignorable."""
        for f in fields_of(cls):
            if self._has(f):
                continue
            default = default_of(cls, f)
            constant = self._constant(default)
            if isinstance(default, (list, Struct)):
                maker = f"k{len(self.space)}"
                self.space[maker] = list if isinstance(default, list) else type(default)
                read.append(f" m.{f.name} = {maker}()")
            else:
                read.append(f" m.{f.name} = {constant}")
            if not f.ignorable:
                write.append(f" if m.{f.name} != {constant}: raise _lacks({f'{cls.__name__}.{f.name}'!r}, "
                             f"{self.version})")

    def _constant(self, value: Any) -> str:
        if value is None or isinstance(value, (int, str, bytes, float, bool)):
            return repr(value)
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    def _plain(self, cls: type[Struct], plain: list[Field], write: list[str], read: list[str]) -> int:
        """The fields in order, runs of fixed size at once; returns the least number of bytes they take."""
        size, i = 0, 0
        while i < len(plain):
            run = []
            while i < len(plain) and plain[i].kind in _FIXED:
                run.append(plain[i])
                i += 1
            if run:
                size += self._run(run, write, read)
            else:
                size += self._field(cls, plain[i], f"m.{plain[i].name}", write, read, " ")
                i += 1
        return size

    def _run(self, run: list[Field], write: list[str], read: list[str]) -> int:
        layout = struct.Struct(">" + "".join(_FIXED[f.kind] for f in run))
        pack, unpack = f"k{len(self.space)}", f"k{len(self.space) + 1}"
        self.space[pack], self.space[unpack] = layout.pack, layout.unpack_from
        names = ", ".join(f"m.{f.name}" for f in run)
        write.append(f" out({pack}({names}))")
        read.append(f" {names}{',' if len(run) == 1 else ''} = {unpack}(d, p); p += {layout.size}")
        return layout.size

    def _tagged(
        self, cls: type[Struct], number: int, tagged: list[Field], write: list[str], read: list[str]
    ) -> None:
        write.append(" tags = []")
        for f in tagged:
            default = default_of(cls, f)
            write.append(f" if m.{f.name} != {self._constant(default)}:")
            write.append("  chunks = []; keep = out; out = chunks.append")
            self._field(cls, f, f"m.{f.name}", write, [], "  ")
            write.append(f"  out = keep; body = b''.join(chunks); tags.append(_uvarint({f.tag}) + "
                         "_uvarint(len(body)) + body)")
            if isinstance(default, (list, Struct)):
                maker = f"k{len(self.space)}"
                self.space[maker] = list if isinstance(default, list) else type(default)
                read.append(f" m.{f.name} = {maker}()")
            else:
                read.append(f" m.{f.name} = {self._constant(default)}")
        write.append(" out(_uvarint(len(tags)) + b''.join(tags) if tags else b'\\0')")
        read += [" tags = d[p]; p += 1", " if tags:", "  if tags > 127: tags, p = _read_uvarint(d, p - 1)",
                 "  previous = -1", "  for _ in range(tags):", "   tag, p = _read_uvarint(d, p)",
                 "   if tag <= previous: raise ProtocolError('tagged fields out of order')", "   previous = tag"]
        for f in tagged:
            read += [f"   if tag == {f.tag}:", "    size, p = _read_uvarint(d, p); stop = p + size",
                     "    if stop > end: raise _past_end('a tagged field', size)"]
            self._field(cls, f, f"m.{f.name}", [], read, "    ")
            read += ["    if p != stop: raise ProtocolError('a tagged field has another length than it says')",
                     "    continue"]
        read.append("   p = _skip_tag(d, p, end)")

    def _field(
        self, cls: type[Struct], f: Field, name: str, write: list[str], read: list[str], indent: str
    ) -> int:
        """One field or array element; returns the least number of bytes it takes."""
        kind = f.kind.removesuffix(" | None")
        nullable = self.version in Versions(f.nullable)
        if kind.startswith("Array["):
            return self._array(cls, kind[6:-1], nullable, name, write, read, indent)
        return self._value(cls, kind, nullable, name, write, read, indent)

    def _value(
        self, cls: type[Struct], kind: str, nullable: bool, name: str, write: list[str], read: list[str], indent: str
    ) -> int:
        if kind in _FIXED:
            layout = struct.Struct(">" + _FIXED[kind])
            pack, unpack = f"k{len(self.space)}", f"k{len(self.space) + 1}"
            self.space[pack], self.space[unpack] = layout.pack, layout.unpack_from
            write.append(f"{indent}out({pack}({name}))")
            read.append(f"{indent}{name}, = {unpack}(d, p); p += {layout.size}")
            return layout.size
        if kind == "Uuid":
            write.append(f"{indent}out({name}.bytes)")
            read += [f"{indent}if p + 16 > end: raise _past_end('a uuid', 16)",
                     f"{indent}{name} = UUID(bytes=bytes(d[p:p + 16])); p += 16"]
            return 16
        if kind in ("String", "Bytes", "Records"):
            return self._text(kind, nullable, name, write, read, indent)
        struct_class = struct_named(cls, kind)
        assert struct_class is not None
        number = self.add(struct_class)
        if not nullable:
            write.append(f"{indent}w{number}({name}, out)")
            read.append(f"{indent}{name}, p = r{number}(d, p, end)")
            return self._sizes.get(struct_class, 1)
        write += [f"{indent}if {name} is None: out(b'\\xff')", f"{indent}else: out(b'\\x01'); w{number}({name}, out)"]
        read += [f"{indent}present = d[p]; p += 1", f"{indent}if present == 255: {name} = None",
                 f"{indent}else: {name}, p = r{number}(d, p, end)"]
        return 1

    def _length(
        self, what: str, nullable: bool, short: bool, name: str, write: list[str], read: list[str], indent: str,
        size: str,
    ) -> int:
        """The length in front of a text or array: compact, 16 or 32 bits; leaves it in `n`, -1 for null."""
        if self.flexible:
            null, number, width = "b'\\0'", f"_uvarint({size} + 1)", 1
            read += [f"{indent}n = d[p]; p += 1", f"{indent}if n > 127: n, p = _read_uvarint(d, p - 1)",
                     f"{indent}n -= 1"]
        else:
            pack, unpack = f"k{len(self.space)}", f"k{len(self.space) + 1}"
            layout = struct.Struct(">h" if short else ">i")
            self.space[pack], self.space[unpack] = layout.pack, layout.unpack_from
            null = repr(layout.pack(-1))
            number, width = f"{pack}({size})", layout.size
            read.append(f"{indent}n, = {unpack}(d, p); p += {width}")
        if nullable:
            write.append(f"{indent}if {name} is None: out({null})")
            write.append(f"{indent}else:")
            read.append(f"{indent}if n == -1: {name} = None")
            read.append(f"{indent}elif n < 0: raise ProtocolError('{what} has a negative length')")
        else:
            write.append(f"{indent}if {name} is None: raise ProtocolError('{name[2:]} may not be null')")
            write.append(f"{indent}else:")
            read.append(f"{indent}if n < 0: raise ProtocolError('{what} is null or has a negative length')")
        write.append(f"{indent} out({number})")
        return width

    def _text(
        self, kind: str, nullable: bool, name: str, write: list[str], read: list[str], indent: str
    ) -> int:
        value = "b" if kind == "String" else name
        prefix: list[str] = []
        width = self._length("a text" if kind == "String" else "bytes", nullable, kind == "String", name, prefix,
                             read, indent, f"len({value})")
        if kind == "String":
            prefix.insert(len(prefix) - 1, f"{indent} b = {name}.encode()")
        write += [*prefix, f"{indent} out({value})"]
        read += [f"{indent}else:", f"{indent} q = p + n",
                 f"{indent} if q > end: raise _past_end('a text or bytes', n)"]
        take = {"String": "str(d[p:q], 'utf-8')", "Bytes": "bytes(d[p:q])", "Records": "memoryview(d)[p:q]"}[kind]
        read.append(f"{indent} {name} = {take}; p = q")
        return width

    def _array(
        self, cls: type[Struct], kind: str, nullable: bool, name: str, write: list[str], read: list[str],
        indent: str,
    ) -> int:
        write_item: list[str] = []
        read_item: list[str] = []
        least = max(self._value(cls, kind, False, "x", write_item, read_item, indent + "  "), 1)
        width = self._length("an array", nullable, False, name, write, read, indent, f"len({name})")
        write += [f"{indent} for x in {name}:", *write_item]
        read += [f"{indent}else:", f"{indent} if n * {least} > end - p: raise _past_end('an array', n)"]
        if kind in _SIZE and kind != "Uuid":
            read.append(f"{indent} {name} = list(_unpack(f'>{{n}}{_FIXED[kind]}', d, p)); p += n * {least}")
        else:
            # `items` may not be shared with an array inside the element: each struct has a function of its own.
            read += [f"{indent} items = []", f"{indent} for _ in range(n):", *read_item,
                     f"{indent}  items.append(x)", f"{indent} {name} = items"]
        return width
