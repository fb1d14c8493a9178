"""The registry client of `AvroProducer` and `AvroConsumer`."""

import pytest

from headrace.avro import CachedSchemaRegistryClient, ClientError, loads
from headrace.avro.cached_schema_registry_client import VALID_LEVELS
from headrace.avro.error import ClientError as SameError
from headrace.schema_registry import SchemaRegistryClient
from tests.support.quickest import assert_quick

INT, TEXT = loads('"int"'), loads('"string"')


@pytest.fixture
def client(request):
    with CachedSchemaRegistryClient({"url": f"mock://{request.node.name}"}) as made:
        yield made


def test_a_schema_is_registered_once_and_found_by_id_and_by_version(client) -> None:
    number = client.register("s", INT)
    assert client.register("s", INT) == client.check_registration("s", INT) == number
    assert client.get_by_id(number) == INT
    assert client.get_latest_schema("s") == client.get_by_version("s", 1) == (number, INT, 1)
    assert client.get_version("s", INT) == 1


def test_what_is_not_there_is_none_or_an_error(client) -> None:
    assert client.get_by_id(12345) is None
    assert client.get_latest_schema("none") == client.get_by_version("none", 3) == (None, None, None)
    assert client.get_version("none", INT) is None
    with pytest.raises(ClientError, match="Schema or subject not found:404"):
        client.check_registration("none", INT)
    assert SameError is ClientError


def test_the_latest_version_is_asked_for_each_time(client) -> None:
    client.register("s", INT)
    assert client.get_latest_schema("s")[1] == INT
    other = SchemaRegistryClient({"url": client.url})
    from headrace.schema_registry import Schema
    other.register_schema("s", Schema(str(TEXT), "AVRO"))
    assert client.get_latest_schema("s")[1] == TEXT


def test_a_subject_is_deleted(client) -> None:
    client.register("s", INT)
    assert client.delete_subject("s") == [1]


def test_levels_that_are_none_are_refused(client) -> None:
    with pytest.raises(ClientError, match="Invalid level specified"):
        client.update_compatibility("SOME")
    assert "FULL" in VALID_LEVELS


@pytest.mark.parametrize(("conf", "error"), [
    ({"url": 3}, TypeError), ({}, ValueError), ({"url": "ftp://a"}, ValueError),
    ({"url": "http://a", "unknown": 1}, ValueError), ({"url": "http://a", "ssl.key.location": "k"}, ValueError),
    ({"url": "http://a", "basic.auth.credentials.source": "OTHER"}, ValueError),
    ({"url": "http://a", "basic.auth.credentials.source": "SASL_INHERIT", "sasl.mechanism": "GSSAPI"}, ValueError)])
def test_properties_that_will_not_do(conf, error) -> None:
    with pytest.raises(error):
        CachedSchemaRegistryClient(conf)


@pytest.mark.parametrize(("conf", "info"), [
    ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "a:b"}, "a:b"),
    ({"basic.auth.credentials.source": "sasl_inherit", "sasl.mechanism": "PLAIN", "sasl.username": "u",
      "sasl.password": "p"}, "u:p"), ({}, None)])
def test_where_user_and_password_come_from(conf, info) -> None:
    client = CachedSchemaRegistryClient({"url": "http://127.0.0.1:9", **conf})
    assert client._client.config().get("basic.auth.user.info") == info


def test_a_url_alone_is_the_old_way() -> None:
    with pytest.warns(DeprecationWarning, match="dict"):
        client = CachedSchemaRegistryClient("http://127.0.0.1:9/")
    assert client.url == "http://127.0.0.1:9"


def test_a_registry_that_cannot_be_reached_is_an_error_at_once() -> None:
    def register() -> None:
        unreachable = CachedSchemaRegistryClient({"url": "http://127.0.0.1:9"})
        with unreachable as client, pytest.raises(ClientError, match="no answer"):
            client.register("s", INT)

    assert_quick(register, 1.0)  # a second and more for each repetition
