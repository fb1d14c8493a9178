"""Field by field as in the message schemas inside Kafka's own Java client."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from kafka_schemas import differences, read_schemas
from wire_values import all_messages

from headrace.wire.api import API
from headrace.wire.messages.produce import ProduceRequest
from headrace.wire.schema import Message

pytestmark = pytest.mark.kafka

_NEWEST, _OLDEST = "4.4.0", "3.9.2"


def _schemas(version: str) -> dict[str, dict[str, Any]]:
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    try:
        jars = artifacts.jars(f"kafka-{version}")
    except artifacts.RegistryError as error:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(error))
    return read_schemas(next(jar for jar in jars if jar.name.startswith("kafka-clients-")))


@pytest.fixture(scope="module")
def newest() -> dict[str, dict[str, Any]]:
    return _schemas(_NEWEST)


@pytest.fixture(scope="module")
def oldest() -> dict[str, dict[str, Any]]:
    return _schemas(_OLDEST)


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_every_field_is_as_in_the_newest_schema(cls: type[Message], newest: dict[str, dict[str, Any]]) -> None:
    assert differences(cls, newest[cls.__name__], in_full=True) == []


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_old_versions_are_as_in_the_schema_that_still_had_them(
    cls: type[Message], oldest: dict[str, dict[str, Any]]
) -> None:
    schema = oldest.get(cls.__name__)
    assert schema is None or differences(cls, schema, in_full=False) == []


@pytest.mark.parametrize(("field", "key", "value"), [
    (0, "versions", "4+"), (0, "nullableVersions", "5+"), (1, "type", "int32"), (1, "ignorable", True),
    (2, "default", "7"), (1, "name", "Ackz"), (2, "tag", 3),
])
def test_a_field_that_differs_is_noticed(
    field: int, key: str, value: Any, newest: dict[str, dict[str, Any]]
) -> None:
    schema = copy.deepcopy(newest["ProduceRequest"])
    schema["fields"][field][key] = value
    if key == "tag":
        schema["fields"][field]["taggedVersions"] = "9+"
    assert len(differences(ProduceRequest, schema, in_full=True)) >= 1


def test_every_stable_version_is_known_and_no_other(newest: dict[str, dict[str, Any]]) -> None:
    for api in API.values():
        schema = newest[api.request.__name__]
        highest = int(schema["validVersions"].split("-")[-1])
        assert schema["apiKey"] == api.key
        assert api.max_version == highest - bool(schema.get("latestVersionUnstable"))
