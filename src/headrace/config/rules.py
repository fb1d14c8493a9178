"""How properties belong together: a default gives way to what was asked for, and what was asked for must agree.

Two properties contradict each other only if both were given. If one was, the default of the other is moved so far that
both make sense. The properties of security are the exception (`security_properties`): what would send a password in the
clear, or not at all, is refused even if it was asked for.

Read next: `headrace.config.mapping`, which calls `settle`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.config.property import ADMIN, CONSUMER, PRODUCER, SHARE
from headrace.config.security_properties import settle_security
from headrace.errors import ConfigError
from headrace.slotted import slotted

__all__ = ["Draft", "is_by_lot", "settle"]

_ASSIGNORS_OF_JAVA = {
    f"org.apache.kafka.clients.consumer.{name}": ours for name, ours in (
        ("RangeAssignor", "range"), ("RoundRobinAssignor", "roundrobin"), ("StickyAssignor", "sticky"),
        ("CooperativeStickyAssignor", "cooperative-sticky"))
}
_DEFAULT_PORT = 9092
_HOST = re.compile(r"\[[^\s\[\]/]+\]|[^\s;:\[\]/]+")
"""A name or an address; one of IPv6 only in brackets, since a port follows."""
_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_DEFAULT_MESSAGE_TIMEOUT_MS = 300_000
_LEFT_OF_TRANSACTION_MS, _LEAST_REPLY_MS = 100, 900
_HEARTBEATS_PER_SESSION = 3
_OF_CLASSIC_GROUPS = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
_FETCH_HEADER_BYTES = 512
"""What a reply may have beside the records that were asked for."""


@slotted(eq=False)
class Draft:
    """A configuration while it is settled.

    Attributes:
        given: the properties that were given, by their first name, converted.
        names: the name under which each of them was given.
        values: every property's value; completed by `settle`.
    """

    given: Mapping[str, Any]
    names: Mapping[str, str]
    values: dict[str, Any]


def settle(role: str, draft: Draft) -> None:
    """Complete the values of one client's configuration.

    Raises:
        ConfigError: two properties that were given contradict each other, or one needs another that is missing.
    """
    _settle_servers(draft.values)
    _settle_order(draft, "reconnect.backoff.ms", "reconnect.backoff.max.ms")
    for backoff in ("retry.backoff", "sasl.login.retry.backoff"):  # as Java and librdkafka: the longest is every wait
        _settle_order(draft, f"{backoff}.ms", f"{backoff}.max.ms", second_wins=True)
    _settle_setup_timeout(draft)
    _settle_metadata_age(draft)
    settle_security(draft.given, draft.values)
    for rule in _RULES[role]:
        rule(draft)


def is_by_lot(partitioner: object) -> bool:
    """Whether a value of `partitioner` leaves records to chance."""
    return partitioner not in ("consistent", "murmur2", "fnv1a", "round_robin") and not callable(partitioner)


# All clients

def _settle_servers(values: dict[str, Any]) -> None:
    values["bootstrap.servers"] = tuple(
        _server(entry, values["security.protocol"]) for entry in values["bootstrap.servers"])


def _server(entry: str, protocol: str) -> str:
    """``host:port`` of an entry, which may be written as in the brokers' listeners: ``SASL_SSL://host:port/``."""
    prefix, sign, address = entry.rpartition("://")
    if sign:
        _check_prefix(entry, prefix, protocol)
    address = address.rstrip("/")
    server = address if ":" in address.rpartition("]")[2] else f"{address}:{_DEFAULT_PORT}"
    host, _, port = server.rpartition(":")
    if not _HOST.fullmatch(host) or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f'Invalid value {entry!r} in "bootstrap.servers": expected host:port, for example '
                          "localhost:9092 or [::1]:9092, and commas between servers")
    return server


def _check_prefix(entry: str, prefix: str, protocol: str) -> None:
    """Refuse what librdkafka only leaves out: a client without any server then says that no brokers are configured."""
    wanted = prefix.lower().replace("-", "_")
    if wanted not in _PROTOCOLS:
        raise ConfigError(f'Invalid value {entry!r} in "bootstrap.servers": "{prefix}" is no protocol of Kafka, which '
                          f"are {', '.join(_PROTOCOLS)}: give host:port")
    if wanted != protocol:
        raise ConfigError(f'Invalid value {entry!r} in "bootstrap.servers": "security.protocol" is "{protocol}": set '
                          f'it to "{wanted}", or give a server that speaks {protocol}')


def _settle_order(draft: Draft, low: str, high: str, *, second_wins: bool = False) -> None:
    """The default of one follows the other; of two that were given, the first must not be more, or the second wins."""
    values = draft.values
    if values[low] <= values[high]:
        return
    if low in draft.given and high in draft.given and not second_wins:
        raise ConfigError(f'"{high}" ({values[high]}) must not be less than "{low}" ({values[low]})')
    follower, leader = (high, low) if low in draft.given and high not in draft.given else (low, high)
    values[follower] = values[leader]


