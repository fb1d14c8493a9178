"""Arrow tables as the frames that people work with."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from headrace.config.property import close_matches
from headrace.errors import ConfigError, DependencyError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["frame_maker"]


def frame_maker(name: str) -> Callable[[pyarrow.Table], Any]:
    """What turns a table into a frame.

    Args:
        name: `arrow`, `pandas` or `polars`.

    Raises:
        ConfigError: another name.
        DependencyError: the library is not installed.
    """
    made = _MAKERS.get(name)
    if made is None:
        close = close_matches(name, list(_MAKERS))
        raise ConfigError(f"format must be {', '.join(_MAKERS)}, not {name!r}" +
                          (f"; did you mean {close[0]!r}?" if close else ""))
    if name != "arrow" and find_spec(name) is None:
        raise DependencyError(f"format {name!r} needs {name}: pip install {name}")
    return made


def _pandas(table: pyarrow.Table) -> Any:
    """Columns of pandas over Arrow's memory: null stays null, and there is no object for a value."""
    import pandas

    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def _polars(table: pyarrow.Table) -> Any:
    import polars

    return polars.DataFrame(table)


_MAKERS: dict[str, Callable[[Any], Any]] = {"arrow": lambda table: table, "pandas": _pandas, "polars": _polars}
