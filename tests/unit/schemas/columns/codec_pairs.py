"""Both codecs of Avro, and how to compare what they read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow
import pytest

from headrace.schemas.avro import parse_avro
from headrace.schemas.columns.avro.avro_plain_decoder import PlainDecoder
from headrace.schemas.columns.avro.avro_plain_encoder import PlainEncoder
from headrace.schemas.columns.avro.avro_resolution import resolved
from headrace.schemas.columns.avro.avro_shapes import shape_of
from headrace.schemas.columns.avro.avro_writing import writing_of
from headrace.schemas.columns.avro.written_columns import written_columns

native_module = pytest.importorskip("headrace.schemas.columns._avro_columns", reason="the native module was not built")

__all__ = ["binary", "decoded_both_ways", "encoded_both_ways", "numbers_of"]

Bad = list[tuple[int, int, int]]


def binary(*payloads: bytes | None) -> pyarrow.Array:
    return pyarrow.array(payloads, pyarrow.binary())


def decoded_both_ways(writer: Any, reader: Any, payloads: pyarrow.Array) -> tuple[pyarrow.Array, Bad]:
    """What the native decoder reads; the plain one has read the same, and Arrow finds nothing wrong with it."""
    wanted = parse_avro(json.dumps(reader)).root
    program = resolved(parse_avro(json.dumps(writer)).root, wanted, shape_of(wanted))
    plain, plain_bad = PlainDecoder(program).decode(payloads)
    native, native_bad = native_module.Decoder(program).decode(payloads)
    native.validate(full=True)
    assert native_bad == plain_bad
    assert native.type == plain.type == program.shape.data_type
    assert same(numbers_of(native), numbers_of(plain))
    return native, native_bad


def same(one: list[Any], other: list[Any]) -> bool:
    """Equal, where NaN is equal to itself."""
    return repr(one) == repr(other)


def encoded_both_ways(schema: Any, values: pyarrow.Array) -> pyarrow.Array:
    """What the native encoder writes; the plain one has written the same."""
    root = parse_avro(json.dumps(schema)).root
    shape = shape_of(root)
    program = writing_of(root, shape, values.type)
    columns = written_columns(values, shape)
    native = native_module.Encoder(program).encode(values, columns)
    plain = PlainEncoder(program).encode(values, columns)
    native.validate(full=True)
    assert native.to_pylist() == plain.to_pylist()
    return native


def numbers_of(values: pyarrow.Array) -> list[Any]:
    """As `to_pylist`, but timestamps and dates are the numbers that they are: Python's have a shorter range.

    pyarrow 26 casts lists of nulls wrongly, so only single values are cast.
    """
    kind, valid = values.type, values.is_valid().to_pylist()
    if pyarrow.types.is_struct(kind):
        fields = [numbers_of(values.field(index)) for index in range(kind.num_fields)]
        names = [each.name for each in kind]
        return [dict(zip(names, (of[row] for of in fields), strict=True)) if there else None
                for row, there in enumerate(valid)]
    if pyarrow.types.is_list(kind) or pyarrow.types.is_map(kind):
        ends = values.offsets.to_pylist()
        items = (list(zip(numbers_of(values.keys), numbers_of(values.items), strict=True))
                 if pyarrow.types.is_map(kind) else numbers_of(values.values))
        return [items[ends[row]:ends[row + 1]] if there else None for row, there in enumerate(valid)]
    if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_time(kind):
        values = values.cast(pyarrow.int64())
    elif pyarrow.types.is_date(kind):
        values = values.cast(pyarrow.int32())
    return list(values.to_pylist())
