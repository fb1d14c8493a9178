"""What a producer of many topics costs is measured with both clients; smoke on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import topics_produced
from benchmarks.many_topics import names_of, prepare
from benchmarks.measure import run_child
from headrace.testing import EmbeddedBroker

TOPICS, RECORDS, FEW = 5, 200, 10


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        prepare(broker.bootstrap_servers, TOPICS)
        yield broker


def request(broker: EmbeddedBroker, **more: str) -> dict[str, object]:
    return {"bootstrap": broker.bootstrap_servers, "topics": TOPICS, "records": RECORDS, "few": FEW, "size": 10, **more}


@pytest.mark.parametrize("client", topics_produced.CLIENTS)
@pytest.mark.parametrize(("action", "records"), [
    ("new", TOPICS), ("first", TOPICS), ("bulk", TOPICS + RECORDS), ("one", TOPICS + FEW), ("paced", TOPICS + FEW)])
def test_records_for_several_topics_are_sent_and_timed(
    broker: EmbeddedBroker, client: str, action: str, records: int
) -> None:
    def stored() -> int:
        return sum(sum(broker.end_offsets(name)) for name in names_of(TOPICS))

    before = stored()
    found = run_child("benchmarks.topics_produced", request(broker, action=action, client=client))
    assert stored() - before == records
    assert found[f"{action}_s"] > 0 < found[f"{action}_cpu_s"]
