"""Configurations as values: requests survive the wire in every version, replies are read into entries."""

from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import config_requests as admin
from headrace.types.acls import ResourceType
from headrace.types.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from headrace.wire.codec import decode, encode
from headrace.wire.messages.admin.configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    ListConfigResourcesResponse,
    ListedConfigResource,
)
from tests.support.travelling import travels


@pytest.mark.parametrize(("kind", "number"), [("topic", 2), ("broker", 4), ("group", 32)])
def test_resource_types_have_the_wires_numbers(kind: str, number: int) -> None:
    resource = ConfigResource(kind, "7", set_config={"x": "1"})
    resource.add_incremental_config(ConfigEntry("y", "2", incremental_operation=AlterConfigOpType.APPEND))
    assert travels(admin.describe_configs([resource]), 1, 4).resources[0].resource_type == number
    assert travels(admin.alter_configs([resource], False), 0, 2).resources[0].resource_type == number
    change = travels(admin.incremental_alter_configs([resource], False), 0, 1).resources[0]
    assert (change.resource_type, change.configs[0].config_operation, change.configs[0].value) == (number, 2, "2")


@pytest.mark.parametrize("value", ["1", 1, None])
def test_what_is_beside_a_property_that_is_deleted_is_not_sent(value: Any) -> None:
    gone = ConfigEntry("y", value, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource("topic", "t", incremental_configs=[gone])
    assert travels(admin.incremental_alter_configs([resource], False), 0, 1).resources[0].configs[0].value is None


def test_described_entries_know_their_source_and_what_they_hide() -> None:
    synonym = DescribeConfigsSynonym(name="log.retention.ms", value="9", source=5)
    entry = DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=1, synonyms=[synonym])
    unknown = DescribeConfigsResourceResult(name="new", value=None, config_source=77)
    reply = DescribeConfigsResponse(results=[
        DescribeConfigsResult(resource_type=2, resource_name="t", configs=[entry, unknown]),
        DescribeConfigsResult(resource_type=2, resource_name="u", error_code=3)])
    results = admin.read_described_configs(reply)
    found = results[ConfigResource("topic", "t")]
    assert isinstance(found, dict)
    assert found["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert found["retention.ms"].synonyms["log.retention.ms"].value == "9"
    assert found["new"].source is ConfigSource.UNKNOWN_CONFIG
    assert results[ConfigResource("topic", "u")] == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_resource_is_known_by_type_and_name_and_keeps_values_that_must_not_be_overwritten() -> None:
    resource = ConfigResource(ResourceType.TOPIC, "t")
    assert resource == ConfigResource(2, "t") != ConfigResource("broker", "t")
    assert len({resource, ConfigResource("TOPIC", "t")}) == 1
    resource.set_config("a", "1")
    resource.set_config("a", "2", overwrite=False)
    assert resource.set_config_dict == {"a": "1"}
    with pytest.raises(ValueError, match="unknown resource type 'topics'"):
        ConfigResource("topics", "t")


@pytest.mark.parametrize(("kind", "wire", "on"), [("topic", 2, 'topic "x"'), ("group", 32, 'group "x"'),
                                                  ("broker", 4, "the cluster")])
def test_a_right_that_is_missing_is_named_with_the_resource(kind: str, wire: int, on: str) -> None:
    reply = AlterConfigsResponse(responses=[
        AlterConfigsResourceResponse(resource_type=wire, resource_name="x", error_code=31)])
    error = admin.read_altered(reply)[ConfigResource(kind, "x")]
    assert error is not None
    assert error.str().endswith(f"this needs ALTER_CONFIGS on {on}")


def test_resources_with_a_configuration_are_listed_in_order() -> None:
    assert travels(admin.list_config_resources([ResourceType.GROUP]), 1, 1).resource_types == [32]
    reply = ListConfigResourcesResponse(config_resources=[
        ListedConfigResource(resource_name="b", resource_type=32), ListedConfigResource(resource_name="a",
                                                                                      resource_type=2)])
    assert admin.read_config_resources(reply) == [ConfigResource("topic", "a"), ConfigResource("group", "b")]
    with pytest.raises(KafkaException, match="DESCRIBE_CONFIGS on the cluster"):
        admin.read_config_resources(ListConfigResourcesResponse(error_code=31))


@pytest.mark.parametrize("version", range(5))
def test_what_a_property_hides_is_asked_of_brokers_that_know(version: int) -> None:
    request = admin.describe_configs([ConfigResource("topic", "t")])
    written = admin.describe_configs_for_version(request, version)
    assert written == request if version else written == DescribeConfigsRequest(resources=request.resources)
    encode(written, version)


def test_the_first_version_says_itself_what_nobody_has_set() -> None:
    reply = DescribeConfigsResponse(results=[DescribeConfigsResult(resource_type=2, resource_name="t", configs=[
        DescribeConfigsResourceResult(name="a", value="1", is_default=True),
        DescribeConfigsResourceResult(name="b", value="2")])])
    found = admin.read_described_configs(decode(DescribeConfigsResponse, encode(reply, 0), 0))
    entries = found[ConfigResource("topic", "t")]
    assert not isinstance(entries, KafkaError)
    assert [(e.is_default, e.source) for e in entries.values()] == [
        (True, ConfigSource.UNKNOWN_CONFIG), (False, ConfigSource.UNKNOWN_CONFIG)]
