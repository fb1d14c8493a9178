"""A rule that is broken on purpose: a simulation has to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from .campaign import Schedule, first_violation

Break = Callable[[pytest.MonkeyPatch], None]


_OWN_FAULTS = ("TypeError(", "AttributeError(", "NameError(")


@dataclass(frozen=True)
class Mutation:
    """One rule, and how it is broken.

    Attributes:
        rule: what holds; the mutation breaks it.
        run_schedule: the simulation that notices.
        break_it: changes the code, or the model of the brokers.
        within: schedules that are enough to notice.
        saying: part of the finding.
    """

    rule: str
    run_schedule: Schedule
    break_it: Break
    within: int
    saying: str

    @property
    def simulation(self) -> str:
        """Which simulation notices, as `tests.campaigns.sim` calls it."""
        return self.run_schedule.__module__.rpartition(".")[2]

    def caught(self, schedules: int | None = None) -> tuple[int, str]:
        """How many schedules it took and what was found; (0, "") if it went unnoticed in so many.

        Raises:
            TypeError: the mutation itself does not fit the code any more.
        """
        with pytest.MonkeyPatch.context() as patch:
            self.break_it(patch)
            tried, found = first_violation(self.run_schedule, range(schedules or self.within), self.saying)
        if any(error in found for error in _OWN_FAULTS):
            raise TypeError(f"the mutation is broken, not the rule {self.rule!r}: {found}")
        return tried, found


class Rules(list[Mutation]):
    """The rules of one part of the project."""

    def broken(
        self, rule: str, run_schedule: Schedule, within: int, saying: str = ""
    ) -> Callable[[Break], Break]:
        """Register a function that breaks a rule."""

        def register(break_it: Break) -> Break:
            self.append(Mutation(rule, run_schedule, break_it, within, saying))
            return break_it

        return register
