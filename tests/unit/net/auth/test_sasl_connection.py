"""Authentication on connections: when it is done, renewed, refused, and what waits meanwhile."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import DependencyError, KafkaError, KafkaException
from headrace.net.auth.tokens import unsecured_token
from headrace.net.thread import loop_thread
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from tests.support.scripted_broker import HANG_UP, SILENCE, ScriptedBroker, admin_config

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
PLAIN = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "u",
         "sasl.password": "hunter2"}
OAUTH = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}


class SaslBroker(ScriptedBroker):
    """Takes every token, and notes it."""

    def __init__(self, lifetime_ms: int = 0, **brokers: tuple[str, int]) -> None:
        super().__init__(**(brokers or {"node1": ("broker", 9092)}))
        self.tokens: list[bytes] = []
        self.lifetime_ms = lifetime_ms
        self.on(SaslHandshakeRequest, SaslHandshakeResponse(mechanisms=["PLAIN", "OAUTHBEARER"]))
        self.on(SaslAuthenticateRequest, self.authenticate)

    def authenticate(self, frame: RequestFrame) -> SaslAuthenticateResponse:
        assert isinstance(frame.request, SaslAuthenticateRequest)
        self.tokens.append(bytes(frame.request.auth_bytes))
        return SaslAuthenticateResponse(error_message=None, auth_bytes=b"", session_lifetime_ms=self.lifetime_ms)

    def refuse(self, times: int = 1_000_000) -> None:
        left = [times]

        def script(frame: RequestFrame) -> SaslAuthenticateResponse:
            left[0] -= 1
            if left[0] < 0:
                return self.authenticate(frame)
            return SaslAuthenticateResponse(error_code=58, error_message="no such user", auth_bytes=b"")

        self.on(SaslAuthenticateRequest, script)


def client(broker: ScriptedBroker, properties: dict[str, Any], **more: Any) -> ClientCore:
    core = ClientCore(Config(ADMIN, {**admin_config(9092, "broker"), "reconnect.backoff.ms": 5, **properties, **more}),
                      connector=broker.connector)
    core.on_error = lambda error: None
    return core


async def known(core: ClientCore) -> None:
    await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)


def test_nothing_but_versions_is_said_before_the_broker_knows_who_we_are() -> None:
    async def run() -> None:
        broker = SaslBroker()
        core = client(broker, PLAIN)
        await known(core)
        assert [type(frame.request).__name__ for frame in broker.seen[:4]] == [
            "ApiVersionsRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest", "MetadataRequest"]
        assert broker.tokens[0] == b"\0u\0hunter2"
        await core.close()

    asyncio.run(run())


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


@pytest.mark.parametrize("request_type", [SaslHandshakeRequest, SaslAuthenticateRequest])
def test_a_broker_that_hangs_up_during_sasl_is_recognised(request_type: type) -> None:
    async def run() -> None:
        broker = SaslBroker()
        broker.on(request_type, HANG_UP)
        core = client(broker, PLAIN)
        with pytest.raises(KafkaException, match='closed the connection during SASL: check') as failed:
            await core.list_topics(None, 0.3)
        assert failed.value.error == KafkaError._TRANSPORT
        await core.close()

    asyncio.run(run())


def test_a_port_that_hangs_up_at_the_first_request_may_need_sasl_and_is_reported_once() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(MetadataRequest, HANG_UP)
        errors: list[KafkaError] = []
        core = client(broker, {})
        core.on_error = errors.append
        with pytest.raises(KafkaException, match=r'may need SASL, with "security\.protocol": "sasl_plain'):
            await core.list_topics(None, 0.4)
        assert [error.code() for error in errors] == [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN]
        await core.close()

    asyncio.run(run())


# Renewal (KIP-368)


def test_a_session_is_renewed_on_the_same_connection_but_not_twice_within_a_second_which_kafka_refuses() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=100)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, PLAIN)
        await known(core)
        await core.driver.request(1, HEARTBEAT, 5)
        connections, started = broker.connections, len(broker.tokens)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + 1.3
        while loop.time() < ends_at:
            await core.driver.request(1, HEARTBEAT, 5)
        assert broker.connections == connections
        assert 1 <= len(broker.tokens) - started <= 2  # after 0.09 s, which may be over by now, and 1.14 s
        await core.close()

    asyncio.run(run())


def test_during_a_renewal_replies_in_flight_arrive_and_new_requests_wait() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=60)
        broker.on(HeartbeatRequest, SILENCE)
        core = client(broker, PLAIN)
        await known(core)
        before = asyncio.create_task(core.driver.request(1, HEARTBEAT, 5))
        while not broker.count(HeartbeatRequest):
            await asyncio.sleep(0.001)
        connection = broker.open[-1]
        broker.on(SaslHandshakeRequest, SILENCE)  # of the renewal: it comes behind the request in flight
        handshakes = broker.count(SaslHandshakeRequest)
        while broker.count(SaslHandshakeRequest) == handshakes:
            await asyncio.sleep(0.001)
        renewal = broker.seen[-1]
        assert isinstance(renewal.request, SaslHandshakeRequest)
        after = asyncio.create_task(core.driver.request(1, HEARTBEAT, 5))
        await asyncio.sleep(0.02)
        assert broker.count(HeartbeatRequest) == 1, "written in the middle of a renewal"
        first = next(frame for frame in broker.seen if isinstance(frame.request, HeartbeatRequest))
        connection.answer(first, HeartbeatResponse(error_code=27))
        reply = await before
        assert isinstance(reply, HeartbeatResponse)
        assert reply.error_code == 27
        assert not after.done()
        broker.on(HeartbeatRequest, HeartbeatResponse())
        broker.lifetime_ms = 0
        connection.answer(renewal, SaslHandshakeResponse(mechanisms=["PLAIN"]))
        await after
        await core.close()

    asyncio.run(run())


def test_a_renewal_that_is_refused_closes_the_connection() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=60)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, PLAIN)
        await known(core)
        await core.driver.request(1, HEARTBEAT, 5)
        connection, transport = broker.open[-1], broker.transports[-1]
        broker.refuse()
        broker.on(SaslHandshakeRequest, SILENCE)
        while not isinstance(broker.seen[-1].request, SaslHandshakeRequest):
            await asyncio.sleep(0.001)
        late = asyncio.create_task(core.driver.request(1, HEARTBEAT, 5))
        await asyncio.sleep(0)
        connection.answer(broker.seen[-1], SaslHandshakeResponse(mechanisms=["PLAIN"]))
        with pytest.raises(KafkaException, match="no such user") as failed:
            await asyncio.wait_for(late, 1)
        assert failed.value.error == KafkaError._AUTHENTICATION
        assert transport.closed
        await core.close()

    asyncio.run(run())


def test_renewals_do_not_keep_an_unused_connection_open() -> None:
    async def run() -> None:
        broker = SaslBroker(lifetime_ms=40)
        core = client(broker, PLAIN, **{"connections.max.idle.ms": 150})
        errors: list[KafkaError] = []
        core.on_error = errors.append
        await known(core)
        await asyncio.sleep(0.5)
        assert all(transport.closed for transport in broker.transports)
        assert errors == []
        await core.close()

    asyncio.run(run())


# Tokens


@pytest.mark.parametrize("asynchronous", [False, True])
def test_oauth_cb_is_called_off_the_loop_or_awaited(asynchronous: bool) -> None:
    called: list[tuple[str, threading.Thread]] = []

    def plain(config: str) -> tuple[Any, ...]:
        called.append((config, threading.current_thread()))
        token = unsecured_token("principal=a", {}, 2e9)
        return token.value, token.expires_at, "a", {"traceId": "7"}

    async def coroutine(config: str) -> tuple[Any, ...]:
        await asyncio.sleep(0)
        return plain(config)

    async def run() -> None:
        broker = SaslBroker()
        broker.on(HeartbeatRequest, HeartbeatResponse())
        core = client(broker, OAUTH, **{"oauth_cb": coroutine if asynchronous else plain,
                                        "sasl.oauthbearer.config": "x=1"})
        await known(core)
        assert broker.tokens[0].endswith(b".\x01traceId=7\x01\x01")
        await core.driver.request(1, HEARTBEAT, 5)
        [(config, thread)] = called  # one token for all connections
        assert config == "x=1"
        assert (thread is threading.current_thread()) is asynchronous
        await core.close()

    asyncio.run(run())


def test_a_callback_that_raises_is_an_authentication_error_with_its_reason() -> None:
    def broken(config: str) -> Any:
        raise OSError("the provider is closed on sundays")

    async def run() -> None:
        core = client(SaslBroker(), OAUTH, oauth_cb=broken)
        with pytest.raises(KafkaException, match="oauth_cb raised OSError: the provider is closed") as failed:
            await asyncio.wait_for(core.list_topics(None, 30), 2)
        assert failed.value.error == KafkaError._AUTHENTICATION
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


def test_gssapi_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)

    async def run() -> None:
        with pytest.raises(DependencyError, match=r"pip install 'headrace\[gssapi\]'"):
            client(SaslBroker(), {"security.protocol": "sasl_plaintext"})

    asyncio.run(run())
