"""The states of something as a table: which trigger leads from which state to which, and no other way.

The object that is in a state keeps it where it is read most cheaply, as a plain attribute, and changes it with what
`go` gives. The pages of `docs/internals` are drawn from these tables. Knows nothing of what the states are of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["Transitions", "from_each"]

_S = TypeVar("_S", bound=Enum)


class Transitions(Generic[_S]):
    """The only ways from one state to another.

    Args:
        what: what is in these states, for the text of a refusal.
        first: the state in which it begins.
        table: the state that follows, by state and trigger.

    Attributes:
        states: all there are, in the order of their definition.
    """

    def __init__(self, what: str, first: _S, table: Mapping[tuple[_S, str], _S]) -> None:
        self.what = what
        self.first = first
        self.states = tuple(type(first))
        self._table = table

    def column(self, trigger: str) -> Mapping[_S, _S]:
        """What `go` gives for one trigger, as `column[state]`: no call, for states that change with each record.

        Raises:
            RuntimeError: no way has this trigger; later, from `column[state]`, as `go`.
        """
        ways = {state: after for (state, known), after in self._table.items() if known == trigger}
        if not ways:
            raise RuntimeError(f"{self.what}: no way is called {trigger!r}")
        return _Column(self.what, trigger, ways)

    def go(self, state: _S, trigger: str) -> _S:
        """The state that follows.

        Raises:
            RuntimeError: the table has no such way, which is a mistake of the caller.
        """
        try:
            return self._table[state, trigger]
        except KeyError:
            raise _no_way(self.what, state, trigger) from None

    def allows(self, state: _S, trigger: str) -> bool:
        """Whether the table has such a way."""
        return (state, trigger) in self._table

    def __iter__(self) -> Iterator[tuple[_S, str, _S]]:
        return ((state, trigger, after) for (state, trigger), after in self._table.items())


class _Column(dict[_S, _S]):
    def __init__(self, what: str, trigger: str, ways: Mapping[_S, _S]) -> None:
        super().__init__(ways)
        self._what, self._trigger = what, trigger

    def __missing__(self, state: _S) -> _S:
        raise _no_way(self._what, state, self._trigger)


def _no_way(what: str, state: Enum, trigger: str) -> RuntimeError:
    return RuntimeError(f"{what}: no way leads from {state.name} by {trigger!r}")


def from_each(states: Iterable[_S], trigger: str, after: _S) -> dict[tuple[_S, str], _S]:
    """Rows of a table: the same trigger leads from all of these to the same state."""
    return {(state, trigger): after for state in states}
