"""What a registry is asked about schemas, and what is not asked twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.errors import SchemaRegistryError
from headrace.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient
from headrace.types.registry import SchemaVersion
from tests.support.scripted_registry import Said, ScriptedRegistry

TEXT = Schema('"string"')
SAID = {"subject": "s", "version": 2, "id": 7, "guid": "g", "schema": '"string"'}


@pytest.fixture
def client(registry: ScriptedRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def test_a_schema_is_registered_once(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers({"id": 7})
    for _ in range(2):
        assert client.register_schema_full_response("s", TEXT) == RegisteredSchema("s", None, 7, None, TEXT)
        assert client.register_schema("s", TEXT) == 7
    assert len(registry.asked) == 1
    assert client.get_schema(7, "s") == TEXT
    assert len(registry.asked) == 1


def test_what_a_newer_registry_answers_is_kept_whole(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers({**SAID, "schema": '{"type":"string"}'})
    found = client.register_schema_full_response("s", TEXT)
    assert found == RegisteredSchema("s", 2, 7, "g", Schema('{"type":"string"}'))
    assert client.lookup_schema("s", TEXT) == RegisteredSchema("s", 2, 7, "g", TEXT)
    assert client.get_version("s", 2) == RegisteredSchema("s", 2, 7, "g", TEXT), "what was looked up is the caller's"
    assert client.get_schema_by_guid("g") == TEXT
    assert len(registry.asked) == 1


def test_a_schema_that_is_to_be_normalized_is_another_one(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    registry.answers({"id": 7}, {"id": 8})
    assert (client.register_schema("s", TEXT), client.register_schema("s", TEXT, True)) == (7, 8)
    assert [asked.query["normalize"] for asked in registry.asked] == [["false"], ["true"]]


def test_a_schema_that_was_refused_is_asked_about_again(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    registry.answers(Said({"error_code": 409, "message": "incompatible"}, 409), {"id": 7})
    with pytest.raises(SchemaRegistryError, match="incompatible"):
        client.register_schema("s", TEXT)
    assert client.register_schema("s", TEXT) == 7


def test_a_registry_that_tells_no_id_has_registered_nothing(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    registry.otherwise = lambda asked: {}
    for _ in range(2):
        with pytest.raises(SchemaRegistryError, match="no id"):
            client.register_schema("s", TEXT)
    assert len(registry.asked) == 2


def test_a_schema_is_looked_up_once(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers({**SAID, "schema": "canonical"})
    for _ in range(2):
        assert client.lookup_schema("s", TEXT) == RegisteredSchema("s", 2, 7, "g", TEXT)
    assert client.register_schema("s", TEXT) == 7
    assert client.get_version("s", 2).schema == TEXT
    assert len(registry.asked) == 1


def test_a_schema_that_is_deleted_is_registered_anew(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers(SAID, {"id": 7})
    client.lookup_schema("s", TEXT, deleted=True)
    client.register_schema("s", TEXT)
    assert [(asked.path, asked.query.get("deleted")) for asked in registry.asked] == [
        ("/subjects/s", ["true"]), ("/subjects/s/versions", None)]


def test_forms_of_a_schema_are_kept_apart(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: {"schema": str(asked.query)}
    found = [client.get_schema(7, *form) for form in ((), (None, "resolved"), (None, None, "serialized"), ("s",)) * 2]
    assert found[:4] == found[4:]
    assert [asked.query for asked in registry.asked] == [
        {}, {"format": ["resolved"]}, {"reference_format": ["serialized"]}, {"subject": ["s"]}]
    assert client.get_schema_by_guid("g") != client.get_schema_by_guid("g", "resolved")
    assert len(registry.asked) == 6


def test_lists_about_an_id_are_not_kept(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers(["a"], ["b"], [{"subject": "s", "version": 1}], ["AVRO"])
    assert client.get_subjects_by_schema_id(7) == ["a"]
    assert client.get_subjects_by_schema_id(7, "s", True, 2, 3) == ["b"]
    assert client.get_schema_versions(7) == [SchemaVersion("s", 1)]
    assert client.get_schema_types() == ["AVRO"]
    assert registry.asked[1].query == {"subject": ["s"], "deleted": ["true"], "offset": ["2"], "limit": ["3"]}


def test_no_more_is_kept_than_there_is_room_for(registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: {"schema": "x"}
    with SchemaRegistryClient({"url": registry.url, "cache.capacity": 2}) as client:
        for schema_id in (1, 2, 3, 3, 2, 1):
            client.get_schema(schema_id)
    assert [asked.path for asked in registry.asked] == [f"/schemas/ids/{n}" for n in (1, 2, 3, 1)]
