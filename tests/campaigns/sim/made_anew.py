"""The simulation of the produce path where a topic is deleted and made anew just when its leaders have moved.

Answers that come late name leaders of the topic before, in epochs that the new one has not reached.

    python -m tests.campaigns.sim.made_anew --schedules 100000 --jobs 2
"""

from __future__ import annotations

import sys
from collections import Counter

from .campaign import run_campaign
from .produce import Simulation


class MadeAnew(Simulation):
    """One schedule in which the topic is made anew."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.recreated, self.refusing = True, False
        self.faults = self.random.choice([0.05, 0.1, 0.3])
        self.cluster.nodes = [1, 2, 3]
        self._is_leaving = False

    def _recreate(self) -> None:
        """Requests are on their way, perhaps to who is not the leader any more."""
        for _ in range(self.random.choice([0, 0, 1, 5])):
            self.cluster.move_leader()
        self._is_leaving = True
        self._burst()
        self.at(self.random.uniform(0, 0.02), self._leave)

    def _leave(self) -> None:
        self._is_leaving = False
        super()._recreate()

    def _delay_s(self, what: str, short: float, long: float) -> float:
        """The last answers come when the new topic is known already."""
        is_last = self._is_leaving and what == "replies late" and self.random.random() < 0.5
        return long if is_last else super()._delay_s(what, short, long)


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return MadeAnew(seed).run()


if __name__ == "__main__":
    sys.exit(run_campaign(run_schedule, "Simulate a topic that is made anew."))
