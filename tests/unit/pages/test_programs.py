"""Programs of pages that have no test of their own: each runs against an embedded broker, and does what it says."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from headrace import Consumer, Producer, ProducerInterceptor
from headrace.admin import DelegationToken
from headrace.errors import DependencyError
from headrace.schema_registry import SchemaRegistryClient
from headrace.testing import EmbeddedBroker
from tests.support.pages import DOCS, Enough, programs_of, run_program

PATIENCE_S = 20.0
SENDING = programs_of(DOCS / "how-to/producer.md")
WATCHING = programs_of(DOCS / "how-to/observe.md")
SECURITY = programs_of(DOCS / "how-to/security.md")
SHARING = programs_of(DOCS / "how-to/share-groups.md")
TESTING = programs_of(DOCS / "reference/broker.md")


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture
def names(broker: EmbeddedBroker) -> Iterator[dict[str, Any]]:
    """What the pages take as given: properties, clients, an application."""
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    reading = {**servers, "group.id": "g", "auto.offset.reset": "earliest"}
    with Producer(servers) as producer, Consumer(reading) as reader:
        reader.subscribe(["orders"])
        yield {"__name__": "__main__", "conf": servers, "producer": producer, "Producer": Producer, "consumer": reader}


def here(program: str, broker: EmbeddedBroker) -> str:
    return program.replace("localhost:9092", broker.bootstrap_servers)


def test_send_gives_the_place_of_a_record(broker: EmbeddedBroker, names: dict[str, Any], capsys: Any) -> None:
    run_program(here(SENDING[0], broker), names)
    assert re.fullmatch(r"orders\[0\]@0 0 \d{13}\n", capsys.readouterr().out)


def test_producers_of_one_record_and_of_callbacks_from_a_thread_send(
    broker: EmbeddedBroker, names: dict[str, Any], capsys: Any
) -> None:
    run_program(SENDING[1], names)
    assert broker.end_offsets("orders") == [3]
    assert capsys.readouterr().out == ""


def test_many_records_are_sent_with_callbacks_of_their_own(broker: EmbeddedBroker, names: dict[str, Any]) -> None:
    reports = dict[str, list[Any]](one=[], others=[])
    for which, told in reports.items():
        names[f"report_{which}"] = lambda error, message, told=told: told.append(error)
    broker.apply(lambda cluster: cluster.catalog.create("two", 2, 1, {}))
    run_program(SENDING[2].replace('"orders"', '"two"'), names)
    names["producer"].flush(PATIENCE_S)
    assert names["accepted"] == 2
    assert reports == {"one": [None], "others": [None]}


def test_columns_are_sent_from_a_frame_from_a_query_and_under_asyncio(
    broker: EmbeddedBroker, names: dict[str, Any], capsys: Any
) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    from headrace.aio import AIOProducer

    async def on_loop() -> dict[str, Any]:
        return {"aio_producer": AIOProducer(names["conf"])}

    names |= {"frame": polars.DataFrame({"customer": ["a", "b"], "payload": ["1", "2"]}), "on_loop": on_loop,
              "connection": duckdb.connect()}
    program = SENDING[3].replace("select ...", "select 'x' as value")
    run_program(program + "\nprint(stored, 'more')\nawait aio_producer.close()\n", names)
    names["producer"].flush(PATIENCE_S)
    assert capsys.readouterr().out == "2 rows stored\n2 more\n"
    assert broker.end_offsets("orders") == [5]


def test_an_interceptor_is_found_by_its_path_and_adds_its_header(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Auditing(ProducerInterceptor):
        pass

    audit = ModuleType("company.audit")
    audit.Auditing = Auditing  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "company", ModuleType("company"))
    monkeypatch.setitem(sys.modules, "company.audit", audit)
    made = SENDING[4].index("producer = Producer(")
    run_program(SENDING[4][:made], names)
    audit.Auditing = names["Auditing"]  # type: ignore[attr-defined]
    run_program(SENDING[4][made:], names)
    with names["producer"] as producer:
        producer.produce("orders", b"value")
    message = names["consumer"].poll(PATIENCE_S)
    assert message.headers() == [("source", b"web")]


def test_a_partitioner_is_asked_for_each_record(broker: EmbeddedBroker, names: dict[str, Any]) -> None:
    asked = []

    class Regions(dict[bytes, int]):
        def __missing__(self, region: bytes) -> int:
            asked.append(region)
            return 0

    names["REGIONS"] = Regions()
    run_program(SENDING[5], names)
    with names["producer"] as producer:
        producer.produce("orders", b"value", key=b"eu-1")
    assert asked == [b"eu"]


def test_a_client_is_watched_by_callbacks_numbers_and_traces(
    broker: EmbeddedBroker, names: dict[str, Any], capsys: Any
) -> None:
    pytest.importorskip("opentelemetry")
    handled = []
    names["handle"] = handled.append
    for program in WATCHING:
        run_program(here(program, broker), names)
        names["producer"].produce("orders", b"value")
        names["producer"].flush(PATIENCE_S)
    assert len(handled) == 1
    assert handled[0].value() == b"value"
    assert "records wait," in capsys.readouterr().out


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the page about security names, in the working directory."""
    trustme = pytest.importorskip("trustme")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    monkeypatch.chdir(tmp_path)
    authority = trustme.CA()
    client = authority.issue_cert("client.example")
    for name in ("ca.pem", "idp-ca.pem"):
        authority.cert_pem.write_to_path(name)
    client.cert_chain_pems[0].write_to_path("client.pem")
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    Path("client.key").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"...")))
    Path("me.pem").write_bytes(rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


@pytest.mark.usefixtures("certificates")
@pytest.mark.parametrize("program", SECURITY, ids=range(len(SECURITY)))
def test_each_configuration_of_the_page_about_security_makes_a_client(program: str) -> None:
    made: list[Producer] = []

    def producer(conf: dict[str, Any]) -> None:
        made.append(Producer({"bootstrap.servers": "localhost:1", "error_cb": lambda error: None, **conf}))

    program = program if "Producer(" in program else f"Producer({program.strip()})"
    if "GSSAPI" in program and find_spec("gssapi") is None:
        with pytest.raises(DependencyError, match=r"headrace\[gssapi\]"):
            run_program(program, {"Producer": producer})
    else:
        token = SimpleNamespace(text="token", expires_at=time.time() + 300)
        given: Future[DelegationToken] = Future()
        given.set_result(DelegationToken("id", "User:me", "User:me", 0, 0, 0, b"secret"))
        admin = SimpleNamespace(create_delegation_token=lambda *, max_lifetime: given)
        run_program(program, {"Producer": producer, "my_provider": SimpleNamespace(token=lambda: token),
                              "admin": admin})
        made.pop().close()


@pytest.fixture
def jobs(broker: EmbeddedBroker, names: dict[str, Any]) -> dict[str, Any]:
    """Ten records, and a share group that begins with the first, as the page's second program has it."""
    run_program(here(SHARING[1], broker), names)
    for number in range(10):
        names["producer"].produce("orders", b"%d" % number)
    names["producer"].flush(PATIENCE_S)
    return names


@pytest.mark.parametrize("program", [SHARING[0], SHARING[3]], ids=["blocking", "asyncio"])
def test_members_of_a_share_group_read(program: str, broker: EmbeddedBroker, jobs: dict[str, Any]) -> None:
    told = list[Any]()

    def note(*values: Any) -> None:
        told.append(values[-1])
        if len(told) == 10:
            raise Enough

    run_program(here(program, broker), {**jobs, "print": note})
    assert told == [b"%d" % number for number in range(10)]


def test_a_released_record_comes_again_and_a_rejected_one_does_not(
    broker: EmbeddedBroker, jobs: dict[str, Any]
) -> None:
    seen = list[bytes]()

    def work(value: bytes) -> None:
        seen.append(value)
        if seen.count(b"5") == 2:
            raise Enough
        if value == b"5":
            raise ConnectionError
        if value == b"6":
            raise ValueError

    program = here(SHARING[2], broker).replace("    ...\n", "    done(value)\n")
    run_program(program, {**jobs, "done": work})
    assert (seen.count(b"5"), seen.count(b"6")) == (2, 1)


def test_the_fixture_with_a_registry_serves_both(headrace_registry: EmbeddedBroker) -> None:
    names: dict[str, Any] = {"Producer": Producer, "SchemaRegistryClient": SchemaRegistryClient}
    pytest.importorskip("httpx2")
    program = TESTING[0] + "    producer.close()\n    return registry.get_subjects()\n"
    run_program(program, names)
    assert names["test_orders"](headrace_registry) == []


def test_no_program_of_these_pages_is_left_out() -> None:
    assert [len(each) for each in (SENDING, WATCHING, SECURITY, SHARING, TESTING)] == [6, 3, 11, 4, 1]
