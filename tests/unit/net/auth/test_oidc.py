"""Tokens from a token endpoint: what it is asked, and what it says instead of a token."""

import asyncio
import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme

from headrace.config import ADMIN, Config
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.net.auth.mechanisms import mechanism_source
from headrace.net.auth.oidc import token_endpoint
from headrace.net.auth.tokens import Token
from headrace.types.records import NodeAddress

NODE = NodeAddress(1, "broker", 9092)


def jwt(**claims: Any) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims))
    return ".".join((*parts, "sig"))


class Endpoint(BaseHTTPRequestHandler):
    """Answers as the test says; notes what it was asked."""

    status, body = 200, b"{}"
    seen: list[tuple[str, str, dict[str, list[str]]]] = []

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.path, self.headers["Authorization"], parse_qs(form)))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def endpoint(authority: trustme.CA) -> Iterator[int]:
    """An HTTPS server on a free port."""
    Endpoint.status, Endpoint.body, Endpoint.seen = 200, b"{}", []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *arguments: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def first_words(port: int, **properties: Any) -> bytes:
    """What a broker would be told first by a client that gets its tokens from the endpoint."""
    async def run() -> bytes:
        source = mechanism_source(Config(ADMIN, {
            "bootstrap.servers": "broker:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": f"https://127.0.0.1:{port}/realms/r/token?x=1",
            "sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": "hunter2", **properties,
        }), lambda: 0.0, lambda: 0.5)
        assert source is not None
        return (await source(NODE)).first()

    return asyncio.run(run())


def pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


def test_a_token_is_got_with_client_credentials(endpoint: int, authority: trustme.CA) -> None:
    Endpoint.body = json.dumps({"access_token": jwt(exp=9e9), "expires_in": 60}).encode()
    words = first_words(endpoint, **{"https.ca.pem": pem(authority), "sasl.oauthbearer.scope": "kafka:read x",
                                     "sasl.oauthbearer.extensions": "traceId=7"})
    assert words == f"n,,\x01auth=Bearer {jwt(exp=9e9)}\x01traceId=7\x01\x01".encode()
    [(path, credentials, form)] = Endpoint.seen
    assert path == "/realms/r/token?x=1"
    assert base64.b64decode(credentials.removeprefix("Basic ")) == b"me:hunter2"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka:read x"]}


def test_id_and_secret_may_be_encoded_as_in_a_url(endpoint: int, authority: trustme.CA) -> None:
    Endpoint.body = json.dumps({"access_token": jwt(exp=9e9)}).encode()
    for encoded in (False, True):
        first_words(endpoint, **{"https.ca.pem": pem(authority), "sasl.oauthbearer.header.urlencode": encoded,
                                 "sasl.oauthbearer.client.id": "a:b", "sasl.oauthbearer.client.secret": "ü/ +"})
    sent = [base64.b64decode(credentials.removeprefix("Basic ")) for _, credentials, _ in Endpoint.seen]
    assert sent == ["a:b:ü/ +".encode(), b"a%3Ab:%C3%BC%2F+%2B"]


def test_the_endpoint_has_one_time_to_be_reached_and_another_to_answer() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for never, scheme in (("connect", "https"), ("read", "http")):  # TLS, which nobody begins, is for the first
            times = {"connect": 30_000, "read": 30_000, never: 200}
            started = time.monotonic()
            with pytest.raises(KafkaException, match="timed out") as failed:
                first_words(port, **{f"sasl.login.{what}.timeout.ms": value for what, value in times.items()},
                            **{"sasl.oauthbearer.token.endpoint.url": f"{scheme}://127.0.0.1:{port}/"})
            assert failed.value.error == KafkaError._TRANSPORT
            assert 0.2 <= time.monotonic() - started < 5