def _settle_setup_timeout(draft: Draft) -> None:
    """Java lets an attempt's time grow from the first to the second; here the longer one is every attempt's."""
    longest_ms = draft.values["socket.connection.setup.timeout.max.ms"]
    if longest_ms:
        first_ms = draft.given.get("socket.connection.setup.timeout.ms", 0)
        draft.values["socket.connection.setup.timeout.ms"] = max(first_ms, longest_ms)


def _settle_metadata_age(draft: Draft) -> None:
    age_ms, asked_ms = draft.values["metadata.max.age.ms"], draft.given.get("topic.metadata.refresh.interval.ms", 0)
    if age_ms:
        draft.values["topic.metadata.refresh.interval.ms"] = min(age_ms, asked_ms) if asked_ms > 0 else age_ms


def _replace(draft: Draft, name: str, value: Any, by: str) -> None:
    """Set a property for which Java has another one; both may be given only if they agree."""
    if name in draft.given and draft.values[name] != value:
        raise ConfigError(f'"{by}" and "{draft.names[name]}" contradict each other: give one of them')
    draft.values[name] = value


# Producers

def _settle_creation(draft: Draft) -> None:
    """A producer lets brokers create topics unless it is told not to, as in librdkafka; others must be told to."""
    if "allow.auto.create.topics" not in draft.given:
        draft.values["allow.auto.create.topics"] = True


def _settle_times(draft: Draft) -> None:
    values, given = draft.values, draft.given
    total_ms, linger_ms = values["message.timeout.ms"], values["linger.ms"]
    if total_ms and linger_ms >= total_ms:
        if "linger.ms" not in given:
            values["linger.ms"] = total_ms / 2.0
        elif "message.timeout.ms" not in given:
            values["message.timeout.ms"] = int(linger_ms) + _DEFAULT_MESSAGE_TIMEOUT_MS
        else:
            raise ConfigError(f'"linger.ms" ({linger_ms:g}) must be less than "message.timeout.ms" ({total_ms})')


def _settle_reply_time(draft: Draft) -> None:
    """Librdkafka's programs ask for a quick retry with the limit of all requests: the lesser one counts.

    Of a transaction that limit follows the time, as there: a request to a coordinator that is frozen leaves time for
    one to another.
    """
    values = draft.values
    if "socket.timeout.ms" in draft.given:
        longest_ms = values["socket.timeout.ms"]
    elif values["transactional.id"]:
        longest_ms = max(values["transaction.timeout.ms"] - _LEFT_OF_TRANSACTION_MS, _LEAST_REPLY_MS)
        values["socket.timeout.ms"] = min(values["socket.timeout.ms"], longest_ms)
    else:
        return
    values["request.timeout.ms"] = min(values["request.timeout.ms"], longest_ms)


