"""confluent_kafka's own client, and plain HTTP, at the embedded registry."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import Metadata, MetadataProperties
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from headrace.cli import broker as command
from headrace.schemas.compatibility import LEVELS
from headrace.testing import EmbeddedBroker
from tests.unit.schemas.proto.samples import compiled

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = RECORD.replace("]}", ',{"name":"b","type":"int","default":0}]}')
OTHER = '{"type":"record","name":"R","fields":[{"name":"c","type":"int"}]}'


@pytest.fixture
def registry() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(registry=True) as broker:
        yield broker


@pytest.fixture
def client(registry: EmbeddedBroker) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.registry_url}) as made:
        yield made


def failing(client: SchemaRegistryClient, call: str, *arguments: object) -> tuple[int, int]:
    with pytest.raises(SchemaRegistryError) as caught:
        getattr(client, call)(*arguments)
    return caught.value.http_status_code, caught.value.error_code


def test_it_registers_finds_and_deletes(client: SchemaRegistryClient) -> None:
    schema = Schema(RECORD, "AVRO")
    assert client.register_schema("s", schema) == 1
    assert client.register_schema_full_response("s", Schema(WIDER, "AVRO")).version == 2
    assert client.lookup_schema("s", schema).version == 1
    assert client.get_versions("s") == [1, 2]
    assert client.get_latest_version("s").schema.schema_str == WIDER
    assert client.get_version("s", 1).guid == client.lookup_schema("s", schema).guid
    assert client.get_schema_by_guid(client.get_version("s", 1).guid).schema_str == RECORD
    assert client.get_subjects() == ["s"]
    assert client.delete_version("s", 1) == 1
    assert client.delete_subject("s") == [2]
    assert client.get_subjects(deleted=True) == ["s"]
    assert client.delete_subject("s", permanent=True) == [1, 2]
    assert failing(client, "get_versions", "s") == (404, 40401)


def test_it_compares_at_every_level(client: SchemaRegistryClient) -> None:
    client.register_schema("s", Schema(RECORD, "AVRO"))
    for level in LEVELS:
        client.set_compatibility("s", level)
        assert client.get_compatibility("s") == level
        assert client.test_compatibility("s", Schema(WIDER, "AVRO")) is True
        assert client.test_compatibility("s", Schema(OTHER, "AVRO")) is (level == "NONE")
        assert client.test_compatibility_all_versions("s", Schema(OTHER, "AVRO")) is (level == "NONE")
    client.set_compatibility("s", "FULL")
    assert failing(client, "register_schema", "s", Schema(OTHER, "AVRO")) == (409, 409)


def test_it_uses_modes_contexts_references_and_metadata(client: SchemaRegistryClient) -> None:
    client.register_schema(":.c:a", Schema('{"type":"fixed","name":"x.F","size":4}', "AVRO"))
    using = Schema('{"type":"record","name":"x.R","fields":[{"name":"f","type":"F"}]}', "AVRO",
                   [SchemaReference("x.F", "a", 1)], Metadata(None, MetadataProperties({"owner": "me"}), None))
    assert client.register_schema(":.c:b", using) == 2
    assert client.get_contexts() == [".", ".c"]
    assert client.get_schema(2, subject_name=":.c:b").references == using.references
    assert client.get_latest_with_metadata(":.c:b", {"owner": "me"}).version == 1
    assert client.get_referenced_by(":.c:a", 1) == [2]
    client.update_mode(":.c:b", "READONLY")
    assert client.get_mode(":.c:b") == "READONLY"
    assert failing(client, "delete_subject", ":.c:b") == (422, 42205)
    assert failing(client, "register_schema", "t", Schema("{", "AVRO")) == (422, 42201)


def test_it_serves_subjects_with_any_character(registry: EmbeddedBroker, client: SchemaRegistryClient) -> None:
    for subject in ("a/b", "ä ?&=#%", "a+b"):
        client.register_schema(subject, Schema('"int"', "AVRO"))
        assert client.get_versions(subject) == [1]
    assert sorted(client.get_subjects()) == sorted(["a/b", "ä ?&=#%", "a+b"])
    assert requests.get(f"{registry.registry_url}/subjects/a%2Fb/versions", timeout=10).json() == [1]


def test_a_registry_on_disk_is_there_again_after_a_restart(tmp_path: Path) -> None:
    for expected in ([], ["s"]):
        with (EmbeddedBroker(registry=True, data_dir=tmp_path) as broker,
              SchemaRegistryClient({"url": broker.registry_url}) as client):
            assert client.get_subjects() == expected
            assert client.register_schema("s", Schema(RECORD, "AVRO")) == 1


def message_class() -> Any:
    """A class as Protobuf's compiler makes them, of a message within another one."""
    file = compiled('syntax = "proto3"; package p; message First {} message Outer { map<int32, First> f = 1; '
                    "message Second { string text = 1; map<string, int32> by_name = 2; } }")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("p.Outer.Second"))


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_its_serialisers_register_and_read_back(client: SchemaRegistryClient, kind: str) -> None:
    if kind == "AVRO":
        writes, reads, value = AvroSerializer(client, RECORD), AvroDeserializer(client), {"a": 1}
    elif kind == "JSON":
        text = '{"title": "R", "type": "object", "properties": {"a": {"type": "integer"}}}'
        writes, value = JSONSerializer(text, client), {"a": 1}
        reads = JSONDeserializer(None, schema_registry_client=client)
    else:
        second = message_class()
        writes, value = ProtobufSerializer(second, client), second(text="x", by_name={"a": 1})
        reads = ProtobufDeserializer(second, {"use.deprecated.format": False}, client)
    context = SerializationContext("topic", MessageField.VALUE)
    assert reads(writes(value, context), context) == value
    assert client.get_latest_version("topic-value").schema.schema_type == kind


def test_without_a_registry_there_is_no_address() -> None:
    with EmbeddedBroker() as broker:
        assert broker.registry_url == ""


def test_a_registry_s_port_that_is_taken_is_one_clear_line(
    registry: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    port = registry.registry_url.rpartition(":")[2]
    assert command.main(["--listen", "127.0.0.1:0", "--registry", f"127.0.0.1:{port}"]) == 1
    assert port in capsys.readouterr().err
