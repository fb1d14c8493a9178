"""Bytes that break the format cost the connection that they came on, and nothing else."""

import asyncio
import random
import ssl
import time
from collections.abc import Callable
from typing import Any

import pytest
import trustme

from headrace.client.core import ClientCore
from headrace.config import ADMIN, PRODUCER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.handshake import FIRST_VERSION
from headrace.machines.machine import Send
from headrace.net.errors import Phase, connection_error, is_garbled, request_error
from headrace.wire.frame import RequestFrame, encode_response
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from headrace.wire.schema import Response, Struct
from tests.support.enough_time import failure_given_time
from tests.support.garbage import GARBAGE, TLS
from tests.support.scripted_broker import HANG_UP, SILENCE, ScriptedBroker, admin_config, api_versions

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
PLAIN = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "u",
         "sasl.password": "hunter2"}
PATIENCE_S = 20  # of a busy machine
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20, "retry.backoff.ms": 10, "retry.backoff.max.ms": 20}


def garbled(answer: Callable[[RequestFrame], Response], kind: str, times: int = 1_000_000) -> Any:
    """A script that garbles so many answers, and gives the right one from then on."""
    left = [times]

    def script(frame: RequestFrame) -> Response | bytes:
        reply = answer(frame)
        left[0] -= 1
        whole = b"".join(encode_response(reply, frame.version, frame.correlation_id))
        return reply if left[0] < 0 else GARBAGE[kind](whole)

    return script


def answers(broker: ScriptedBroker) -> dict[type, Callable[[RequestFrame], Response]]:
    """What is right, in the order in which a client with SASL asks."""
    return {
        ApiVersionsRequest: api_versions,
        SaslHandshakeRequest: lambda frame: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateRequest: lambda frame: SaslAuthenticateResponse(error_message=None, auth_bytes=b""),
        MetadataRequest: broker.metadata,
        HeartbeatRequest: lambda frame: HeartbeatResponse(),
    }


def scripted() -> ScriptedBroker:
    broker = ScriptedBroker(node1=("broker", 9092))
    for request, answer in answers(broker).items():
        broker.on(request, answer)
    return broker


def client(broker: ScriptedBroker, errors: list[KafkaError] | None = None, **properties: Any) -> ClientCore:
    core = ClientCore(Config(ADMIN, {"bootstrap.servers": "broker:9092", **QUICK, **properties}),
                      connector=broker.connector)
    core.on_error = (errors if errors is not None else []).append
    return core


async def known(core: ClientCore) -> None:
    await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, PATIENCE_S)


@pytest.mark.parametrize("kind", GARBAGE)
def test_they_are_a_lost_connection_to_the_requests_and_a_broken_format_to_error_cb(kind: str) -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        core = client(broker, errors)
        await known(core)
        broker.on(HeartbeatRequest, garbled(lambda frame: HeartbeatResponse(), kind))
        with pytest.raises(KafkaException) as failed:
            await core.driver.request(1, HEARTBEAT, 5)
        error = failed.value.error
        assert error == KafkaError._TRANSPORT
        assert error.retriable()
        assert error.maybe_applied
        assert not error.fatal()
        assert errors[0] == KafkaError._BAD_MSG
        assert errors[0].str() == error.str()
        assert error.str().startswith("broker:9092: ")
        assert "\n" not in error.str()
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize(("asked", "kind"), [
    (asked, kind) for asked in (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest, MetadataRequest,
                                HeartbeatRequest)
    for kind in GARBAGE if (asked, kind) != (ApiVersionsRequest, TLS)  # that is another test's, below
])
def test_in_every_phase_a_call_is_answered_once_the_broker_makes_sense_again(asked: type, kind: str) -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        broker.on(asked, garbled(answers(broker)[asked], kind, times=3))
        core = client(broker, errors, **PLAIN)
        await known(core)
        await core.request(1, HEARTBEAT, PATIENCE_S)
        told = {error.code() for error in errors}
        assert KafkaError._BAD_MSG in told
        assert told <= {KafkaError._BAD_MSG, KafkaError._ALL_BROKERS_DOWN}
        await core.close()

    asyncio.run(run())


