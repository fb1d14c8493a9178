"""Floats as JSON: the shortest text that is this number, as Python writes it."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.columns.json_columns import JsonColumns

CODEC = JsonColumns(pa.float64())


@given(values=st.lists(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-10**16, 10**16).map(float)
    | st.tuples(st.integers(-10**15, 10**15), st.integers(0, 8)).map(lambda pair: pair[0] / 10 ** pair[1]),
    max_size=200))
def test_a_double_is_written_as_python_writes_it(values: list[float]) -> None:
    made = CODEC.encode(pa.array(values, pa.float64()))
    assert [each.decode() for each in made.to_pylist()] == [repr(each) for each in values]
    assert CODEC.decode(made).values.to_pylist() == values
