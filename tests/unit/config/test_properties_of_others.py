"""Every property of librdkafka and Java's clients works, changes nothing and says so, or is refused with a reason."""

import contextlib
import logging
import os
import re
import shutil
from typing import Any

import pytest

from headrace import Consumer, Producer
from headrace.admin import AdminClient
from headrace.config import ADMIN, CONSUMER, PRODUCER, PROPERTIES, SHARE, Config
from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT
from headrace.errors import ConfigError

from .others import KAFKA, Other, ask_java, ask_librdkafka, bundled_librdkafka, kept

SERVERS = {"bootstrap.servers": "localhost:1"}
ROLES = (PRODUCER, CONSUMER, ADMIN)
OTHERS = {client: kept(client)[1] for client in ("librdkafka", "java")}
CASES = [pytest.param(other, id=f"{client}: {other.name}") for client, others in OTHERS.items() for other in others]

REFUSED = {
    # A value in the range of librdkafka or Java: what is refused of it, and why.
    ("acks", "1000"): "expected one of all, -1, 0, 1",
    ("request.required.acks", "1000"): "expected one of all, -1, 0, 1",
    ("api.version.request", "false"): "brokers are always asked",
    ("client.dns.lookup", "resolve_canonical_bootstrap_servers_only"): "all addresses of a host are tried",
    ("enable.gapless.guarantee", "true"): "a transaction is what leaves no gap",
    ("internal.throw.on.fetch.stable.offset.unsupported", "true"): "brokers of Kafka 2.5 and later",
    ("offset.store.method", "file"): "offsets lie with the brokers",
    ("offset.store.method", "none"): "offsets lie with the brokers",
    ("queuing.strategy", "lifo"): "records stay in order",
    ("sasl.oauthbearer.allow.unverified.audience", "true"): "a token is checked by the brokers",
    ("sasl.oauthbearer.allow.unverified.issuer", "true"): "a token is checked by the brokers",
    ("transaction.two.phase.commit.enable", "true"): "transactions end with the client that began them",
}
HARMLESS = {
    # Properties of security that any value may be given to: they change neither who is trusted nor what is shown.
    "enable_sasl_queue", "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.jitter", "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
}


def with_what_it_needs(name: str, value: str) -> dict[str, Any]:
    """A configuration with one property, and with what else must be there for it."""
    needed = {"security.protocol": "sasl_ssl"} if name.startswith("sasl.mechanism") else \
        {"client.rack": "r"} if name == "partitioner.rack.aware" else {}
    return {**SERVERS, **needed, name: value}


@pytest.mark.parametrize("other", CASES)
@pytest.mark.parametrize("role", ROLES)
def test_every_name_of_the_others_is_known_to_every_client_of_ours(other: Other, role: str) -> None:
    given = with_what_it_needs(other.name, other.default or next(iter(other.values), "1"))
    with contextlib.suppress(ConfigError):
        Config(role, given)
        return
    with pytest.raises(ConfigError, match=f'^"{re.escape(other.name)}"|property "{re.escape(other.name)}"') as refused:
        Config(role, given)
    assert "No such configuration property" not in str(refused.value)


@pytest.mark.parametrize("other", [case for case in CASES if case.values[0].name not in NOT_SUPPORTED])
def test_what_another_client_does_without_being_told_may_be_written_out(other: Other) -> None:
    if other.default:
        for role in other.roles:
            Config(role, with_what_it_needs(other.name, other.default))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("client", OTHERS)
def test_all_defaults_of_another_client_may_be_written_out_together(client: str, role: str) -> None:
    given = {other.name: other.default for other in OTHERS[client]
             if other.default and role in other.roles and other.name not in NOT_SUPPORTED
             and not other.name.startswith("sasl.mechanism")}
    assert len(given) > 50
    Config(role, {**given, **SERVERS})


@pytest.mark.parametrize("other", [case for case in CASES if case.values[0].name not in NOT_SUPPORTED])
def test_both_ends_of_a_range_and_every_choice_are_taken_or_refused_with_the_reason(other: Other) -> None:
    for value in other.values:
        given = with_what_it_needs(other.name, value)
        why = REFUSED.get((other.name, value))
        if why is None:
            for role in other.roles:
                Config(role, given)
        else:
            with pytest.raises(ConfigError, match=why):
                Config(other.roles[0], given)


def test_what_is_refused_of_a_range_is_in_the_range() -> None:
    assert REFUSED.keys() <= {(other.name, value) for others in OTHERS.values() for other in others
                              for value in other.values}


