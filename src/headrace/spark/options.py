"""The options of `format("headrace")`: Spark's text becomes checked values, or one clear line.

Names and meanings are those of Spark's own Kafka connector and their case does not matter, so a program changes by its
format name alone. Whatever starts with ``kafka.`` goes to the client without the prefix.

This module knows neither Spark nor a socket. Read next: `headrace.spark.plan`, which turns positions into ranges.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.config import CONSUMER, PRODUCER, Config
from headrace.errors import ConfigError
from headrace.spark.plan import EARLIEST, LARGEST, LATEST, Offsets, Tp, parse_offsets
from headrace.values.value_format import (
    RAW_KEY,
    RAW_VALUE,
    REGISTRY_PREFIX,
    SINK_NAMES,
    SOURCE_NAMES,
    ValueFormat,
)

__all__ = ["KNOWN_OPTIONS", "SHARED_TASK_ROWS", "Position", "Retries", "SinkOptions", "SourceOptions",
           "TopicSelection", "column_names"]

_log = logging.getLogger(__name__)

_COMMON: Final = ("includeHeaders",)
_WAYS: Final = ("subscribe", "subscribePattern", "assign")
_SOURCE: Final = (
    *_WAYS, "startingOffsets", "endingOffsets", "startingTimestamp",
    "endingTimestamp", "startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
    "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "stopFile",
    "maxRecordsPerSharedTask", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "maxOffsetsPerPartition",
    "maxBytesPerTrigger", "columns", "groupId",
)
_SINK: Final = ("topic", "delivery.guarantee", "sinkId", "exactlyOnce.claims", "exactlyOnce.claimsTopic")
_GUARANTEES: Final = ("at_least_once", "exactly_once")
_CLAIMS: Final = ("describe", "topic")
_CLAIMS_TOPIC: Final = "headrace-claims"
_IGNORED_IN_BATCH: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_STREAM_ONLY: Final = ("maxOffsetsPerPartition", "maxBytesPerTrigger", "groupId")
_BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
KNOWN_OPTIONS: Final = tuple(dict.fromkeys((*_COMMON, *_SOURCE, *_SINK, *SOURCE_NAMES, *SINK_NAMES)))
"""Names of all options but `kafka.*` and `schema.registry.*`; `headrace.spark.option_table` says what each is for."""
_PATHS: Final = ("path", "paths")
"""What Spark makes of the argument of `load()`, `save()` and `start()`."""
# Spark itself puts these among a sink's options; the second one where Declarative Pipelines write.
_FROM_SPARK: Final = ("checkpointlocation", "queryname")
_REFUSED: Final = {
    "auto.offset.reset": "use startingOffsets, which also holds when a query starts again",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "key.deserializer": "keys are read as binary; choose key.format, or cast them in Spark SQL",
    "value.deserializer": "values are read as binary; choose value.format, or cast them in Spark SQL",
    "key.serializer": "keys are written as they are; choose key.format, or cast them to string or binary",
    "value.serializer": "values are written as they are; choose value.format, or cast them to string or binary",
    "interceptor.classes": "records are read as columns, which interceptors do not see; a write has them",
}
SHARED_TASK_ROWS: Final = 50_000
"""Records that cost about as much as a task of Spark's (decision 0039)."""
_UNITS: Final = {"microsecond": 1e-6, "millisecond": 0.001, "second": 1.0, "sec": 1.0, "minute": 60.0, "min": 60.0,
                 "hour": 3600.0, "day": 86400.0}
_SECONDS: Final = {"us": 1e-6, "": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, **_UNITS,
                   **{f"{name}s": seconds for name, seconds in _UNITS.items()}}
_TIMES: Final = ". Times are milliseconds since 1970; -2 is the earliest record, -1 the end"
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """What to read: exactly one of names, a pattern, or partitions.

    Attributes:
        topics: topic names (`subscribe`).
        pattern: regular expression that is to be found in a topic's name (`subscribePattern`), anywhere as in Spark's
            connector; Python's dialect.
        assigned: single partitions (`assign`).
    """

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[Tp, ...] = ()

    @property
    def names(self) -> list[str] | None:
        """The topics to read, as far as they are known by name; None when a pattern chooses them."""
        return None if self.pattern else sorted({*self.topics, *(topic for topic, _ in self.assigned)})

    def reads(self, topic: str) -> bool:
        """Whether a topic is among those that are read."""
        return bool(re.search(self.pattern, topic)) if self.pattern else topic in (self.names or ())

    def __str__(self) -> str:
        if self.pattern:
            return f"topics that match {self.pattern!r}"
        return ", ".join(self.topics or sorted({topic for topic, _ in self.assigned}))


