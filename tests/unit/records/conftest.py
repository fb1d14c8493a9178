"""Both twins through the same tests: `twin` is a namespace with the names that the native module has."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.records import batch, builder, delivery, hashing, header, message, topic_buffer
from headrace.records.columns import columns


class Twin(SimpleNamespace):
    """The names of a twin; short where a failing test shows it."""

    def __repr__(self) -> str:
        return "plain"


PLAIN = Twin(**{
    name: getattr(module, name)
    for module in (batch, builder, columns, delivery, hashing, header, message, topic_buffer)
    for name in module.__all__
})

try:
    from headrace.records import _native as NATIVE  # noqa: N812
except ImportError:
    NATIVE = None  # type: ignore[assignment]


@pytest.fixture
def plain() -> Any:
    return PLAIN


@pytest.fixture
def native() -> Any:
    if NATIVE is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the native module was not built")
        pytest.skip("the native module was not built")
    return NATIVE


@pytest.fixture(params=["plain", "native"])
def twin(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)
