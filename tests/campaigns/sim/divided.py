"""The simulation of the produce path where batches are refused for their size, or for records that the broker names.

Besides what `tests.campaigns.sim.produce` checks: a record that cannot be stored fails, and no record fails with it
for certain; as long as only sizes are refused, and batches were never larger, nothing fails and no new numbers are
begun.

    python -m tests.campaigns.sim.divided --schedules 100000 --jobs 2
"""

from __future__ import annotations

import sys
from collections import Counter

from headrace.errors import KafkaError
from headrace.machines.producer.sender import BatchDone

from .campaign import run_campaign
from .produce import Simulation

_UNCOMMON = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


class DividedBatches(Simulation):
    """One schedule with larger batches, smaller brokers and more poison."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng, cluster = self.random, self.cluster
        self.buffer.batch_count = rng.choice([2, 4, 8])
        self.batch_queues.linger_s = rng.choice([0.005, 0.1, 0.5])
        self.refusing = False
        self.bad = {rng.randrange(25) for _ in range(rng.choice([0, 1, 4, 12]))}
        self.turned_bad = rng.random() < 0.5  # records that were good, and may be stored, are refused from then on
        cluster.poison = set() if self.turned_bad else self.bad
        self._anytime(lambda: cluster.poison.update(self.bad))
        cluster.names_poison = True
        cluster.largest = rng.choice([1000, 1, 2, 3])
        self.narrowed = rng.random() < 0.3  # after some batches have come through
        if self.narrowed:
            self._anytime(self._narrow)

    def _narrow(self) -> None:
        self.cluster.largest = 1

    @property
    def _certain(self) -> bool:
        return super()._certain and not self.narrowed and not self.bad

    def _check_report(self, record: int, done: BatchDone, places: list[tuple[int, int]]) -> None:
        super()._check_report(record, done, places)
        if record in self.bad:
            self._hold(self.turned_bad or done.error is not None or self.acks == 0,
                       f"record {record} was acknowledged and is refused")
        elif done.error is not None and not self.bounded and done.error.code() not in _UNCOMMON:
            self._hold(done.error.maybe_applied, f"record {record} failed with others for certain")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return DividedBatches(seed).run()


if __name__ == "__main__":
    sys.exit(run_campaign(run_schedule, "Simulate batches that are sent in parts."))
