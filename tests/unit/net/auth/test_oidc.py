"""Tokens from a token endpoint: what it is asked, and what it says instead of a token."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import HTTPServer, ThreadingHTTPServer
from pathlib import Path
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
from tests.support.local_http import QuietHandler, serving
from tests.support.signing_keys import SigningKeys

NODE = NodeAddress(1, "broker", 9092)


def jwt(**claims: Any) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims))
    return ".".join((*parts, "sig"))


class Endpoint(QuietHandler):
    """Answers as the test says; notes what it was asked."""

    status, body = 200, b"{}"
    seen: list[tuple[str, str, dict[str, list[str]]]] = []

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.path, self.headers["Authorization"], parse_qs(form)))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)


class Proxy(QuietHandler):
    """Opens a way to whoever is asked for, or answers as the endpoint would; notes who was let through."""

    seen: list[tuple[str, str | None]] = []

    def do_CONNECT(self) -> None:
        self.seen.append((self.path, self.headers["Proxy-Authorization"]))
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            pump = threading.Thread(target=relay, args=(there, self.connection))
            pump.start()
            relay(self.connection, there)
            pump.join()

    def do_POST(self) -> None:
        self.seen.append((self.path, self.headers["Proxy-Authorization"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": jwt(exp=9e9)}).encode())


def relay(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while words := source.recv(65536):
            to.sendall(words)
        to.shutdown(socket.SHUT_WR)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def proxy() -> Iterator[int]:
    """An HTTP proxy on a free port."""
    Proxy.seen = []
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Proxy)) as port:
        yield port


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
    with serving(server) as port:
        yield port


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


@pytest.mark.parametrize("login", ["", "me:p%40ss@"], ids=["open", "with a login"])
def test_a_proxy_that_the_environment_names_is_asked_for_the_way(
    endpoint: int, authority: trustme.CA, proxy: int, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Endpoint.body = json.dumps({"access_token": jwt(exp=9e9)}).encode()
    monkeypatch.setenv("https_proxy", f"http://{login}127.0.0.1:{proxy}")
    monkeypatch.setenv("http_proxy", f"{login}127.0.0.1:{proxy}")
    assert jwt(exp=9e9).encode() in first_words(endpoint, **{"https.ca.pem": pem(authority)})
    first_words(0, **{"sasl.oauthbearer.token.endpoint.url": "http://idp.invalid/token?x=1"})
    words = f"Basic {base64.b64encode(b'me:p@ss').decode()}" if login else None
    assert Proxy.seen == [(f"127.0.0.1:{endpoint}", words), ("http://idp.invalid/token?x=1", words)]
    assert len(Endpoint.seen) == 1
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    first_words(endpoint, **{"https.ca.pem": pem(authority)})
    assert (len(Proxy.seen), len(Endpoint.seen)) == (2, 2)


def test_a_machine_of_azure_is_asked_without_a_proxy_and_says_as_text_how_long_a_token_lives(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    asked: list[str] = []

    class Machine(Endpoint):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Metadata']}")
            self.send_response(self.status)
            self.end_headers()
            self.wfile.write(self.body)

    Endpoint.status, Endpoint.body = 200, b'{"access_token": "opaque", "expires_in": "3599"}'
    with serving(HTTPServer(("127.0.0.1", 0), Machine)) as port:
        config = Config(ADMIN, {
            "bootstrap.servers": "broker:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
            "sasl.oauthbearer.config": "query=resource=r",
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{port}/token"})
        token = asyncio.run(token_endpoint(config, {})())  # type: ignore[arg-type]
        Endpoint.status, Endpoint.body = 400, b'{"error": "invalid_request", "error_description": "no identity"}'
        with pytest.raises(KafkaException, match=r'status 400 \(invalid_request no identity\): check .*query=\.'):
            asyncio.run(token_endpoint(config, {})())  # type: ignore[arg-type]
    assert asked == ["/token?resource=r true"] * 2
    assert token.value == "opaque"
    assert 3590 < token.expires_at - time.time() <= 3599


def test_a_proxy_of_another_kind_is_refused_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(KafkaException, match=r"the environment's proxy is one for socks5, and must be http://HOST:PORT"):
        first_words(1)


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


def fetching(port: int, authority: trustme.CA, **properties: Any) -> Callable[[], Awaitable[Token]]:
    made = Config(ADMIN, {
        "bootstrap.servers": "broker:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"https://127.0.0.1:{port}/token", "https.ca.pem": pem(authority),
        "sasl.oauthbearer.client.id": "me", "sasl.oauthbearer.client.secret": "hunter2", **properties})
    return token_endpoint(made, {"traceId": "7"})


async def once(fetch: Callable[[], Awaitable[Token]]) -> Token:
    return await fetch()


def token_from(port: int, authority: trustme.CA, **properties: Any) -> Token:
    return asyncio.run(once(fetching(port, authority, **properties)))


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


BEARER = {"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}
OF_A_CLIENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A file with an assertion that another program has made."""
    path = tmp_path / "assertion"
    path.write_text("an.assertion.hunter3\n")
    return path