@pytest.mark.parametrize(("status", "body", "code", "text"), [
    (401, b'{"error":"invalid_client","error_description":"wrong\\nsecret"}', KafkaError._AUTHENTICATION,
     r'HTTP status 401 \(invalid_client wrong secret\): check "sasl\.oauthbearer\.client\.id"'),
    (401, b'{"error":"invalid_client","error_description":"not hunter2"}', KafkaError._AUTHENTICATION,
     r"invalid_client not \[hidden\]"),
    (302, b"", KafkaError._AUTHENTICATION, 'HTTP status 302: check "sasl.oauthbearer.token.endpoint.url"'),
    (404, b"", KafkaError._AUTHENTICATION, 'HTTP status 404: check "sasl.oauthbearer.token.endpoint.url"'),
    (503, b"busy", KafkaError._TRANSPORT, "HTTP status 503"),
    (429, b"", KafkaError._TRANSPORT, "HTTP status 429"),
    (200, b"{}", KafkaError._AUTHENTICATION, "gave no access_token"),
    (200, b"<html>", KafkaError._AUTHENTICATION, "gave no access_token"),
    (200, b'{"access_token":"a b"}', KafkaError._AUTHENTICATION, "characters"),
    (200, b"[" * 100_000, KafkaError._AUTHENTICATION, "gave no access_token"),
])
def test_what_the_endpoint_says_instead_of_a_token_is_one_clear_line(
    endpoint: int, authority: trustme.CA, status: int, body: bytes, code: int, text: str
) -> None:
    Endpoint.status, Endpoint.body = status, body
    with pytest.raises(KafkaException, match=text) as failed:
        first_words(endpoint, **{"https.ca.pem": pem(authority)})
    assert failed.value.error == code
    assert "\n" not in failed.value.error.str()
    assert "hunter2" not in failed.value.error.str()


def test_an_endpoint_with_an_unknown_certificate_is_refused_and_the_property_named(endpoint: int) -> None:
    with pytest.raises(KafkaException, match=r'"https\.ca\.location"') as failed:
        first_words(endpoint)
    assert failed.value.error == KafkaError._SSL
    assert Endpoint.seen == []


def test_an_endpoint_that_is_not_there_is_a_passing_error() -> None:
    with pytest.raises(KafkaException, match=r"no OAuth token from 127\.0\.0\.1:1/realms/r/token") as failed:
        first_words(1)
    assert failed.value.error == KafkaError._TRANSPORT


def token_from(port: int, authority: trustme.CA, **properties: Any) -> Token:
    made = Config(ADMIN, {
        "bootstrap.servers": "broker:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"https://127.0.0.1:{port}/token", "https.ca.pem": pem(authority),
        "sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": "hunter2", **properties})

    async def run() -> Token:
        return await token_endpoint(made, {"traceId": "7"})()

    return asyncio.run(run())


@pytest.mark.parametrize(("reply", "life_s"), [
    ({"access_token": jwt(exp=9e9), "expires_in": 60}, None),
    ({"access_token": "opaque", "expires_in": 60}, 60.0),
    ({"access_token": "opaque", "expires_in": 1.5}, 1.5),
    ({"access_token": "opaque"}, 1.0),
    ({"access_token": "opaque", "expires_in": "soon"}, 1.0),
    ({"access_token": "opaque", "expires_in": -5}, 1.0),
], ids=["its own word", "the endpoint's word", "a fraction", "nobody's word", "no number", "below zero"])
def test_a_token_lives_as_long_as_it_says_else_as_the_endpoint_says_else_for_one_use(
    endpoint: int, authority: trustme.CA, reply: dict[str, Any], life_s: float | None
) -> None:
    Endpoint.body = json.dumps(reply).encode()
    before = time.time()
    token = token_from(endpoint, authority)
    assert (token.value, token.extensions) == (reply["access_token"], {"traceId": "7"})
    if life_s is None:
        assert token.expires_at == 9e9
    else:
        assert before + life_s <= token.expires_at <= time.time() + life_s


def test_nothing_is_asked_for_that_the_properties_do_not_name(endpoint: int, authority: trustme.CA) -> None:
    Endpoint.body = json.dumps({"access_token": "opaque"}).encode()
    token_from(endpoint, authority)
    [(path, _, form)] = Endpoint.seen
    assert (path, form) == ("/token", {"grant_type": ["client_credentials"]})


def test_authorities_that_cannot_be_loaded_are_named_when_the_client_is_made() -> None:
    with pytest.raises(ConfigError, match=r"https\.ca\.pem"):
        first_words(1, **{"https.ca.pem": "no certificate"})
