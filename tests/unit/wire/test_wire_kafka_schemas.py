"""Field by field as in the message schemas inside Kafka's own Java client, in three releases and both ways."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headrace.wire.api import API
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.campaigns.conformance import __main__ as conformance
from tests.campaigns.conformance.kafka_schemas import (
    JARS,
    Comparison,
    Schema,
    clients_jar,
    compare,
    compare_all,
    read_schemas,
    stable_versions,
    unknown_versions,
)
from tests.campaigns.conformance.wire_values import all_messages

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def schemas() -> dict[str, dict[str, Schema]]:
    return {jar: read_schemas(clients_jar(jar)) for jar in JARS}


@pytest.mark.parametrize("jar", JARS)
def test_every_message_and_field_is_as_in_the_schemas_of_a_release(
    jar: str, schemas: dict[str, dict[str, Schema]]
) -> None:
    found = compare_all(jar, schemas[jar], all_messages())
    assert found.differences == []
    assert found.messages >= 165
    assert found.fields >= 1300


def test_no_version_is_made_up(schemas: dict[str, dict[str, Schema]]) -> None:
    assert unknown_versions(list(schemas.values()), all_messages()) == []


@pytest.mark.parametrize(("field", "key", "value"), [
    (0, "versions", "4+"), (0, "nullableVersions", "5+"), (1, "type", "int32"), (1, "ignorable", True),
    (2, "default", "7"), (1, "name", "Ackz"), (2, "tag", 3), (0, "flexibleVersions", "none"),
])
def test_a_field_that_differs_is_noticed(
    field: int, key: str, value: Any, schemas: dict[str, dict[str, Schema]]
) -> None:
    schema = copy.deepcopy(schemas["4.4.0"]["ProduceRequest"])
    schema["fields"][field][key] = value
    if key == "tag":
        schema["fields"][field]["taggedVersions"] = "9+"
    found = Comparison("4.4.0")
    compare(found, ProduceRequest, schema, range(3, 14))
    assert found.differences


@pytest.mark.parametrize(("key", "value"), [("apiKey", 1), ("flexibleVersions", "8+")])
def test_a_message_that_differs_is_noticed(key: str, value: Any, schemas: dict[str, dict[str, Schema]]) -> None:
    found = Comparison("4.4.0")
    compare(found, ProduceRequest, {**schemas["4.4.0"]["ProduceRequest"], key: value}, range(3, 15))
    assert len(found.differences) == 2
    assert found.differences[0] == "ProduceRequest: versions [14] are missing"


def test_a_message_that_is_missing_is_noticed(schemas: dict[str, dict[str, Schema]]) -> None:
    classes = [cls for cls in all_messages() if cls is not ProduceRequest]
    assert compare_all("4.4.0", schemas["4.4.0"], classes).differences == ["ProduceRequest: is missing"]


def test_every_stable_version_is_known_and_no_other(schemas: dict[str, dict[str, Schema]]) -> None:
    for api in API.values():
        versions = stable_versions(api.request.__name__, schemas["4.4.0"])
        if api.key not in (4, 5, 6, 7):
            assert api.max_version == versions[-1]


def test_the_command_counts_and_tells_by_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conformance.main(["fields", "--jar", "4.4.0"]) == 0
    assert "195 messages, 533 structs, 1756 fields compared, 0 differences" in capsys.readouterr().out
    fewer = [cls for cls in all_messages() if cls is not ProduceRequest]
    monkeypatch.setattr(conformance, "all_messages", lambda: fewer)
    assert conformance.main(["fields", "--jar", "4.4.0"]) == 1
    assert "4.4.0: ProduceRequest: is missing" in capsys.readouterr().out
