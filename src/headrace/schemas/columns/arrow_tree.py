"""Between arrays of pyarrow and the trees that native decoders grow and native encoders read.

Trees are nested tuples here; memory is an address and a size, and its owner is kept by what is made of it. Kinds have
the numbers of `_column_tree.pxd`. pyarrow is imported inside the functions only. Read next:
`schemas.columns.protobuf_columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.errors import SerializationError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Grown", "Layout", "Seen", "check_required", "check_type", "layout_of", "made_array", "seen_array"]

BITS, FIXED, TEXT, STRUCT, LIST = range(5)
_CASTS: Final = (
    ("is_signed_integer", "is_floating"), ("is_floating", "is_float64"), ("is_decimal", "is_decimal"),
    ("is_large_string", "is_string"), ("is_large_binary", "is_binary"), ("is_duration", "is_duration"))
"""Types whose values may be cast; where one would change, pyarrow refuses."""
Address = tuple[int, int]


class Layout(NamedTuple):
    """What a column is made of; `width` in bytes, for numbers."""

    kind: int
    width: int
    is_required: bool
    children: tuple[Layout, ...]


class Grown(NamedTuple):
    """A column that was grown: addresses and sizes of its buffers; `dropped` are elements that do not count."""

    rows: int
    nulls: int
    validity: Address
    offsets: Address
    data: Address
    dropped: list[int]
    children: list[Grown]


class Seen(NamedTuple):
    """An array for reading: addresses of its buffers, 0 where there is none, and where it begins in them."""

    offset: int
    validity: int
    offsets: int
    data: int
    children: list[Seen | None]


def layout_of(kind: pyarrow.DataType, is_required: bool = False) -> Layout:
    """The layout of a type.

    Args:
        kind: the type.
        is_required: it has no nulls.

    Raises:
        TypeError: there is no column of this type.
    """
    import pyarrow as pa

    children: tuple[Layout, ...] = ()
    if pa.types.is_struct(kind):
        children = tuple(_layout_of_field(each) for each in kind)
        return Layout(STRUCT, 0, is_required, children)
    if pa.types.is_map(kind):
        children = (_layout_of_field(kind.key_field), _layout_of_field(kind.item_field))
        return Layout(LIST, 0, is_required, (Layout(STRUCT, 0, True, children),))
    if pa.types.is_list(kind):
        return Layout(LIST, 0, is_required, (_layout_of_field(kind.value_field),))
    if kind == pa.string() or kind == pa.binary():
        return Layout(TEXT, 0, is_required, ())
    if pa.types.is_boolean(kind):
        return Layout(BITS, 0, is_required, ())
    if pa.types.is_primitive(kind) or pa.types.is_decimal128(kind):
        return Layout(FIXED, kind.bit_width // 8, is_required, ())
    raise TypeError(f"there is no column of the type {kind}")


def _layout_of_field(field: pyarrow.Field) -> Layout:
    return layout_of(field.type, not field.nullable)


def made_array(kind: pyarrow.DataType, grown: Grown, owner: Any) -> pyarrow.Array:
    """An array over memory that was grown.

    Args:
        kind: its type.
        grown: its buffers.
        owner: keeps the memory.
    """
    import pyarrow as pa

    buffers = [_buffer(grown.validity, owner) if grown.nulls else None]
    children = None
    if pa.types.is_struct(kind):
        children = [made_array(field.type, each, owner) for field, each in zip(kind, grown.children, strict=True)]
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        inner = pa.struct([kind.key_field, kind.item_field]) if pa.types.is_map(kind) else kind.value_type
        elements = made_array(inner, grown.children[0], owner)
        offsets = _buffer(grown.offsets, owner)
        if grown.dropped:
            elements, offsets = _without(elements, offsets, grown)
        buffers.append(offsets)
        children = [elements]
    elif layout_of(kind).kind == TEXT:
        buffers += [_buffer(grown.offsets, owner), _buffer(grown.data, owner)]
    else:
        buffers.append(_buffer(grown.data, owner))
    return pa.Array.from_buffers(kind, grown.rows, buffers, grown.nulls, 0, children)


def _buffer(where: Address, owner: Any) -> Any:
    import pyarrow as pa

    return pa.foreign_buffer(*where, owner) if where[1] else pa.py_buffer(b"")


def _without(elements: Any, offsets: Any, grown: Grown) -> tuple[Any, Any]:
    """Leave out the elements that do not count. They are few, if there are any, so this may be slow."""
    import pyarrow as pa

    dropped = sorted(grown.dropped)
    keep = sorted(set(range(len(elements))).difference(dropped))
    ends = pa.Array.from_buffers(pa.int32(), grown.rows + 1, [None, offsets]).to_pylist()
    at, moved = 0, []
    for end in ends:
        while at < len(dropped) and dropped[at] < end:
            at += 1
        moved.append(end - at)
    return elements.take(pa.array(keep, pa.int64())), pa.array(moved, pa.int32()).buffers()[1]


def check_type(given: pyarrow.DataType, kind: pyarrow.DataType, path: str = "") -> None:
    """Refuse a type that cannot be read as another without a loss.

    Args:
        given: type of a column.
        kind: the type to read it as.
        path: where the column is, for errors.

    Raises:
        SerializationError: it has a field that the other does not have, or its values are of another type.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind) and types.is_struct(given):
        wanted = {field.name: field for field in kind}
        unknown = sorted({field.name for field in given} - wanted.keys())
        if unknown:
            raise SerializationError(f"{_column(path)} has fields that the schema does not have: "
                                     f"{', '.join(unknown)[:300]}")
        for field in given:
            check_type(field.type, wanted[field.name].type, f"{path}.{field.name}" if path else field.name)
    elif types.is_map(kind) and types.is_map(given):
        check_type(given.key_type, kind.key_type, path)
        check_type(given.item_type, kind.item_type, path)
    elif types.is_list(kind) and types.is_list(given):
        check_type(given.value_type, kind.value_type, path)
    elif not _can_be_cast(given, kind):
        raise SerializationError(f"{_column(path)} is {given}, and the schema has {kind}: cast the column")


