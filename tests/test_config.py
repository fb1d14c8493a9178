"""Configuration: what is refused, what the refusal says, and what is hidden."""

import pytest

from headrace.config import ADMIN, CONSUMER, PRODUCER, PROPERTIES, Config
from headrace.errors import ConfigError, KafkaError, KafkaException

SERVERS = {"bootstrap.servers": "localhost:9092"}


def test_an_unknown_property_is_refused_with_the_nearest_name() -> None:
    line = r'No such configuration property: "liger\.ms"\. Did you mean "linger\.ms"'
    with pytest.raises(KafkaException, match=line) as info:
        Config(PRODUCER, {**SERVERS, "liger.ms": 5})
    assert info.value.args[0].code() == KafkaError._INVALID_ARG


def test_javas_name_and_librdkafkas_name_are_the_same_property() -> None:
    assert Config(PRODUCER, {**SERVERS, "delivery.timeout.ms": 1234})["message.timeout.ms"] == 1234
    with pytest.raises(ConfigError, match="are the same property"):
        Config(PRODUCER, {**SERVERS, "delivery.timeout.ms": 1, "message.timeout.ms": 2})


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("linger.ms", "soon", "expected a number"),
    ("linger.ms", -1, "expected 0 to 900000 ms"),
    ("acks", "some", "expected one of all, -1, 0, 1"),
    ("enable.idempotence", "maybe", "expected true or false"),
    ("compression.type", "zst", 'did you mean "zstd"'),
    ("bootstrap.servers", "localhost", "expected host:port"),
])
def test_a_bad_value_is_refused_with_the_property_the_value_and_what_is_expected(name: str, value: object,
                                                                                  expected: str) -> None:
    with pytest.raises(ConfigError) as info:
        Config(PRODUCER, {**SERVERS, name: value})
    assert name in str(info.value)
    assert expected in str(info.value)


def test_missing_bootstrap_servers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        Config(ADMIN, {})


def test_secrets_never_show() -> None:
    config = Config(PRODUCER, {**SERVERS, "ssl.key.password": "hunter2"})
    assert "hunter2" not in repr(config)
    assert config["ssl.key.password"] == "hunter2"


def test_idempotence_contradicted_by_the_user_is_an_error_and_otherwise_gives_way() -> None:
    with pytest.raises(ConfigError, match="acks"):
        Config(PRODUCER, {**SERVERS, "enable.idempotence": True, "acks": 1})
    assert Config(PRODUCER, {**SERVERS, "acks": 1})["enable.idempotence"] is False
    assert Config(PRODUCER, SERVERS)["enable.idempotence"] is True


def test_none_means_not_given_and_the_old_topic_config_is_merged() -> None:
    config = Config(CONSUMER, {**SERVERS, "group.id": None, "default.topic.config": {"auto.offset.reset": "smallest"}})
    assert config["group.id"] == ""
    assert config["auto.offset.reset"] == "earliest"


@pytest.mark.parametrize("row", PROPERTIES.values(), ids=lambda row: row.name)
def test_every_row_is_documented_and_its_default_is_valid(row: object) -> None:
    from headrace.config import Property, _convert

    assert isinstance(row, Property)
    assert row.doc.endswith((".", "`."))
    if row.kind in ("int", "float", "bool"):
        assert _convert(row, row.name, row.default) == row.default
