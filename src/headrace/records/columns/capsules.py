"""Columns for other libraries: Arrow's C data interface in the capsules of its Python protocol. The plain twin.

What is exported is described by tuples. A type: (format, name, nullable, children, dictionary or None). An array:
(rows, nulls, buffers or None, children, dictionary or None). The memory of bytes is shared.
It must not know what the columns are. Read next: `headrace.records.columns.arrow_batch`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

__all__ = ["array_capsule", "schema_capsule", "stream_capsule"]

_NULLABLE = 2
_ENOMEM = 12
_void_p = ctypes.c_void_p
_Release = ctypes.CFUNCTYPE(None, _void_p)


class _ArrowSchema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", _void_p),
                ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", _void_p),
                ("dictionary", _void_p), ("release", _void_p), ("private_data", _void_p)]


class _ArrowArray(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", _void_p),
                ("children", _void_p), ("dictionary", _void_p), ("release", _void_p), ("private_data", _void_p)]


class _ArrowStream(ctypes.Structure):
    _fields_ = [("get_schema", _void_p), ("get_next", _void_p), ("get_last_error", _void_p), ("release", _void_p),
                ("private_data", _void_p)]


_Struct = type[_ArrowSchema] | type[_ArrowArray] | type[_ArrowStream]

# Prototypes of our own: those of `ctypes.pythonapi` are everybody's, and anybody may change them.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _void_p, ctypes.c_char_p, _void_p)(
    ("PyCapsule_New", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(_void_p, _void_p, ctypes.c_char_p)(  # of one that dies: it must not be referenced
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))

_held: dict[int, Any] = {}
"""What exported structures point to, by their `private_data`, until they are released. They may be moved meanwhile."""


def _hold(made: Any, what: Any) -> None:
    made.private_data = id(what)
    _held[id(what)] = what


def _releaser(kind: _Struct) -> Any:
    """A function that releases a structure, its children and its dictionary."""

    def release(address: int) -> None:
        made = kind.from_address(address)
        for child in _parts(made):
            _release_at(type(child), ctypes.addressof(child))
        _held.pop(made.private_data, None)
        made.release = None

    function = _Release(release)
    _keep(function)  # others release what they hold when Python ends, too
    return function


def _parts(made: Any) -> list[Any]:
    """The children and the dictionary where they are now; those that were moved away are released there."""
    if isinstance(made, _ArrowStream):
        return []
    children = ctypes.cast(made.children, ctypes.POINTER(_void_p))
    addresses = [children[at] for at in range(made.n_children)] + [made.dictionary]
    return [type(made).from_address(address) for address in addresses if address]


def _release_at(kind: _Struct, address: int) -> None:
    made = kind.from_address(address)
    if made.release:
        _Release(made.release)(address)


_release_schema, _release_array = _releaser(_ArrowSchema), _releaser(_ArrowArray)
_release_stream = _releaser(_ArrowStream)


def _address(function: Any) -> int | None:
    return ctypes.cast(function, _void_p).value


def _pointers(addresses: list[int | None]) -> Any:
    return (_void_p * max(len(addresses), 1))(*addresses)


def _fill_schema(to: _ArrowSchema, kind: tuple[Any, ...]) -> None:
    text, name, nullable, children, dictionary = kind
    parts = [_ArrowSchema() for _ in children]
    for part, child in zip(parts, children, strict=True):
        _fill_schema(part, child)
    pointers, values = _pointers([ctypes.addressof(part) for part in parts]), None
    if dictionary is not None:
        values = _ArrowSchema()
        _fill_schema(values, dictionary)
        to.dictionary = ctypes.addressof(values)
    to.format, to.name, to.flags = text, name, _NULLABLE if nullable else 0
    to.n_children, to.children = len(parts), ctypes.addressof(pointers)
    _hold(to, [kind, parts, pointers, values])
    to.release = _address(_release_schema)


def _fill_array(to: _ArrowArray, array: tuple[Any, ...]) -> None:
    to.length, to.null_count, buffers, children, dictionary = array
    views = [None if buffer is None else _Pinned(buffer) for buffer in buffers]
    parts = [_ArrowArray() for _ in children]
    for part, child in zip(parts, children, strict=True):
        _fill_array(part, child)
    places = _pointers([None if view is None else view.address for view in views])
    pointers, values = _pointers([ctypes.addressof(part) for part in parts]), None
    if dictionary is not None:
        values = _ArrowArray()
        _fill_array(values, dictionary)
        to.dictionary = ctypes.addressof(values)
    to.n_buffers, to.buffers = len(views), ctypes.addressof(places)
    to.n_children, to.children = len(parts), ctypes.addressof(pointers)
    _hold(to, [views, parts, places, pointers, values])
    to.release = _address(_release_array)


class _Pinned:
    """Bytes at a place that other code may read; other buffers than bytes are copied."""

    def __init__(self, data: Any) -> None:
        self.data = bytes(data)
        self._start = ctypes.c_char_p(self.data)
        self.address = _address(self._start)


_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, _void_p, _void_p)
_GetError = ctypes.CFUNCTYPE(_void_p, _void_p)


def _callback(kind: Any, function: Callable[..., Any]) -> Any:
    made = kind(function)
    _keep(made)
    return made


def _stream_schema(stream: int, to: int) -> int:
    _fill_schema(_ArrowSchema.from_address(to), _held[_ArrowStream.from_address(stream).private_data][0])
    return 0


def _stream_next(stream: int, to: int) -> int:
    state = _held[_ArrowStream.from_address(stream).private_data]
    ctypes.memset(to, 0, ctypes.sizeof(_ArrowArray))  # released: the end of the stream
    if len(state) > 1:
        _fill_array(_ArrowArray.from_address(to), state.pop())
    return 0


_get_schema, _get_next = _callback(_GetSchema, _stream_schema), _callback(_GetSchema, _stream_next)
_get_error = _callback(_GetError, lambda stream: None)

def _capsule(kind: _Struct, name: bytes, made: Any) -> Any:
    """A capsule that owns a structure. One that nobody took releases it."""
    address = ctypes.addressof(made)
    _held[address] = made, name
    return _new_capsule(address, name, _address(_DROPS[kind]))


def _dropper(kind: _Struct, name: bytes) -> Any:
    def drop(capsule: int) -> None:
        address = _pointer(capsule, name)
        _release_at(kind, address)
        del _held[address]

    return _callback(_Release, drop)


_SCHEMA, _ARRAY, _STREAM = b"arrow_schema", b"arrow_array", b"arrow_array_stream"
_DROPS = {_ArrowSchema: _dropper(_ArrowSchema, _SCHEMA), _ArrowArray: _dropper(_ArrowArray, _ARRAY),
          _ArrowStream: _dropper(_ArrowStream, _STREAM)}


def schema_capsule(kind: tuple[Any, ...]) -> Any:
    """A type as an "arrow_schema"."""
    made = _ArrowSchema()
    _fill_schema(made, kind)
    return _capsule(_ArrowSchema, _SCHEMA, made)


def array_capsule(array: tuple[Any, ...]) -> Any:
    """An array as an "arrow_array"."""
    made = _ArrowArray()
    _fill_array(made, array)
    return _capsule(_ArrowArray, _ARRAY, made)


def stream_capsule(kind: tuple[Any, ...], array: tuple[Any, ...]) -> Any:
    """One array as an "arrow_array_stream"."""
    made = _ArrowStream(_address(_get_schema), _address(_get_next), _address(_get_error), _address(_release_stream))
    _hold(made, [kind, array])
    return _capsule(_ArrowStream, _STREAM, made)