# What changes nothing

CLIENTS = {PRODUCER: Producer, CONSUMER: Consumer, ADMIN: AdminClient}


@pytest.mark.parametrize("role", ROLES)
def test_what_has_no_effect_is_said_at_debug_level_when_the_client_is_made(
    role: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "headrace")
    inert = {"socket.max.fails": 3, "offset.store.path": "/t", "default.topic.config": {"produce.offset.report": True}}
    another = {"session.timeout.ms": 7000} if role != CONSUMER else {"acks": 1}
    client = CLIENTS[role]({**SERVERS, **inert, **another, "socket.timeout.ms": 1000, "broker.address.ttl": None})
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("CONF")]
    if hasattr(client, "close"):
        client.close()
    assert all(record.levelno <= logging.DEBUG for record in caplog.records if record.getMessage() in said)
    assert len(said) == 4
    for name in ("socket.max.fails", "offset.store.path", "produce.offset.report"):
        assert any(f'"{name}" has no effect: {WITHOUT_EFFECT[name].doc}' in line for line in said)
    owner = "producer" if role == CONSUMER else "consumer"
    assert any(f'"{next(iter(another))}" has no effect: it is read by a {owner}, not by ' in line for line in said)


@pytest.mark.parametrize("row", WITHOUT_EFFECT.values(), ids=list(WITHOUT_EFFECT))
def test_values_are_checked_although_they_change_nothing(row: Any) -> None:
    wrong = {"int": ["soon", (row.low or 0) - 1] + ([row.high + 1] if row.high is not None else []),
             "float": ["soon"], "bool": ["perhaps"], "enum": ["nonsense"], "list": [5], "str": [object()]}[row.kind]
    for value in wrong:
        with pytest.raises(ConfigError, match=f'"{row.name}"'):
            Config(PRODUCER, {**SERVERS, row.name: value})


def test_no_property_of_security_is_left_alone_in_silence() -> None:
    secure = ("ssl", "sasl", "security", "https", "enable.ssl", "enable_sasl", "isolation", "enable.idem", "acks")
    found = {name for name, row in WITHOUT_EFFECT.items() if name.startswith(secure) and not row.only}
    assert found == HARMLESS


def test_a_name_that_is_refused_is_no_matter_while_it_has_no_value() -> None:
    Config(CONSUMER, {**SERVERS, **dict.fromkeys(NOT_SUPPORTED)})


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() & {other.name for other in OTHERS["librdkafka"]}))
def test_a_property_of_librdkafka_has_the_roles_that_it_has_there_or_more(name: str) -> None:
    there = next(other.roles for other in OTHERS["librdkafka"] if other.name == name)
    fewer = {"allow.auto.create.topics", "max.in.flight.requests.per.connection", "message.max.bytes",
             "statistics.interval.ms", "stats_cb", "throttle_cb", "topic.metadata.propagation.max.ms"}
    if name not in fewer:  # librdkafka counts an admin client as a producer; those say nothing for one
        here = {CONSUMER if role == SHARE else role for role in PROPERTIES[name].roles}  # there a share consumer is one
        assert set(there) <= here


# The data

def without_platform(properties: list[Other]) -> list[Other]:
    """What librdkafka was built with is no matter of its version."""
    return [other._replace(default="") if other.name == "builtin.features" else other for other in properties]


def test_the_names_that_are_kept_are_those_of_the_bundled_librdkafka() -> None:
    pytest.importorskip("confluent_kafka")
    library = bundled_librdkafka()
    if library is None:
        pytest.skip("confluent_kafka was built against a librdkafka of the system's")
    (version, asked), (of, names) = ask_librdkafka(library), kept("librdkafka")
    if version != of:
        pytest.skip(f"this is librdkafka {version}, kept are names of {of}: run python -m tests.unit.config.others")
    assert without_platform(asked) == without_platform(names), "run python -m tests.unit.config.others"


@pytest.mark.kafka
def test_the_names_that_are_kept_are_those_of_javas_clients() -> None:
    artifacts = pytest.importorskip("tools.kafka.artifacts")
    java = shutil.which("java")
    unavailable = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    if java is None or shutil.which("javac") is None:
        unavailable("the test compiles a small Java program and needs a JDK (javac) on the PATH")
    try:
        class_path = artifacts.class_path(KAFKA)
    except artifacts.RegistryError as error:
        unavailable(str(error))
    assert ask_java(str(java), class_path, KAFKA) == kept("java"), "run python -m tests.unit.config.others"
