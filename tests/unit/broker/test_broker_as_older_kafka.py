"""A broker that offers no more than an older Kafka: clients find out, and get along with what there is."""

from contextlib import closing
from typing import Any

import confluent_kafka
import kafka
import pytest

from headrace import Consumer, Producer
from headrace.broker.dispatch import SERVED, SERVICES
from headrace.broker.profiles import RELEASES, versions_of_kafka
from headrace.errors import KafkaError
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.frame import decode_response
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from tests.support.kafka_python import KAFKA_PYTHON
from tests.support.raw_client import ASK_VERSIONS, RawClient
from tests.unit.broker.test_broker_foreign_clients import consume_with_confluent, pairs, produce_with_confluent

pytestmark = [*KAFKA_PYTHON]
COUNT = 200


def like(release: str) -> EmbeddedBroker:
    return EmbeddedBroker(settings=BrokerSettings.of_kafka(release), topics={"t": 2})


def advertised(broker: EmbeddedBroker, version: int = 0) -> dict[int, tuple[int, int]]:
    with RawClient(broker) as client:
        return {each.api_key: (each.min_version, each.max_version)
                for each in client.call(ASK_VERSIONS, version).api_keys}


def test_every_api_that_is_served_has_its_history() -> None:
    assert set(versions_of_kafka("4.4")) == {kind.__name__.removesuffix("Request") for kind in SERVICES}
    assert {key: high for key, (_, high) in advertised_of("4.4").items()} == {
        key: high for key, (_, high) in SERVED.items()}


def advertised_of(release: str) -> dict[int, tuple[int, int]]:
    with like(release) as broker:
        return advertised(broker)


def test_versions_only_ever_grow_from_release_to_release() -> None:
    for name in versions_of_kafka("4.4"):
        highest = [each[1] if (each := versions_of_kafka(release)[name]) else -1 for release in RELEASES]
        assert highest == sorted(highest), name


def test_a_release_offers_what_it_did() -> None:
    assert advertised_of("0.10.0") == {
        0: (0, 2), 1: (0, 2), 2: (0, 0), 3: (0, 1), 8: (0, 2), 9: (0, 1), 10: (0, 0), 11: (0, 0), 12: (0, 0),
        13: (0, 0), 14: (0, 0), 15: (0, 0), 16: (0, 0), 18: (0, 0)}
    assert advertised_of("2.8.1")[1] == (0, 12)
    assert advertised_of("4.4")[1] == (4, 18)


@pytest.mark.parametrize("release", ["0.7", "0.10", "4", "4.40", "5.0", ""])
def test_a_release_that_is_not_known_is_refused_with_those_that_are(release: str) -> None:
    with pytest.raises(ValueError, match=r"is not known; there are 0\.8\.0, .*4\.4"):
        BrokerSettings.of_kafka(release)


