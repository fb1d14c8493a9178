"""What the simulations of whole clients share: a schedule on a simulated loop, which ends with the first finding."""

from __future__ import annotations

import random
from collections import Counter

from headrace.errors import KafkaError
from headrace.testing.simulated_clock import DeadlockError, LivelockError, SimulatedLoop

from .campaign import Violation


class WholeClients:
    """One schedule.

    Args:
        seed: of all that is left to chance.

    Attributes:
        counts: what happened, by name.
        loop: where clients, brokers and applications run.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.loop = SimulatedLoop()
        self._violation: Violation | None = None

    def run(self) -> Counter[str]:
        """Run it; raises `Violation`."""
        try:
            self.loop.run(self._run())
        except (DeadlockError, LivelockError) as stuck:
            self.hold(False, f"no progress: {type(stuck).__name__}")
        finally:
            self._let_go()
        if self._violation is not None:
            raise self._violation
        for failure in self.loop.failures:
            self.hold(False, f"unhandled: {failure.get('message')}: {failure.get('exception')!r}")
        return self.counts

    def hold(self, holds: bool, otherwise: str) -> None:
        """Check a property. The first that does not hold ends the schedule, wherever it was noticed."""
        if not holds:
            where = f"seed {self.seed} ({self._kind()}) at {self.loop.now:.3f} s"
            self._violation = self._violation or Violation(f"{where}: {otherwise}")
            raise self._violation

    def note_error(self, error: KafkaError) -> None:
        """A client's `error_cb`: brokers that are away are no finding, a machine that fails is one."""
        self.hold(error.code() != KafkaError._FAIL, f"a defect: {error.str()}")

    def _kind(self) -> str:
        """What this schedule was chosen to be, for its finding."""
        raise NotImplementedError

    async def _run(self) -> None:
        raise NotImplementedError

    def _let_go(self) -> None:
        """Forget the clients."""
