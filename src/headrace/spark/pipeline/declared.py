"""What a pipeline file declares, as plain values.

This module knows neither TOML, Spark nor Kafka. Read next: `headrace.spark.pipeline.spec`, which makes these of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

__all__ = ["AT_LEAST_ONCE", "EMBEDDED", "EXACTLY_ONCE", "REGISTERED", "Input", "PipelineSpec", "RestartRule", "Sink",
           "Step", "Trigger", "Write", "key_format"]

EMBEDDED: Final = "embedded"
AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once"
REGISTERED: Final = ("avro", "protobuf", "json-schema")
"""Formats whose schema comes from a registry unless the file gives it; source and sink read and write them natively."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a micro-batch starts: `interval` is Spark's text for a time, empty for "all there is now, then stop"."""

    interval: str = ""

    def __str__(self) -> str:
        return f"processing-time {self.interval}" if self.interval else "available-now"


@dataclass(frozen=True, slots=True)
class RestartRule:
    """When a query that failed begins again: after a random time that may grow to twice the last, up to a bound.

    Attributes:
        attempts: failures in a row after which the run gives up; 0 gives up at the first.
        first_s: the longest wait before the first restart, in seconds.
        longest_s: the longest wait before any.
        healthy_s: a query that ran as long counts its failures from 0 again.
    """

    attempts: int = 5
    first_s: float = 1.0
    longest_s: float = 60.0
    healthy_s: float = 300.0


def key_format(options: Mapping[str, str]) -> str:
    """The format of keys that options of a source or sink give; "raw" where they give none."""
    return next((value.strip().lower() for name, value in options.items() if name.lower() == "key.format"), "") or "raw"


@dataclass(frozen=True, slots=True)
class Input:
    """A source (read as a stream) or a table (read whole).

    Attributes:
        name: name of the view that steps see.
        topic: topic to read; empty for a file.
        file: file or directory to read; empty for a topic.
        format: "raw" (Spark's Kafka columns), "text", "json", "csv" or one of `REGISTERED`, of a record's value; format
            of a file.
        schema: of "json" and "csv" the columns as Spark DDL; of one of `REGISTERED` its own text, or empty for the
            registry's; "raw" and "text" have none.
        schema_keys: what else says where the schema is: of `schema_file`, `subject`, `schema_version`, `message`.
        malformed: what becomes of values that do not parse: "keep" (nulls; of JSON and CSV the text in `_corrupt`),
            "drop", "fail", or, of JSON and `REGISTERED`, "dead-letter".
        dead_letters: topic for such values.
        group: consumer group whose offsets follow the query, for tools that show lag; empty for none.
        event_time: column with the time of the event.
        watermark: how late a row may come, for example "2 hours"; empty for no watermark.
        options: options of `format("headrace")` or of the file reader.
        streaming: True for a source.
        refresh_s: seconds after which a table is read anew; 0 for never.
    """

    name: str
    topic: str = ""
    file: str = ""
    format: str = "raw"
    schema: str = ""
    schema_keys: Mapping[str, str] = field(default_factory=dict)
    malformed: str = "keep"
    dead_letters: str = ""
    group: str = ""
    event_time: str = ""
    watermark: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    streaming: bool = False
    refresh_s: float = 0.0

    @property
    def title(self) -> str:
        """What errors call it."""
        return f"{'source' if self.streaming else 'table'} {self.name}"

    @property
    def is_decoded(self) -> bool:
        """Whether the read of a topic gives the value's columns: Spark parses only where the text may be wanted too."""
        return self.format in REGISTERED or (self.format == "json" and self.malformed in ("fail", "dead-letter"))


@dataclass(frozen=True, slots=True)
class Step:
    """Spark SQL over the names before it; its result is a view under `name`."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Write:
    """One of the topics of a transaction.

    Attributes:
        topic: topic to write.
        sql: Spark SQL over the rows of a micro-batch, under the name of the sink's source; empty for all of them.
        key: SQL expression for the record's key; the column `key` when empty and there is one.
    """

    topic: str
    sql: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a step's rows go: to a topic, to files, or to several topics in one transaction.

    Attributes:
        name: name of the query and of its checkpoint.
        source: the step, source or table whose rows are written.
        topic: topic to write; empty for files and transactions.
        path: directory of Parquet files; empty for topics.
        writes: topics that each micro-batch writes in one transaction; empty for others.
        group: of a transaction: consumer group whose offsets are committed with the records; empty for none.
        mode: Spark's output mode: append, update or complete.
        key: SQL expression for the record's key, which becomes text unless an option gives it a format; the column
            `key` when empty and there is one.
        format: "json", or one of `REGISTERED`; a column `value` that there is goes out as it is with "json".
        schema, schema_keys: as of `Input`; empty for the one that the rows' columns give.
        guarantee: `AT_LEAST_ONCE` or `EXACTLY_ONCE`.
        options: options of `format("headrace")` or of the Parquet writer.
    """

    name: str
    source: str
    topic: str = ""
    path: str = ""
    mode: str = "append"
    key: str = ""
    format: str = "json"
    schema: str = ""
    schema_keys: Mapping[str, str] = field(default_factory=dict)
    guarantee: str = AT_LEAST_ONCE
    writes: tuple[Write, ...] = ()
    group: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that are written; none for files."""
        return (self.topic,) if self.topic else tuple(dict.fromkeys(each.topic for each in self.writes))

    @property
    def target(self) -> str:
        """Where the rows go, for people."""
        names = self.topics
        return f"topic{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else f"Parquet {self.path}"

    @property
    def promise(self) -> str:
        """How often a row is there, for people; Spark's own sink of files has each row once."""
        return "exactly once" if self.path or self.guarantee == EXACTLY_ONCE else "at least once"

    @property
    def stored_as(self) -> str:
        """The format of what is written, for people."""
        return self.format if self.topics else "parquet"


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A whole pipeline file."""

    name: str
    checkpoint: str
    trigger: Trigger
    kafka: Mapping[str, str]
    spark: Mapping[str, str]
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    registry: Mapping[str, str] = field(default_factory=dict)
    restart: RestartRule = RestartRule()

    @property
    def embedded(self) -> bool:
        """True when the pipeline brings its own broker."""
        return self.kafka["bootstrap.servers"] == EMBEDDED

    def once(self) -> PipelineSpec:
        """The same pipeline over all there is now; a table is read once then."""
        inputs = tuple(replace(each, refresh_s=0.0) for each in self.inputs)
        return replace(self, trigger=Trigger(), inputs=inputs)
