"""Both twins for the same tests: namespaces with the names that the native modules have."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.buffers import (
    alarm,
    buffer_pool,
    closed_batch,
    column_input,
    delivery_future,
    fast_path,
    future_condition,
    loop_turns,
    open_batches,
    record_accumulator,
    report_run,
    spin_wait,
    tether,
)
from headrace.buffers.lanes import direct_lane, fetch_lane, tls_pipe
from headrace.records import batch, builder, hashing, header, message
from headrace.records.columns import capsules, columns, joined_rows

_MODULES = (alarm, batch, buffer_pool, builder, capsules, closed_batch, column_input, columns, delivery_future,
            direct_lane, fast_path, fetch_lane, future_condition, hashing, header, joined_rows, loop_turns, message,
            open_batches, record_accumulator, report_run, spin_wait, tether, tls_pipe)


class Twin(SimpleNamespace):
    """The names of a twin; short where a failing test shows it."""

    def __init__(self, kind: str, names: dict[str, Any]) -> None:
        super().__init__(**names)
        self.kind = kind

    def __repr__(self) -> str:
        return self.kind


PLAIN = Twin("plain", {name: getattr(module, name) for module in _MODULES for name in module.__all__})

try:
    from headrace.buffers import _buffer
    from headrace.records import _batch, _joined_rows
except ImportError:
    NATIVE = None
else:
    NATIVE = Twin("native", {name: value for module in (_batch, _joined_rows, _buffer)
                             for name, value in vars(module).items() if not name.startswith("__")})


@pytest.fixture
def plain() -> Any:
    return PLAIN


@pytest.fixture
def native() -> Any:
    if NATIVE is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the native modules were not built")
        pytest.skip("the native modules were not built")
    return NATIVE


@pytest.fixture(params=["plain", "native"])
def twin(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)
