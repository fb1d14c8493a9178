"""The pages for users of other clients: every name that they have is there, and every name that is there exists."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import headrace
import headrace.admin
import headrace.aio
from headrace.config import PROPERTIES
from headrace.config.rows_elsewhere import WITHOUT_EFFECT
from headrace.testing import EmbeddedBroker
from tests.support.pages import DOCS, Enough, blocks_of, programs_of, run_program

CONFLUENT = DOCS / "from/confluent-kafka.md"
KAFKA_PYTHON = DOCS / "from/kafka-python.md"
AIOKAFKA = DOCS / "from/aiokafka.md"
OURS = {"KafkaProducer": headrace.Producer, "KafkaConsumer": headrace.Consumer,
        "KafkaAdminClient": headrace.admin.AdminClient, "AIOKafkaProducer": headrace.aio.AIOProducer,
        "AIOKafkaConsumer": headrace.aio.AIOConsumer, "AIOKafkaAdminClient": headrace.aio.AIOAdminClient}
IN_BOTH = [headrace.Producer, headrace.Consumer, headrace.admin.AdminClient]
KNOWN = {name for row in PROPERTIES.values() for name in (row.name, *row.aliases)} | set(WITHOUT_EFFECT)
OF_SERIALIZING_CLIENTS = {f"{part}.{how}" for part in ("key", "value") for how in ("serializer", "deserializer")}


def peer(name: str) -> Any:
    module = importlib.import_module("aiokafka.admin" if name == "AIOKafkaAdminClient" else
                                     "aiokafka" if name.startswith("AIO") else "kafka")
    return getattr(module, name)


def rows_of(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert section, heading
    lines = [line for line in section[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def parameters(name: str) -> set[str]:
    """The properties of a client, as its author wrote them."""
    of_class = peer(name)
    if hasattr(of_class, "DEFAULT_CONFIG"):
        return set(of_class.DEFAULT_CONFIG)
    return set(inspect.signature(of_class.__init__).parameters) - {"self", "topics"}


@pytest.mark.parametrize(("page", "name"), [(page, name) for name in OURS for page in (KAFKA_PYTHON, AIOKAFKA)
                                            if name.startswith("AIO") == (page == AIOKAFKA)])
def test_every_method_of_a_client_has_a_row_and_what_it_names_exists(page: Path, name: str) -> None:
    pytest.importorskip("aiokafka" if page == AIOKAFKA else "kafka")
    theirs = {each for each in dir(peer(name)) if not each.startswith("_") and callable(getattr(peer(name), each))}
    rows = rows_of(page, name)
    assert sorted(each.removesuffix("()") for row in rows for each in named(row[0])) == sorted(theirs)
    for _, instead in rows:
        for call in re.findall(r"`(\w+)\(\)`", instead):
            assert any(hasattr(each, call) for each in (OURS[name], headrace.Consumer, OURS["AIOKafkaConsumer"])), call
        for other in re.findall(r"`([A-Z]\w+)\.(\w+)(?:\(\))?`", instead):
            assert hasattr(getattr(headrace, other[0], None) or getattr(headrace.admin, other[0]), other[1]), other


@pytest.mark.parametrize(("page", "prefix"), [(KAFKA_PYTHON, "Kafka"), (AIOKAFKA, "AIOKafka")])
def test_every_property_has_a_row_or_our_name_with_dots(page: Path, prefix: str) -> None:
    pytest.importorskip("aiokafka" if page == AIOKAFKA else "kafka")
    theirs = set().union(*(parameters(f"{prefix}{role}") for role in ("Producer", "Consumer", "AdminClient")))
    rows = rows_of(page, "Properties")
    explained = {name for row in rows for name in named(row[0])}
    assert explained <= theirs
    assert {name for name in theirs - explained if name.replace("_", ".") not in KNOWN} == set()
    assert [name for name in explained if name.replace("_", ".") in KNOWN] == [], "these have our name with dots"
    properties = re.compile(r"[a-z]+(\.[a-z.]+)+|\w+_cb|on_commit")
    ours = {name for row in rows for name in named(row[1]) if properties.fullmatch(name)}
    assert ours - KNOWN <= OF_SERIALIZING_CLIENTS


def defined_in(module: ModuleType) -> set[str]:
    """The public names that a module of confluent_kafka makes or offers, without what it only uses."""
    if hasattr(module, "__all__"):
        return {name for name in module.__all__ if not isinstance(getattr(module, name, module), ModuleType)}
    room = "confluent_kafka.schema_registry" if "schema_registry" in module.__name__ else module.__name__
    return {name for name, value in vars(module).items()
            if not name.startswith("_") and callable(value) and str(getattr(value, "__module__", "")).startswith(room)}


def test_modules_of_confluent_kafka_have_all_names_but_those_of_rules() -> None:
    pytest.importorskip("confluent_kafka")
    rows = rows_of(CONFLUENT, "Module by module")
    assert len(rows) >= 15
    for theirs, ours, left_out in rows:
        if named(ours):
            missing = {name for name in defined_in(importlib.import_module(named(theirs)[0]))
                       if not hasattr(importlib.import_module(named(ours)[0]), name)}
            assert bool(missing) == bool(left_out), (theirs, missing)
        else:
            assert left_out == "rules"


def test_what_is_new_exists_here_and_not_there() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin = importlib.import_module("confluent_kafka.admin")
    calls = [call for row in rows_of(CONFLUENT, "What is new")
             for call in re.findall(r"`(?:with )?([A-Z]\w+)\.(\w+)\(\):?`", row[1])]
    assert len(calls) > 10
    for owner, call in calls:
        ours, theirs = ((headrace.admin, admin) if owner == "AdminClient" else (headrace, confluent_kafka))
        assert hasattr(getattr(ours, owner), call)
        assert not hasattr(getattr(theirs, owner), call)


@pytest.mark.parametrize("page", [CONFLUENT, KAFKA_PYTHON, AIOKAFKA], ids=lambda page: page.stem)
def test_the_program_of_a_page_runs(page: Path) -> None:
    (program,) = programs_of(page)
    told: list[Any] = []

    def note(*values: Any) -> None:
        told.append(values)
        if len(told) == 2:
            raise Enough

    with EmbeddedBroker(topics={"orders": 1}) as broker:
        names = {"print": note, "__name__": "__main__"}
        run_program(program.replace("localhost:9092", broker.bootstrap_servers), names)
    assert [values[-1] for values in told] == [0, b"new"]


@pytest.mark.parametrize("page", [CONFLUENT, KAFKA_PYTHON, AIOKAFKA], ids=lambda page: page.stem)
def test_what_stands_before_is_a_program_of_the_other_client(page: Path) -> None:
    (before,) = (text for kind, text in blocks_of(page) if kind == "py")
    for module, names in re.findall(r"^from (\w+) import (.*)$", before, re.MULTILINE):
        other = pytest.importorskip(module)
        assert [name for name in names.split(", ") if not hasattr(other, name)] == []
    compile(before, page.name, "exec")
