"""Whole consumers in a group under a simulated clock. `python -m tests.campaigns.sim.membership`,
`planned_membership`, `background_commits` and `handed_over` run many more schedules."""

import logging
from collections import Counter

import pytest

from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.producer.sender import Sender

from . import background_commits, handed_over, membership, planned_membership
from .application import WORK

_SCHEDULES = 30
_KINDS = pytest.mark.parametrize("kind", [membership, planned_membership])


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


@_KINDS
def test_each_record_comes_out_and_no_commit_goes_back_or_ahead(kind):
    counts = Counter()
    for seed in range(_SCHEDULES):
        counts += kind.run_schedule(seed)
    for what in ("kill", "end", "freeze", "cut", "stop_a_node", "coordinator moved", "transactions committed",
                 "transactions aborted", *(f"callbacks: {work.__name__.strip('_')}" for work in WORK)):
        assert counts[what], f"no schedule had: {what}"


def test_a_commit_that_nobody_waits_for_does_not_set_back_what_another_member_has_committed():
    counts = Counter()
    for seed in range(_SCHEDULES):
        counts += background_commits.run_schedule(seed)
    assert counts["refuse_commits"]


def test_no_record_comes_twice_where_members_only_come_and_go():
    counts = Counter()
    for seed in range(2 * _SCHEDULES):
        counts += handed_over.run_schedule(seed)
    for what in ("join", "end", *(f"callbacks: {work.__name__.strip('_')}" for work in WORK)):
        assert counts[what], f"no schedule had: {what}"


@_KINDS
@pytest.mark.parametrize("seed", [0, 3, 7])
def test_a_seed_is_a_schedule(kind, seed):
    assert kind.run_schedule(seed) == kind.run_schedule(seed)


def test_what_holds_where_a_step_asks_few_machines_holds_where_it_asks_all(monkeypatch):
    for machine in (Sender, Fetcher):  # no others are ever alone
        monkeypatch.setattr(machine, "alone", property(lambda _: False, lambda _, alone: None), raising=False)
    for seed in range(_SCHEDULES // 3):
        membership.run_schedule(seed)
