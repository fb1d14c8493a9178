"""What can be configured: of a topic, through the admin API, and of the broker, when it is started.

A row says which setting the broker acts on; the others are kept and shown, so that programs which set them go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["TOPIC_CONFIGS", "BrokerSettings", "ConfigRow", "default_configs", "invalid_config"]

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST = 1, 2, 3, 4, 5, 6, 7
"""Types of configuration values, as DescribeConfigs names them."""


class ConfigRow(NamedTuple):
    """One topic setting.

    Attributes:
        type: one of the type numbers of DescribeConfigs.
        default: value as text.
        about: meaning; says when this broker keeps the value without acting on it.
        choices: allowed values of a text; empty for any.
        lowest: smallest allowed number.
    """

    type: int
    default: str
    about: str
    choices: tuple[str, ...] = ()
    lowest: int = -1


_KEPT = "Kept and shown; this broker does not act on it."

TOPIC_CONFIGS: dict[str, ConfigRow] = {
    "cleanup.policy": ConfigRow(LIST, "delete", _KEPT, ("delete", "compact", "compact,delete", "delete,compact")),
    "compression.type": ConfigRow(STRING, "producer", _KEPT,
                                  ("producer", "uncompressed", "none", "gzip", "snappy", "lz4", "zstd")),
    "delete.retention.ms": ConfigRow(LONG, "86400000", _KEPT, lowest=0),
    "file.delete.delay.ms": ConfigRow(LONG, "60000", _KEPT, lowest=0),
    "flush.messages": ConfigRow(LONG, "9223372036854775807", _KEPT, lowest=1),
    "flush.ms": ConfigRow(LONG, "9223372036854775807", _KEPT, lowest=0),
    "index.interval.bytes": ConfigRow(INT, "4096", _KEPT, lowest=0),
    "max.compaction.lag.ms": ConfigRow(LONG, "9223372036854775807", _KEPT, lowest=1),
    "max.message.bytes": ConfigRow(INT, "1048588", "Largest record batch that is accepted, in bytes.", lowest=0),
    "message.timestamp.after.max.ms": ConfigRow(LONG, "3600000", _KEPT, lowest=0),
    "message.timestamp.before.max.ms": ConfigRow(LONG, "9223372036854775807", _KEPT, lowest=0),
    "message.timestamp.type": ConfigRow(STRING, "CreateTime", "Whose clock stamps the records.",
                                        ("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": ConfigRow(DOUBLE, "0.5", _KEPT, lowest=0),
    "min.compaction.lag.ms": ConfigRow(LONG, "0", _KEPT, lowest=0),
    "min.insync.replicas": ConfigRow(INT, "1", _KEPT, lowest=1),
    "preallocate": ConfigRow(BOOLEAN, "false", _KEPT, ("true", "false")),
    "retention.bytes": ConfigRow(LONG, "-1", _KEPT),
    "retention.ms": ConfigRow(LONG, "604800000", _KEPT),
    "segment.bytes": ConfigRow(INT, "1073741824", _KEPT, lowest=1 << 10),
    "segment.index.bytes": ConfigRow(INT, "10485760", _KEPT, lowest=4),
    "segment.jitter.ms": ConfigRow(LONG, "0", _KEPT, lowest=0),
    "segment.ms": ConfigRow(LONG, "604800000", _KEPT, lowest=1),
    "unclean.leader.election.enable": ConfigRow(BOOLEAN, "false", _KEPT, ("true", "false")),
}


def default_configs() -> dict[str, str]:
    """Every topic setting with its default value."""
    return {name: row.default for name, row in TOPIC_CONFIGS.items()}


def invalid_config(configs: Mapping[str, str | None] | Iterable[tuple[str, str | None]]) -> str | None:
    """What is wrong with the settings given for a topic, in one line; None when nothing is."""
    for name, value in dict(configs).items():
        row = TOPIC_CONFIGS.get(name)
        if row is None:
            return f"Unknown topic config name: {name}"
        if value is None:
            continue
        if row.choices and value.replace(" ", "") not in row.choices:
            return f"Invalid value {value} for configuration {name}: must be one of {', '.join(row.choices)}"
        if row.type in (INT, SHORT, LONG, DOUBLE) and not _is_number(value, row):
            return f"Invalid value {value} for configuration {name}: must be a number of at least {row.lowest}"
    return None


def _is_number(text: str, row: ConfigRow) -> bool:
    try:
        return (float(text) if row.type == DOUBLE else int(text)) >= row.lowest
    except ValueError:
        return False


@dataclass(slots=True, kw_only=True)
class BrokerSettings:
    """How a broker behaves; the names are Kafka's, with their units.

    Attributes:
        auto_create_topics: make a topic when it is first asked for by name.
        default_partitions: partitions of a topic that does not say how many.
        default_replication_factor: replicas of one that does not say; None is all nodes, three at most.
        max_request_bytes: largest request that is read (`socket.request.max.bytes`).
        initial_rebalance_delay_ms: how long an empty group waits for more members before its first generation.
        min_session_timeout_ms: shortest group session that is allowed.
        max_session_timeout_ms: longest one.
    """

    auto_create_topics: bool = True
    default_partitions: int = 1
    default_replication_factor: int | None = None
    max_request_bytes: int = 100 << 20
    initial_rebalance_delay_ms: int = 0
    min_session_timeout_ms: int = 100
    max_session_timeout_ms: int = 1_800_000
