"""The native module for tests of it alone."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.unit.records.conftest import NATIVE


@pytest.fixture
def native() -> Any:
    if NATIVE is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the native module was not built")
        pytest.skip("the native module was not built")
    return NATIVE
