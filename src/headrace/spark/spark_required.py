"""Imported first by each module that imports pyspark: who lacks it, or has one that is too old, learns what to install.

Importing this does the check, so that it comes before the import that would fail.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from headrace.errors import DependencyError

_INSTALL: Final = "pip install 'headrace[spark]'"
_TEXT: Final = f"this needs pyspark and pyarrow: {_INSTALL}"
_OLDEST: Final = (4, 2)
"""The first Spark in which a Python source can say how much a micro-batch reads (SPARK-54305)."""

try:
    import pyspark

    _has_arrow = find_spec("pyarrow") is not None  # importing it takes long, and planners have no use for it
except ImportError as error:
    raise DependencyError(_TEXT) from error
if not _has_arrow:
    raise DependencyError(_TEXT)
if tuple(map(int, pyspark.__version__.split(".")[:2])) < _OLDEST:
    raise DependencyError(f"this needs pyspark {'.'.join(map(str, _OLDEST))} or later, and here is "
                          f"{pyspark.__version__}: {_INSTALL}")
