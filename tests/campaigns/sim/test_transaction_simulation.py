"""Transactions keep their promises on many schedules, and these are as bad as they claim.

`tests.campaigns.sim.test_mutations` breaks each rule, `tests.campaigns.sim.test_torn_transaction` has Jepsen's
schedule.
"""

from collections import Counter

import pytest

from . import read_process_write
from .transactions import Simulation, run_schedule


@pytest.mark.parametrize("first_seed", range(0, 400, 200))
def test_transactions_are_whole_in_order_and_once_or_not_at_all(first_seed):
    for seed in range(first_seed, first_seed + 200):
        run_schedule(seed)


@pytest.mark.parametrize("first_seed", range(0, 100, 50))
def test_what_a_group_reads_is_written_once_whoever_takes_its_partitions_over(first_seed):
    for seed in range(first_seed, first_seed + 50):
        read_process_write.run_schedule(seed)


def test_everything_that_can_happen_does_happen():
    counts, fences = Counter(), set()
    for seed in range(500):
        simulation = Simulation(seed)
        counts.update(simulation.run())
        fences |= set(simulation.cluster.fences)
    assert {what for what, times in counts.items() if times < 3} <= {"refused for good"}
    assert len(counts) > 30
    assert counts["transactions committed"] > counts["transactions aborted"] > 100
    assert len(fences) >= 4
