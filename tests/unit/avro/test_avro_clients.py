"""`AvroProducer` and `AvroConsumer`, through a broker."""

import io
import sys

import avro.io
import avro.schema
import pytest

from headrace.avro import AvroConsumer, AvroProducer, CachedSchemaRegistryClient, ClientError, load, loads
from headrace.avro.load import LoadedSchema
from headrace.avro.serializer import KeySerializerError, SerializerError, ValueSerializerError
from headrace.testing import EmbeddedBroker
from tests.support.mock_registries import mock_url

USER = loads('{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}')
NEWER = loads('{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
              '{"name":"city","type":"string","default":"Rome"}]}')
TEXT = loads('"string"')

pytestmark = pytest.mark.filterwarnings("ignore:Avro:DeprecationWarning")


@pytest.fixture
def conf():
    with EmbeddedBroker() as broker, mock_url() as url:
        yield {"bootstrap.servers": broker.bootstrap_servers, "schema.registry.url": url}


def consumer(conf, **named) -> AvroConsumer:
    made = AvroConsumer({**conf, "group.id": "g", "auto.offset.reset": "earliest"}, **named)
    made.subscribe(["users"])
    return made


def test_values_come_back_as_they_went(conf) -> None:
    producer = AvroProducer(conf, default_value_schema=USER)
    producer.produce(topic="users", value={"name": "a"}, key="k", key_schema=TEXT)
    producer.produce(topic="users")
    producer.flush(10)
    reader = consumer(conf)
    first, second = reader.poll(10), reader.poll(10)
    reader.close()
    assert (first.key(), first.value()) == ("k", {"name": "a"})
    assert (second.key(), second.value()) == (None, None)


def test_values_become_those_of_the_readers_schema(conf) -> None:
    producer = AvroProducer(conf)
    producer.produce(topic="users", value={"name": "a"}, value_schema=USER)
    producer.flush(10)
    reader = consumer(conf, reader_value_schema=NEWER)
    message = reader.poll(10)
    reader.close()
    assert message.value() == {"name": "a", "city": "Rome"}


def test_what_cannot_be_read_is_an_error_that_names_its_place(conf) -> None:
    from headrace import Producer
    plain = Producer({"bootstrap.servers": conf["bootstrap.servers"]})
    plain.produce("users", b"no avro at all")
    plain.flush(10)
    reader = consumer(conf)
    with pytest.raises(SerializerError, match=r"at users \[0\] offset 0: message does not start with magic byte"):
        reader.poll(10)
    reader.close()


def test_what_a_producer_needs_to_know(conf) -> None:
    producer = AvroProducer(conf)
    with pytest.raises(ClientError, match="Topic name not specified"):
        producer.produce(value=1)
    with pytest.raises(ValueSerializerError, match="schema required"):
        producer.produce(topic="users", value=1)
    with pytest.raises(KeySerializerError, match="schema required"):
        producer.produce(topic="users", key=1)


def test_a_registry_client_may_be_given_instead_of_its_properties(conf) -> None:
    registry = CachedSchemaRegistryClient({"url": "mock://given"})
    with pytest.raises(ValueError, match="Cannot pass schema_registry along with"):
        AvroProducer(conf, schema_registry=registry)
    producer = AvroProducer({"bootstrap.servers": conf["bootstrap.servers"]}, default_value_schema=USER,
                            schema_registry=registry)
    producer.produce(topic="users", value={"name": "a"})
    assert producer.flush(10) == 0
    assert registry.get_latest_schema("users-value")[1] == USER


def test_they_say_that_there_are_newer_ways(conf) -> None:
    with pytest.warns(DeprecationWarning, match="AvroSerializer"):
        AvroProducer(conf)
    with pytest.warns(DeprecationWarning, match="AvroDeserializer"):
        AvroConsumer({**conf, "group.id": "g"}).close()


@pytest.fixture(params=["with", "without"])
def package(request, monkeypatch) -> str:
    """Whether the avro package is installed."""
    if request.param == "without":
        for name in ("avro", "avro.schema"):
            monkeypatch.setitem(sys.modules, name, None)
    return request.param


def test_a_schema_is_one_of_the_avro_package_where_that_is_installed() -> None:
    schema = loads(str(USER))
    assert isinstance(schema, avro.schema.Schema)
    written = io.BytesIO()
    avro.io.DatumWriter(schema).write({"name": "a"}, avro.io.BinaryEncoder(written))
    assert written.getvalue() == b"\2a"


def test_a_schema_is_read_from_a_file(tmp_path, package) -> None:
    (tmp_path / "user.avsc").write_text(str(USER))
    user = loads(str(USER))
    assert isinstance(user, LoadedSchema) is (package == "without")
    assert load(tmp_path / "user.avsc") == user
    assert hash(load(str(tmp_path / "user.avsc"))) == hash(user)
    assert (user.name, user.fullname, user.namespace, user.to_json()["type"]) == ("User", "User", None, "record")
    assert loads('{"type":"record","name":"R","namespace":"a.b","fields":[]}').namespace == "a.b"
    for text in ("{", '{"type":"nope"}', ""):
        with pytest.raises(ClientError, match="Schema parse failed"):
            loads(text)
