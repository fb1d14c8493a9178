"""Imported first by each module that imports pyspark: who lacks it learns what to install.

Importing this does the check, so that it comes before the import that would fail.
"""

from __future__ import annotations

from importlib.util import find_spec

from headrace.errors import DependencyError

_TEXT = "this needs pyspark and pyarrow: pip install 'headrace[spark]'"

try:
    import pyspark  # noqa: F401

    _has_arrow = find_spec("pyarrow") is not None  # importing it takes long, and planners have no use for it
except ImportError as error:
    raise DependencyError(_TEXT) from error
if not _has_arrow:
    raise DependencyError(_TEXT)
