"""Clients that a broker does not let in: what they are told, and what waits meanwhile."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.errors import KafkaError, KafkaException
from headrace.net.thread import loop_thread
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
)
from tests.support.enough_time import failure_given_time
from tests.support.sasl_broker import PLAIN, SaslBroker, client
from tests.support.scripted_broker import HANG_UP, SILENCE, ScriptedBroker


def test_a_refusal_fails_what_waits_at_once_and_shows_no_password() -> None:
    async def run() -> None:
        broker = SaslBroker()
        broker.refuse()
        errors: list[KafkaError] = []
        core = client(broker, PLAIN)
        core.on_error = errors.append
        for call in (core.list_topics(None, 30), core.wait_for_metadata(lambda cluster: False, 30)):
            with pytest.raises(KafkaException, match="no such user") as failed:
                await asyncio.wait_for(call, 2)
            assert failed.value.error == KafkaError._AUTHENTICATION
            assert not failed.value.error.retriable()
        assert [error.code() for error in errors] == [KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN]
        assert "hunter2" not in " ".join(map(repr, [*errors, core.config]))
        await core.close()

    asyncio.run(run())


def test_a_client_that_was_refused_goes_on_trying_with_backoff() -> None:
    async def run() -> None:
        broker = SaslBroker()
        broker.refuse(times=2)
        core = client(broker, PLAIN)
        for _ in range(2):
            with pytest.raises(KafkaException):
                await core.list_topics(None, 5)
        assert (await core.list_topics(None, 5)).cluster_id == "test"
        await core.close()

    asyncio.run(run())


RESTS = {"reconnect.backoff.ms": 60_000, "reconnect.backoff.max.ms": 60_000}


def admits(broker: SaslBroker, password: bytes) -> None:
    def answer(frame: RequestFrame) -> SaslAuthenticateResponse:
        if frame.request.auth_bytes.endswith(password):
            return broker.authenticate(frame)
        return SaslAuthenticateResponse(error_code=58, error_message="no such user", auth_bytes=b"")

    broker.on(SaslAuthenticateRequest, answer)


def test_other_credentials_are_tried_at_once_where_those_before_were_refused() -> None:
    async def run() -> None:
        broker = SaslBroker()
        admits(broker, b"other")
        core = client(broker, PLAIN, **RESTS)
        with pytest.raises(KafkaException, match="no such user"):
            await core.list_topics(None, 5)
        core.set_sasl_credentials("u", "other")
        assert (await core.list_topics(None, 5)).cluster_id == "test"
        await core.close()

    asyncio.run(run())


def test_a_refusal_of_credentials_that_were_replaced_meanwhile_is_not_told() -> None:
    async def run() -> None:
        broker = SaslBroker()
        broker.on(SaslAuthenticateRequest, SILENCE)
        errors: list[KafkaError] = []
        core = client(broker, PLAIN, **RESTS)
        core.on_error = errors.append
        listing = asyncio.create_task(core.list_topics(None, 5))
        async with asyncio.timeout(5):
            while not broker.count(SaslAuthenticateRequest):
                await asyncio.sleep(0.001)
        core.set_sasl_credentials("u", "other")
        await asyncio.sleep(0.01)
        admits(broker, b"other")
        refused = next(frame for frame in broker.seen if isinstance(frame.request, SaslAuthenticateRequest))
        broker.open[0].answer(refused, SaslAuthenticateResponse(
            error_code=58, error_message="no such user", auth_bytes=b""))
        assert (await listing).cluster_id == "test"
        assert errors == []
        await core.close()

    asyncio.run(run())


def test_other_credentials_that_are_refused_as_well_are_told_and_rest() -> None:
    async def run() -> None:
        broker = SaslBroker()
        broker.refuse()
        core = client(broker, PLAIN, **RESTS)
        for attempts in (1, 2):
            with pytest.raises(KafkaException, match="no such user"):
                await core.list_topics(None, 5)
            assert broker.count(SaslAuthenticateRequest) == attempts
            core.set_sasl_credentials("u", "other")
        await core.close()

    asyncio.run(run())


def test_what_is_open_goes_on_under_the_credentials_that_it_has() -> None:
    async def run() -> None:
        broker = SaslBroker()
        core = client(broker, PLAIN)
        for _ in range(2):  # the first is answered by a bootstrap server
            await core.list_topics(None, 5)
        connections = broker.connections
        core.set_sasl_credentials("u", "other")
        await core.list_topics(None, 5)
        assert broker.connections == connections
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("request_type", [SaslHandshakeRequest, SaslAuthenticateRequest])
def test_a_broker_that_hangs_up_during_sasl_is_recognised(request_type: type) -> None:
    async def run() -> None:
        broker = SaslBroker()
        broker.on(request_type, HANG_UP)
        core = client(broker, PLAIN)
        error = await failure_given_time(lambda time_s: core.list_topics(None, time_s))
        assert error == KafkaError._TRANSPORT
        assert "closed the connection during SASL: check" in error.str()
        await core.close()

    asyncio.run(run())


def test_a_port_that_hangs_up_at_the_first_request_may_need_sasl_and_is_reported_once() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(MetadataRequest, HANG_UP)
        errors: list[KafkaError] = []
        core = client(broker, {})
        core.on_error = errors.append
        error = await failure_given_time(lambda time_s: core.list_topics(None, time_s))
        assert 'may need SASL, with "security.protocol": "sasl_plain' in error.str()
        assert [error.code() for error in errors] == [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN]
        await core.close()

    asyncio.run(run())


# The faces


@pytest.fixture
def refusing_port() -> Iterator[int]:
    async def made() -> tuple[SaslBroker, asyncio.Server, int]:
        broker = SaslBroker()
        broker.nodes = {}
        broker.refuse()
        return broker, *await broker.listen()

    broker, server, port = loop_thread().call(made())
    yield port
    loop_thread().call(broker.shut(server))


@pytest.mark.parametrize("properties", [{}, {"enable.idempotence": False}], ids=["idempotent", "not idempotent"])
def test_records_of_a_producer_that_is_refused_are_reported_at_once(refusing_port: int, properties: Any) -> None:
    reports: list[KafkaError | None] = []
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{refusing_port}", **PLAIN, **properties,
                         "error_cb": errors.append})
    producer.produce("t", b"v", on_delivery=lambda error, message: reports.append(error))
    assert producer.flush(3) == 0
    assert reports == [KafkaError._AUTHENTICATION]
    assert "no such user" in str(reports[0])
    assert errors[0] == KafkaError._AUTHENTICATION
    producer.close()


def test_a_consumer_that_is_refused_says_so_in_poll_and_fails_its_calls(refusing_port: int) -> None:
    with Consumer({"bootstrap.servers": f"127.0.0.1:{refusing_port}", **PLAIN, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
        message = consumer.poll(3)
        assert message is not None
        assert message.error() == KafkaError._AUTHENTICATION
        with pytest.raises(KafkaException) as failed:
            consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=3)
        assert failed.value.error == KafkaError._AUTHENTICATION
