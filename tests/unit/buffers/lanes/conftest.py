"""All tests of lanes run over both twins, without TLS and with it."""

from __future__ import annotations

from typing import Any

import pytest

from .ends import WAYS, twin_of


@pytest.fixture(params=WAYS)
def twin(request: pytest.FixtureRequest) -> Any:
    return twin_of(request)
