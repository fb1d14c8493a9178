"""TLS to a real Kafka: a checked certificate, a client's own certificate, and clear refusals."""

import contextlib
import os
import shutil
import time
from pathlib import Path

import pytest
import trustme
import uvloop

from headrace import KafkaError, KafkaException, Producer
from headrace.aio import AIOConsumer, AIOProducer
from tests.support.async_reading import read_values
from tests.support.real_kafka import read_all
from tools.kafka import KafkaCluster


def test_records_travel_over_tls(kafka: KafkaCluster, topic: str) -> None:
    properties = kafka.client_properties("SSL")
    with Producer(properties) as producer:
        for i in range(1_000):
            producer.produce(topic, str(i).encode() * 100, partition=0)
        assert producer.flush(30) == 0
    found = read_all(kafka, topic, 1_000, **properties)
    assert [m.value() for m in found] == [str(i).encode() * 100 for i in range(1_000)]


def test_records_travel_over_tls_on_a_loop_that_is_not_asyncios(kafka: KafkaCluster, topic: str) -> None:
    properties = kafka.client_properties("SSL")
    values = [str(i).encode() * 100 for i in range(1_000)]

    async def work() -> None:
        async with AIOProducer(properties) as producer:
            sent = [await producer.produce(topic, value, partition=0) for value in values]
            assert await producer.flush(30) == 0
            assert [(await each).offset() for each in sent] == list(range(1_000))
        async with AIOConsumer({**properties, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
            await consumer.subscribe([topic])
            assert await read_values(consumer, 1_000) == values

    uvloop.run(work())


def test_a_client_may_show_a_certificate_of_its_own(kafka: KafkaCluster, topic: str) -> None:
    assert kafka.certificates is not None
    properties = {
        **kafka.client_properties("SSL"),
        "ssl.certificate.location": str(kafka.certificates.client_chain),
        "ssl.key.location": str(kafka.certificates.client_key),
    }
    with Producer(properties) as producer:
        producer.produce(topic, b"v")
        assert producer.flush(30) == 0


@pytest.mark.parametrize("stale", ["certificate", "authority"])
def test_files_that_are_renewed_on_disk_let_a_client_in_that_was_refused(
    kafka: KafkaCluster, topic: str, stale: str, tmp_path: Path
) -> None:
    assert kafka.certificates is not None
    right = {"ssl.ca.location": kafka.certificates.ca, "ssl.certificate.location": kafka.certificates.client_chain,
             "ssl.key.location": kafka.certificates.client_key}
    files = {name: tmp_path / path.name for name, path in right.items()}
    for name, path in right.items():
        shutil.copy(path, files[name])
    other = trustme.CA()
    if stale == "authority":
        files["ssl.ca.location"].write_bytes(other.cert_pem.bytes())
    else:
        leaf = other.issue_cert("client")
        files["ssl.certificate.location"].write_bytes(leaf.cert_chain_pems[0].bytes())
        files["ssl.key.location"].write_bytes(leaf.private_key_pem.bytes())
    errors: list[KafkaError] = []
    with Producer({**kafka.client_properties("SSL"), **{name: str(path) for name, path in files.items()},
                   "error_cb": errors.append}) as producer:
        for _ in range(100):
            producer.poll(0.1)
            if errors:
                break
        assert "certificate" in errors[0].str()
        for name, path in right.items():
            os.replace(shutil.copy(path, tmp_path / "new"), files[name])  # as tools do it: never half a file
        reports: list[KafkaError | None] = []
        for _ in range(100):  # a connection that began with the old files may fail once more, and its records with it
            producer.produce(topic, b"v", on_delivery=lambda error, message: reports.append(error))
            assert producer.flush(30) == 0
            if reports[-1] is None:
                break
        assert reports[-1] is None
        assert len(reports) <= 2


@pytest.mark.parametrize("case", ["another authority", "plaintext to a TLS port", "TLS to a plaintext port"])
def test_a_wrong_way_to_connect_is_one_clear_line(kafka: KafkaCluster, case: str) -> None:
    properties = kafka.client_properties("SSL")
    if case == "another authority":
        properties.pop("ssl.ca.location")
        properties["ssl.ca.pem"] = trustme.CA().cert_pem.bytes().decode()
    elif case == "plaintext to a TLS port":
        properties = {"bootstrap.servers": kafka.bootstrap("SSL")}
    else:
        properties["bootstrap.servers"] = kafka.bootstrap_servers
    errors: list[KafkaError] = []
    producer = Producer({**properties, "error_cb": errors.append, "message.timeout.ms": 2_000})
    with contextlib.suppress(KafkaException):  # some of these cannot pass, and the producer then refuses to go on
        producer.produce("t", b"v")
    deadline = time.monotonic() + 10
    with contextlib.suppress(KafkaException):
        while not errors and time.monotonic() < deadline:
            producer.poll(0.1)
        producer.flush(5)
    producer.close()
    assert errors, "nothing was reported"
    text = str(errors[0])
    assert "127.0.0.1" in text
    assert "\n" not in text
    if case == "another authority":
        assert errors[0].code() == KafkaError._SSL
        assert "certificate" in text.lower()
