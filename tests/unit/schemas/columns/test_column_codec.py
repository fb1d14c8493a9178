"""Parts that were decoded by themselves become one column."""

import pyarrow

from headrace.schemas.columns.column_codec import DecodedColumn, put_in_order


def numbers(*values: int | None) -> pyarrow.Array:
    return pyarrow.array(values, pyarrow.int32())


def test_parts_come_back_in_the_order_of_their_rows() -> None:
    parts = [(numbers(1, 4), DecodedColumn(numbers(11, None), {1: "why"})),
             (numbers(0, 2), DecodedColumn(numbers(10, 12)))]
    whole = put_in_order(parts, 5, pyarrow.int32(), {3: "no framing"})
    assert whole.values.to_pylist() == [10, 11, 12, None, None]
    assert whole.malformed == {3: "no framing", 4: "why"}


def test_a_part_of_all_rows_is_the_whole_as_it_is() -> None:
    values = numbers(1, 2)
    whole = put_in_order([(None, DecodedColumn(values, {1: "why"}))], 2, pyarrow.int32(), {})
    assert whole.values is values
    assert whole.malformed == {1: "why"}


def test_no_parts_make_a_column_of_nulls() -> None:
    kind = pyarrow.struct([pyarrow.field("a", pyarrow.int32(), nullable=False)])
    whole = put_in_order([], 3, kind, {0: "why"})
    assert (whole.values.type, whole.values.to_pylist()) == (kind, [None] * 3)


def test_nested_values_keep_their_type() -> None:
    kind = pyarrow.struct([
        pyarrow.field("m", pyarrow.map_(pyarrow.string(), pyarrow.field("value", pyarrow.int32(), nullable=False))),
        pyarrow.field("l", pyarrow.list_(pyarrow.field("element", pyarrow.string(), nullable=False)), nullable=False)])
    part = pyarrow.array([{"m": [("k", 1)], "l": ["a"]}, {"m": None, "l": []}], kind)
    whole = put_in_order([(numbers(2, 0), DecodedColumn(part))], 3, kind, {})
    assert whole.values.type == kind
    assert whole.values.to_pylist() == [{"m": None, "l": []}, None, {"m": [("k", 1)], "l": ["a"]}]
