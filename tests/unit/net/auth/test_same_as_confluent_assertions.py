"""Assertions for a token endpoint: the same properties are taken as by confluent_kafka, and the same is sent."""

import json
import os
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs

import confluent_kafka
import pytest

import headrace
from headrace.net.auth.tokens import unsecured_token
from tests.support.local_http import QuietHandler, serving
from tests.support.same_as_confluent import QUIET, by_name, outcome, same
from tests.support.signing_keys import PASSPHRASE, SigningKeys

ASSERTION = "sasl.oauthbearer.assertion."
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
BEARER = {"sasl.oauthbearer.grant.type": JWT_BEARER}
SECRET = {"sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s"}
TEMPLATE = {"header": {"kid": "k", "alg": "none"}, "payload": {
    "sub": "bob", "iss": "it", "aud": ["a", "b"], "role": {"of": ["ü", 1, 1.5, None, True]},
    "exp": 1, "iat": "x", "nbf": 2}}


class Endpoint:
    """Makes a token out for everybody.

    Attributes:
        url: where it is.
        asked: path, headers and form of each request.
    """

    def __init__(self) -> None:
        self.asked: Queue[tuple[str, dict[str, str], dict[str, list[str]]]] = Queue()
        asked = self.asked

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked.put((self.path, headers, parse_qs(form, keep_blank_values=True, strict_parsing=True)))
                token = unsecured_token("principal=alice", {}, time.time()).value
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({"access_token": token}).encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/token?x=1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    with serving(made.server):
        yield made


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> SigningKeys:
    return SigningKeys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def files(keys: SigningKeys, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a name in a value stands for."""
    directory = tmp_path_factory.mktemp("files")
    (directory / "ready").write_text("a.ready.one")
    (directory / "template").write_text(json.dumps(TEMPLATE))
    return {"<rsa>": keys.rsa, "<old rsa>": keys.old_rsa, "<encrypted>": keys.encrypted, "<ec>": keys.ec,
            "<text>": Path(keys.rsa).read_text(), "<ready>": str(directory / "ready"),
            "<template>": str(directory / "template")}


def made(kafka: ModuleType, endpoint: Endpoint, files: dict[str, str], given: dict[str, Any]) -> Any:
    """A producer that gets a token from the endpoint, once it has asked for it."""
    taken = kafka.Producer({
        "bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": endpoint.url, "logger": QUIET,
        **{name: files.get(value, value) for name, value in given.items()}})
    endpoint.asked.get(timeout=10)
    del taken
    return "taken"


KEY, TEXT, READY = {f"{ASSERTION}private.key.file": "<rsa>"}, {f"{ASSERTION}private.key.pem": "<text>"}, {
    f"{ASSERTION}file": "<ready>"}


@by_name({
    "nothing": BEARER, "a file": BEARER | READY, "a key": BEARER | KEY, "a key as text": BEARER | TEXT,
    "two keys": BEARER | KEY | TEXT, "a file and a key": BEARER | READY | KEY,
    "a file and a key as text": BEARER | READY | TEXT,
    "a password alone": BEARER | {f"{ASSERTION}private.key.passphrase": "x"},
    "a key that is empty": BEARER | {f"{ASSERTION}private.key.file": ""},
    "a file and a key that is empty": BEARER | READY | {f"{ASSERTION}private.key.file": ""},
    **{f"a file and {name}={value}": BEARER | READY | {f"{ASSERTION}{name}": value} for name, value in (
        ("private.key.passphrase", "x"), ("jwt.template.file", "<template>"), ("claim.sub", "x"), ("claim.aud", "x"),
        ("claim.iss", "x"), ("claim.jti.include", True), ("claim.jti.include", False), ("claim.exp.seconds", 300),
        ("claim.nbf.seconds", 10), ("algorithm", "ES256"), ("claim.sub", ""))},
    "an id and a secret besides": BEARER | KEY | SECRET,
    "the grant in capitals": KEY | {"sasl.oauthbearer.grant.type": JWT_BEARER.upper()},
    "another grant": KEY | {"sasl.oauthbearer.grant.type": "password"},
    **{f"{name}={value}": BEARER | KEY | {f"{ASSERTION}{name}": value} for name, value in (
        ("claim.exp.seconds", 0), ("claim.exp.seconds", 2**31), ("claim.nbf.seconds", -1), ("claim.nbf.seconds", 0),
        ("algorithm", "rs256"), ("algorithm", "HS256"), ("claim.jti.include", "perhaps"))},
    "no endpoint": BEARER | KEY | {"sasl.oauthbearer.token.endpoint.url": ""},
    "unsigned tokens as well": BEARER | KEY | {"enable.sasl.oauthbearer.unsecure.jwt": True},
    "a secret": SECRET, "no secret": {}, "an id alone": {"sasl.oauthbearer.client.id": "i"},
    "a secret, and a file": SECRET | READY, "a secret, and keys and a file": SECRET | READY | KEY | TEXT,
    "a secret, and keys and claims": SECRET | KEY | TEXT | {f"{ASSERTION}claim.iss": "x"},
    "a secret, and claims": SECRET | {f"{ASSERTION}claim.iss": "x"},
})
def test_the_same_properties_are_taken(endpoint: Endpoint, files: dict[str, str], case: dict[str, Any]) -> None:
    assert same(lambda kafka: made(kafka, endpoint, files, case)) in (
        "taken", ("KafkaException", confluent_kafka.KafkaError._INVALID_ARG, False, False))


@pytest.mark.parametrize("given", [READY, KEY, READY | {"sasl.oauthbearer.client.id": "i"}])
def test_an_assertion_in_a_secret_s_place_is_java_s_and_librdkafka_has_none(
    endpoint: Endpoint, files: dict[str, str], given: dict[str, Any]
) -> None:
    refused, taken = (outcome(lambda kafka: made(kafka, endpoint, files, given), package)
                      for package in (confluent_kafka, headrace))
    assert (refused[1], taken) == (confluent_kafka.KafkaError._INVALID_ARG, "taken")


@pytest.mark.parametrize("name", ["private.key.file", "jwt.template.file", "file"])
def test_a_file_that_is_not_there_is_seen_here_when_the_client_is_made(
    endpoint: Endpoint, files: dict[str, str], name: str
) -> None:
    given = BEARER | (KEY if name == "jwt.template.file" else {}) | {f"{ASSERTION}{name}": "/nowhere"}
    with pytest.raises(headrace.KafkaException, match="/nowhere"):
        made(headrace, endpoint, files, given)


# Requests

def request(kafka: ModuleType, endpoint: Endpoint, files: dict[str, str], given: dict[str, Any]) -> tuple[Any, ...]:
    """Path, headers without those that every library has of its own, and form of the first request."""
    taken = kafka.Producer({
        "bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": endpoint.url, "logger": QUIET,
        **BEARER, **{name: files.get(value, value) for name, value in given.items()}})
    path, headers, form = endpoint.asked.get(timeout=10)
    del taken
    of_libraries = ("host", "content-length", "accept-encoding")
    return path, {name: value for name, value in headers.items() if name not in of_libraries}, form


@pytest.mark.parametrize("scope", ["", "x", "a b&c=ü+%"])
def test_a_ready_assertion_is_sent_in_the_same_way(endpoint: Endpoint, files: dict[str, str], scope: str) -> None:
    given = READY | SECRET | {"sasl.oauthbearer.scope": scope}
    theirs, ours = (request(kafka, endpoint, files, given) for kafka in (confluent_kafka, headrace))
    assert ours == theirs
    assert ours[2] == {"grant_type": [JWT_BEARER], "assertion": ["a.ready.one"]} | ({"scope": [scope]} if scope else {})


@by_name({
    "a key alone": KEY, "a key as text": TEXT, "an older form": {f"{ASSERTION}private.key.file": "<old rsa>"},
    "an encrypted key": {f"{ASSERTION}private.key.file": "<encrypted>",
                         f"{ASSERTION}private.key.passphrase": PASSPHRASE},
    "a password for nothing": KEY | {f"{ASSERTION}private.key.passphrase": PASSPHRASE},
    "a curve": {f"{ASSERTION}private.key.file": "<ec>", f"{ASSERTION}algorithm": "ES256"},
    "claims": KEY | {f"{ASSERTION}claim.sub": "ü", f"{ASSERTION}claim.iss": 'a"b', f"{ASSERTION}claim.aud": "a,b"},
    "times": KEY | {f"{ASSERTION}claim.exp.seconds": 2**31 - 1, f"{ASSERTION}claim.nbf.seconds": 0},
    "an id": KEY | {f"{ASSERTION}claim.jti.include": True},
    "a template": KEY | {f"{ASSERTION}jwt.template.file": "<template>"},
    "a template and claims": KEY | {f"{ASSERTION}jwt.template.file": "<template>", f"{ASSERTION}claim.sub": "alice",
                                    f"{ASSERTION}claim.aud": "a", f"{ASSERTION}claim.jti.include": True},
})
def test_an_assertion_says_the_same_and_is_signed_by_the_same_key(
    endpoint: Endpoint, files: dict[str, str], keys: SigningKeys, case: dict[str, Any]
) -> None:
    said = []
    signer = files[case.get(f"{ASSERTION}private.key.file", "<rsa>")]
    for kafka in (confluent_kafka, headrace):
        path, headers, form = request(kafka, endpoint, files, case)
        [assertion] = form.pop("assertion")
        header, claims = keys.verified(signer, assertion, der=kafka is confluent_kafka)
        made_at = claims.pop("iat")
        assert abs(time.time() - made_at) < 10
        lasting = claims.pop("exp") - made_at, made_at - claims.pop("nbf")
        said.append((path, headers, form, header, claims, lasting, len(claims.pop("jti", ""))))
    assert said[0] == said[1]
