"""How long a client waits before it asks again."""

import pytest

from headrace.config import CONSUMER, Config
from headrace.machines.backoff import Pauses, RetryPolicy, backoff_s

GIVEN = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}


@pytest.mark.parametrize(("failures", "wait_s"), [(0, 0.1), (1, 0.1), (2, 0.2), (3, 0.4), (5, 1.0), (500, 1.0)])
def test_the_wait_doubles_up_to_its_limit(failures, wait_s):
    assert RetryPolicy().wait_s(failures) == pytest.approx(wait_s)


@pytest.mark.parametrize(("random", "wait_s"), [(0.0, 0.16), (0.5, 0.2), (1.0, 0.24)])
def test_jitter_spreads_it_by_a_fifth(random, wait_s):
    assert backoff_s(2, 0.1, 1.0, random) == pytest.approx(wait_s)
    assert RetryPolicy(jitter=lambda: random).wait_s(2) == pytest.approx(wait_s)


def test_the_properties_say_how_long():
    policy = RetryPolicy.of(Config(CONSUMER, {**GIVEN, "retry.backoff.ms": 20, "retry.backoff.max.ms": 50}))
    assert [policy.wait_s(failures) for failures in (1, 2, 3)] == pytest.approx([0.02, 0.04, 0.05])
    assert RetryPolicy.of(Config(CONSUMER, GIVEN)).wait_s(1) == pytest.approx(0.1)


def test_what_fails_at_the_same_moment_is_tried_again_at_the_same_moment():
    jitters = iter([0.0, 0.25, 0.5, 0.75])
    pauses = Pauses(RetryPolicy(jitter=lambda: next(jitters)).wait_s)
    assert pauses.until(1, 5.0) == pauses.until(1, 5.0) == pytest.approx(5.08)
    assert pauses.until(2, 5.0) == pytest.approx(5.18)
    assert pauses.until(1, 5.5) == pytest.approx(5.6)
    assert pauses.until(2, 5.5) == pytest.approx(5.72)
