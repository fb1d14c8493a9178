"""What holds for all tests: how they are shared out between processes."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_TOGETHER = ("integration/kafka", "integration/spark", "integration/foreign", "unit/broker", "unit/decode")
"""Folders whose tests share something dear, a cluster or a Spark session: one process has them all."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file, or of a folder that shares something dear, in one process (`-n 2 --dist loadgroup`)."""
    for item in items:
        path = item.path.relative_to(_HERE).as_posix()
        if item.get_closest_marker("xdist_group") is None:
            folder = next((folder for folder in _TOGETHER if path.startswith(f"{folder}/")), path)
            item.add_marker(pytest.mark.xdist_group(folder))
