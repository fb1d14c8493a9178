"""The metadata service of an Azure machine: asked for the same as by confluent_kafka, of the same properties."""

import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from queue import Queue
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

from headrace.net.auth.tokens import unsecured_token
from tests.support.local_http import QuietHandler, serving
from tests.support.same_as_confluent import QUIET, by_name, same

IDENTITY, CONFIG, URL = (f"sasl.oauthbearer.{name}" for name in (
    "metadata.authentication.type", "config", "token.endpoint.url"))
REFUSED = ("KafkaException", confluent_kafka.KafkaError._INVALID_ARG, False, False)


class Machine:
    """A metadata service that gives everybody a token.

    Attributes:
        url: where it is.
        asked: method, path and headers of each request.
    """

    def __init__(self) -> None:
        self.asked: Queue[tuple[str, str, dict[str, str]]] = Queue()
        asked = self.asked

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                asked.put((self.command, self.path, {name: self.headers[name] for name in ("Metadata", "Accept")}))
                token = unsecured_token("principal=machine", {}, time.time()).value
                answer = f'{{"access_token": "{token}", "expires_in": "3599", "token_type": "Bearer"}}'
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(answer.encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/metadata/token"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    made = Machine()
    with serving(made.server):
        yield made


def asked(kafka: ModuleType, machine: Machine, given: dict[str, Any]) -> Any:
    """What a client's first request for a token says."""
    taken = kafka.Producer({
        "bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc", IDENTITY: "azure_imds", "logger": QUIET,
        **{name: value.replace("<url>", machine.url) for name, value in given.items()}})
    found = machine.asked.get(timeout=10)
    del taken
    return found


@by_name({
    "a query": {URL: "<url>", CONFIG: "query=api-version=2018-02-01&resource=api://kafka&client_id=c"},
    "a query in the address": {URL: "<url>?resource=r"},
    "a query in both": {URL: "<url>?resource=r", CONFIG: "query=client_id=c"},
    "a query that is empty": {URL: "<url>", CONFIG: "query="},
    "something else besides": {URL: "<url>", CONFIG: "query=resource=r,other=x"},
    "blanks": {URL: "<url>", CONFIG: " query=resource=r , other=x"},
    "a comma": {URL: "<url>", CONFIG: r"query=resource=r\,s"},
    "something else alone": {URL: "<url>", CONFIG: "other=x"},
    "what only clients with a secret have": {URL: "<url>", CONFIG: "query=resource=r",
                                             "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s",
                                             "sasl.oauthbearer.scope": "x"},
})
def test_the_same_is_asked(machine: Machine, case: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    method, path, headers = same(lambda kafka: asked(kafka, machine, case))
    assert (method, headers) == ("GET", {"Metadata": "true", "Accept": "application/json"})
    assert path.startswith("/metadata/token")


@by_name({"nothing": {}, "something else": {CONFIG: "other=x"}})
def test_neither_query_nor_address_is_refused_by_both(machine: Machine, case: dict[str, str]) -> None:
    assert same(lambda kafka: asked(kafka, machine, case)) == REFUSED
