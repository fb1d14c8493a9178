"""Configuration: what is refused, what the refusal says, and what is hidden."""

import re
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import headrace
from headrace.config import (
    ADMIN,
    CONSUMER,
    PRODUCER,
    PROPERTIES,
    SHARE,
    Config,
    Property,
    convert,
)
from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT
from headrace.errors import ConfigError, KafkaError, KafkaException

SERVERS = {"bootstrap.servers": "localhost:9092"}


def test_an_unknown_property_is_refused_with_the_nearest_name() -> None:
    line = r'No such configuration property: "liger\.ms"\. Did you mean "linger\.ms"'
    with pytest.raises(KafkaException, match=line) as info:
        Config(PRODUCER, {**SERVERS, "liger.ms": 5})
    assert info.value.args[0].code() == KafkaError._INVALID_ARG


@pytest.mark.parametrize("name", ["LINGER.MS", "Linger.ms", "LINGER_MS", " linger.ms"])
def test_a_property_in_capitals_is_refused_with_the_name_that_was_meant(name: str) -> None:
    with pytest.raises(ConfigError, match=r'Did you mean "linger\.ms"'):
        Config(PRODUCER, {**SERVERS, name: 5})


def test_javas_name_and_librdkafkas_name_are_the_same_property() -> None:
    assert Config(PRODUCER, {**SERVERS, "delivery.timeout.ms": 1234})["message.timeout.ms"] == 1234
    with pytest.raises(ConfigError, match="are the same property"):
        Config(PRODUCER, {**SERVERS, "delivery.timeout.ms": 1, "message.timeout.ms": 2})


class Named(StrEnum):
    A = "a"


class Numbered(Enum):
    A = 1


@pytest.mark.parametrize("value", [UUID(int=5), Path("/etc/ca.pem"), Decimal("1.50"), Named.A, 7], ids=repr)
def test_what_says_itself_what_it_is_as_a_text_is_a_text(value: object) -> None:
    assert Config(CONSUMER, {"bootstrap.servers": "h:1", "group.id": value})["group.id"] == str(value)


@pytest.mark.parametrize("value", [["a"], ("a",), {"a"}, {}, b"a", bytearray(b"a"), object(), int, Numbered.A],
                         ids=lambda value: type(value).__name__)
def test_what_does_not_is_none(value: object) -> None:
    with pytest.raises(ConfigError, match=r'"group\.id": .*: expected text'):
        Config(CONSUMER, {"bootstrap.servers": "h:1", "group.id": value})


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("linger.ms", "soon", "expected a number"),
    ("linger.ms", -1, "expected 0 to 900000 ms"),
    ("linger.ms", True, "expected a number"),
    ("retries", True, "expected a whole number"),
    ("acks", "some", "expected one of all, -1, 0, 1"),
    ("enable.idempotence", "maybe", "expected true or false"),
    ("compression.type", "zst", 'did you mean "zstd"'),
    ("logger", 5, "expected a logging.Logger, or another object with its method log()"),
    ("bootstrap.servers", "localhost:", "expected host:port"),
    ("bootstrap.servers", "[::1]:http", "expected host:port"),
    ("bootstrap.servers", "a:9092;b:9092", "and commas between servers"),
    ("bootstrap.servers", "a:9092 b:9092", "and commas between servers"),
    ("bootstrap.servers", "::1", "or [::1]:9092"),
    ("bootstrap.servers", "::1:9092", "or [::1]:9092"),
    ("bootstrap.servers", "[::1", "or [::1]:9092"),
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
    assert not Config(ADMIN, {}, servers_needed=False)["bootstrap.servers"]


def test_a_server_without_a_port_listens_on_9092() -> None:
    given = {"bootstrap.servers": "localhost, [::1],other:1,[::1]:2"}
    assert Config(PRODUCER, given)["bootstrap.servers"] == ("localhost:9092", "[::1]:9092", "other:1", "[::1]:2")