def of(ready: Path) -> dict[str, str]:
    return {"sasl.oauthbearer.assertion.file": str(ready)}


@pytest.mark.parametrize("scope", ["", "kafka:read x"])
def test_a_token_is_got_with_nothing_but_an_assertion(
    endpoint: int, authority: trustme.CA, ready: Path, scope: str
) -> None:
    Endpoint.body = json.dumps({"access_token": jwt(exp=9e9)}).encode()
    given = BEARER | of(ready) | {"sasl.oauthbearer.scope": scope}
    assert token_from(endpoint, authority, **given).value == jwt(exp=9e9)
    [(_, credentials, form)] = Endpoint.seen
    assert credentials is None
    assert form == {"grant_type": list(BEARER.values()), "assertion": ["an.assertion.hunter3"]} | (
        {"scope": [scope]} if scope else {})


@pytest.mark.parametrize("client", ["me", ""])
def test_an_assertion_may_stand_in_the_place_of_a_secret(
    endpoint: int, authority: trustme.CA, ready: Path, client: str
) -> None:
    Endpoint.body = json.dumps({"access_token": jwt(exp=9e9)}).encode()
    token_from(endpoint, authority, **of(ready), **{
        "sasl.oauthbearer.client.id": client, "sasl.oauthbearer.client.secret": "", "sasl.oauthbearer.scope": "x"})
    [(_, credentials, form)] = Endpoint.seen
    assert credentials is None
    assert form == {"grant_type": ["client_credentials"], "scope": ["x"], "client_assertion_type": [OF_A_CLIENT],
                    "client_assertion": ["an.assertion.hunter3"]} | ({"client_id": [client]} if client else {})


def test_an_assertion_is_made_for_each_request(endpoint: int, authority: trustme.CA, tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    Endpoint.body = json.dumps({"access_token": "opaque"}).encode()
    given = BEARER | {"sasl.oauthbearer.assertion.private.key.file": keys.rsa,
                      "sasl.oauthbearer.assertion.claim.jti.include": "true"}
    fetch = fetching(endpoint, authority, **given)

    async def run() -> None:
        await fetch()
        await fetch()

    asyncio.run(run())
    ids = [keys.verified(keys.rsa, form["assertion"][0])[1]["jti"] for _, _, form in Endpoint.seen]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("given", [BEARER, {"sasl.oauthbearer.client.secret": ""}], ids=["grant", "secret's place"])
def test_an_endpoint_that_refuses_an_assertion_is_told_with_what_to_check_and_without_the_assertion(
    endpoint: int, authority: trustme.CA, ready: Path, given: dict[str, str]
) -> None:
    Endpoint.status = 400
    Endpoint.body = b'{"error":"invalid_grant","error_description":"an.assertion.hunter3 has no issuer"}'
    with pytest.raises(KafkaException, match=r'HTTP status 400 \(invalid_grant \[hidden\] has no issuer\): check what '
                                             r'"sasl\.oauthbearer\.assertion\.\*" says and signs with') as failed:
        token_from(endpoint, authority, **given, **of(ready))
    assert failed.value.error == KafkaError._AUTHENTICATION


def test_a_file_that_is_gone_when_a_token_is_due_is_named_and_asked_for_again(
    endpoint: int, authority: trustme.CA, ready: Path
) -> None:
    Endpoint.body = json.dumps({"access_token": "opaque"}).encode()
    fetch = fetching(endpoint, authority, **BEARER, **of(ready))
    ready.unlink()
    with pytest.raises(KafkaException, match=r'no OAuth token from .*: "sasl\.oauthbearer\.assertion\.file"') as failed:
        asyncio.run(once(fetch))
    assert failed.value.error == KafkaError._AUTHENTICATION
    assert Endpoint.seen == []
    ready.write_text("a.new.one")
    assert asyncio.run(once(fetch)).value == "opaque"


@pytest.mark.parametrize(("answer", "taken"), [
    ({"id_token": jwt(exp=8e9)}, jwt(exp=8e9)),
    ({"access_token": "opaque", "id_token": jwt(exp=8e9)}, jwt(exp=8e9)),
    ({"access_token": jwt(exp=9e9), "id_token": jwt(exp=8e9)}, jwt(exp=9e9)),
    ({"access_token": "opaque", "id_token": "x"}, "opaque"),
    ({"access_token": "opaque"}, "opaque"),
])
def test_an_assertion_may_be_answered_with_an_identity_as_google_does(
    endpoint: int, authority: trustme.CA, ready: Path, answer: dict[str, str], taken: str
) -> None:
    Endpoint.body = json.dumps(answer).encode()
    assert token_from(endpoint, authority, **BEARER, **of(ready)).value == taken
    if "access_token" in answer:
        assert token_from(endpoint, authority).value == answer["access_token"]
    else:
        with pytest.raises(KafkaException, match="gave no access_token"):
            token_from(endpoint, authority)


def test_authorities_that_cannot_be_loaded_are_named_when_the_client_is_made() -> None:
    with pytest.raises(ConfigError, match=r"https\.ca\.pem"):
        first_words(1, **{"https.ca.pem": "no certificate"})
