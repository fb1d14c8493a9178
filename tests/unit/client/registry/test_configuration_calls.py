"""What a registry is asked about its configurations, modes, contexts and associations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.errors import SchemaRegistryError
from headrace.schema_registry import (
    Association,
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    ConfigCompatibilityLevel,
    Schema,
    SchemaRegistryClient,
    ServerConfig,
)
from tests.support.scripted_registry import Said, ScriptedRegistry


@pytest.fixture
def client(registry: ScriptedRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def test_a_level_is_of_the_registry_or_of_a_subject(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers({"compatibility": "FULL"}, {"compatibility": "NONE"}, {"compatibilityLevel": "FULL"})
    assert client.set_compatibility(level="full") == {"compatibility": "FULL"}
    assert client.set_compatibility("s/1", "NONE") == {"compatibility": "NONE"}
    assert client.get_compatibility("s") == "FULL"
    assert [(asked.method, asked.path, asked.body) for asked in registry.asked] == [
        ("PUT", "/config", {"compatibility": "FULL"}), ("PUT", "/config/s%2F1", {"compatibility": "NONE"}),
        ("GET", "/config/s", None)]


def test_a_change_needs_what_to_change_to(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    with pytest.raises(ValueError, match="level must be set"):
        client.set_compatibility("s")
    with pytest.raises(ValueError, match="config must be set"):
        client.set_config("s")
    assert registry.asked == []


def test_configurations_are_values(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers({"compatibility": "FULL"}, {"compatibilityLevel": "FULL"}, {"compatibilityLevel": "FULL"})
    config = ServerConfig(compatibility=ConfigCompatibilityLevel.FULL)
    told = ServerConfig(compatibility_level=ConfigCompatibilityLevel.FULL)
    assert client.set_config("s", config) == {"compatibility": "FULL"}
    assert client.get_config() == client.delete_config("s") == told
    assert [(asked.method, asked.path) for asked in registry.asked] == [
        ("PUT", "/config/s"), ("GET", "/config"), ("DELETE", "/config/s")]


def test_compatibility_is_tested_against_one_version_or_all(
    client: SchemaRegistryClient, registry: ScriptedRegistry
) -> None:
    registry.answers({"is_compatible": True}, {"is_compatible": False, "messages": ["no"]}, {})
    schema = Schema('"string"')
    assert client.test_compatibility("s", schema) is True
    assert client.test_compatibility_all_versions("s", schema, True, True) is False
    with pytest.raises(SchemaRegistryError, match="no bool is_compatible"):
        client.test_compatibility("s", schema, 3)
    assert [(asked.path, asked.query) for asked in registry.asked] == [
        ("/compatibility/subjects/s/versions/latest", {"normalize": ["false"], "verbose": ["false"]}),
        ("/compatibility/subjects/s/versions", {"normalize": ["true"], "verbose": ["true"]}),
        ("/compatibility/subjects/s/versions/3", {"normalize": ["false"], "verbose": ["false"]})]


def test_modes_are_of_the_registry_or_of_a_subject(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.otherwise = lambda asked: {"mode": asked.method}
    assert [client.get_mode("s"), client.get_global_mode(), client.update_mode("s", "IMPORT", True),
            client.update_global_mode("IMPORT"), client.delete_mode("s")] == ["GET", "GET", "PUT", "PUT", "DELETE"]
    assert [(asked.path, asked.query, asked.body) for asked in registry.asked] == [
        ("/mode/s", {}, None), ("/mode", {}, None), ("/mode/s", {"force": ["true"]}, {"mode": "IMPORT"}),
        ("/mode", {"force": ["false"]}, {"mode": "IMPORT"}), ("/mode/s", {}, None)]


def test_contexts_have_pages(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers(["."])
    assert client.get_contexts(1, 2) == ["."]
    assert registry.asked[0].query == {"offset": ["1"], "limit": ["2"]}


def test_associations_are_made_listed_and_deleted(client: SchemaRegistryClient, registry: ScriptedRegistry) -> None:
    registry.answers({"resourceName": "t"}, [{"subject": "t-key", "frozen": True}], Said(None, 204))
    info = AssociationCreateOrUpdateInfo("t-key", "key")
    assert client.create_association(AssociationCreateOrUpdateRequest("t", "lkc", "u", "topic", [info])) \
        .resource_name == "t"
    assert client.get_associations_by_resource_name("t", "-", "topic", ["key", "value"], 1, 2) == [
        Association("t-key", None, None, None, None, None, None, True)]
    client.delete_associations("u", "topic", ["key"], True)
    made, listed, deleted = registry.asked
    assert made.body == {"resourceName": "t", "resourceNamespace": "lkc", "resourceId": "u", "resourceType": "topic",
                         "associations": [{"subject": "t-key", "associationType": "key"}]}
    assert (listed.path, listed.query) == ("/associations/resources/-/t", {
        "resourceType": ["topic"], "associationType": ["key", "value"], "offset": ["1"], "limit": ["2"]})
    assert (deleted.path, deleted.query) == ("/associations/resources/u", {
        "cascadeLifecycle": ["true"], "resourceType": ["topic"], "associationType": ["key"]})