@pytest.mark.parametrize(("entry", "server"), [
    ("PLAINTEXT://127.0.0.1:1", "127.0.0.1:1"), ("plaintext://h:1/", "h:1"), ("Plaintext://h", "h:9092"),
    ("h:1/", "h:1"), ("h/", "h:9092"), ("plaintext://[::1]:2/", "[::1]:2"), ("[::1]/", "[::1]:9092"),
])
def test_a_server_may_be_written_as_in_a_broker_s_listeners(entry: str, server: str) -> None:
    assert Config(PRODUCER, {"bootstrap.servers": f"first:1,{entry}"})["bootstrap.servers"] == ("first:1", server)


@pytest.mark.parametrize("prefix", ["SASL_SSL", "sasl_ssl", "Sasl-Ssl"])
def test_the_protocol_in_front_of_a_server_is_known_in_any_spelling_whatever_comes_first(prefix: str) -> None:
    servers, security = {"bootstrap.servers": f"{prefix}://h:1"}, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    for given in ({**servers, **security}, {**security, **servers}):
        assert Config(ADMIN, given)["bootstrap.servers"] == ("h:1",)


@pytest.mark.parametrize(("given", "texts"), [
    ({"bootstrap.servers": "SSL://h:1"}, ("SSL://h:1", '"security.protocol" is "plaintext"', 'set it to "ssl"')),
    ({"bootstrap.servers": "h:1,SASL-SSL://h:2"}, ("SASL-SSL://h:2", 'set it to "sasl_ssl"')),
    ({"bootstrap.servers": "SASL_SSL://h:1", "sasl.mechanism": "PLAIN"}, ('set it to "sasl_ssl"',)),
    ({"bootstrap.servers": "plaintext://h:1", "security.protocol": "ssl"},
     ('"security.protocol" is "ssl"', 'set it to "plaintext"', "a server that speaks ssl")),
    ({"bootstrap.servers": "http://h:1"}, ("http://h:1", '"http" is no protocol of Kafka', "sasl_plaintext")),
    ({"bootstrap.servers": "://h:1"}, ("no protocol",)),
    ({"bootstrap.servers": "a://plaintext://h:1"}, ("no protocol",)),
    ({"bootstrap.servers": "plaintext://"}, ("plaintext://", "expected host:port")),
    ({"bootstrap.servers": "h:1/kafka"}, ("h:1/kafka", "expected host:port")),
    ({"bootstrap.servers": "h/kafka"}, ("h/kafka", "expected host:port")),
    ({"bootstrap.servers": "h:0"}, ("h:0", "expected host:port")),
    ({"bootstrap.servers": "h:65536"}, ("h:65536", "expected host:port")),
])
def test_a_server_that_the_client_could_never_talk_to_is_refused(
    given: dict[str, str], texts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        Config(PRODUCER, given)
    assert [text for text in texts if text not in str(refused.value)] == []


def test_what_must_be_a_function_and_is_none_is_refused_whatever_is_caught() -> None:
    for kind in (ConfigError, TypeError, ValueError):
        with pytest.raises(kind, match='"error_cb" must be callable'):
            Config(PRODUCER, {**SERVERS, "error_cb": 1})


def test_secrets_never_show() -> None:
    config = Config(PRODUCER, {**SERVERS, "ssl.key.password": "hunter2"})
    assert "hunter2" not in repr(config)
    assert config["ssl.key.password"] == "hunter2"


@pytest.mark.parametrize(("name", "most", "less"), [
    ("acks", -1, 1), ("acks", "all", 0), ("max.in.flight.requests.per.connection", 5, 6), ("retries", 1, 0)])
def test_idempotence_contradicted_by_the_user_is_an_error_and_otherwise_gives_way(
    name: str, most: object, less: object
) -> None:
    assert Config(PRODUCER, {**SERVERS, name: most})["enable.idempotence"] is True
    assert Config(PRODUCER, {**SERVERS, name: less})["enable.idempotence"] is False
    for wanted in ({"enable.idempotence": True}, {"transactional.id": "t"}):
        assert Config(PRODUCER, {**SERVERS, **wanted, name: most})["enable.idempotence"] is True
        with pytest.raises(ConfigError, match=rf'"{name}" must be .* with "{next(iter(wanted))}"'):
            Config(PRODUCER, {**SERVERS, **wanted, name: less})


def test_a_transaction_needs_idempotence_and_a_share_consumer_a_group() -> None:
    with pytest.raises(ConfigError, match=r'"transactional\.id" needs "enable\.idempotence"'):
        Config(PRODUCER, {**SERVERS, "transactional.id": "t", "enable.idempotence": False})
    assert Config(PRODUCER, {**SERVERS, "enable.idempotence": False, "acks": 1})["acks"] == 1
    with pytest.raises(ConfigError, match=r"group\.id must be set"):
        Config(SHARE, SERVERS)


def test_none_means_not_given_and_the_old_topic_config_is_merged() -> None:
    config = Config(CONSUMER, {**SERVERS, "group.id": None, "default.topic.config": {"auto.offset.reset": "smallest"}})
    assert config["group.id"] == ""
    assert config["auto.offset.reset"] == "earliest"


@pytest.mark.parametrize(("outer", "inner"), [
    ({"message.timeout.ms": 600_000}, {"message.timeout.ms": 1000}),
    ({"message.timeout.ms": 600_000}, {"delivery.timeout.ms": "1000"}),
    ({"delivery.timeout.ms": 600_000}, {"message.timeout.ms": 1000}),
    ({"message.timeout.ms": 600_000}, {"acks": 1, "default.topic.config": {"message.timeout.ms": 1000}}),
    ({"message.timeout.ms": 1000}, {"message.timeout.ms": None}),
    ({"message.timeout.ms": 5, "linger.ms": 10}, {"message.timeout.ms": 1000}),
])
def test_the_old_topic_config_counts_instead_of_what_stands_beside_it(
    outer: dict[str, Any], inner: dict[str, Any]
) -> None:
    for given in ({**outer, "default.topic.config": inner}, {"default.topic.config": inner, **outer}):
        assert Config(PRODUCER, {**SERVERS, **given})["message.timeout.ms"] == 1000


@pytest.mark.parametrize(("given", "text"), [
    ({"delivery.timeout.ms": 1, "message.timeout.ms": 2, "default.topic.config": {"message.timeout.ms": 3}}, "same"),
    ({"default.topic.config": {"delivery.timeout.ms": 1, "message.timeout.ms": 2}}, "are the same property"),
    ({"message.timeout.ms": "soon", "default.topic.config": {"message.timeout.ms": 1000}}, "soon"),
    ({"default.topic.config": {"no.such": 1}}, "no.such"), ({"default.topic.config": 5}, "must be a mapping"),
    ({"default.topic.config": {5: 5}}, "names are str"),
])
def test_contradictions_and_bad_values_are_refused_beside_and_inside_of_the_old_topic_config(
    given: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        Config(PRODUCER, {**SERVERS, **given})


@pytest.mark.parametrize("row", PROPERTIES.values(), ids=lambda row: row.name)
def test_every_row_is_documented_and_its_default_is_valid(row: object) -> None:
    assert isinstance(row, Property)
    assert row.doc.endswith((".", "`."))
    if row.kind in ("int", "float", "bool"):
        assert convert(row, row.name, row.default) == row.default


SOURCES = [path.read_text() for path in Path(headrace.__file__).parent.rglob("*.py")]
TAKEN_FOR_JAVA = {"ssl.keystore.type", "ssl.truststore.type"}


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() - TAKEN_FOR_JAVA))
def test_every_property_is_read_by_code(name: str) -> None:
    read = re.compile(rf'(?<!Property\()"{re.escape(name)}"')
    level = re.fullmatch(r"compression\.(gzip|lz4|zstd)\.level", name)  # its name is put together
    assert level or any(read.search(source) for source in SOURCES), f"nothing reads {name}"


