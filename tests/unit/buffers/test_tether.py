"""What is tied to the end of an object."""

import gc
import weakref
from typing import Any


class Holder:
    def __init__(self, tether: Any, told: list[str]) -> None:
        self.tether, self.told, self.me = tether, told, self
        weakref.finalize(tether, told.append, "end")

    def __del__(self) -> None:
        self.told.append("del")


def test_it_ends_with_who_holds_it(twin: Any) -> None:
    told: list[str] = []
    holder = Holder(twin.Tether(), told)
    holder.me = None  # no circle
    del holder
    assert told == ["del", "end"]


def test_in_a_circle_it_ends_behind_the_del_methods(native: Any) -> None:
    told: list[str] = []
    Holder(native.Tether(), told)
    assert told == []
    gc.collect()
    assert told == ["del", "end"]


def test_the_collector_does_not_see_it(native: Any, plain: Any) -> None:
    assert not gc.is_tracked(native.Tether())
    assert gc.is_tracked(plain.Tether())