@dataclass(frozen=True, slots=True)
class Position:
    """Where to start or to end: one logical offset for all, a timestamp, or an offset for each partition.

    Attributes:
        logical: `EARLIEST` or `LATEST`, for every partition, when nothing else is set.
        timestamp_ms: the first record at or after it, or `EARLIEST` or `LATEST`; None when not asked for.
        offsets: one offset, `EARLIEST` or `LATEST` per partition; all partitions must be named.
        else_latest: a partition without a record at or after its time starts at its end; otherwise an error.
        timestamps: milliseconds per partition, as `timestamp_ms`; all partitions must be named.
    """

    logical: int = EARLIEST
    timestamp_ms: int | None = None
    offsets: Offsets = field(default_factory=dict)
    else_latest: bool = False
    timestamps: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retries:
    """How long brokers that do not answer are asked again.

    Attributes:
        count: how often; None for as long as there is patience.
        pause_s: seconds between two questions.
        patience_s: seconds in all, without a count.
    """

    count: int | None = None
    pause_s: float = 0.25
    patience_s: float = 120.0

    def are_over(self, failures: int, spent_s: float) -> bool:
        """Whether so many failures in so many seconds are the end."""
        return spent_s > self.patience_s if self.count is None else failures > self.count


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Everything a read needs. Row counts are records (offsets), times are seconds.

    Attributes:
        max_rows_of_partition: most records of one partition in a micro-batch.
        max_bytes: about so many bytes, as brokers store them, in a micro-batch.
        shared_task_rows: ranges share a task while it has no more records than this.
        poll_timeout_s: how long a task waits for data; brokers may restart meanwhile.
        columns: names of the columns to read; all when empty.
        group_id: group whose offsets are set for lag tools; "" for none.

    Raises:
        ConfigError: from `parse`, for an unknown option, a malformed value or a contradiction.
    """

    client: Mapping[str, str]
    subscription: TopicSelection
    starting: Position
    ending: Position
    max_rows: int | None = None
    min_rows: int | None = None
    max_delay_s: float = 900.0
    min_partitions: int | None = None
    max_rows_per_partition: int | None = None
    include_headers: bool = False
    fail_on_data_loss: bool = True
    stop_file: str = ""
    shared_task_rows: int = SHARED_TASK_ROWS
    max_rows_of_partition: int | None = None
    max_bytes: int | None = None
    poll_timeout_s: float = 120.0
    retries: Retries = Retries()
    columns: tuple[str, ...] = ()
    group_id: str = ""
    key: ValueFormat = RAW_KEY
    value: ValueFormat = RAW_VALUE
    dead_letter_topic: str = ""

    @property
    def is_limited(self) -> bool:
        """Whether a micro-batch may hold less than there is, or wait for more."""
        return any((self.max_rows, self.max_rows_of_partition, self.max_bytes, self.min_rows))

    @classmethod
    def parse(cls, given: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
        """Check the options of a batch or of a streaming read.

        Args:
            given: options by name, in any case.
            streaming: which of both it is; None where Spark does not tell yet, for the checks that both have.
        """
        options = _Options(given, (*_COMMON, *_SOURCE, *SOURCE_NAMES), "read")
        for name in () if streaming is None else _BATCH_ONLY if streaming else _STREAM_ONLY:
            if name.lower() in options.values:
                raise ConfigError(f"option {name} belongs to a {'batch' if streaming else 'streaming'} read only")
        for name in _IGNORED_IN_BATCH if streaming is False else ():
            if options.values.pop(name.lower(), None) is not None:  # Spark's connector warns and goes on
                _log.warning("option %s is for streaming reads: this batch read does without it", name)
        starting, ending = _starting(options, bool(streaming)), _ending(options)
        if streaming is False and (starting == Position(LATEST) or LATEST in starting.offsets.values()):
            raise ConfigError("startingOffsets cannot be latest (-1) in a batch read: there would be nothing to read")
        max_rows, min_rows = options.count("maxOffsetsPerTrigger"), options.count("minOffsetsPerTrigger")
        if max_rows is not None and min_rows is not None and min_rows > max_rows:
            raise ConfigError(f"option minOffsetsPerTrigger, {min_rows}, is more than maxOffsetsPerTrigger, "
                              f"{max_rows}: no micro-batch can have so many records")
        return cls(
            client=_client(options, CONSUMER),
            subscription=_subscription(options),
            starting=starting,
            ending=ending,
            max_rows=max_rows,
            min_rows=min_rows,
            max_delay_s=options.duration_s("maxTriggerDelay", 900.0),
            min_partitions=options.count("minPartitions"),
            max_rows_per_partition=options.count("maxRecordsPerPartition"),
            include_headers=options.flag("includeHeaders", False),
            fail_on_data_loss=options.flag("failOnDataLoss", True),
            stop_file=options.text("stopFile"),
            shared_task_rows=options.at_least_none("maxRecordsPerSharedTask", SHARED_TASK_ROWS),
            max_rows_of_partition=options.count("maxOffsetsPerPartition"),
            max_bytes=options.bytes("maxBytesPerTrigger"),
            poll_timeout_s=options.at_least_none("kafkaConsumer.pollTimeoutMs", 120_000) / 1000,
            retries=_retries(options),
            columns=column_names(options.text("columns")),
            group_id=options.name("groupId"),
            key=ValueFormat.parse(options.values, "key"),
            value=ValueFormat.parse(options.values, "value"),
            dead_letter_topic=_dead_letter_topic(options),
        )


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Everything a write needs: the client's properties, and the topic unless each row names its own.

    Attributes:
        client: the producer's properties; without `transactional.id`.
        topic: where all rows go; empty where a column says it.
        exactly_once: each micro-batch is one transaction, and so is a batch write.
        transactional_id: the name of the transactions, where the user gave one.
        sink_id: what names them else: one for each stream that writes.
        checkpoint: where the query's checkpoint is, as far as Spark tells.
        claims_topic: where tasks claim their work; empty for claims that ask the leaders of partitions.
    """

    client: Mapping[str, str]
    topic: str = ""
    exactly_once: bool = False
    transactional_id: str = ""
    sink_id: str = ""
    checkpoint: str = ""
    claims_topic: str = ""
    key: ValueFormat = RAW_KEY
    value: ValueFormat = RAW_VALUE

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SinkOptions:
        """Check the options of a write.

        Raises:
            ConfigError: unknown option or malformed value.
        """
        options = _Options(given, (*_COMMON, *_SINK, *SINK_NAMES), "write")
        client = dict(_client(options, PRODUCER))
        exactly_once = options.choice("delivery.guarantee", _GUARANTEES) == "exactly_once"
        _check_guarantee(options, client, exactly_once)
        return cls(
            client=client,
            topic=options.name("topic"),
            exactly_once=exactly_once,
            transactional_id=client.pop("transactional.id", ""),
            sink_id=options.name("sinkId"),
            checkpoint=options.text("checkpointLocation"),
            claims_topic=_claims_topic(options),
            key=ValueFormat.parse(options.values, "key"),
            value=ValueFormat.parse(options.values, "value"),
        )


