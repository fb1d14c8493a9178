"""What can be set on a topic: each setting's type, default and range, and what is wrong with a given value.

The settings and their ranges are Kafka's. A row says which of them the broker acts on; the others are kept and shown,
so that programs which set them go on.

Read next: `broker.apis.configs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

__all__ = ["BOOLEAN", "INT", "LIST", "STRING", "TOPIC_CONFIGS", "ConfigRow", "default_configs", "invalid_config"]

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST = 1, 2, 3, 4, 5, 6, 7
"""Types of configuration values, as DescribeConfigs names them."""
_HIGHEST = {INT: (1 << 31) - 1, SHORT: (1 << 15) - 1, LONG: (1 << 63) - 1}
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_THROTTLED = re.compile(r"\*|\d+:\d+(,\d+:\d+)*")


class ConfigRow(NamedTuple):
    """One setting of a topic, or of a group.

    Attributes:
        type: one of the type numbers of DescribeConfigs.
        default: value as text.
        of_broker: the broker's setting that gives the default, as Kafka names it; empty where there is none.
        choices: allowed values, or those of each part of a list; empty for any.
        lowest: smallest allowed number; None for no limit.
        highest: largest one, where that is not the type's.
        about: meaning; says when this broker keeps the value without acting on it.
    """

    type: int
    default: str
    of_broker: str = ""
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    about: str = "Kept and shown; this broker does not act on it."

    def wrong(self, value: str) -> str | None:
        """What is wrong with a value, in a few words; None when nothing is."""
        return _wrong(self, value)


_FOREVER = "9223372036854775807"
_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")

TOPIC_CONFIGS: dict[str, ConfigRow] = {
    "cleanup.policy": ConfigRow(LIST, "delete", "log.cleanup.policy", ("delete", "compact"),
                                about="With `compact`, records without a key are refused; with it alone, none are "
                                      "deleted by offset. Nothing is compacted."),
    "compression.gzip.level": ConfigRow(INT, "-1", "compression.gzip.level", ("-1", *"123456789")),
    "compression.lz4.level": ConfigRow(INT, "9", "compression.lz4.level", lowest=1, highest=17),
    "compression.type": ConfigRow(STRING, "producer", "compression.type",
                                  ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
                                  about="With `zstd`, readers before Fetch version 10 are refused. Batches are stored "
                                        "as producers compress them."),
    "compression.zstd.level": ConfigRow(INT, "3", "compression.zstd.level", lowest=-131072, highest=22),
    "delete.retention.ms": ConfigRow(LONG, "86400000", "log.cleaner.delete.retention.ms", lowest=0),
    "errors.deadletterqueue.group.enable": ConfigRow(BOOLEAN, "false"),
    "file.delete.delay.ms": ConfigRow(LONG, "60000", "log.segment.delete.delay.ms", lowest=0),
    "flush.messages": ConfigRow(LONG, _FOREVER, "log.flush.interval.messages", lowest=1),
    "flush.ms": ConfigRow(LONG, _FOREVER, lowest=0),
    "follower.replication.throttled.replicas": ConfigRow(LIST, ""),
    "index.interval.bytes": ConfigRow(INT, "4096", "log.index.interval.bytes", lowest=0),
    "leader.replication.throttled.replicas": ConfigRow(LIST, ""),
    "local.retention.bytes": ConfigRow(LONG, "-2", "log.local.retention.bytes", lowest=-2),
    "local.retention.ms": ConfigRow(LONG, "-2", "log.local.retention.ms", lowest=-2),
    "max.compaction.lag.ms": ConfigRow(LONG, _FOREVER, "log.cleaner.max.compaction.lag.ms", lowest=1),
    "max.decompressed.message.bytes": ConfigRow(INT, "2147483639", "max.decompressed.message.bytes", lowest=1,
                                                highest=2147483639),
    "max.message.bytes": ConfigRow(INT, "1048588", "message.max.bytes", lowest=0,
                                   about="Largest record batch that is accepted, in bytes."),
    "message.timestamp.after.max.ms": ConfigRow(LONG, "3600000", "log.message.timestamp.after.max.ms", lowest=0),
    "message.timestamp.before.max.ms": ConfigRow(LONG, _FOREVER, "log.message.timestamp.before.max.ms", lowest=0),
    "message.timestamp.type": ConfigRow(STRING, "CreateTime", "log.message.timestamp.type",
                                        ("CreateTime", "LogAppendTime"), about="Whose clock stamps the records."),
    "min.cleanable.dirty.ratio": ConfigRow(DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", lowest=0, highest=1),
    "min.compaction.lag.ms": ConfigRow(LONG, "0", "log.cleaner.min.compaction.lag.ms", lowest=0),
    "min.insync.replicas": ConfigRow(INT, "1", "min.insync.replicas", lowest=1,
                                     about="With fewer nodes up, `acks=all` is refused."),
    "preallocate": ConfigRow(BOOLEAN, "false", "log.preallocate"),
    "remote.copy.lag.bytes": ConfigRow(LONG, "-1", "log.remote.copy.lag.bytes", lowest=-1),
    "remote.copy.lag.ms": ConfigRow(LONG, "0", "log.remote.copy.lag.ms", lowest=-1),
    "remote.log.copy.disable": ConfigRow(BOOLEAN, "false"),
    "remote.log.delete.on.disable": ConfigRow(BOOLEAN, "false"),
    "remote.storage.enable": ConfigRow(BOOLEAN, "false", choices=("false",), about="There is no remote storage."),
    "retention.bytes": ConfigRow(LONG, "-1", "log.retention.bytes"),
    "retention.ms": ConfigRow(LONG, "604800000", lowest=-1),
    "segment.bytes": ConfigRow(INT, "1073741824", "log.segment.bytes", lowest=14),
    "segment.index.bytes": ConfigRow(INT, "10485760", "log.index.size.max.bytes", lowest=4),
    "segment.jitter.ms": ConfigRow(LONG, "0", lowest=0),
    "segment.ms": ConfigRow(LONG, "604800000", lowest=1),
    "unclean.leader.election.enable": ConfigRow(BOOLEAN, "false", "unclean.leader.election.enable"),
}


def default_configs() -> dict[str, str]:
    """Every topic setting with its default value."""
    return {name: row.default for name, row in TOPIC_CONFIGS.items()}


def invalid_config(configs: Mapping[str, str | None] | Iterable[tuple[str, str | None]]) -> str | None:
    """What is wrong with the settings given for a topic, in one line; None when nothing is."""
    given = dict(configs)
    for name, value in given.items():
        row = TOPIC_CONFIGS.get(name)
        if row is None:
            return f"Topics have no setting {name!r}"
        if value is not None and (wrong := row.wrong(value.strip())):
            return f"{name} cannot be {value!r}: {wrong}"
    least, most = (int(given.get(name) or TOPIC_CONFIGS[name].default) for name in _LAGS)
    return f"{_LAGS[0]} ({least}) is more than {_LAGS[1]} ({most})" if least > most else None


def _wrong(row: ConfigRow, value: str) -> str | None:
    if row.type == BOOLEAN:
        allowed = row.choices or ("true", "false")
        return None if value.lower() in allowed else f"must be {' or '.join(allowed)}"
    if row.type == LIST:
        parts = [part.strip() for part in value.split(",")] if value else []
        if not row.choices:
            return None if not value or _THROTTLED.fullmatch(value) else "must be * or PARTITION:NODE,..."
        return None if set(parts) <= set(row.choices) else f"must be a list out of {', '.join(row.choices)}"
    if row.type == STRING or row.choices:
        return None if not row.choices or value in row.choices else f"must be one of {', '.join(row.choices)}"
    return _wrong_number(row, value)


def _wrong_number(row: ConfigRow, value: str) -> str | None:
    low = row.lowest if row.lowest is not None else -_HIGHEST.get(row.type, 0) - 1
    high = row.highest if row.highest is not None else _HIGHEST[row.type]
    try:
        number = float(value) if row.type == DOUBLE else int(value) if _WHOLE_NUMBER.fullmatch(value) else None
    except ValueError:
        number = None
    return None if number is not None and low <= number <= high else f"must be a number from {low} to {high}"