def test_a_name_is_either_read_or_without_effect_or_not_supported() -> None:
    known = [name for row in PROPERTIES.values() for name in (row.name, *row.aliases)]
    known += [*WITHOUT_EFFECT, *NOT_SUPPORTED]
    assert len(known) == len(set(known))


@pytest.mark.parametrize("name", NOT_SUPPORTED)
def test_a_property_that_cannot_mean_anything_is_refused_with_what_to_use_instead(name: str) -> None:
    with pytest.raises(ConfigError) as info:
        Config(PRODUCER, {**SERVERS, name: "1"})
    assert f'"{name}" is not supported: {NOT_SUPPORTED[name]}' in str(info.value)


def some_value(row: Property) -> object:
    """A value that a property takes which does nothing."""
    return next(iter(row.only or row.choices), row.low or 0)


def other_value(row: Property) -> object:
    """A well-formed value that should have an effect."""
    if row.kind == "bool":
        return not row.only[0]
    return tuple(row.choices)[-1] if row.choices else 7 if row.kind == "int" else "something else"


def test_a_property_without_effect_is_accepted_unless_its_value_should_have_one() -> None:
    for name, row in WITHOUT_EFFECT.items():
        assert Config(PRODUCER, {**SERVERS, name: some_value(row)}).without_effect == {name: row.doc}
        assert not Config(PRODUCER, {**SERVERS, name: None}).without_effect
        if row.only:
            with pytest.raises(ConfigError, match=re.escape(row.doc)):
                Config(PRODUCER, {**SERVERS, name: other_value(row)})
    Config(PRODUCER, {**SERVERS, "api.version.request": True, "enable.metrics.push": False})