class _Options:
    """The given options by lower-case name; every name was checked, values are converted on demand."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str], use: str) -> None:
        self.values = {name.lower(): str(value) for name, value in given.items() if value is not None}
        spelled = {name.lower(): name for name in known}
        for name in self.values:
            if name not in spelled and name not in _FROM_SPARK and not name.startswith(("kafka.", REGISTRY_PREFIX)):
                raise ConfigError(_unknown(name, spelled, use))

    def text(self, name: str) -> str:
        return self.values.get(name.lower(), "").strip()

    def given(self, name: str) -> str | None:
        """None where the option was left out: one that was given and is empty, as by a variable that is not set, is no
        other word for the default.
        """
        return self.text(name) if name.lower() in self.values else None

    def name(self, name: str) -> str:
        """A name that may be left out, and is "" then."""
        text = self.given(name)
        if text == "":
            raise ConfigError(f"option {name} is empty: give a name, or leave the option out")
        return text or ""

    def flag(self, name: str, default: bool) -> bool:
        text = self.given(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"option {name} must be true or false, not {text!r}")
        return text.lower() == "true"

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of a few words; the first where none was given."""
        text = self.given(name)
        if text is None:
            return allowed[0]
        if text.lower() not in allowed:
            raise ConfigError(f"option {name} must be {' or '.join(allowed)}, not {text!r}")
        return text.lower()

    def count(self, name: str) -> int | None:
        return self._whole(name, 1)

    def at_least_none(self, name: str, default: int) -> int:
        found = self._whole(name, 0)
        return default if found is None else found

    def natural(self, name: str) -> int | None:
        return self._whole(name, 0)

    def time_ms(self, name: str) -> int | None:
        """A time, or the beginning or end of the log in the numbers that brokers have for them."""
        text = self.text(name)
        return int(text) if text in (str(EARLIEST), str(LATEST)) else self._whole(name, 0, _TIMES)

    def _whole(self, name: str, low: int, remedy: str = "") -> int | None:
        text = self.given(name)
        if text is None:
            return None
        digits = text.removeprefix("+")  # as Java reads numbers
        if not digits.isdecimal() or int(digits) < low:
            raise ConfigError(f"option {name} must be a whole number of at least {low}, not {text!r}{remedy}")
        if int(digits) > LARGEST:
            raise ConfigError(f"option {name} can be at most {LARGEST}, not {text!r}")
        return int(digits)

    def bytes(self, name: str) -> int | None:
        text = self.given(name)
        if text is None:
            return None
        match = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", text.lower())
        if match is None or int(match[1]) < 1:
            raise ConfigError(f"option {name} must be a number of bytes like 1048576, 64m or 1g, not {text!r}")
        return int(match[1]) << _SHIFTS[match[2]]

    def duration_s(self, name: str, default: float) -> float:
        text = self.given(name)
        if text is None:
            return default
        match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
        if match is None or match[2] not in _SECONDS:
            raise ConfigError(f"option {name} must be a time like 500ms, 30s, 15m or 1 hour, not {text!r}")
        return int(match[1]) * _SECONDS[match[2]]


