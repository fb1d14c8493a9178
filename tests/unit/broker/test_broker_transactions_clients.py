"""Transactional clients in Python, and Kafka's own program, at the embedded broker, by old and by new rules.

`tests/integration/foreign` drives five clients more, in other languages, too.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import closing

import aiokafka
import confluent_kafka
import kafka
import pytest

import headrace
from headrace.errors import KafkaError
from headrace.testing import BrokerSettings, EmbeddedBroker
from tests.support.kafka_python import KAFKA_PYTHON
from tests.support.transactional_client import Transactional
from tests.unit.broker.test_broker_transactions import until
from tools.kafka import MissingJavaError, RegistryError, java_tool

pytestmark = [*KAFKA_PYTHON]
COUNT = 30


@pytest.fixture
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"t": 2, "source": 1}) as broker:
        yield broker.bootstrap_servers


def values(mark: str) -> list[bytes]:
    return [f"{mark}-{index:02}".encode() for index in range(COUNT)]


def with_confluent(servers: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "tx", "linger.ms": 0})
    producer.init_transactions(10)
    for mark, commit in (("first", True), ("gone", False), ("last", True)):
        producer.begin_transaction()
        for index, value in enumerate(values(mark)):
            producer.produce("t", value, partition=index % 2)
        producer.flush(10)
        (producer.commit_transaction if commit else producer.abort_transaction)(10)


def with_ours(servers: str) -> None:
    with headrace.Producer({"bootstrap.servers": servers, "transactional.id": "tx"}) as producer:
        producer.init_transactions(10)
        for mark, commit in (("first", True), ("gone", False), ("last", True)):
            try:
                with producer.transaction():
                    for index, value in enumerate(values(mark)):
                        producer.produce("t", value, partition=index % 2)
                    producer.flush(10)
                    assert commit
            except AssertionError:
                assert not commit


def with_kafka_python(servers: str) -> None:
    with closing(kafka.KafkaProducer(bootstrap_servers=servers, transactional_id="tx")) as producer:
        producer.init_transactions()
        for mark, commit in (("first", True), ("gone", False), ("last", True)):
            producer.begin_transaction()
            for index, value in enumerate(values(mark)):
                producer.send("t", value, partition=index % 2)
            producer.flush(10)
            producer.commit_transaction() if commit else producer.abort_transaction()


def with_aiokafka(servers: str) -> None:
    async def write() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id="tx")
        await producer.start()
        try:
            for mark, commit in (("first", True), ("gone", False), ("last", True)):
                await producer.begin_transaction()
                for index, value in enumerate(values(mark)):
                    await producer.send("t", value, partition=index % 2)
                await producer.flush()
                await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(write())


def read_with_confluent(servers: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "g", "fetch.wait.max.ms": 50,
                                         "isolation.level": "read_committed"})
    with closing(consumer):
        consumer.assign([confluent_kafka.TopicPartition("t", partition, 0) for partition in (0, 1)])
        found: list[bytes] = []
        for _ in range(200):
            found += [message.value() for message in consumer.consume(count, 0.05)]
            if len(found) >= count:
                break
    return found


def read_with_ours(servers: str, count: int) -> list[bytes]:
    with headrace.Consumer({"bootstrap.servers": servers, "group.id": "g", "fetch.wait.max.ms": 50}) as consumer:
        consumer.assign([headrace.TopicPartition("t", partition, 0) for partition in (0, 1)])
        found: list[bytes] = []
        for _ in range(200):
            found += [message.value() or b"" for message in consumer.consume(count, 0.05)]
            if len(found) >= count:
                break
    return found


def read_with_kafka_python(servers: str, count: int) -> list[bytes]:
    with closing(kafka.KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed", group_id=None,
                                     fetch_max_wait_ms=50)) as consumer:
        places = [kafka.TopicPartition("t", partition) for partition in (0, 1)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        found: list[bytes] = []
        for _ in range(200):
            found += [record.value for records in consumer.poll(50).values() for record in records]
            if len(found) >= count:
                break
    return found


@pytest.mark.parametrize("write", [with_ours, with_kafka_python, with_aiokafka])
def test_readers_get_what_was_committed_and_nothing_that_was_aborted(
    servers: str, write: Callable[[str], None]
) -> None:
    write(servers)
    expected = sorted(values("first") + values("last"))
    for read in (read_with_confluent, read_with_ours, read_with_kafka_python):
        assert sorted(read(servers, 2 * COUNT)) == expected


@pytest.mark.parametrize(("write", "settings"), [
    (with_confluent, BrokerSettings(marker_delay_ms=30)), (with_ours, BrokerSettings(marker_delay_ms=30)),
    (with_ours, BrokerSettings.of_kafka("3.9", marker_delay_ms=30)), (with_ours, BrokerSettings(transaction_version=1)),
    (with_ours, BrokerSettings.of_kafka("2.8")), (with_ours, BrokerSettings.of_kafka("0.11")),
    (with_kafka_python, BrokerSettings.of_kafka("0.11")),
], ids=["slow-confluent", "slow-ours", "slow-ours-3.9", "ours-version-1", "ours-2.8", "ours-0.11",
        "kafka-python-0.11"])
def test_clients_get_along_with_slow_markers_and_with_old_releases(
    write: Callable[[str], None], settings: BrokerSettings
) -> None:
    with EmbeddedBroker(topics={"t": 2}, settings=settings) as broker:
        write(broker.bootstrap_servers)
        assert sorted(read_with_ours(broker.bootstrap_servers, 2 * COUNT)) == sorted(values("first") + values("last"))


def test_a_group_of_ours_reads_and_writes_in_one_transaction(servers: str) -> None:
    with headrace.Producer({"bootstrap.servers": servers}) as producer:
        for value in values("in"):
            producer.produce("source", value)
    settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest",
                "enable.auto.commit": False, "fetch.wait.max.ms": 50}
    for is_last in (False, True):
        with (headrace.Consumer(settings) as consumer,
              headrace.Producer({"bootstrap.servers": servers, "transactional.id": "tx"}) as producer):
            consumer.subscribe(["source"])
            producer.init_transactions(10)
            messages: list[headrace.Message] = []
            while len(messages) < COUNT:
                messages += consumer.consume(COUNT, 0.1)
            producer.begin_transaction()
            for message in messages:
                producer.produce("t", message.value(), partition=0)
            producer.send_offsets_to_transaction(consumer.position(consumer.assignment()),
                                                 consumer.consumer_group_metadata())
            (producer.commit_transaction if is_last else producer.abort_transaction)(10)
    assert sorted(read_with_ours(servers, COUNT)) == values("in")
    with headrace.Consumer(settings) as consumer:
        assert [each.offset for each in consumer.committed([headrace.TopicPartition("source", 0)])] == [COUNT]


def test_a_producer_of_ours_is_fenced_by_one_of_librdkafka(servers: str) -> None:
    conf = {"bootstrap.servers": servers, "transactional.id": "tx"}
    with confluent_kafka.Producer(conf) as theirs, headrace.Producer(conf) as ours:
        ours.init_transactions(10)
        ours.begin_transaction()
        ours.produce("t", b"lost", partition=0)
        ours.flush(10)
        theirs.init_transactions(10)
        with pytest.raises(headrace.KafkaException) as told:
            ours.commit_transaction(10)
        assert told.value.args[0].fatal()
        theirs.begin_transaction()
        theirs.produce("t", b"kept", partition=0)
        theirs.commit_transaction(10)
    assert read_with_ours(servers, 1) == [b"kept"]


@pytest.mark.slow
def test_a_transaction_that_takes_too_long_is_aborted_under_its_producer(servers: str) -> None:
    with headrace.Producer({"bootstrap.servers": servers, "transactional.id": "tx",
                            "transaction.timeout.ms": 1000}) as producer:
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("t", b"late", partition=0)
        producer.flush(10)
        with Transactional(servers) as admin:
            until(lambda: admin.state().transaction_state == "CompleteAbort")
        with pytest.raises(headrace.KafkaException) as told:
            producer.commit_transaction(10)
        assert told.value.args[0].code() in (KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED,
                                             KafkaError.INVALID_TXN_STATE)


# -- Kafka's own program

def run(servers: str, program: str, *arguments: str) -> str:
    try:
        done = java_tool(program, "--bootstrap-server", servers, *arguments, timeout_s=60)
    except (MissingJavaError, RegistryError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.kafka
def test_kafkas_own_program_aborts_a_transaction_that_hangs() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker, Transactional(broker, "hanging") as client:
        servers = broker.bootstrap_servers
        client.init()
        client.store(b"gone")
        run(servers, "transactions", "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
        assert [each.first_offset for each in client.fetch().aborted_transactions] == [0]