def _settle_memory(draft: Draft) -> None:
    memory = draft.values["buffer.memory"]
    if memory:
        _replace(draft, "queue.buffering.max.kbytes", -(-memory // 1024), "buffer.memory")


def _settle_compression(draft: Draft) -> None:
    level = f"compression.{draft.values['compression.type']}.level"
    if level in draft.given:
        _replace(draft, "compression.level", draft.values[level], level)


def _settle_partitioner(draft: Draft) -> None:
    values = draft.values
    if values["partitioner.class"]:
        _replace(draft, "partitioner", values["partitioner.class"], "partitioner.class")
    if values["partitioner.ignore.keys"]:
        if {"partitioner", "partitioner.class"}.isdisjoint(draft.given):
            values["partitioner"] = "uniform_sticky"
        elif values["partitioner"] not in ("uniform_sticky", "random"):
            raise ConfigError('"partitioner.ignore.keys" is what the partitioners "uniform_sticky" and "random" do: '
                              "give no other one")
    _check_lots(values)
    if "sticky.partitioning.linger.ms" not in draft.given:
        turn_ms = max(values["sticky.partitioning.linger.ms"], min(int(2 * values["linger.ms"]), 900_000))
        values["sticky.partitioning.linger.ms"] = turn_ms


def _check_lots(values: Mapping[str, Any]) -> None:
    """Properties of the random choice need a partitioner that chooses at random, and the properties it depends on."""
    if values["partitioner.rack.aware"] and not values["client.rack"]:
        raise ConfigError('"partitioner.rack.aware" needs a "client.rack"')
    if values["partitioner.availability.timeout.ms"] and not values["partitioner.adaptive.partitioning.enable"]:
        raise ConfigError('"partitioner.availability.timeout.ms" needs "partitioner.adaptive.partitioning.enable",'
                          " which is false")
    for name in ("partitioner.availability.timeout.ms", "partitioner.rack.aware"):
        if values[name] and not is_by_lot(values["partitioner"]):
            raise ConfigError(f'"{name}" can do nothing for the "partitioner" "{values["partitioner"]}", which '
                              "leaves no record to chance: give another one")


def _settle_idempotence(draft: Draft) -> None:
    values, transactional = draft.values, bool(draft.values["transactional.id"])
    if not values["enable.idempotence"]:
        if transactional:
            raise ConfigError('"transactional.id" needs "enable.idempotence": true')
        return
    contradictions = (
        ("acks", values["acks"] != -1, "acks=all"),
        ("max.in.flight.requests.per.connection", values["max.in.flight.requests.per.connection"] > 5, "at most 5"),
        ("retries", values["retries"] == 0, "at least 1"),
    )
    for name, contradicts, needed in contradictions:
        if contradicts:
            if "enable.idempotence" in draft.given:
                raise ConfigError(f'"{name}" must be {needed} with "enable.idempotence": true')
            if transactional:
                raise ConfigError(f'"{name}" must be {needed} with "transactional.id"')
            values["enable.idempotence"] = False  # the user asked for less; KIP-679 does the same
            return


# Consumers

def _check_protocol(draft: Draft) -> None:
    """What the coordinator decides for its members cannot be asked for by one of them (librdkafka's rule)."""
    if draft.values["group.protocol"] == "classic":
        return
    for name in _OF_CLASSIC_GROUPS:
        if name in draft.given:
            remedy = ('choose with "group.remote.assignor"' if name == "partition.assignment.strategy"
                      else "it is set on the brokers, or leave it out")
            raise ConfigError(f'"{draft.names[name]}" cannot be given with "group.protocol": "consumer": {remedy}')


def _settle_assignors(draft: Draft) -> None:
    names = [_ASSIGNORS_OF_JAVA.get(name, name) for name in draft.values["partition.assignment.strategy"]]
    known = tuple(_ASSIGNORS_OF_JAVA.values())
    for name in names:
        if name not in known:
            raise ConfigError(f'Invalid value "{name}" for "partition.assignment.strategy": expected some of '
                              f"{', '.join(known)}")
    draft.values["partition.assignment.strategy"] = tuple(names)


def _settle_heartbeats(draft: Draft) -> None:
    """A session should outlive two heartbeats that are lost."""
    values, given = draft.values, draft.given
    heartbeat_ms, session_ms = values["heartbeat.interval.ms"], values["session.timeout.ms"]
    if "heartbeat.interval.ms" not in given:
        values["heartbeat.interval.ms"] = max(min(heartbeat_ms, session_ms // _HEARTBEATS_PER_SESSION), 1)
    elif "session.timeout.ms" not in given:
        values["session.timeout.ms"] = max(session_ms, heartbeat_ms * _HEARTBEATS_PER_SESSION)
    elif heartbeat_ms >= session_ms:
        raise ConfigError(f'"heartbeat.interval.ms" ({heartbeat_ms}) must be less than "session.timeout.ms" '
                          f"({session_ms})")


def _settle_reply_size(draft: Draft) -> None:
    """A reply that is asked for must be small enough to be accepted: else the connection breaks again and again."""
    values, given = draft.values, draft.given
    wanted, accepted = values["fetch.max.bytes"] + _FETCH_HEADER_BYTES, values["receive.message.max.bytes"]
    if wanted <= accepted:
        return
    if "receive.message.max.bytes" not in given:
        values["receive.message.max.bytes"] = wanted
    elif "fetch.max.bytes" not in given:
        values["fetch.max.bytes"] = accepted - _FETCH_HEADER_BYTES
    else:
        raise ConfigError(f'"receive.message.max.bytes" ({accepted}) must be at least {_FETCH_HEADER_BYTES} more than '
                          f'"fetch.max.bytes" ({values["fetch.max.bytes"]})')


def _check_member(draft: Draft) -> None:
    if draft.values["group.instance.id"] and not draft.values["group.id"]:
        raise ConfigError('"group.instance.id" needs a "group.id"')


def _check_share_group(draft: Draft) -> None:
    if not draft.values["group.id"]:
        raise ConfigError('group.id must be set: a share consumer is a member of a group')


_RULES: dict[str, tuple[Callable[[Draft], None], ...]] = {
    PRODUCER: (_settle_creation, _settle_times, _settle_reply_time, _settle_memory, _settle_partitioner,
               _settle_compression, _settle_idempotence),
    CONSUMER: (_check_protocol, _settle_assignors, _settle_heartbeats, _settle_reply_size, _check_member),
    SHARE: (_settle_reply_size, _check_share_group),
    ADMIN: (),
}