def _unknown(name: str, spelled: Mapping[str, str], use: str) -> str:
    if name in _PATHS:
        if use == "read":
            return "load() takes no path: name topics by option subscribe"
        return "save() and start() take no path: name the topic by option topic"
    close = difflib.get_close_matches(name, [*spelled, "kafka." + name], n=1, cutoff=0.7)
    if close and close[0] in spelled:
        return f"unknown option {name!r}. Did you mean {spelled[close[0]]!r}?"
    if "." in name:
        return f"unknown option {name!r}. Properties of the Kafka client need the prefix: 'kafka.{name}'"
    return f"unknown option {name!r}. Options of a {use}: {', '.join(spelled.values())}, and kafka.*"


def _client(options: _Options, role: str) -> Mapping[str, str]:
    client = {name[6:]: value for name, value in options.values.items() if name.startswith("kafka.")}
    for name, why in _REFUSED.items():
        if name in client and not (name == "interceptor.classes" and role == PRODUCER):
            raise ConfigError(f"option kafka.{name} is not supported: {why}")
    if "bootstrap.servers" not in client:
        of_table = "" if options.values else (
            ". Spark gives a source no options of a table: give them with each query, SELECT * FROM t WITH (...)")
        raise ConfigError(f"option kafka.bootstrap.servers is missing: give at least one broker as host:port{of_table}")
    Config(role, client)
    return client


def _check_guarantee(options: _Options, client: Mapping[str, str], exactly_once: bool) -> None:
    """Refuse what contradicts the guarantee, or what only it would make use of."""
    if not exactly_once:
        if "transactional.id" in client:
            raise ConfigError("option kafka.transactional.id needs delivery.guarantee=exactly_once: without it each "
                              "task would end the transactions of the others")
        for name in ("sinkId", "exactlyOnce.claims", "exactlyOnce.claimsTopic"):
            if options.text(name):
                raise ConfigError(f"option {name} needs delivery.guarantee=exactly_once")
        return
    if client.get("enable.idempotence", "true").strip().lower() in ("false", "0"):
        raise ConfigError("option kafka.enable.idempotence cannot be false with delivery.guarantee=exactly_once")
    for name in ("acks", "request.required.acks"):
        if client.get(name, "all").strip().lower() not in ("all", "-1"):
            raise ConfigError(f"option kafka.{name} must be all with delivery.guarantee=exactly_once")


def _claims_topic(options: _Options) -> str:
    topic = options.name("exactlyOnce.claimsTopic")
    if options.choice("exactlyOnce.claims", _CLAIMS) == "topic":
        if topic and topic == options.text("topic"):
            raise ConfigError(f"option exactlyOnce.claimsTopic is {topic}, which the rows are written to: name another")
        return topic or _CLAIMS_TOPIC
    if topic:
        raise ConfigError("option exactlyOnce.claimsTopic needs exactlyOnce.claims=topic")
    return ""


