"""Requests are written down by name, and go wrong on request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace import KafkaError, Producer
from headrace.testing import EmbeddedBroker, FaultInjector, recorded_traffic


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        yield broker


def send(broker: EmbeddedBroker, **more: object) -> KafkaError | None:
    """Send one record; the error that was reported."""
    reports: list[KafkaError | None] = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 1, **more}) as producer:
        producer.produce("t", b"v", on_delivery=lambda error, _: reports.append(error))
        producer.flush(10)
    (report,) = reports
    return report


def test_requests_are_written_down_while_the_block_lasts(broker: EmbeddedBroker) -> None:
    with recorded_traffic(broker) as traffic:
        send(broker)
    produced = [each for each in traffic if each.api == "Produce"]
    assert {"ApiVersions", "Metadata", "InitProducerId"} <= {each.api for each in traffic}
    assert len(produced) == 1
    assert produced[0].request.acks == -1
    send(broker)
    assert [each for each in traffic if each.api == "Produce"] == produced


def test_an_error_is_answered_as_often_as_told_and_then_no_more(broker: EmbeddedBroker) -> None:
    FaultInjector(broker).error("Produce", KafkaError.NOT_LEADER_FOR_PARTITION, times=2)
    with recorded_traffic(broker) as traffic:
        assert send(broker) is None
    assert [each.api for each in traffic].count("Produce") == 3
    assert broker.end_offsets("t") == [1]


def test_an_error_that_stays_reaches_the_application(broker: EmbeddedBroker) -> None:
    FaultInjector(broker).error("Produce", KafkaError.TOPIC_AUTHORIZATION_FAILED, times=None)
    assert send(broker) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_dropped_and_lost_replies_cost_a_retry_and_no_copy(broker: EmbeddedBroker) -> None:
    faults = FaultInjector(broker)
    faults.drop("Produce")
    faults.lose_reply("Produce", after=1)
    assert send(broker) is None
    assert broker.end_offsets("t") == [1]


def test_what_is_held_up_goes_on_when_faults_are_cleared(broker: EmbeddedBroker) -> None:
    faults = FaultInjector(broker)
    faults.delay("Produce", 60.0)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("t", b"v")
        assert producer.flush(0.3) == 1
        faults.clear()
        assert producer.flush(10) == 0


def test_a_request_that_is_not_served_is_named_with_the_nearest(broker: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="serves no request 'Produced'; did you mean 'Produce'"):
        FaultInjector(broker).drop("Produced")
