"""Functions that make many objects run without the collector, and leave it as it was."""

import gc

import pytest

from headrace.collector import uncollected


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_off_in_the_function_and_as_before_behind_it(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    try:
        assert uncollected(gc.isenabled)() is False
        assert gc.isenabled() is on
    finally:
        gc.enable()


def test_it_is_on_again_when_the_function_raises() -> None:
    with pytest.raises(ValueError, match="no number"):
        uncollected(int)("no number")
    assert gc.isenabled()


def test_one_function_may_call_another() -> None:
    assert uncollected(lambda: uncollected(gc.isenabled)() or gc.isenabled())() is False
    assert gc.isenabled()