def check_required(given: pyarrow.DataType, kind: pyarrow.DataType, path: str = "") -> None:
    """Refuse structs without a field that cannot be null: rows of them could only be null themselves.

    Args:
        given: type of a column that `check_type` has passed.
        kind: the type to read it as.
        path: where the column is, for errors.

    Raises:
        SerializationError: a field is missing.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind) and types.is_struct(given):
        there = {field.name: field.type for field in given}
        missing = sorted(field.name for field in kind if not field.nullable and field.name not in there)
        if missing:
            raise SerializationError(f"{_column(path)} lacks fields that the schema requires: "
                                     f"{', '.join(missing)[:300]}")
        for field in kind:
            if field.name in there:
                check_required(there[field.name], field.type, f"{path}.{field.name}" if path else field.name)
    elif types.is_map(kind) and types.is_map(given):
        check_required(given.item_type, kind.item_type, path)
    elif types.is_list(kind) and types.is_list(given):
        check_required(given.value_type, kind.value_type, path)


def _can_be_cast(given: Any, kind: Any) -> bool:
    """Whether values of a type are those of another, or say so when one is not."""
    import pyarrow.types as kinds

    if given == kind or kinds.is_null(given):
        return True
    if kinds.is_signed_integer(given) and kinds.is_signed_integer(kind):
        return int(given.bit_width) <= int(kind.bit_width)
    if kinds.is_timestamp(given) and kinds.is_timestamp(kind):
        return (given.tz is None) == (kind.tz is None)
    return any(getattr(kinds, one)(given) and getattr(kinds, other)(kind) for one, other in _CASTS)


def seen_array(array: pyarrow.Array, kind: pyarrow.DataType, kept: list[Any]) -> Seen | None:
    """A view of an array as one of a type: fields of structs by name, other values cast if that loses nothing.

    Args:
        array: the values.
        kind: the type to read it as.
        kept: takes what the addresses belong to.

    Returns:
        The view; None of an array without a type, all of whose values are null.

    Raises:
        SerializationError: the array has a field that the type does not have, or its values are of another type.
    """
    check_type(array.type, kind)
    return _seen_as(array, kind, kept)


def _seen_as(array: Any, kind: Any, kept: list[Any]) -> Seen | None:
    import pyarrow as pa

    if pa.types.is_null(array.type):
        return None
    if pa.types.is_struct(kind):
        given = {field.name: at for at, field in enumerate(array.type)}
        return _seen(array, [_seen_as(array.field(given[field.name]), field.type, kept) if field.name in given else None
                             for field in kind], kept)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
        inner = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return _seen(array, [_seen_as(entries, inner, kept)], kept)
    if pa.types.is_list(kind):
        return _seen(array, [_seen_as(array.values, kind.value_type, kept)], kept)
    if array.type != kind:
        try:
            array = array.cast(kind)
        except pa.ArrowInvalid as error:
            raise SerializationError(f"a value cannot be written as {kind}: {error}") from None
    return _seen(array, [], kept)


def _seen(array: Any, children: list[Seen | None], kept: list[Any]) -> Seen:
    """A view of one level. The children of a struct begin where it does, those of a list do not."""
    kept.append(array)
    layout = LIST if len(children) == 1 and array.type.num_buffers == 2 and array.type.num_fields else None
    address = [0 if each is None else each.address for each in array.buffers()[:3]] + [0, 0]
    validity = address[0] if array.null_count else 0
    if array.type.num_fields and layout is None:
        return Seen(array.offset, validity, 0, 0, children)
    if layout == LIST or array.type.num_buffers == 3:
        return Seen(array.offset, validity, address[1], 0 if layout == LIST else address[2], children)
    return Seen(array.offset, validity, 0, address[1], children)


def _column(path: str) -> str:
    return f"field {path}" if path else "the column"
