"""Configuration: what is refused, what the refusal says, and what is hidden."""

import re
from pathlib import Path

import pytest

from headrace.config import ADMIN, CONSUMER, NOT_SUPPORTED, PRODUCER, PROPERTIES, WITHOUT_EFFECT, Config
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
    ("bootstrap.servers", "localhost:", "expected host:port"),
    ("bootstrap.servers", "[::1]:http", "expected host:port"),
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


def test_what_must_be_a_function_and_is_none_is_refused_whatever_is_caught() -> None:
    for kind in (ConfigError, TypeError, ValueError):
        with pytest.raises(kind, match='"error_cb" must be callable'):
            Config(PRODUCER, {**SERVERS, "error_cb": 1})


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


SOURCES = [path.read_text() for path in (Path(__file__).parents[1] / "src/headrace").rglob("*.py")]
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
def test_a_property_that_can_not_mean_anything_is_refused_with_what_to_use_instead(name: str) -> None:
    with pytest.raises(ConfigError) as info:
        Config(PRODUCER, {**SERVERS, name: "1"})
    assert f'"{name}" is not supported: {NOT_SUPPORTED[name]}' in str(info.value)


def test_a_property_without_effect_is_accepted_unless_its_value_should_have_one() -> None:
    for name, (values, why) in WITHOUT_EFFECT.items():
        Config(PRODUCER, {**SERVERS, name: values[0] if values else "7"})
        Config(PRODUCER, {**SERVERS, name: None})
        if values:
            with pytest.raises(ConfigError, match=re.escape(why)):
                Config(PRODUCER, {**SERVERS, name: "7"})
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
    {"linger.ms": 5, "delivery.timeout.ms": 1000, "request.timeout.ms": 1000},
    {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 400},
    {"retry.backoff.ms": 500, "retry.backoff.max.ms": 400},
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


def test_a_default_gives_way_to_what_was_asked_for() -> None:
    assert Config(PRODUCER, {**SERVERS, "message.timeout.ms": 4})["linger.ms"] == 2
    assert Config(ADMIN, {**SERVERS, "reconnect.backoff.ms": 5000})["reconnect.backoff.max.ms"] == 5000
    assert Config(PRODUCER, {**SERVERS, "partitioner.ignore.keys": True})["partitioner"] == "uniform_sticky"
    assert Config(PRODUCER, {**SERVERS, "linger.ms": 50})["sticky.partitioning.linger.ms"] == 100
    assert Config(PRODUCER, {**SERVERS, "linger.ms": 0})["sticky.partitioning.linger.ms"] == 10
    assert Config(PRODUCER, {**SERVERS, "sticky.partitioning.linger.ms": 5})["sticky.partitioning.linger.ms"] == 5
    assert Config(PRODUCER, {**SERVERS, "queue.buffering.max.kbytes": 1024, "buffer.memory": 1 << 20})
