"""The legacy avro module: the same as confluent_kafka's, call by call."""

import inspect
import json
import warnings
from importlib import import_module

import confluent_kafka.avro
import pytest

import headrace.avro
from tests.support.scripted_registry import scripted_registry

BOTH = [headrace.avro, confluent_kafka.avro]
USER = '{"type":"record","name":"User","namespace":"a.b","fields":[{"name":"name","type":"string"},' \
       '{"name":"age","type":["null","int"],"default":null}]}'
NEWER = USER.replace('"fields":[', '"fields":[{"name":"city","type":"string","default":"Rome"},')
NAMES = {
    "": ["AvroConsumer", "AvroProducer", "CachedSchemaRegistryClient", "ClientError", "KeySerializerError",
         "MessageSerializer", "SerializerError", "ValueSerializerError", "load", "loads"],
    "cached_schema_registry_client": ["ACCEPT_HDR", "CachedSchemaRegistryClient", "VALID_AUTH_PROVIDERS",
                                      "VALID_LEVELS", "VALID_METHODS"],
    "error": ["ClientError"], "load": ["load", "loads"],
    "serializer": ["KeySerializerError", "SerializerError", "ValueSerializerError"],
    "serializer.message_serializer": ["ContextStringIO", "HAS_FAST", "MAGIC_BYTE", "MessageSerializer"],
}


class Registry:
    """What both message serializers ask."""

    auto_register_schemas = True

    def __init__(self, package) -> None:
        self.package = package
        self.texts: list[str] = []

    def register(self, subject: str, schema) -> int:
        if str(schema) not in self.texts:
            self.texts.append(str(schema))
        return self.texts.index(str(schema)) + 1

    def check_registration(self, subject: str, schema) -> int:
        return self.register(subject, schema) if str(schema) in self.texts else 0

    def get_by_id(self, number: int):
        if number > 100:
            raise self.package.ClientError("broken")
        return self.package.loads(self.texts[number - 1]) if 0 < number <= len(self.texts) else None


def reach(package, path: str):
    return import_module(f"{package.__name__}.{path}".rstrip("."))


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_every_name_is_there(module, name) -> None:
    ours, theirs = (getattr(reach(package, module), name) for package in BOTH)
    if not callable(theirs):
        assert ours == theirs
    elif inspect.isclass(theirs):
        calls = {each for each in vars(theirs) if not each.startswith("_")}
        assert calls <= set(dir(ours))
        for each in sorted(calls | {"__init__"}):
            if callable(getattr(theirs, each)) and each in vars(theirs):
                assert list(inspect.signature(getattr(ours, each)).parameters) == list(
                    inspect.signature(getattr(theirs, each)).parameters), each


@pytest.mark.parametrize("text", [USER, '"string"', '{"type":"array","items":"long"}', '["null","int"]'])
def test_a_schemas_text_is_the_same(text) -> None:
    assert json.loads(str(headrace.avro.loads(text))) == json.loads(str(confluent_kafka.avro.loads(text)))


def messages(package, schema: str, value, is_key: bool = False):
    loaded = package.loads(schema)
    return package.MessageSerializer(Registry(package)).encode_record_with_schema("t", loaded, value, is_key)


@pytest.mark.parametrize(("schema", "value"), [
    (USER, {"name": "a", "age": 3}), (USER, {"name": "ü"}), ('"string"', "a"), ('"bytes"', b"\0\1"),
    ('["null","int"]', 3), ('{"type":"array","items":"long"}', [1, 2])])
def test_bytes_are_the_same_and_each_reads_the_others(schema, value) -> None:
    ours, theirs = (messages(package, schema, value) for package in BOTH)
    assert ours == theirs
    read = []
    for package in BOTH:
        registry = Registry(package)
        registry.register("s", package.loads(schema))
        read.append(package.MessageSerializer(registry).decode_message(theirs))
    assert read[0] == read[1]


def test_a_value_becomes_one_of_the_readers_schema() -> None:
    read = []
    for package in BOTH:
        registry = Registry(package)
        registry.register("s", package.loads(USER))
        serializer = package.MessageSerializer(registry, None, package.loads(NEWER))
        read.append(serializer.decode_message(messages(package, USER, {"name": "a"})))
    assert read == [{"city": "Rome", "name": "a", "age": None}] * 2