@pytest.mark.parametrize(("versions", "wrong"), [
    ({"Frobnicate": (0, 1)}, "'Frobnicate', which is not served"),
    ({"Fetch": (0, 99)}, "Fetch 0 to 99; 0 to 18 are served"),
    ({"Fetch": (5, 4)}, "Fetch 5 to 4; 0 to 18 are served"),
    ({"Fetch": (-1, 4)}, "Fetch -1 to 4; 0 to 18 are served"),
])
def test_versions_that_are_not_served_are_refused(versions: dict[str, tuple[int, int] | None], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        EmbeddedBroker(settings=BrokerSettings(api_versions=versions))


def test_what_is_narrowed_is_neither_advertised_nor_served() -> None:
    settings = BrokerSettings(api_versions={"Metadata": (2, 5), "OffsetDelete": None})
    with EmbeddedBroker(settings=settings) as broker:
        found = advertised(broker, 4)
        assert found[3] == (2, 5)
        assert found == {key: found[3] if key == 3 else versions for key, versions in SERVED.items() if key != 47}
        for version, is_served in ((1, False), (2, True), (5, True), (6, False)):
            with RawClient(broker) as client:
                client.send(MetadataRequest(topics=None), version)
                if is_served:
                    client.read_frame()
                else:
                    assert client.is_closed()


@pytest.mark.parametrize(("release", "named"), [("2.4", [(18, 0, 3)]), ("2.3", []), ("0.10.0", [])])
def test_api_versions_of_a_higher_version_is_answered_as_then(release: str, named: list[tuple[int, int, int]]) -> None:
    with like(release) as broker, RawClient(broker) as client:
        client.send(ASK_VERSIONS, 4)
        _, reply = decode_response(ApiVersionsRequest, 0, client.read_frame())
        assert isinstance(reply, type(client.call(ASK_VERSIONS, 0)))
        assert reply.error_code == KafkaError.UNSUPPORTED_VERSION
        assert [(each.api_key, each.min_version, each.max_version) for each in reply.api_keys] == named


def test_a_release_without_api_versions_hangs_up_on_it() -> None:
    with like("0.9") as broker, RawClient(broker) as client:
        client.send(ASK_VERSIONS, 0)
        assert client.is_closed()


@pytest.mark.parametrize("release", ["0.10.0", "0.10.2", "0.11", "1.1", "2.0", "2.8", "3.9", "4.4"])
def test_librdkafka_writes_and_reads_in_a_group(release: str) -> None:
    with like(release) as broker:
        codec = "lz4" if release < "2.1" else "zstd"
        if release.startswith("0.10"):  # before idempotent producers
            produce_plainly(broker, codec)
        else:
            produce_with_confluent(broker.bootstrap_servers, "t", pairs("a"), codec)
        assert sorted(consume_with_confluent(broker.bootstrap_servers, "t", COUNT)) == sorted(pairs("a"))
        assert sum(broker.end_offsets("t")) == COUNT


def produce_plainly(broker: EmbeddedBroker, codec: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec})
    failed = []
    for key, value in pairs("a"):
        producer.produce("t", value, key, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(10) == 0
    assert not failed


@pytest.mark.parametrize("release", ["0.9", "0.10.0", "0.10.1", "0.11", "1.0", "2.3", "3.3", "4.1"])
def test_kafka_python_writes_and_reads_in_a_group(release: str) -> None:
    with like(release) as broker:
        # Its leader assigns nothing if it has not heard of the topic yet, and asks again after this time only.
        settings: dict[str, Any] = {"bootstrap_servers": broker.bootstrap_servers, "metadata_max_age_ms": 1000}
        if release == "0.9":
            settings["api_version"] = (0, 9)  # what it cannot ask for
        with closing(kafka.KafkaProducer(enable_idempotence=False, compression_type="gzip", **settings)) as producer:
            sent = [producer.send("t", value, key) for key, value in pairs("a")]
            producer.flush(10)
            assert all(future.get(5).offset >= 0 for future in sent)
        with closing(kafka.KafkaConsumer("t", group_id="g", auto_offset_reset="earliest", **settings)) as consumer:
            found: list[tuple[bytes, bytes]] = []
            for _ in range(10):
                for records in consumer.poll(5000).values():  # one that ends while it joins loses its assignment
                    found += [(record.key, record.value) for record in records]
                if len(found) >= COUNT:
                    break
        assert sorted(found) == sorted(pairs("a"))


@pytest.mark.parametrize("release", [each for each in RELEASES if RELEASES.index(each) >= RELEASES.index("0.11")])
def test_ours_write_and_read_from_the_first_kafka_with_record_batches_on(release: str) -> None:
    """With the defaults of both, in bulk and record by record."""
    with like(release) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for key, value in pairs("a"):
                producer.produce("t", value, key)
            assert producer.flush(10) == 0
        found: list[bytes | None] = []
        with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g",
                       "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe(["t"])
            for _ in range(100):
                for message in consumer.consume(COUNT, 0.1):
                    assert message.error() is None
                    found.append(message.value())
                if len(found) >= COUNT:
                    break
            assert sorted(each or b"" for each in found) == sorted(value for _, value in pairs("a"))
            with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0}) as producer:
                for number in range(12):
                    producer.produce("t", b"%d" % number, partition=number % 2)
                    producer.flush(10)
                    message = consumer.poll(10)
                    assert message is not None
                    assert (message.error(), message.value()) == (None, b"%d" % number)
