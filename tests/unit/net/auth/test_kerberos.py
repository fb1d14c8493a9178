"""GSSAPI, spoken by the package gssapi; here by one in its place, for which the key server is a list of tokens."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.config import ADMIN, Config
from headrace.errors import DependencyError, KafkaError, KafkaException, ProtocolError
from headrace.net.auth.kerberos import Kerberos, require_gssapi
from headrace.net.auth.mechanisms import mechanism_source
from headrace.types.records import NodeAddress
from tests.support.sasl_broker import SaslBroker, client


def test_gssapi_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)

    async def run() -> None:
        with pytest.raises(DependencyError, match=r"its default, needs .* pip install "
                                                  r"'headrace\[gssapi\]', or give another mechanism"):
            client(SaslBroker(), {"security.protocol": "sasl_plaintext"})

    asyncio.run(run())


class GSSError(Exception):
    """As the package's own."""


class Library:
    """In place of the package: a context that is complete after some tokens, and wraps by putting a word before."""

    def __init__(self, tokens: list[bytes | None], failure: str = "") -> None:
        self.tokens, self.failure = list(tokens), failure
        self.asked: list[dict[str, Any]] = []
        self.heard: list[bytes | None] = []
        self.exceptions = SimpleNamespace(GSSError=GSSError)
        self.NameType = SimpleNamespace(kerberos_principal="principal", hostbased_service="service")
        self.RequirementFlag = SimpleNamespace(mutual_authentication=2, integrity=32)

    def Name(self, name: str, kind: str) -> tuple[str, str]:
        return kind, name

    def Credentials(self, **given: Any) -> dict[str, Any]:
        if self.failure:
            raise GSSError(self.failure)
        return given

    def SecurityContext(self, **given: Any) -> "Library":
        self.asked.append(given)
        return self

    @property
    def complete(self) -> bool:
        return not self.tokens

    def step(self, token: bytes | None = None) -> bytes | None:
        self.heard.append(token)
        if self.failure:
            raise GSSError(self.failure)
        return self.tokens.pop(0)

    def unwrap(self, data: bytes) -> SimpleNamespace:
        if not data.startswith(b"wrapped "):
            raise GSSError("a token\nwas invalid")
        return SimpleNamespace(message=data.removeprefix(b"wrapped "))

    def wrap(self, data: bytes, encrypt: bool) -> SimpleNamespace:
        assert not encrypt
        return SimpleNamespace(message=b"wrapped " + data)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(library: Library) -> Library:
        monkeypatch.setitem(sys.modules, "gssapi", library)  # type: ignore[arg-type]
        return library

    return put


def mechanism(principal: str = "", keytab: str = "") -> Kerberos:
    return Kerberos("kafka", "broker.example", principal, keytab)


def test_the_package_that_is_installed_is_the_one_that_is_used(install: Any) -> None:
    library = install(Library([]))
    assert require_gssapi() is library


@pytest.mark.parametrize("tokens", [[b"ticket"], [b"ticket", b"more"], [b"ticket", None]],
                         ids=["one step", "two steps", "an empty last step"])
def test_tickets_are_exchanged_and_then_no_layer_is_agreed_on(install: Any, tokens: list[bytes | None]) -> None:
    library = install(Library(tokens))
    made = mechanism()
    said = [made.first()]
    for number in range(1, len(tokens)):
        said.append(made.step(b"challenge %d" % number))
        assert not made.done
    assert said == [token or b"" for token in tokens]
    assert library.heard == [None, *(b"challenge %d" % number for number in range(1, len(tokens)))]
    assert made.step(b"wrapped \x07\0\xff\xff") == b"wrapped \x01\0\0\0"
    assert not made.done
    assert made.step(b"") is None
    assert made.done


def test_the_broker_is_asked_for_by_its_service_and_host_and_must_prove_itself(install: Any) -> None:
    library = install(Library([b"ticket"]))
    mechanism().first()
    [asked] = library.asked
    assert asked["name"] == ("service", "kafka@broker.example")
    assert asked["usage"] == "initiate"
    assert asked["flags"] == 2 | 32
    assert asked["creds"] is None


def test_a_principal_and_a_keytab_say_whose_ticket_it_is_and_each_pair_has_tickets_of_its_own(install: Any) -> None:
    library = install(Library([b"1", b"2", b"3"]))
    for principal, keytab in (("a@R", "/k"), ("b@R", "/k"), ("a@R", "")):
        mechanism(principal, keytab).first()
    credentials = [asked["creds"] for asked in library.asked]
    assert [each["name"] for each in credentials] == [("principal", "a@R"), ("principal", "b@R"), ("principal", "a@R")]
    stores = [each["store"] for each in credentials]
    assert [store and store["client_keytab"] for store in stores] == ["/k", "/k", None]
    assert stores[0]["ccache"] != stores[1]["ccache"]
    assert all(store["ccache"].startswith("MEMORY:") for store in stores[:2])


@pytest.mark.parametrize("offer", [b"", b"\1\0\0", b"\1\0\0\0\0"])
def test_an_offer_of_another_length_is_a_protocol_error(install: Any, offer: bytes) -> None:
    install(Library([b"ticket"]))
    made = mechanism()
    made.first()
    with pytest.raises(ProtocolError, match="where 4 are expected"):
        made.step(b"wrapped " + offer)
    assert not made.done


def test_a_broker_that_insists_on_a_layer_is_refused(install: Any) -> None:
    install(Library([b"ticket"]))
    made = mechanism()
    made.first()
    with pytest.raises(KafkaException, match="insists on a security layer") as failed:
        made.step(b"wrapped \x06\0\xff\xff")
    assert failed.value.error == KafkaError._AUTHENTICATION
    assert not made.done


@pytest.mark.parametrize("principal", ["", "a@R"], ids=["no ticket", "no such principal"])
def test_what_the_library_says_is_told_in_one_line_with_what_to_check(install: Any, principal: str) -> None:
    install(Library([b"ticket"], failure="no\ncredentials"))
    with pytest.raises(KafkaException, match=r"kafka@broker\.example failed: no credentials: check .*klist") as failed:
        mechanism(principal).first()
    assert failed.value.error == KafkaError._AUTHENTICATION


def test_a_token_that_the_library_refuses_ends_it(install: Any) -> None:
    install(Library([b"ticket"]))
    made = mechanism()
    made.first()
    with pytest.raises(KafkaException, match="a token was invalid: check"):
        made.step(b"not wrapped")
    assert not made.done


def test_each_broker_is_asked_for_by_its_own_name_and_off_the_loop(install: Any) -> None:
    library = install(Library([b"1", b"2"]))
    source = mechanism_source(Config(ADMIN, {
        "bootstrap.servers": "b:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "stream"}), lambda: 0.0, lambda: 0.5)
    assert source is not None
    for number, host in enumerate(("one", "two")):
        made = asyncio.run(source(NodeAddress(number, host, 9092)))  # type: ignore[arg-type]
        assert made.slow
        made.first()
    assert [asked["name"][1] for asked in library.asked] == ["stream@one", "stream@two"]