def raised(call) -> tuple[str, str]:
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


@pytest.mark.parametrize("call", [
    lambda made, package: made.decode_message(b"\0\0\0"), lambda made, package: made.decode_message(b"\1\0\0\0\1abc"),
    lambda made, package: made.decode_message(b"\0\0\0\0\x09abc"),
    lambda made, package: made.decode_message(b"\0\0\0\0\xffabc"),
    lambda made, package: made.encode_record_with_schema_id(9, {}),
    lambda made, package: made.encode_record_with_schema_id(9, {}, is_key=True)])
def test_errors_are_the_same(call) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (raised(lambda p=package: call(p.MessageSerializer(Registry(p)), p)) for package in BOTH)
    assert ours == theirs
    assert ours[0]


def test_an_error_of_the_registry_is_one_of_the_key_or_of_the_value() -> None:
    for is_key, name in ((True, "KeySerializerError"), (False, "ValueSerializerError")):
        for package in BOTH:
            made = package.MessageSerializer(Registry(package))
            assert raised(lambda m=made, k=is_key: m.encode_record_with_schema_id(200, {}, k))[0] == name


def test_what_is_not_registered_has_no_id() -> None:
    results = []
    for package in BOTH:
        registry = Registry(package)
        registry.auto_register_schemas = False
        results.append(raised(lambda p=package, r=registry: p.MessageSerializer(r).encode_record_with_schema(
            "t", p.loads(USER), {"name": "a"})))
    assert results[0] == results[1] == ("ValueSerializerError", "Unable to retrieve schema id for subject t-value")


def test_errors_show_themselves_in_the_same_way() -> None:
    for make in (lambda package: package.ClientError("m", 404), lambda package: package.SerializerError("m"),
                 lambda package: package.KeySerializerError("m")):
        ours, theirs = make(headrace.avro), make(confluent_kafka.avro)
        assert (str(ours), repr(ours), ours.message) == (str(theirs), repr(theirs), theirs.message)
    assert headrace.avro.ClientError("m", 404).http_code == confluent_kafka.avro.ClientError("m", 404).http_code


@pytest.mark.parametrize("conf", [
    {}, {"basic.auth.credentials.source": "URL"},
    {"basic.auth.credentials.source": "user_info", "basic.auth.user.info": "a:b"},
    {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "s", "sasl.password": "t"},
], ids=lambda conf: conf.get("basic.auth.credentials.source", "none"))
@pytest.mark.parametrize("within", ["", "u:p@"], ids=["plain url", "url with credentials"])
def test_credentials_come_from_where_the_properties_say(conf, within) -> None:
    """Where there are none the peer sends an empty name and an empty password."""
    seen = []
    for package in BOTH:
        with scripted_registry() as registry:
            registry.answers({"id": 1})
            url = registry.url.replace("//", f"//{within}") + "/"
            client = package.CachedSchemaRegistryClient({"url": url, **conf})
            assert client.register("s", package.loads('"string"')) == 1
            assert client.url == registry.url
            seen.append(registry.asked[0].headers.get("authorization", "Basic Og=="))
            client.close()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("close", [lambda client: client.close(), lambda client: client.__exit__(None, None, None)],
                         ids=["close", "with"])
def test_what_is_asked_behind_close_opens_the_connections_again(close) -> None:
    seen = []
    for package in BOTH:
        with scripted_registry() as registry:
            registry.answers({"id": 1}, {"id": 2}, {"is_compatible": True}, {"id": 3})
            client = package.CachedSchemaRegistryClient({"url": registry.url})
            text, number, double = (package.loads(f'"{name}"') for name in ("string", "long", "double"))
            got = [client.register("s", text)]
            close(client)
            close(client)
            got += [client.register("s", text), client.register("s", number), client.test_compatibility("s", number)]
            with client:
                got.append(client.register("s", double))
            seen.append((got, [asked.path for asked in registry.asked]))
    assert seen[0] == seen[1]
    assert seen[0][0] == [1, 1, 2, True, 3]