def _subscription(options: _Options) -> TopicSelection:
    ways = [name for name in _WAYS if options.text(name)]
    if len(ways) != 1:
        empty = [name for name in _WAYS if name.lower() in options.values]
        found = f"not {' and '.join(ways)}" if ways else f"{empty[0]} is empty" if empty else "none was given"
        raise ConfigError(f"give exactly one of {_WAYS[0]}, {_WAYS[1]} and {_WAYS[2]}; {found}")
    text = options.text(ways[0])
    if ways[0] == "subscribe":
        topics = column_names(text)
        if not topics:
            raise ConfigError(f"option subscribe names no topic: {text!r}")
        return TopicSelection(topics=topics)
    if ways[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"option subscribePattern is not a regular expression: {error} in {text!r}") from None
        return TopicSelection(pattern=text)
    return TopicSelection(assigned=_assigned(text))


def _dead_letter_topic(options: _Options) -> str:
    topic = options.text("deadLetterTopic")
    asked = [f"{side}.malformed" for side in ("value", "key") if options.text(f"{side}.malformed") == "dead-letter"]
    if asked and not topic:
        raise ConfigError(f"option {asked[0]} is dead-letter: name the topic by option deadLetterTopic")
    if topic and not asked:
        raise ConfigError("option deadLetterTopic has no use without value.malformed or key.malformed dead-letter")
    if topic and _subscription(options).reads(topic):
        raise ConfigError(f"the dead-letter topic {topic} is among the topics that are read")
    return topic


def _assigned(text: str) -> tuple[Tp, ...]:
    expected = 'option assign must look like {"topic": [0, 1]}'
    try:
        parsed: Any = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{expected}: {error}") from None
    if not isinstance(parsed, dict) or not all(isinstance(value, list) for value in parsed.values()):
        raise ConfigError(f"{expected}, not {text!r}")
    tps = [(topic, p) for topic, partitions in parsed.items() for p in partitions]
    if not tps or not all(type(p) is int and p >= 0 for _, p in tps):
        raise ConfigError(f"{expected}, not {text!r}")
    return tuple(dict.fromkeys(tps))


def _starting(options: _Options, streaming: bool) -> Position:
    strategy = options.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    timestamp_ms = options.time_ms("startingTimestamp")
    if timestamp_ms is not None:
        return Position(timestamp_ms=timestamp_ms, else_latest=strategy == "latest")
    timestamps = _timestamps(options, "startingOffsetsByTimestamp")
    if timestamps:
        return Position(timestamps=timestamps, else_latest=strategy == "latest")
    return _position(options, "startingOffsets", LATEST if streaming else EARLIEST)


def _ending(options: _Options) -> Position:
    timestamp_ms = options.time_ms("endingTimestamp")
    if timestamp_ms is not None:
        return Position(timestamp_ms=timestamp_ms, else_latest=True)
    timestamps = _timestamps(options, "endingOffsetsByTimestamp")
    if timestamps:
        return Position(timestamps=timestamps, else_latest=True)
    ending = _position(options, "endingOffsets", LATEST)
    if EARLIEST in ending.offsets.values() or (ending.logical == EARLIEST and not ending.offsets):
        raise ConfigError("option endingOffsets cannot be earliest (-2): there would be nothing to read")
    return ending


def _timestamps(options: _Options, name: str) -> Offsets:
    text = options.given(name)
    return {} if text is None else _named(text, name)


def _named(text: str, name: str) -> Offsets:
    """What an option says of partitions. One that names none is a mistake: it would mean the default in silence."""
    found = parse_offsets(text, f"option {name}", low=EARLIEST)
    if not found:
        raise ConfigError(f"option {name} names no partition: {text!r}. Name every partition, or leave the option out")
    return found


def _retries(options: _Options) -> Retries:
    usual = Retries()
    count = options.natural("fetchOffset.numRetries")
    pause_ms = options.at_least_none("fetchOffset.retryIntervalMs", int(usual.pause_s * 1000))
    return Retries(count, pause_ms / 1000)


def column_names(text: str) -> tuple[str, ...]:
    """The names in a list with commas, each once."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def _position(options: _Options, name: str, default: int) -> Position:
    text = options.given(name)
    if text is None:
        return Position(default)
    if text.lower() in ("earliest", "latest"):
        return Position({"earliest": EARLIEST, "latest": LATEST}[text.lower()])
    if not text.startswith("{"):
        raise ConfigError(f'option {name} must be earliest, latest or JSON like {{"topic": {{"0": 42}}}}, not {text!r}')
    return Position(offsets=_named(text, name))
