"""A few seconds of `python -m tests.chaos`: both loads through the proxy to one real broker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tools.kafka import MissingJavaError, RegistryError

from .ledger import Fate
from .run import LOADS, Run
from .site import Site

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site(nodes=1, seed="smoke")
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


@pytest.mark.parametrize("load", LOADS)
def test_nothing_is_lost_or_twice_although_connections_are_hurt(site: Site, load: str) -> None:
    run = Run(site, "proxy", load, rate=400, seed="smoke")
    assert run.run(4), run.violations
    assert run._ledger.fates()[Fate.STORED] > 100
    assert site.proxy.counts.total() > 0