def test_what_came_whole_before_them_is_handed_out() -> None:
    async def run() -> None:
        broker = scripted()
        core = client(broker)
        await known(core)
        broker.on(HeartbeatRequest, SILENCE)
        calls = [asyncio.create_task(core.driver.request(1, HEARTBEAT, 5)) for _ in range(2)]
        while broker.count(HeartbeatRequest) < 2:
            await asyncio.sleep(0.001)
        first = next(frame for frame in broker.seen if isinstance(frame.request, HeartbeatRequest))
        whole = b"".join(encode_response(HeartbeatResponse(error_code=27), first.version, first.correlation_id))
        broker.open[-1].send(whole + b"HTTP/1.1 503 Service Unavailable\r\n\r\n")  # in one piece
        reply = await calls[0]
        assert isinstance(reply, HeartbeatResponse)
        assert reply.error_code == 27
        with pytest.raises(KafkaException, match="a web server"):
            await calls[1]
        await core.close()

    asyncio.run(run())


def test_what_nobody_asked_for_is_told_as_well() -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        core = client(broker, errors)
        await known(core)
        await core.request(1, HEARTBEAT, 5)
        assert errors == []
        broker.open[-1].send(b"\0\0\0\x04\0\0\0\x07")
        await asyncio.sleep(0.01)
        assert "a reply that no request asked for" in errors[0].str()
        assert broker.transports[-1].closed
        await core.request(1, HEARTBEAT, 5)
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("asked", [ApiVersionsRequest, MetadataRequest, HeartbeatRequest])
def test_a_broker_that_never_makes_sense_is_dialled_ever_more_slowly_and_named_by_the_call(asked: type) -> None:
    async def run() -> None:
        broker = scripted()
        core = client(broker, **{"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 10_000,
                                 "retry.backoff.max.ms": 10_000})
        if asked is HeartbeatRequest:
            await known(core)
        before = broker.connections
        broker.on(asked, garbled(answers(broker)[asked], "a web server's text"))
        with pytest.raises(KafkaException) as failed:
            await (core.request(1, HEARTBEAT, 2.5) if asked is HeartbeatRequest else core.list_topics(None, 2.5))
        assert 2 <= broker.connections - before <= 11  # at 0, 20, 60, 140, 300, 620, 1260, 2540 ms, with jitter
        error = failed.value.error
        assert error in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
        assert "HTTP/1.1 503 Service Unavailable" in error.str()
        assert "this is a web server, not a Kafka broker" in error.str()
        await core.close()

    asyncio.run(run())


