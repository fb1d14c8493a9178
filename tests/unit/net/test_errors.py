"""Each way in which a connection fails gives one clear line, on real loopback sockets."""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.machines.machine import ANY_NODE, Send
from headrace.net import connection
from headrace.net.errors import ErrorDeduplicator, Phase, connection_error, is_garbled, no_memory, request_error
from headrace.types.records import NodeAddress
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from tests.support.enough_time import TIMES_S, failure_given_time
from tests.support.scripted_broker import SILENCE, PeerProtocol, ScriptedBroker, admin_config, api_versions


def core_for(port: int, host: str = "127.0.0.1", **properties: Any) -> ClientCore:
    return ClientCore(Config(ADMIN, admin_config(port, host, **properties)))


async def failure(core: ClientCore, timeout_s: float) -> KafkaError:
    """The error of a call that must fail within its time."""
    core.on_error = lambda error: None
    started = asyncio.get_running_loop().time()
    with pytest.raises(KafkaException) as failed:
        await core.list_topics(None, timeout_s)
    assert asyncio.get_running_loop().time() - started < timeout_s + 20  # for a busy machine
    await core.close()
    assert "\n" not in failed.value.error.str()
    return failed.value.error


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Nobody listens there, and nobody else is given it."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture
def mute_port() -> Iterator[int]:
    """Accepts connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_dead_broker_is_named_with_what_to_do(closed_port: int) -> None:
    error = asyncio.run(failure_of(closed_port, "attempts in"))
    assert error == KafkaError._TRANSPORT
    assert f"127.0.0.1:{closed_port}: connection refused: is the broker running" in error.str()
    assert "attempts in" in error.str()


async def failure_of(port: int, says: str, **properties: Any) -> KafkaError:
    """The error of a call that has as much time as it needs to find out what it is to say."""
    for time_s in TIMES_S:
        error = await failure(core_for(port, **properties), time_s)
        if says in error.str():
            break
    return error


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 64])
def test_a_wrong_host_is_named_with_what_to_do(host: str) -> None:
    async def run() -> KafkaError:
        core = core_for(9092, host=host)
        error = await failure_given_time(lambda time_s: core.list_topics(None, time_s))
        await core.close()
        return error

    error = asyncio.run(run())
    assert error == KafkaError._RESOLVE
    assert f"{host}:9092: the host name cannot be resolved" in error.str()


def test_a_port_that_says_nothing_times_out_and_says_what_it_waited_for(mute_port: int) -> None:
    error = asyncio.run(failure_of(mute_port, "connected, but"))
    assert error == KafkaError._TIMED_OUT
    assert re.search(r"MetadataRequest failed after \d+\.\d s: ", error.str())
    assert f"127.0.0.1:{mute_port}: connected, but the broker has not answered yet" in error.str()


def test_the_setup_timeout_bounds_the_handshake(mute_port: int) -> None:
    says = "no connection after 0.1 s (connected, but the broker has not answered yet)"
    error = asyncio.run(failure_of(mute_port, says, socket_connection_setup_timeout_ms=100))
    assert says in error.str()


def test_a_web_server_is_recognised() -> None:
    async def run() -> KafkaError:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            return await failure_of(server.sockets[0].getsockname()[1], "web server")

    error = asyncio.run(run())
    assert "this is a web server, not a Kafka broker" in error.str()


def test_a_broker_that_hangs_up_at_once_makes_the_client_think_of_tls() -> None:
    async def run() -> KafkaError:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            return await failure_of(server.sockets[0].getsockname()[1], "at its first request")

    error = asyncio.run(run())
    assert "closed the connection at its first request: the port may need TLS or SASL" in error.str()


def test_a_broker_that_hangs_up_while_sasl_is_renewed_makes_nobody_doubt_the_credentials() -> None:
    first, again = (connection_error(None, "b:1", phase, "sasl_ssl").str() for phase in (Phase.SASL, Phase.RENEWAL))
    assert "check \"sasl.mechanism\" and the credentials" in first
    assert "connections.max.reauth.ms" in again
    assert "credentials" not in again


def test_each_failure_is_reported_once_and_so_is_the_end_of_all_brokers(closed_port: int) -> None:
    async def run() -> list[KafkaError]:
        core = core_for(closed_port, reconnect_backoff_ms=5, reconnect_backoff_max_ms=10, retry_backoff_ms=5)
        errors: list[KafkaError] = []
        core.on_error = errors.append
        while len(errors) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        await core.close()
        return errors

    errors = asyncio.run(run())
    assert [error.code() for error in errors] == [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN]
    assert "the only known broker cannot be reached, still trying" in errors[1].str()


def test_the_second_bootstrap_server_is_used_when_the_first_is_dead(closed_port: int) -> None:
    async def run() -> None:
        broker = ScriptedBroker()
        server, port = await broker.listen()
        config = {"bootstrap.servers": f"127.0.0.1:{closed_port},127.0.0.1:{port}"}
        core = ClientCore(Config(ADMIN, config))
        core.on_error = lambda error: None
        await core.list_topics(None, 5)
        await core.close()
        await broker.shut(server)

    asyncio.run(run())


@pytest.mark.parametrize("mute", [1, 2])
def test_bootstrap_servers_that_never_answer_hold_nobody_up_who_may_ask_another(
    mute: int, mute_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LATE_S", 0.05)

    async def run() -> None:
        broker = ScriptedBroker()
        server, port = await broker.listen()
        servers = [f"127.0.0.1:{mute_port}", f"localhost:{mute_port}"][:mute]
        config = {"bootstrap.servers": [*servers, f"127.0.0.1:{port}"], "socket.connection.setup.timeout.ms": 300_000}
        core = ClientCore(Config(ADMIN, config), jitter=lambda: 0.5)  # so that the first one is asked first
        core.on_error = lambda error: None
        await core.list_topics(None, 30)
        await core.close()
        await broker.shut(server)

    asyncio.run(run())


def test_where_all_servers_take_long_the_first_that_is_there_is_asked(
    mute_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LATE_S", 0.05)

    async def run() -> None:
        broker = ScriptedBroker()
        broker.on(ApiVersionsRequest, SILENCE)
        server, port = await broker.listen()
        core = ClientCore(Config(ADMIN, {
            "bootstrap.servers": [f"127.0.0.1:{mute_port}", f"127.0.0.1:{port}"],
            "socket.connection.setup.timeout.ms": 300_000}), jitter=lambda: 0.5)
        core.on_error = lambda error: None
        calls = asyncio.gather(*(core.list_topics(None, 30) for _ in range(4)))

        def are_late() -> list[bool]:
            tried = [core.driver.connection(node_id, MetadataRequest()) for node_id in core.metadata.cluster.nodes]
            return [one.late for one in tried if one is not None]

        async with asyncio.timeout(20):
            while not (broker.seen and are_late() == [True, True]):
                await asyncio.sleep(0.01)
        [frame] = broker.seen
        broker.open[0].answer(frame, api_versions(frame))
        await calls
        await core.close()
        await broker.shut(server)

    asyncio.run(run())


def test_a_call_whose_time_is_over_while_no_server_answers_is_forgotten(
    mute_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LATE_S", 0.05)

    async def run() -> None:
        servers = [f"127.0.0.1:{mute_port}", f"localhost:{mute_port}"]
        core = ClientCore(Config(ADMIN, {"bootstrap.servers": servers}), jitter=lambda: 0.5)
        core.on_error = lambda error: None
        send = Send(ANY_NODE, MetadataRequest(topics=[]), 1.0)
        with pytest.raises(KafkaException):
            await core.driver.ask(send)
        left = [core.driver.connection(node_id, send.request) for node_id in core.metadata.cluster.nodes]
        assert sum(sum(one.queued) for one in left if one is not None) == 1, "the client's own question, and no other"
        await core.close()

    asyncio.run(run())


def test_a_client_goes_on_when_the_broker_comes_back() -> None:
    async def run() -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            port: int = reserved.getsockname()[1]
            core = core_for(port, reconnect_backoff_ms=10, reconnect_backoff_max_ms=20)
            errors: list[KafkaError] = []
            core.on_error = errors.append
            asked = asyncio.create_task(core.list_topics(None, 30))
            while not errors:
                await asyncio.sleep(0.01)
        broker = ScriptedBroker(node1=("127.0.0.1", port))
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: PeerProtocol(broker), "127.0.0.1", port)
        assert (await asked).cluster_id == "test"
        await core.close()
        await broker.shut(server)

    asyncio.run(run())


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(
    authority: trustme.CA, name: str = "127.0.0.1", mutual: bool = False, ends: datetime | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, not_after=ends, not_before=ends and ends - timedelta(days=1)).configure_cert(context)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


def pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


async def over_tls(context: ssl.SSLContext, **properties: Any) -> tuple[str | None, KafkaError | None]:
    """Cluster id or error of one call to a TLS broker."""
    broker = ScriptedBroker()
    server, port = await broker.listen(context)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's side of failures
    core = core_for(port, **{"security_protocol": "ssl", **properties})
    try:
        found = await core.list_topics(None, 2)
        return found.cluster_id, None
    except KafkaException as failed:
        return None, failed.error
    finally:
        await core.close()
        await broker.shut(server)


def test_a_broker_with_a_trusted_certificate_is_spoken_to_in_tls(authority: trustme.CA) -> None:
    assert asyncio.run(over_tls(server_context(authority), ssl_ca_pem=pem(authority))) == ("test", None)


def test_mutual_tls_shows_the_clients_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    certificate = authority.issue_cert("client")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "client.pem"))
    context = server_context(authority, mutual=True)
    path = str(tmp_path / "client.pem")
    result = asyncio.run(over_tls(context, ssl_ca_pem=pem(authority), ssl_certificate_location=path))
    assert result == ("test", None)


def test_an_untrusted_certificate_is_a_tls_error_that_names_the_property(authority: trustme.CA) -> None:
    _, error = asyncio.run(over_tls(server_context(trustme.CA()), ssl_ca_pem=pem(authority)))
    assert error is not None
    assert error == KafkaError._SSL
    assert "the broker's certificate is not trusted" in error.str()
    assert '"ssl.ca.location"' in error.str()


def test_a_certificate_that_has_expired_is_not_blamed_on_the_authorities_of_the_client(authority: trustme.CA) -> None:
    context = server_context(authority, ends=datetime(2020, 1, 1, tzinfo=UTC))
    _, error = asyncio.run(over_tls(context, ssl_ca_pem=pem(authority)))
    assert error is not None
    assert error == KafkaError._SSL
    assert "is not trusted (certificate has expired): renew it" in error.str()
    assert "ssl.ca.location" not in error.str()


def test_a_certificate_for_another_host_is_refused_unless_the_check_is_off(authority: trustme.CA) -> None:
    context = server_context(authority, "other.example")
    _, error = asyncio.run(over_tls(context, ssl_ca_pem=pem(authority)))
    assert error == KafkaError._SSL
    unchecked = {"ssl.endpoint.identification.algorithm": "none"}
    assert asyncio.run(over_tls(context, ssl_ca_pem=pem(authority), **unchecked)) == ("test", None)


def test_plaintext_to_a_tls_port_is_recognised(authority: trustme.CA) -> None:
    _, error = asyncio.run(over_tls(server_context(authority), security_protocol="plaintext"))
    assert error is not None
    assert '"security.protocol"' in error.str()


def test_tls_to_a_plaintext_port_is_recognised(authority: trustme.CA) -> None:
    async def run() -> KafkaError:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.read(10)
            finally:  # also when the client's next attempt is still being read at the end
                writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await failure_of(port, "handshake", security_protocol="ssl", ssl_ca_pem=pem(authority))

    error = asyncio.run(run())
    assert "closed during the TLS handshake: the port may be plaintext" in error.str()


@pytest.mark.parametrize("properties", [
    {"ssl.ca.location": "/no/such/file"},
    {"ssl.ca.pem": "not a certificate"},
    {"ssl.certificate.location": "/no/such/file"},
    {"ssl.key.location": "/no/such/file"},
])
def test_a_wrong_tls_property_is_named_when_the_client_is_made(properties: dict[str, str]) -> None:
    async def run() -> None:
        with pytest.raises(ConfigError, match=next(iter(properties)).replace(".", r"\.")):
            core_for(9093, **{"security.protocol": "ssl", **properties})

    asyncio.run(run())


def test_a_connection_that_was_given_up_from_here_is_not_said_to_have_been_closed_by_the_broker() -> None:
    given_up = connection_error(ConnectionAbortedError("interrupted while TLS was read"), "b:9", Phase.OPEN, "ssl")
    assert given_up.str() == "b:9: the connection is given up: interrupted while TLS was read"
    closed = connection_error(ConnectionAbortedError(103, "Software caused connection abort"), "b:9", Phase.OPEN, "ssl")
    assert "closed the connection" in closed.str()
    assert given_up.code() == closed.code() == KafkaError._TRANSPORT


@pytest.mark.parametrize(("reason", "told"), [
    ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "the broker refuses this client's certificate"),
    ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "the broker refuses this client's certificate"),
    ("TLSV1_ALERT_UNKNOWN_CA", "the broker refuses this client's certificate"),
    ("SSLV3_ALERT_BAD_CERTIFICATE", "may ask for a client certificate, or refuse the one it got"),
    ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "may ask for a client certificate"),
    ("SSLV3_ALERT_HANDSHAKE_FAILURE", '"ssl.cipher.suites"'),
    ("TLSV1_ALERT_PROTOCOL_VERSION", '"ssl.enabled.protocols"'),
    ("WRONG_VERSION_NUMBER", "the port may be plaintext"),
    ("DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "check the ssl.* properties"),
])
def test_what_tls_says_is_told_with_what_to_do(reason: str, told: str) -> None:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    assert told in connection_error(error, "b:9", Phase.FIRST_REQUEST, "ssl").str()


def test_a_reply_without_memory_is_a_lost_connection_to_its_request_and_says_what_to_do_to_the_application() -> None:
    told = connection_error(no_memory(), "b:9092", Phase.OPEN, "plaintext")
    assert told == KafkaError._CRIT_SYS_RESOURCE
    assert "raise the limit of the process" in told.str()
    assert request_error(told, no_memory(), written=True) == KafkaError._TRANSPORT


def refused_certificate(verify_code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.reason = "CERTIFICATE_VERIFY_FAILED"
    error.verify_code, error.verify_message = verify_code, "what OpenSSL says."
    return error


REFUSED, UNREACHABLE = f"[Errno {errno.ECONNREFUSED}] a", f"[Errno {errno.ENETUNREACH}] b"


@pytest.mark.parametrize(("cause", "told"), [
    (refused_certificate(62), "is for another host (what OpenSSL says): dial a name"),
    (refused_certificate(64), "is for another host (what OpenSSL says): dial a name"),
    (refused_certificate(9), "is not trusted (what OpenSSL says): renew it, or set the clock"),
    (refused_certificate(10), "is not trusted (what OpenSSL says): renew it, or set the clock"),
    (refused_certificate(20), 'is not trusted (what OpenSSL says): set "ssl.ca.location"'),
    (ssl.SSLEOFError(8, "EOF occurred"), "closed the connection at its first request"),
    (ConnectionResetError(), "closed the connection at its first request"),
    (TimeoutError(), "no answer to the attempt to connect"),
    (ConnectionRefusedError(), "connection refused: is the broker running"),
    (OSError(f"Multiple exceptions: {REFUSED}, {REFUSED}"), "connection refused: is the broker running"),
    (OSError(f"Multiple exceptions: {REFUSED}, {UNREACHABLE}"), "OSError: Multiple exceptions"),
    (OSError(errno.ENETUNREACH, "x"), "no route to the host"),
    (OSError(errno.EHOSTUNREACH, "x"), "no route to the host"),
    (OSError(errno.EMFILE, "x"), "too many open files"),
    (OSError(errno.ENOBUFS, "x"), "OSError: "),
    (ValueError("x"), "ValueError: x"),
], ids=str)
def test_what_ended_a_connection_is_told_with_what_to_do(cause: Exception, told: str) -> None:
    error = connection_error(cause, "b:1", Phase.OPENING, "plaintext")
    assert error.str().startswith("b:1: ")
    assert told in error.str()


def test_a_request_hears_of_tls_what_was_refused_and_of_damage_that_it_was_lost() -> None:
    damage = ssl.SSLError(1, "[SSL: BAD_RECORD_TYPE] bad record type")
    damage.reason = "BAD_RECORD_TYPE"
    for cause, code in ((refused_certificate(20), KafkaError._SSL), (damage, KafkaError._TRANSPORT)):
        error = connection_error(cause, "b:1", Phase.OPENING, "ssl")
        heard = request_error(error, cause, written=True)
        assert (error.code(), heard.code(), is_garbled(cause)) == (KafkaError._SSL, code, cause is damage)
        assert heard.maybe_applied
        assert heard.retriable() == (cause is damage)


def test_the_end_of_all_brokers_is_told_again_once_one_was_there_meanwhile() -> None:
    told, node, error = ErrorDeduplicator(), NodeAddress(1, "b", 1), KafkaError(KafkaError._TRANSPORT, "cut (2 times)")
    both = [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN]
    assert [each.code() for each in told.lost(node, error, 2, True)] == both
    assert told.lost(node, KafkaError(KafkaError._TRANSPORT, "cut (3 times)"), 2, True) == []
    assert [each.code() for each in told.lost(NodeAddress(2, "c", 1), error, 2, True)] == [KafkaError._TRANSPORT]
    told.over()
    assert [each.code() for each in told.lost(node, error, 2, False)] == [KafkaError._TRANSPORT]
    assert [each.code() for each in told.lost(node, error, 2, True)] == [KafkaError._ALL_BROKERS_DOWN]
