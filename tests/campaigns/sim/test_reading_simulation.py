"""Whole readers under a simulated clock; `python -m tests.campaigns.sim.reading` runs many more schedules."""

import logging
from collections import Counter

import pytest

from . import reading

_SCHEDULES = 15


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


def test_a_reader_reads_on_in_order_wherever_records_go_from_under_it():
    counts = Counter()
    for seed in range(_SCHEDULES):
        counts += reading.run_schedule(seed)
    for what in ("write", "forget", "seek", "pause", "resume", "stand_still", "freeze", "cut", "stop_a_node",
                 "gone while healed"):
        assert counts[what], f"no schedule had: {what}"


@pytest.mark.parametrize("seed", [0, 3])
def test_a_seed_is_a_schedule(seed):
    assert reading.run_schedule(seed) == reading.run_schedule(seed)