def test_a_configuration_as_people_write_it_for_librdkafka_works() -> None:
    config = Config(PRODUCER, {
        "metadata.broker.list": "a:9092,b:9092", "client.id": "web", "acks": "all", "enable.idempotence": "true",
        "compression.codec": "lz4", "queue.buffering.max.ms": "20", "message.send.max.retries": 10_000_000,
        "debug": "broker,msg", "log_level": 6, "log.connection.close": False, "socket.keepalive.enable": True,
        "api.version.request": "true", "broker.version.fallback": "0.10.2", "broker.address.family": "v4",
        "sticky.partitioning.linger.ms": 50, "topic.metadata.refresh.fast.interval.ms": 100, "dr_cb": print,
        "statistics.interval.ms": 1000, "stats_cb": print, "message.timeout.ms": 5000, "request.timeout.ms": 9000,
    })
    assert (config["linger.ms"], config["on_delivery"], config["broker.address.family"]) == (20, print, "v4")
    assert config["sticky.partitioning.linger.ms"] == 50


def test_a_configuration_as_people_write_it_for_java_works() -> None:
    config = Config(PRODUCER, {
        **SERVERS, "acks": "all", "buffer.memory": 33_554_432, "max.request.size": 1_048_576, "batch.size": 16_384,
        "client.dns.lookup": "use_all_dns_ips", "delivery.timeout.ms": 120_000, "request.timeout.ms": 30_000,
        "compression.type": "zstd", "compression.zstd.level": 3, "compression.gzip.level": 9,
        "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner", "max.block.ms": 1000,
        "metadata.max.age.ms": 1000, "metadata.max.idle.ms": 1000, "send.buffer.bytes": 131_072,
        "metrics.recording.level": "DEBUG", "partitioner.availability.timeout.ms": 0,
        "partitioner.adaptive.partitioning.enable": "true",
    })
    assert config["queue.buffering.max.kbytes"] == 32_768
    assert config["compression.level"] == 3
    assert config["partitioner"] == "round_robin"


@pytest.mark.parametrize("given", [
    {"buffer.memory": 1 << 20, "queue.buffering.max.kbytes": 2048},
    {"linger.ms": 100, "message.timeout.ms": 50},
    {"linger.ms": 100, "message.timeout.ms": 100},
    {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 400},
    {"compression.type": "zstd", "compression.level": 1, "compression.zstd.level": 2},
    {"partitioner": "murmur2", "partitioner.class": "RoundRobinPartitioner"},
    {"partitioner": "murmur2", "partitioner.ignore.keys": True},
    {"partitioner.class": "DefaultPartitioner", "partitioner.ignore.keys": True},
    {"partitioner.availability.timeout.ms": 5, "partitioner.adaptive.partitioning.enable": False},
    {"partitioner": "murmur2", "partitioner.availability.timeout.ms": 5},
    {"partitioner.class": "RoundRobinPartitioner", "partitioner.availability.timeout.ms": 5},
    {"partitioner": "fnv1a", "client.rack": "a", "partitioner.rack.aware": True},
    {"client.rack": "", "partitioner.rack.aware": True},
    {"partitioner": lambda *of: 0, "partitioner.availability.timeout.ms": 5},
], ids=lambda given: " ".join(given))
def test_properties_that_contradict_each_other_are_refused_by_name(given: dict[str, object]) -> None:
    first, *_, last = given
    with pytest.raises(ConfigError, match=f'"{first}"|"{last}"'):
        Config(PRODUCER, {**SERVERS, **given})


