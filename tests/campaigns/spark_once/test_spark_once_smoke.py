"""Some rows of `python -m tests.campaigns.spark_once`: one in each run of the tests, more in the long one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.real_kafka import needed_in_ci
from tools.kafka import NEWEST

pytest.importorskip("pyspark")

from .case import AT_LEAST_ONCE, EXACTLY_ONCE, FOREACH_BATCH
from .faults import LOCAL
from .run import run_case
from .site import OnceSite

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def site() -> Iterator[OnceSite]:
    made = OnceSite(NEWEST, 1, 1200)
    with needed_in_ci():
        made.__enter__()
    try:
        yield made
    finally:
        made.__exit__()


def test_a_driver_that_dies_behind_the_commit_writes_nothing_twice(site: OnceSite) -> None:
    result = run_case(site, "killed after EndTxn", LOCAL, EXACTLY_ONCE)
    assert result.verdict is not None, result.notes
    assert (result.verdict.findings, result.verdict.committed, result.restarts) == (0, 1200, 1)


@pytest.mark.slow
@pytest.mark.parametrize("how", [EXACTLY_ONCE, FOREACH_BATCH])
def test_a_driver_that_dies_at_each_point_writes_everything_once(site: OnceSite, how: str) -> None:
    result = run_case(site, "each point in turn", LOCAL, how)
    assert result.verdict is not None, result.notes
    assert result.verdict.findings == 0
    assert result.verdict.aborted > 0
    assert result.restarts >= 5


@pytest.mark.slow
@pytest.mark.parametrize(("how", "mutation"), [(AT_LEAST_ONCE, ""), (EXACTLY_ONCE, "no marker")])
def test_what_is_written_twice_is_found(site: OnceSite, how: str, mutation: str) -> None:
    result = run_case(site, "killed after EndTxn", LOCAL, how, mutation)
    assert result.verdict is not None, result.notes
    assert result.verdict.twice > 0
