"""Serializers in producers and consumers."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headrace import DeserializingConsumer, Producer, SerializingProducer
from headrace.aio import AsyncDeserializingConsumer, AsyncSerializingProducer
from headrace.error import ValueDeserializationError, ValueSerializationError
from headrace.errors import SerializationError
from headrace.schema_registry import SchemaRegistryClient
from headrace.schema_registry.avro import (
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializerBuilder,
    AvroDeserializerBuilder,
    AvroSerializerBuilder,
)
from headrace.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from headrace.testing import EmbeddedBroker
from tests.support.mock_registries import mock_url

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
READING = {"group.id": "g", "auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker() as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def registry() -> Iterator[dict[str, str]]:
    with mock_url() as url:
        yield {"url": url}


def test_builders_write_keys_and_values_and_read_them(broker, registry) -> None:
    with SerializingProducer({**broker, "key.serializer.builder": AvroSerializerBuilder(registry, schema='"string"'),
                              "value.serializer.builder": AvroSerializerBuilder(registry, schema=USER)}) as producer:
        producer.produce("built", key="k", value={"name": "a"})
        producer.produce("built", key="k")
    assert SchemaRegistryClient(registry).get_subjects() == ["built-key", "built-value"]
    with DeserializingConsumer({**broker, **READING, "key.deserializer.builder": AvroDeserializerBuilder(registry),
                                "value.deserializer.builder": AvroDeserializerBuilder(registry)}) as consumer:
        consumer.subscribe(["built"])
        read = [consumer.poll(10) for _ in range(2)]
    assert [(each.key(), each.value()) for each in read] == [("k", {"name": "a"}), ("k", None)]


def test_with_asyncio_it_is_the_same(broker, registry) -> None:
    async def both() -> None:
        producer = await AsyncSerializingProducer({
            **broker, "value.serializer.builder": AsyncAvroSerializerBuilder(registry, schema=USER)})
        await (await producer.produce("awaited", value={"name": "a"}))
        await producer.close()
        consumer = await AsyncDeserializingConsumer({
            **broker, **READING, "value.deserializer.builder": AsyncAvroDeserializerBuilder(registry)})
        await consumer.subscribe(["awaited"])
        message = await consumer.poll(10)
        assert message.value() == {"name": "a"}
        await consumer.close()

    asyncio.run(both())


def test_what_cannot_be_written_or_read_is_the_clients_error_with_its_cause(broker, registry) -> None:
    client = SchemaRegistryClient(registry)
    with SerializingProducer({**broker, "value.serializer": JSONSerializer('{"type":"string"}', client)}) as producer, \
            pytest.raises(ValueSerializationError) as wrote:
        producer.produce("wrong", value=3)
    assert isinstance(wrote.value.__cause__, SerializationError)
    with Producer(broker) as plain:
        plain.produce("wrong", b"\0\0\0\0\1nonsense")
    reader = JSONDeserializer('{"type":"string"}')
    with DeserializingConsumer({**broker, **READING, "value.deserializer": reader}) as consumer:
        consumer.subscribe(["wrong"])
        with pytest.raises(ValueDeserializationError) as read:
            consumer.poll(10)
    assert isinstance(read.value.__cause__, SerializationError)
    assert read.value.kafka_message.value() == b"\0\0\0\0\1nonsense"


def test_libraries_are_loaded_when_they_are_needed_and_not_before() -> None:
    code = ("import sys, headrace.avro, headrace.schema_registry.avro, headrace.schema_registry.json_schema, "
            "headrace.schema_registry.protobuf, headrace.schema_registry.serde; "
            "print(sorted({'fastavro', 'jsonschema_rs', 'google.protobuf', 'httpx2', 'orjson', "
            "'headrace.client.schema_serdes.codecs.avro_plans'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = "import sys; from headrace import Producer, Consumer; print(list(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "schema_serdes" not in done.stdout
    assert "client.registry" not in done.stdout