def test_producers_have_topics_created_and_others_are_to_be_told_to() -> None:
    name = "allow.auto.create.topics"
    assert [Config(role, SERVERS)[name] for role in (PRODUCER, CONSUMER)] == [True, False]
    assert [Config(role, {**SERVERS, name: value})[name] for role, value in ((PRODUCER, False), (CONSUMER, True))] == [
        False, True]


def test_a_default_gives_way_to_what_was_asked_for() -> None:
    assert Config(PRODUCER, {**SERVERS, "message.timeout.ms": 4})["linger.ms"] == 2
    assert Config(ADMIN, {**SERVERS, "reconnect.backoff.ms": 5000})["reconnect.backoff.max.ms"] == 5000
    assert Config(PRODUCER, {**SERVERS, "partitioner.ignore.keys": True})["partitioner"] == "uniform_sticky"
    assert Config(PRODUCER, {**SERVERS, "linger.ms": 50})["sticky.partitioning.linger.ms"] == 100
    assert Config(PRODUCER, {**SERVERS, "linger.ms": 0})["sticky.partitioning.linger.ms"] == 10
    assert Config(PRODUCER, {**SERVERS, "sticky.partitioning.linger.ms": 5})["sticky.partitioning.linger.ms"] == 5
    assert Config(PRODUCER, {**SERVERS, "queue.buffering.max.kbytes": 1024, "buffer.memory": 1 << 20})


@pytest.mark.parametrize(("given", "waited"), [
    ({}, 30_000),
    ({"request.timeout.ms": 120_000}, 120_000),
    ({"socket.timeout.ms": 1_000}, 1_000),
    ({"socket.timeout.ms": 1_000, "request.timeout.ms": 5_000}, 1_000),
    ({"socket.timeout.ms": 90_000, "request.timeout.ms": 5_000}, 5_000),
    ({"transactional.id": "t"}, 30_000),
    ({"transactional.id": "t", "transaction.timeout.ms": 10_000}, 9_900),
    ({"transactional.id": "t", "transaction.timeout.ms": 10_000, "socket.timeout.ms": 60_000}, 30_000),
    ({"transaction.timeout.ms": 10_000}, 30_000),
], ids=str)
def test_a_producer_waits_for_an_answer_the_lesser_of_both_times_where_the_limit_of_all_requests_was_given(
    given: dict[str, int], waited: int,
) -> None:
    assert Config(PRODUCER, {**SERVERS, **given})["request.timeout.ms"] == waited


@pytest.mark.parametrize(("given", "waited"), [
    ({"transaction.timeout.ms": 900_000}, 60_000),
    ({}, 59_900),
    ({"transaction.timeout.ms": 5_000}, 4_900),
    ({"transaction.timeout.ms": 1_000}, 900),
    ({"transaction.timeout.ms": 5_000, "socket.timeout.ms": 60_000}, 60_000),
], ids=str)
def test_a_request_of_a_transaction_leaves_time_for_another_one(given: dict[str, int], waited: int) -> None:
    assert Config(PRODUCER, {**SERVERS, "transactional.id": "t", **given})["socket.timeout.ms"] == waited


