"""Whole consumers in a group under a simulated clock. `python -m tests.campaigns.sim.membership` runs many more
schedules."""

import logging
from collections import Counter

import pytest

from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.producer.sender import Sender

from .membership import run_schedule

_SCHEDULES = 60


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


def test_each_record_comes_out_and_no_commit_goes_back_or_ahead():
    counts = Counter()
    for seed in range(_SCHEDULES):
        counts += run_schedule(seed)
    for what in ("kill", "end", "freeze", "cut", "stop_a_node", "callbacks raised", "transactions committed",
                 "transactions aborted"):
        assert counts[what], f"no schedule had: {what}"


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_a_seed_is_a_schedule(seed):
    assert run_schedule(seed) == run_schedule(seed)


def test_what_holds_where_a_step_asks_few_machines_holds_where_it_asks_all(monkeypatch):
    for machine in (Sender, Fetcher):  # no others are ever alone
        monkeypatch.setattr(machine, "alone", property(lambda _: False, lambda _, alone: None), raising=False)
    for seed in range(_SCHEDULES // 3):
        run_schedule(seed)
