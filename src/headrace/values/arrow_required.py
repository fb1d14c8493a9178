"""Imported first by each module that needs pyarrow and not pyspark: who lacks it learns what to install.

Importing this does the check, so that it comes before the import that would fail.
"""

from __future__ import annotations

from headrace.errors import DependencyError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise DependencyError("this needs pyarrow: pip install 'headrace[arrow]'") from error
