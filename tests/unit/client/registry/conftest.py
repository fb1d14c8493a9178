"""A registry that answers as a test says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.scripted_registry import ScriptedRegistry, scripted_registry


@pytest.fixture
def registry() -> Iterator[ScriptedRegistry]:
    with scripted_registry() as registry:
        yield registry
