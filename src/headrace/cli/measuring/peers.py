"""What each client is: how it is found, and what it calls the properties that are given for all of them.

A property that a client has no name for leaves it out: settings are the same for all, or there is no comparison.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

from headrace.config import PRODUCER, PROPERTIES, Config
from headrace.errors import ConfigError

__all__ = ["CONSUMER_DEFAULTS", "DEFAULTS", "OURS", "PEERS", "secrets_hidden", "settings_of", "version_of"]

OURS = "headrace"
PEERS = ("confluent-kafka", "kafka-python", "aiokafka")
CONSUMER_DEFAULTS = {"fetch.min.bytes": "1", "fetch.wait.max.ms": "500", "max.partition.fetch.bytes": "1048576",
                     "fetch.max.bytes": "52428800"}
"""For all clients that read, unless -X says otherwise."""
DEFAULTS = {"acks": "all", "enable.idempotence": "true", "linger.ms": "20", "batch.size": "1000000"}
"""For all clients, unless -X says otherwise."""

_SAME: dict[str, str] = {
    "bootstrap.servers": "bootstrap_servers", "client.id": "client_id", "linger.ms": "linger_ms",
    "enable.idempotence": "enable_idempotence", "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms", "connections.max.idle.ms": "connections_max_idle_ms",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms", "metadata.max.age.ms": "metadata_max_age_ms",
    "message.max.bytes": "max_request_size",
    "compression.type": "compression_type", "acks": "acks", "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism", "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_KAFKA_PYTHON = _SAME | {
    "batch.size": "batch_size", "max.in.flight.requests.per.connection": "max_in_flight_requests_per_connection",
    "message.timeout.ms": "delivery_timeout_ms", "retries": "retries", "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile", "ssl.key.location": "ssl_keyfile", "ssl.key.password": "ssl_password",
}
_AIOKAFKA = _SAME | {"batch.size": "max_batch_size"}
_READING = {
    "fetch.min.bytes": "fetch_min_bytes", "fetch.wait.max.ms": "fetch_max_wait_ms", "check.crcs": "check_crcs",
    "max.partition.fetch.bytes": "max_partition_fetch_bytes", "fetch.max.bytes": "fetch_max_bytes",
    "isolation.level": "isolation_level",
}
_TLS_FILES = {"ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password"}


def version_of(client: str) -> str | None:
    """Version of an installed client, None when it is not installed."""
    if client == OURS:
        from headrace import __version__

        return __version__
    try:
        return importlib.metadata.version(client)
    except importlib.metadata.PackageNotFoundError:
        return None


def settings_of(client: str, properties: dict[str, str], role: str = PRODUCER) -> dict[str, Any]:
    """The settings of a client for given properties.

    Args:
        client: `OURS` or one of `PEERS`.
        properties: ours; those that only another role has are left out.
        role: `PRODUCER` or `CONSUMER`.

    Raises:
        ConfigError: a property is wrong, or this client has no equivalent.
    """
    given = {name: content for name, content in Config(role, properties).given.items()
             if name not in PROPERTIES or role in PROPERTIES[name].roles}
    if client in (OURS, "confluent-kafka"):
        named = {alias: row.name for row in PROPERTIES.values() for alias in (row.name, *row.aliases)}
        return {name: text for name, text in properties.items() if named.get(name, name) in given}
    convert: Callable[[dict[str, Any]], dict[str, Any]] = _kafka_python if client == "kafka-python" else _aiokafka
    return convert(given)


def _named(client: str, names: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    names = names | _READING
    missing = sorted(given.keys() - names.keys())
    if missing:
        raise ConfigError(f"{client} has nothing like {', '.join(missing)}: the settings would not be the same")
    made = {names[name]: content for name, content in given.items()}
    if made.get("acks") == -1:
        made["acks"] = "all"
    if "compression_type" in made:
        made["compression_type"] = None if made["compression_type"] == "none" else made["compression_type"]
    if "security_protocol" in made:
        made["security_protocol"] = made["security_protocol"].upper()
    made["bootstrap_servers"] = ",".join(made["bootstrap_servers"])
    return made


def _kafka_python(given: dict[str, Any]) -> dict[str, Any]:
    made = _named("kafka-python", _KAFKA_PYTHON, given)
    if "linger_ms" in made:
        made["linger_ms"] = int(made["linger_ms"])
    return made


def _aiokafka(given: dict[str, Any]) -> dict[str, Any]:
    files = {name: given.pop(name) for name in _TLS_FILES & given.keys()}
    made = _named("aiokafka", _AIOKAFKA, given)
    if "linger_ms" in made:
        made["linger_ms"] = int(made["linger_ms"])
    if files or made.get("security_protocol", "").endswith("SSL"):
        made["tls_files"] = files  # an ssl.SSLContext is made of them where it is used
    return made


def secrets_hidden(properties: dict[str, str]) -> dict[str, str]:
    """Properties as they may be shown."""
    hidden = {alias for row in PROPERTIES.values() if row.kind == "secret" for alias in (row.name, *row.aliases)}
    return {name: "[hidden]" if name in hidden else content for name, content in properties.items()}
