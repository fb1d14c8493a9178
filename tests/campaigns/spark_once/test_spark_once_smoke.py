"""Some rows of `python -m tests.campaigns.spark_once`: one in each run of the tests, more in the long one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tools.kafka import NEWEST, MissingJavaError, RegistryError

from .case import AT_LEAST_ONCE
from .run import run_case
from .site import OnceSite

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def site() -> Iterator[OnceSite]:
    made = OnceSite(NEWEST, 1, 1200)
    try:
        made.__enter__()
    except (MissingJavaError, RegistryError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"real Kafka is part of CI: {error}")
        pytest.skip(str(error))
    try:
        yield made
    finally:
        made.__exit__()


@pytest.mark.slow
def test_a_sink_that_writes_at_least_once_is_found_out(site: OnceSite) -> None:
    result = run_case(site, "killed after EndTxn", "local[2]", AT_LEAST_ONCE)
    assert result.verdict is not None, result.notes
    assert result.verdict.twice > 0
    assert result.verdict.findings == result.verdict.twice