@pytest.mark.parametrize(("role", "given", "moved"), [
    (CONSUMER, {"session.timeout.ms": 100}, {"heartbeat.interval.ms": 33}),
    (CONSUMER, {"session.timeout.ms": 6_000}, {"heartbeat.interval.ms": 2_000}),
    (CONSUMER, {"session.timeout.ms": 30_000}, {"heartbeat.interval.ms": 3_000}),
    (CONSUMER, {"session.timeout.ms": 1}, {"heartbeat.interval.ms": 1}),
    (CONSUMER, {"heartbeat.interval.ms": 50_000}, {"session.timeout.ms": 150_000}),
    (CONSUMER, {"heartbeat.interval.ms": 1_000}, {"session.timeout.ms": 45_000}),
    (CONSUMER, {"session.timeout.ms": 9_000, "heartbeat.interval.ms": 8_000}, {}),
    (CONSUMER, {"receive.message.max.bytes": 1_000_000}, {"fetch.max.bytes": 999_488}),
    (CONSUMER, {"fetch.max.bytes": 200_000_000}, {"receive.message.max.bytes": 200_000_512}),
    (PRODUCER, {"linger.ms": 900_000}, {"message.timeout.ms": 1_200_000}),
    (PRODUCER, {"message.timeout.ms": 4}, {"linger.ms": 2.0}),
    (PRODUCER, {"delivery.timeout.ms": 30_000, "request.timeout.ms": 30_000, "linger.ms": 100}, {}),
    (PRODUCER, {"delivery.timeout.ms": 999, "request.timeout.ms": 1_000}, {"linger.ms": 5.0}),
    (PRODUCER, {"delivery.timeout.ms": 1_000}, {"linger.ms": 5.0, "request.timeout.ms": 30_000}),
    (PRODUCER, {"request.timeout.ms": 400_000}, {"message.timeout.ms": 300_000}),
    (ADMIN, {"reconnect.backoff.ms": 5_000}, {"reconnect.backoff.max.ms": 5_000}),
    (ADMIN, {"reconnect.backoff.max.ms": 10}, {"reconnect.backoff.ms": 10}),
    (ADMIN, {"reconnect.backoff.max.ms": 0}, {"reconnect.backoff.ms": 0}),
    (ADMIN, {"retry.backoff.ms": 5_000}, {"retry.backoff.max.ms": 5_000}),
    (ADMIN, {"retry.backoff.max.ms": 1}, {"retry.backoff.ms": 1}),
    (ADMIN, {"retry.backoff.ms": 2_000, "retry.backoff.max.ms": 1_000}, {"retry.backoff.ms": 1_000}),
    (ADMIN, {"sasl.login.retry.backoff.ms": 20_000, "sasl.login.retry.backoff.max.ms": 10_000},
     {"sasl.login.retry.backoff.ms": 10_000}),
    (ADMIN, {"sasl.login.retry.backoff.ms": 20_000}, {"sasl.login.retry.backoff.max.ms": 20_000}),
    (ADMIN, {"metadata.max.age.ms": 700}, {"topic.metadata.refresh.interval.ms": 700}),
    (ADMIN, {"metadata.max.age.ms": 86_400_000}, {"topic.metadata.refresh.interval.ms": 86_400_000}),
    (ADMIN, {"metadata.max.age.ms": 700, "topic.metadata.refresh.interval.ms": 600},
     {"topic.metadata.refresh.interval.ms": 600}),
    (ADMIN, {"metadata.max.age.ms": 700, "topic.metadata.refresh.interval.ms": -1},
     {"topic.metadata.refresh.interval.ms": 700}),
    (ADMIN, {"socket.connection.setup.timeout.ms": 10_000, "socket.connection.setup.timeout.max.ms": 20_000},
     {"socket.connection.setup.timeout.ms": 20_000}),
    (ADMIN, {"socket.connection.setup.timeout.max.ms": 5_000}, {"socket.connection.setup.timeout.ms": 5_000}),
    (ADMIN, {"socket.connection.setup.timeout.ms": 40_000, "socket.connection.setup.timeout.max.ms": 5_000},
     {"socket.connection.setup.timeout.ms": 40_000}),
], ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value)
def test_a_default_moves_so_that_what_was_given_alone_makes_sense(
    role: str, given: dict[str, int], moved: dict[str, float]
) -> None:
    config = Config(role, {**SERVERS, **given})
    expected = {**given, **moved}
    expected["message.timeout.ms"] = expected.pop("delivery.timeout.ms", config["message.timeout.ms"])
    assert {name: config[name] for name in expected} == expected


