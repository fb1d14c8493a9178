"""Frames of each library over Arrow's memory."""

from __future__ import annotations

import pandas
import polars
import pyarrow as pa
import pytest

from headrace.errors import ConfigError, DependencyError
from headrace.frames import frame_kinds
from headrace.frames.frame_kinds import frame_maker

TABLE = pa.table({"n": pa.array([1, None], pa.int64()), "b": pa.array([b"x", None], pa.binary())})


def test_a_table_stays_what_it_is() -> None:
    assert frame_maker("arrow")(TABLE) is TABLE


def test_null_is_null_in_pandas_and_whole_numbers_stay_whole() -> None:
    frame = frame_maker("pandas")(TABLE)
    assert isinstance(frame, pandas.DataFrame)
    assert frame.dtypes.map(str).to_dict() == {"n": "int64[pyarrow]", "b": "binary[pyarrow]"}
    assert frame["n"].isna().tolist() == [False, True]


def test_polars_has_the_same_values() -> None:
    frame = frame_maker("polars")(TABLE)
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dict(as_series=False) == {"n": [1, None], "b": [b"x", None]}


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_kinds, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match="format 'polars' needs polars: pip install polars"):
        frame_maker("polars")


def test_an_unknown_kind_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'pandas'"):
        frame_maker("panda")