def test_one_request_that_is_always_garbled_does_not_make_others_wait_for_long() -> None:
    """A decoder at fault: the connection is lost again and again, though the broker is well."""
    async def run() -> None:
        broker = scripted()
        core = client(broker, **{"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100})
        await known(core)
        broker.on(HeartbeatRequest, garbled(lambda frame: HeartbeatResponse(), "counts that cannot be"))
        for _ in range(5):
            with pytest.raises(KafkaException):
                await core.driver.request(1, HEARTBEAT, 1)
            await core.list_topics(None, 1)
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("size", [100, 100_000])
def test_an_answer_that_ends_in_its_middle_is_a_lost_connection_and_no_riddle(size: int) -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()

        def half(frame: RequestFrame) -> str:
            broker.open[-1].send(size.to_bytes(4, "big") + bytes(size // 2))
            return HANG_UP

        broker.on(MetadataRequest, half)
        core = client(broker, errors)
        with pytest.raises(KafkaException) as failed:
            await core.driver.request(-1000, MetadataRequest(topics=[]), 5)
        assert failed.value.error == KafkaError._TRANSPORT
        assert failed.value.error.maybe_applied
        assert "may need SASL" not in failed.value.error.str()
        assert "the broker closed the connection" in errors[0].str()
        await core.close()

    asyncio.run(run())


# The handshake


def test_a_garbled_answer_about_versions_does_not_make_the_connections_to_come_old() -> None:
    async def run() -> None:
        broker = scripted()
        broker.on(ApiVersionsRequest, garbled(api_versions, "an answer that lacks its end", times=1))
        core = client(broker)
        await known(core)
        broker.transports[-1].hang_up()
        await asyncio.sleep(0.02)
        await core.request(1, HEARTBEAT, 5)
        assert [f.version for f in broker.seen if isinstance(f.request, ApiVersionsRequest)][-1] == FIRST_VERSION
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("asked", [ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest])
def test_an_answer_to_another_request_is_noticed_in_the_handshake_too(asked: type) -> None:
    async def run() -> None:
        broker = scripted()
        broker.on(asked, garbled(answers(broker)[asked], "an answer to another request"))
        core = client(broker, **PLAIN)
        with pytest.raises(KafkaException, match="the broker answered request 1000001 where 0") as failed:
            await core.list_topics(None, 2.5)
        assert failed.value.error == KafkaError._TRANSPORT
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("asked", [SaslHandshakeRequest, SaslAuthenticateRequest])
def test_garbage_during_sasl_is_no_authentication_failure(kind: str, asked: type) -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        broker.on(asked, garbled(answers(broker)[asked], kind))
        core = client(broker, errors, **PLAIN)
        started = time.monotonic()
        with pytest.raises(KafkaException) as failed:
            await core.list_topics(None, 0.1)
        assert failed.value.error in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
        assert time.monotonic() - started > 0.05, "it was taken for a refusal"
        assert KafkaError._AUTHENTICATION not in {error.code() for error in errors}
        await core.close()

    asyncio.run(run())


def test_a_second_answer_while_the_first_is_thought_about_is_none() -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        broker.on(SaslHandshakeRequest, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))

        def twice(frame: RequestFrame) -> bytes:
            nonce = bytes(frame.request.auth_bytes).partition(b",r=")[2]  # type: ignore[attr-defined]
            first = SaslAuthenticateResponse(
                error_message=None, auth_bytes=b"r=" + nonce + b"x,s=QSXCR+Q6sek8bf92,i=4096")
            return 2 * b"".join(encode_response(first, frame.version, frame.correlation_id))

        broker.on(SaslAuthenticateRequest, twice)
        core = client(broker, errors, **{**PLAIN, "sasl.mechanism": "SCRAM-SHA-256"})
        error = await failure_given_time(lambda time_s: core.list_topics(None, time_s))
        assert "sent more than it was asked" in error.str()
        assert errors[0] == KafkaError._BAD_MSG
        await core.close()

    asyncio.run(run())


def test_tls_is_a_refusal_only_from_a_broker_that_never_spoke_otherwise() -> None:
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        core = client(broker, errors)
        await known(core)
        await core.request(1, HEARTBEAT, 5)
        broker.on(ApiVersionsRequest, garbled(api_versions, TLS, times=2))
        broker.transports[-1].hang_up()
        while not broker.transports[-1].closed:
            await asyncio.sleep(0.001)
        await core.request(1, HEARTBEAT, 5)
        assert errors[0] == KafkaError._BAD_MSG
        assert "the port speaks TLS" in errors[0].str()
        await core.close()

    asyncio.run(run())


# What a broker says well enough, but to nobody in particular


def test_a_refusal_of_the_handshake_is_a_lost_connection_to_the_requests() -> None:
    """A broker in trouble: no request was refused, and another attempt may do better."""
    async def run() -> None:
        broker, errors = scripted(), list[KafkaError]()
        left = [2]

        def trouble(frame: RequestFrame) -> ApiVersionsResponse:
            left[0] -= 1
            return api_versions(frame) if left[0] < 0 else ApiVersionsResponse(
                error_code=KafkaError.UNKNOWN, api_keys=[])

        broker.on(ApiVersionsRequest, trouble)
        core = client(broker, errors)
        await core.list_topics(None, 5)
        assert errors[0] == KafkaError.UNKNOWN
        await core.close()

    asyncio.run(run())


# TLS, on real sockets


def tls_client(port: int, authority: trustme.CA, errors: list[KafkaError]) -> ClientCore:
    core = ClientCore(Config(ADMIN, {**admin_config(port, "127.0.0.1"), **QUICK, "security.protocol": "ssl",
                                     "ssl.ca.pem": authority.cert_pem.bytes().decode()}))
    core.on_error = errors.append
    return core


class Between:
    """Forwards a connection, and turns a bit of each piece from the broker while it is told to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.garbles = False

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            await asyncio.gather(self._pump(reader, back, False), self._pump(there, writer, True))
        finally:  # a loop that ends cancels both pumps
            back.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: bool) -> None:
        try:
            while data := await reader.read(65_536):
                if back and self.garbles:
                    data = data[:-1] + bytes([data[-1] ^ 1])
                writer.write(data)
        except OSError:
            pass
        writer.close()


def test_a_bit_turned_in_a_tls_stream_costs_the_connection_and_nothing_else() -> None:
    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's side
        authority, broker, errors = trustme.CA(), ScriptedBroker(), list[KafkaError]()
        broker.on(HeartbeatRequest, HeartbeatResponse())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server, port = await broker.listen(context)
        between = Between(port)
        async with await between.listen() as proxy:
            broker.nodes = {1: ("127.0.0.1", proxy.sockets[0].getsockname()[1])}
            core = tls_client(broker.nodes[1][1], authority, errors)
            await known(core)
            await core.request(1, HEARTBEAT, 5)
            between.garbles = True
            with pytest.raises(KafkaException) as failed:
                await core.driver.request(1, HEARTBEAT, 2)
            assert failed.value.error == KafkaError._TRANSPORT
            assert failed.value.error.maybe_applied
            assert errors[0] == KafkaError._SSL
            between.garbles = False
            await core.request(1, HEARTBEAT, 5)
            await core.close()
        await broker.shut(server)

    asyncio.run(run())


def after_one_bit_is_turned(server: ssl.SSLContext, client: ssl.SSLContext, at: int, bit: int) -> ssl.SSLError | None:
    """How a client's conversation in TLS ends if one bit of what the server sends is turned; None if it does not."""
    in_server, in_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    out_server, out_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(in_server, out_server, server_side=True)
    ours = client.wrap_bio(in_client, out_client, server_hostname="127.0.0.1")
    steps = {True: [theirs.do_handshake, lambda: theirs.write(b"answer" * 50)],
             False: [ours.do_handshake, lambda: ours.read(1000)]}
    sent = 0
    for turn in range(20):
        is_server = turn % 2 == 1
        try:
            steps[is_server][0]()
            steps[is_server] = steps[is_server][1:] or steps[is_server]
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            if not is_server:
                return error
        in_server.write(out_client.read())
        data = bytearray(out_server.read())
        if sent <= at < sent + len(data):
            data[at - sent] ^= 1 << bit
        sent += len(data)
        in_client.write(bytes(data))
    return None


def test_a_bit_turned_in_tls_looks_never_like_a_refusal() -> None:
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    chance, reasons = random.Random(5), set()
    assert after_one_bit_is_turned(server, client, -1, 0) is None
    for at in (*range(130), *(chance.randrange(130, 2500) for _ in range(70))):  # the first words are not encrypted
        error = after_one_bit_is_turned(server, client, at, chance.randrange(8))
        if error is not None:
            reasons.add(error.reason)
            told = connection_error(error, "h:1", Phase.OPENING, "ssl")
            assert is_garbled(error), error
            assert request_error(told, error, written=False) == KafkaError._TRANSPORT
    assert len(reasons) > 5


@pytest.mark.parametrize("reason", [
    "SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_UNKNOWN_CA",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED", "TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "EE_KEY_TOO_SMALL"])
def test_what_tls_decides_is_for_good(reason: str) -> None:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    told = connection_error(error, "h:1", Phase.FIRST_REQUEST, "ssl")
    heard = request_error(told, error, written=True)
    assert (told.code(), heard.code(), heard.retriable()) == (KafkaError._SSL, KafkaError._SSL, False)


def test_plain_text_in_place_of_tls_is_no_refusal() -> None:
    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        errors: list[KafkaError] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            core = tls_client(server.sockets[0].getsockname()[1], trustme.CA(), errors)
            started = time.monotonic()
            with pytest.raises(KafkaException) as failed:
                await core.list_topics(None, 1.5)
            assert failed.value.error in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
            assert "the port may be plaintext" in failed.value.error.str()
            assert time.monotonic() - started > 0.3, "it was taken for a refusal"
            assert errors[0] == KafkaError._SSL
            await core.close()

    asyncio.run(run())


class Noting:
    """A machine's place: notes how its request ended."""

    alone = idle = False

    def __init__(self, send: Send) -> None:
        self.sends, self.errors = [send], list[KafkaError]()

    def poll(self, now: float) -> list[Send]:
        sends, self.sends = self.sends, []
        return sends

    def deadline(self) -> None:
        return None

    def events(self) -> list[Any]:
        return []

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        raise AssertionError("answered")

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        self.errors.append(error)


def test_a_request_that_was_not_written_yet_was_surely_not_carried_out() -> None:
    async def run() -> None:
        broker = scripted()
        broker.on(ApiVersionsRequest, GARBAGE["a web server's text"](b""))
        core = ClientCore(Config(PRODUCER, {"bootstrap.servers": "broker:9092"}), connector=broker.connector)
        core.on_error = lambda error: None
        machine = Noting(Send(-1, HEARTBEAT, 5))
        core.add(machine)
        while not machine.errors:
            await asyncio.sleep(0.001)
        assert machine.errors[0] == KafkaError._TRANSPORT
        assert not machine.errors[0].maybe_applied
        await core.close()

    asyncio.run(run())