@pytest.mark.parametrize(("role", "given"), [
    (CONSUMER, {"session.timeout.ms": 100, "heartbeat.interval.ms": 100}),
    (CONSUMER, {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 50_000}),
    (CONSUMER, {"receive.message.max.bytes": 1_000_000, "fetch.max.bytes": 999_489}),
    (PRODUCER, {"linger.ms": 900_000, "message.timeout.ms": 300_000}),
    (ADMIN, {"reconnect.backoff.ms": 20_000, "reconnect.backoff.max.ms": 10_000}),
], ids=lambda value: " ".join(value) if isinstance(value, dict) else value)
def test_two_that_were_given_are_taken_by_their_word_even_if_one_is_the_default(
    role: str, given: dict[str, int]
) -> None:
    with pytest.raises(ConfigError) as refused:
        Config(role, {**SERVERS, **given})
    for name, value in given.items():
        assert f'"{name}"' in str(refused.value)
        assert str(value) in str(refused.value)


def test_javas_names_of_assignors_are_known() -> None:
    names = [f"org.apache.kafka.clients.consumer.{name}" for name in ("CooperativeStickyAssignor", "RangeAssignor")]
    config = Config(CONSUMER, {**SERVERS, "partition.assignment.strategy": names})
    assert config["partition.assignment.strategy"] == ("cooperative-sticky", "range")
    config = Config(CONSUMER, {**SERVERS, "partition.assignment.strategy": "sticky"})
    assert config["partition.assignment.strategy"] == ("sticky",)
    with pytest.raises(ConfigError, match=r'Invalid value "stickiest" for "partition\.assignment\.strategy"'):
        Config(CONSUMER, {**SERVERS, "partition.assignment.strategy": "stickiest"})


@pytest.mark.parametrize(("text", "milliseconds"), [
    ("PT1H30M", 5_400_000), ("p2dt3h4m5.5s", 183_845_500), ("PT0S", 0), ("P1D", 86_400_000), ("PT0.001S", 1)])
def test_an_offset_reset_by_duration_is_kept_in_milliseconds(text: str, milliseconds: int) -> None:
    config = Config(CONSUMER, {**SERVERS, "auto.offset.reset": f"by_duration:{text}"})
    assert config["auto.offset.reset"] == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "-PT1H", "P1Y", "PT1H30", "PT1M1H", "P1DT"])
def test_a_duration_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="ISO-8601 duration after by_duration:, for example by_duration:PT1H30M"):
        Config(CONSUMER, {**SERVERS, "auto.offset.reset": f"by_duration:{text}"})


def test_a_number_that_is_none_is_refused() -> None:
    for value in ("nan", float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=r'"linger\.ms": (nan|inf): expected 0 to 900000 ms'):
            Config(PRODUCER, {**SERVERS, "linger.ms": value})
    with pytest.raises(ConfigError, match=r'"retries": inf: expected a whole number'):
        Config(PRODUCER, {**SERVERS, "retries": float("inf")})


@pytest.mark.parametrize("name", [row.name for row in PROPERTIES.values() if row.kind in ("str", "secret", "list")])
def test_text_that_cannot_be_sent_is_refused_and_names_of_files_may_have_bytes_that_are_no_text(name: str) -> None:
    given = b"a\xff".decode(errors="surrogateescape")
    row = PROPERTIES[name]
    if name.endswith(("location", ".file", ".keytab")):
        assert convert(row, name, given) == given
        return
    with pytest.raises(ConfigError, match=f'"{re.escape(name)}": .* expected ') as refused:
        convert(row, name, given)
    str(refused.value).encode()
    assert row.choices or "lone surrogates" in str(refused.value)
    assert row.kind != "secret" or "udcff" not in str(refused.value)


@pytest.mark.parametrize("given", [("u\udcff", "p"), ("u", "p\udcff")])
def test_credentials_that_cannot_be_sent_are_refused(given: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="lone surrogate"):
        Config(ADMIN, SERVERS).set_sasl_credentials(*given)
