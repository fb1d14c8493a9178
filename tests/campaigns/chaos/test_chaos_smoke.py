"""A few seconds of `python -m tests.campaigns.chaos` on one real broker: both loads through the proxy, and the
pipeline."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.real_kafka import needed_in_ci

from .etl.pipeline import AT_LEAST_ONCE, SHARE, WORKERS, Pipeline
from .garble import PHASES
from .ledger import Fate
from .run import LOADS, Run, _state_of
from .site import Site

pytestmark = [pytest.mark.kafka]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site(nodes=1, seed="smoke", sasl=True)
    with needed_in_ci():
        made.__enter__()
    try:
        yield made
    finally:
        made.__exit__()


@pytest.mark.parametrize("load", LOADS)
def test_nothing_is_lost_or_twice_although_connections_are_hurt(site: Site, load: str) -> None:
    run = Run(site, "proxy", load, rate=400, seed="smoke")
    assert run.run(4), run.violations
    assert run._ledger.fates()[Fate.STORED] > 100
    assert site.proxy.counts.total() > 0
    assert all(_state_of(writer.producer) for writer in run._writers), "what is said of one that is stuck"


@pytest.mark.parametrize("mode", ["eager", *(pytest.param(mode, marks=pytest.mark.slow)
                                             for mode in ("cooperative", "consumer"))])
def test_each_record_comes_out_of_a_pipeline_once_although_its_workers_are_hurt(site: Site, mode: str) -> None:
    pipeline = Pipeline(site, WORKERS, mode, rate=300, seed="smoke")
    assert pipeline.run(10), pipeline.violations
    assert pipeline.sent > 1000
    assert pipeline.faults.total() > 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eager", "consumer", SHARE])
def test_each_record_comes_out_of_a_pipeline_without_transactions(site: Site, mode: str) -> None:
    pipeline = Pipeline(site, WORKERS, mode, rate=300, seed="smoke", guarantee=AT_LEAST_ONCE)
    assert pipeline.run(records=3000), pipeline.violations
    assert pipeline.result.out == 3000


@pytest.mark.parametrize("load", LOADS)
def test_nothing_is_lost_or_twice_although_answers_are_garbled(site: Site, load: str) -> None:
    run = Run(site, "garble", load, rate=400, seed="smoke")
    faults = {f"garbled of {phase}" for phase in PHASES if (phase, load) != ("transaction", "idempotent")}
    assert run.run(4, faults), run.violations
    assert run._ledger.fates()[Fate.STORED] > 100
    assert site.proxy.counts.keys() == faults
