"""Every client goes on after an answer that is none, whatever it had asked."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType
from headrace.aio import AIOAdminClient, AIOConsumer, AIOProducer
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.testing import Action, BrokerSettings, EmbeddedBroker, Fault
from headrace.types.records import OFFSET_BEGINNING
from headrace.wire.messages.admin.configs import DescribeConfigsRequest
from headrace.wire.messages.admin.topics import CreateTopicsRequest
from headrace.wire.messages.cluster.metadata import DescribeClusterRequest, MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.messages.consumer.fetch import FetchRequest
from headrace.wire.messages.consumer.offsets import ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from headrace.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from headrace.wire.messages.producer.produce import InitProducerIdRequest, ProduceRequest
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from headrace.wire.schema import Request
from tests.support.garbage import GARBAGE, TLS

QUICK = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 20, "retry.backoff.ms": 5, "retry.backoff.max.ms": 20}
TEXT = "a web server's text"
SOME = ("an answer that lacks its end", "an answer to another request", TEXT)
MEMBER = ConsumerGroupMetadata("g")


@pytest.fixture(params=[1, 2], ids=["transactions-1", "transactions-2"])
def versions(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "in": 1}, settings=BrokerSettings(transaction_version=request.param)) as made:
        yield made


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "in": 1}) as made:
        yield made


class Errors(list[KafkaError]):
    """What `error_cb` is told."""

    def properties(self, broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": broker.bootstrap_servers, "error_cb": self.append, **QUICK, **more}

    def check(self) -> None:
        """It was told what was wrong, and nothing of it was for good."""
        assert KafkaError._BAD_MSG in self
        assert not [error for error in self if error.fatal()]
        assert {error.code() for error in self} <= {KafkaError._BAD_MSG, KafkaError._ALL_BROKERS_DOWN}


def garble(broker: EmbeddedBroker, request: type[Request], kind: str, times: int = 2) -> None:
    broker.add_fault(Fault(action=Action.GARBLE, request=request, garble=GARBAGE[kind], times=times))


def read(broker: EmbeddedBroker, topic: str = "t", isolation: str = "read_committed") -> list[bytes]:
    """All values of a topic, partition by partition."""
    partitions = len(broker.end_offsets(topic))
    found: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False,
                   "isolation.level": isolation, "enable.partition.eof": True, "fetch.wait.max.ms": 50}) as consumer:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
        ends = 0
        while ends < partitions:
            message = consumer.poll(5)
            assert message is not None
            if message.error() is not None:
                assert message.error() == KafkaError._PARTITION_EOF
                ends += 1
            else:
                found[message.partition()].append(message.value())
    return [value for values in found.values() for value in values]


# Producers

PRODUCER_PHASES = (ApiVersionsRequest, MetadataRequest, InitProducerIdRequest, ProduceRequest)


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
@pytest.mark.parametrize(("asked", "kind"), [
    (asked, kind) for asked in PRODUCER_PHASES for kind in GARBAGE if (asked, kind) != (ApiVersionsRequest, TLS)])
def test_records_are_delivered_whatever_answer_is_garbled(
    broker: EmbeddedBroker, asked: type[Request], kind: str, idempotent: bool
) -> None:
    errors, reports = Errors(), list[KafkaError | None]()
    garble(broker, asked, kind)
    with Producer(errors.properties(broker, **{"enable.idempotence": idempotent, "linger.ms": 0})) as producer:
        for number in range(5):
            producer.produce("t", b"%d" % number, partition=0, on_delivery=lambda error, _: reports.append(error))
            producer.poll(0)
        assert producer.flush(10) == 0
        assert reports == [None] * 5
        if asked is InitProducerIdRequest and not idempotent:
            return
        producer.poll(0)
        errors.check()
    values = read(broker)
    if idempotent or asked is not ProduceRequest:
        assert values == [b"0", b"1", b"2", b"3", b"4"]  # once each, under the numbers that they had
    else:
        assert set(values) == {b"0", b"1", b"2", b"3", b"4"}


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("asked", PRODUCER_PHASES)
def test_the_asyncio_producer_goes_on_as_well(broker: EmbeddedBroker, asked: type[Request], kind: str) -> None:
    errors = Errors()

    async def run() -> None:
        producer = AIOProducer(errors.properties(broker))
        stored = await asyncio.gather(*[await producer.produce("t", b"%d" % number, partition=0)
                                        for number in range(5)])
        assert [message.offset() for message in stored] == [0, 1, 2, 3, 4]
        await producer.close()

    garble(broker, asked, kind)
    asyncio.run(run())
    errors.check()
    assert read(broker) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(("asked", "kind"), [
    *((asked, kind) for asked in (InitProducerIdRequest, EndTxnRequest) for kind in GARBAGE),
    *((asked, kind) for asked in (FindCoordinatorRequest, AddPartitionsToTxnRequest, ProduceRequest, MetadataRequest)
      for kind in SOME),
])
def test_a_transaction_is_committed_whole_whatever_answer_is_garbled(
    versions: EmbeddedBroker, asked: type[Request], kind: str
) -> None:
    errors = Errors()
    garble(versions, asked, kind)
    with Producer(errors.properties(versions, **{"transactional.id": "x"})) as producer:
        producer.init_transactions(10)
        for number in range(3):
            producer.begin_transaction()
            for partition in range(2):
                producer.produce("t", b"%d" % number, partition=partition)
            producer.commit_transaction(10)
        producer.poll(0)
    if asked is not AddPartitionsToTxnRequest or errors:  # version 2 does not ask
        errors.check()
    assert read(versions) == [b"0", b"1", b"2"] * 2


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("asked", [AddOffsetsToTxnRequest, TxnOffsetCommitRequest, FindCoordinatorRequest])
def test_offsets_get_into_a_transaction_whatever_answer_is_garbled(
    versions: EmbeddedBroker, asked: type[Request], kind: str
) -> None:
    errors = Errors()
    with Producer(errors.properties(versions, **{"transactional.id": "x"})) as producer:
        producer.init_transactions(10)
        garble(versions, asked, kind)
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        producer.send_offsets_to_transaction([TopicPartition("in", 0, 7)], MEMBER, 10)
        producer.commit_transaction(10)
    with Consumer({"bootstrap.servers": versions.bootstrap_servers, "group.id": "g"}) as consumer:
        assert consumer.committed([TopicPartition("in", 0)], 5)[0].offset == 7
    assert read(versions) == [b"v"]


def test_the_asyncio_producers_transactions_go_on_as_well(versions: EmbeddedBroker) -> None:
    errors = Errors()

    async def run() -> None:
        producer = AIOProducer(errors.properties(versions, **{"transactional.id": "x"}))
        await producer.init_transactions(10)
        await producer.begin_transaction()
        await producer.produce("t", b"v", partition=0)
        await producer.commit_transaction(10)
        await producer.close()

    for asked in (InitProducerIdRequest, ProduceRequest, EndTxnRequest):
        garble(versions, asked, TEXT)
    asyncio.run(run())
    errors.check()
    assert read(versions) == [b"v"]


# A balancer in front of the brokers


class Balancer:
    """Speaks for a broker that it cannot reach yet, with the same words to everyone; later it forwards.

    Attributes:
        attempts: when clients came while it did not forward, monotonic seconds.
    """

    def __init__(self, broker: EmbeddedBroker, words: bytes) -> None:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        self._there, self._words = (host, int(port)), words
        self._forwards = threading.Event()
        self.attempts: list[float] = []
        self._open: list[socket.socket] = []
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def forward(self) -> None:
        self._forwards.set()

    def close(self) -> None:
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            each.close()

    def _keep(self, opened: socket.socket) -> socket.socket:
        """Have it closed in the end, also where that has come just now."""
        self._open.append(opened)
        if self._closed.is_set():
            opened.close()
        return opened

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._keep(self._listener.accept()[0])
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._forwards.is_set():
                there = self._keep(socket.create_connection(self._there))
                threading.Thread(target=self._pump, args=(there, client), daemon=True).start()
                self._pump(client, there)
            else:
                self.attempts.append(time.monotonic())
                client.recv(65_536)
                client.sendall(self._words)
                client.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def balancer(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[Balancer]:
    made = Balancer(broker, GARBAGE[getattr(request, "param", TEXT)](b""))
    yield made
    made.close()


def properties_of(balancer: Balancer, errors: Errors, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": balancer.bootstrap_servers, "error_cb": errors.append, **more}


def test_a_producer_outlasts_a_balancer_that_answers_503(broker: EmbeddedBroker, balancer: Balancer) -> None:
    errors, reports = Errors(), list[KafkaError | None]()
    with Producer(properties_of(balancer, errors)) as producer:
        producer.produce("t", b"v", on_delivery=lambda error, message: reports.append(error))
        producer.flush(1)
        assert reports == []
        balancer.forward()
        assert producer.flush(10) == 0
    assert reports == [None]
    assert read(broker) == [b"v"]
    errors.check()
    assert "it says 'HTTP/1.1 503 Service Unavailable'" in errors[0].str()
    assert [error.code() for error in errors].count(KafkaError._BAD_MSG) == 1  # not at every attempt


@pytest.mark.parametrize("balancer", [TEXT, TLS], indirect=True)
def test_a_transactional_producer_outlasts_a_balancer_that_answers_503_or_speaks_tls(
    broker: EmbeddedBroker, balancer: Balancer
) -> None:
    errors = Errors()
    with Producer(properties_of(balancer, errors, **{"transactional.id": "x"})) as producer:
        with pytest.raises(KafkaException) as failed:
            producer.init_transactions(0.5)
        assert failed.value.error == KafkaError._TIMED_OUT
        assert failed.value.error.retriable()
        assert ("503 Service Unavailable" if balancer._words.startswith(b"HTTP") else "the port speaks TLS") in str(
            failed.value)
        balancer.forward()
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("t", b"v")
        producer.commit_transaction(10)
    assert read(broker) == [b"v"]
    assert not [error for error in errors if error.fatal()]


def test_every_client_outlasts_a_balancer_that_answers_503(broker: EmbeddedBroker, balancer: Balancer) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("t", b"v")
    errors = Errors()
    threading.Timer(0.5, balancer.forward).start()
    with Consumer(properties_of(balancer, errors, **{"group.id": "g", "auto.offset.reset": "earliest"})) as consumer:
        consumer.subscribe(["t"])
        message = consumer.poll(10)
        assert message is not None
        assert message.value() == b"v"
        consumer.commit(message, asynchronous=False)

    async def run() -> None:
        admin = AIOAdminClient(properties_of(balancer, errors))
        assert (await admin.list_topics(timeout=10)).topics.keys() >= {"t"}
        await admin.close()

    asyncio.run(run())


def test_what_was_received_is_said_when_time_is_over(balancer: Balancer) -> None:
    errors, reports = Errors(), list[KafkaError | None]()
    said = "this is a web server, not a Kafka broker (it says 'HTTP/1.1 503 Service Unavailable')"
    with Producer(properties_of(balancer, errors, **{"message.timeout.ms": 2000})) as producer:
        producer.produce("t", b"v", on_delivery=lambda error, message: reports.append(error))
        assert producer.flush(10) == 0
        assert reports == [KafkaError._MSG_TIMED_OUT]
        assert said in str(reports[0])
        with pytest.raises(KafkaException) as failed:
            producer.list_topics(timeout=1)
        assert said in str(failed.value)
    with Consumer(properties_of(balancer, errors, **{"group.id": "g"})) as consumer:
        with pytest.raises(KafkaException) as failed:
            consumer.committed([TopicPartition("t", 0)], timeout=1)
        assert failed.value.error == KafkaError._TIMED_OUT
        assert said in str(failed.value)
    errors.check()


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
def test_what_was_received_is_said_of_records_whose_leader_is_known(broker: EmbeddedBroker, idempotent: bool) -> None:
    errors, reports = Errors(), list[KafkaError | None]()
    garble(broker, InitProducerIdRequest if idempotent else ProduceRequest, TEXT, times=1_000_000)
    more = {"message.timeout.ms": 2000, "enable.idempotence": idempotent}
    with Producer(errors.properties(broker, **more)) as producer:
        producer.produce("t", b"v", on_delivery=lambda error, message: reports.append(error))
        assert producer.flush(10) == 0
    [error] = reports
    assert error == KafkaError._MSG_TIMED_OUT
    assert "503 Service Unavailable" in str(error)
    assert error.maybe_applied is not idempotent  # type: ignore[union-attr]
    errors.check()


def test_a_broker_that_never_makes_sense_is_dialled_ever_more_slowly(balancer: Balancer) -> None:
    errors = Errors()
    with Producer(properties_of(balancer, errors, **{"reconnect.backoff.ms": 20})) as producer:
        producer.produce("t", b"v")
        producer.flush(1.5)
        producer.purge()
    waits = [later - sooner for sooner, later in zip(balancer.attempts, balancer.attempts[1:], strict=False)]
    assert 3 <= len(balancer.attempts) <= 10  # at 0, 20, 60, 140, 300, 620, 1260 ms, with jitter
    assert waits[-1] > 0.1  # five times the first one, if the machine has let it come so far only


# Consumers


@pytest.mark.parametrize(("asked", "kind"), [
    (JoinGroupRequest, TEXT),  # takes as long as a session, see below
    *((asked, kind) for asked in (
        ApiVersionsRequest, MetadataRequest, FindCoordinatorRequest, SyncGroupRequest, HeartbeatRequest,
        OffsetFetchRequest, ListOffsetsRequest, FetchRequest, OffsetCommitRequest, LeaveGroupRequest) for kind in SOME),
])
def test_a_group_reads_everything_once_whatever_answer_is_garbled(
    broker: EmbeddedBroker, asked: type[Request], kind: str
) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(20):
            producer.produce("t", b"%d" % number, partition=number % 2)
    errors, found = Errors(), list[bytes]()
    garble(broker, asked, kind, times=1)
    # A member whose id was lost on the way keeps the group waiting for a session; make that short (KIP-394).
    group = {"group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 6000, "heartbeat.interval.ms": 50}
    with Consumer(errors.properties(broker, **group)) as consumer:
        consumer.subscribe(["t"])
        give_up_at = time.monotonic() + 30
        while len(found) < 20 or (asked is HeartbeatRequest and not errors):
            assert time.monotonic() < give_up_at
            for message in consumer.consume(20, 0.1):
                assert message.error() is None, message.error()
                found.append(message.value())
        committed = consumer.commit(asynchronous=False)
        assert committed is not None
        assert [tp.error for tp in committed] == [None, None]
        assert sorted(tp.offset for tp in consumer.committed([TopicPartition("t", 0), TopicPartition("t", 1)], 5)) == [
            10, 10]
        consumer.poll(0)
    # A first answer about versions that has no end is asked for again in version 0; and nobody is told after the end.
    if asked is not LeaveGroupRequest and (asked, kind) != (ApiVersionsRequest, SOME[0]):
        errors.check()
    assert sorted(found, key=int) == [b"%d" % number for number in range(20)]


def test_the_asyncio_consumer_goes_on_as_well(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("t", b"v")
    errors = Errors()

    async def run() -> None:
        group = {"group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        consumer = AIOConsumer(errors.properties(broker, **group))
        await consumer.subscribe(["t"])
        message = await consumer.poll(10)
        assert message is not None
        assert message.value() == b"v"
        await consumer.commit(message, asynchronous=False)
        await consumer.close()

    for asked in (FindCoordinatorRequest, SyncGroupRequest, OffsetFetchRequest, ListOffsetsRequest, FetchRequest,
                  OffsetCommitRequest):
        garble(broker, asked, SOME[0], times=1)
    asyncio.run(run())
    errors.check()


# Admin clients


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_an_admin_client_reads_it_reads_in_spite_of_garbage(broker: EmbeddedBroker, kind: str) -> None:
    errors = Errors()
    for asked in (MetadataRequest, DescribeClusterRequest, DescribeConfigsRequest, ListGroupsRequest,
                  ListOffsetsRequest):
        garble(broker, asked, kind)
    with AdminClient(errors.properties(broker)) as admin:
        assert admin.list_topics(timeout=10).topics.keys() >= {"t"}
        assert len(admin.describe_cluster(request_timeout=10).result(10).nodes) == 1
        resource = ConfigResource(ResourceType.TOPIC, "t")
        assert admin.describe_configs([resource], request_timeout=10)[resource].result(10)
        assert admin.list_consumer_groups(request_timeout=10).result(10).valid == []
        place = TopicPartition("t", 0)
        assert admin.list_offsets({place: OffsetSpec.latest()}, request_timeout=10)[place].result(10).offset == 0
        admin.poll(0)
    errors.check()


@pytest.mark.parametrize("kind", SOME)
def test_what_an_admin_client_changes_may_have_been_changed_and_can_be_asked_for_again(
    broker: EmbeddedBroker, kind: str
) -> None:
    errors = Errors()

    async def run() -> None:
        admin = AIOAdminClient(errors.properties(broker))
        with pytest.raises(KafkaException) as failed:
            await admin.create_topics([NewTopic("new", 1)], request_timeout=10)["new"]
        assert failed.value.error == KafkaError._TRANSPORT
        assert failed.value.error.maybe_applied
        assert (await admin.list_topics(timeout=10)).topics.keys() >= {"new"}
        await admin.create_topics([NewTopic("newer", 1)], request_timeout=10)["newer"]
        await admin.close()

    garble(broker, CreateTopicsRequest, kind, times=1)
    asyncio.run(run())
    errors.check()
