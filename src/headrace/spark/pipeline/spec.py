"""A pipeline file: TOML in, checked values out. What can be checked without Spark is checked here.

    [pipeline]  name, checkpoint, trigger         [spark]   Spark settings
    [kafka]     properties of the client; bootstrap.servers = "embedded" starts a broker in this process
    [[source]]  a topic read as a stream          [[table]] a topic or a file, read whole, for joins
    [[step]]    Spark SQL over earlier names      [[sink]]  a step written to a topic or to Parquet

A table is read once for the whole run; with `refresh = "10 minutes"` again after that time.

This module knows neither Spark nor Kafka. Read next: `headrace.spark.pipeline.run`, which runs a `PipelineSpec`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headrace.errors import ConfigError

__all__ = ["EMBEDDED", "Input", "PipelineSpec", "Sink", "Step", "Trigger", "load_pipeline", "parse_pipeline"]

EMBEDDED: Final = "embedded"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
_SECONDS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_TOPIC_FORMATS: Final = ("raw", "text", "json", "csv")
_FILE_FORMATS: Final = ("csv", "json", "parquet")


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a micro-batch starts: `interval` is Spark's text for a time, empty for "all there is now, then stop"."""

    interval: str = ""

    def __str__(self) -> str:
        return f"processing-time {self.interval}" if self.interval else "available-now"


@dataclass(frozen=True, slots=True)
class Input:
    """A source (read as a stream) or a table (read whole).

    Attributes:
        name: name of the view that steps see.
        topic: topic to read; empty for a file.
        file: file or directory to read; empty for a topic.
        format: "raw" (Spark's Kafka columns), "text", "json" or "csv" of a record's value; format of a file.
        schema: columns of the value as Spark DDL; "raw" and "text" have none.
        malformed: what becomes of values that do not parse: "keep" (nulls, the text in `_corrupt`), "drop" or "fail".
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
    malformed: str = "keep"
    event_time: str = ""
    watermark: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    streaming: bool = False
    refresh_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """Spark SQL over the names before it; its result is a view under `name`."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a step's rows go.

    Attributes:
        name: name of the query and of its checkpoint.
        source: the step, source or table whose rows are written.
        topic: topic to write; empty for files.
        path: directory of Parquet files; empty for a topic.
        mode: Spark's output mode: append, update or complete.
        key: SQL expression for the record's key; the column `key` when empty and there is one.
        options: options of `format("headrace")` or of the Parquet writer.
    """

    name: str
    source: str
    topic: str = ""
    path: str = ""
    mode: str = "append"
    key: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Where the rows go, for people."""
        return f"topic {self.topic}" if self.topic else f"Parquet {self.path}"


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

    @property
    def embedded(self) -> bool:
        """True when the pipeline brings its own broker."""
        return self.kafka["bootstrap.servers"] == EMBEDDED


def load_pipeline(path: Path) -> PipelineSpec:
    """Read a pipeline file.

    Raises:
        ConfigError: the file is missing, is not TOML or does not describe a pipeline.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the pipeline file {path}: {error.strerror}") from None
    return parse_pipeline(text, str(path))


def parse_pipeline(text: str, where: str = "pipeline") -> PipelineSpec:
    """Check the text of a pipeline file; `where` opens each error.

    Raises:
        ConfigError: one line that names the section, the key and the remedy.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}") from None
    try:
        return _pipeline(_Section(document, "the file"))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


class _Section:
    """One table of the file: keys are taken out, what is left over is a mistake."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.left = dict(values)
        self.where = where
        self.asked: list[str] = []

    def _take(self, key: str) -> Any:
        self.asked.append(key)
        return self.left.pop(key, None)

    def text(self, key: str, default: str | None = "", among: Iterable[str] = ()) -> str:
        """The text under a key; a missing one is an error when `default` is None."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{self.where}: {key} is missing" if value is None else
                              f"{self.where}: {key} must be text that is not empty, not {value!r}")
        allowed = tuple(among)
        if allowed and value not in allowed:
            raise ConfigError(f"{self.where}: {key} must be one of {', '.join(allowed)}, not {value!r}")
        return value.strip()

    def name(self, key: str = "name", default: str | None = None) -> str:
        value = self.text(key, default)
        if not _NAME.fullmatch(value):
            raise ConfigError(f"{self.where}: {key} must be a plain SQL name (letters, digits, _), not {value!r}")
        return value

    def table(self, key: str) -> _Section:
        value = self._take(key)
        if not isinstance(value, dict | None):
            raise ConfigError(f"{self.where}: {key} must be a table, [{key}]")
        return _Section(value or {}, f"[{key}]")

    def tables(self, key: str) -> list[_Section]:
        value = self._take(key) or []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ConfigError(f"{self.where}: {key} must be a list of tables, [[{key}]]")
        return [_Section(each, f"[[{key}]] {each.get('name') or number}") for number, each in enumerate(value, 1)]

    def flat(self, key: str) -> dict[str, str]:
        """A table of settings; dotted names may be quoted or not, values become text."""
        return dict(_flatten(self.table(key).left))

    def close(self) -> None:
        """Refuse what nobody asked for."""
        for key in self.left:
            close = difflib.get_close_matches(key, self.asked, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(self.asked)}"
            raise ConfigError(f"{self.where}: unknown key {key!r}; {hint}")


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value).lower() if isinstance(value, bool) else str(value)


def _pipeline(top: _Section) -> PipelineSpec:
    head = top.table("pipeline")
    kafka = {"bootstrap.servers": EMBEDDED, **top.flat("kafka")}
    spec = PipelineSpec(
        name=head.text("name", None),
        checkpoint=head.text("checkpoint", None),
        trigger=_trigger(head.text("trigger", "available-now")),
        kafka=kafka,
        spark=top.flat("spark"),
        inputs=(*(_source(each) for each in top.tables("source")), *(_table(each) for each in top.tables("table"))),
        steps=tuple(_step(each) for each in top.tables("step")),
        sinks=tuple(_sink(each) for each in top.tables("sink")),
    )
    head.close()
    top.close()
    _check_names(spec)
    _check_refresh(spec)
    return spec


def _trigger(text: str) -> Trigger:
    if text == "available-now":
        return Trigger()
    match = re.fullmatch(r"processing-time\s+(\d+)\s*([a-z]+)", text)
    if match is None:
        form = '"available-now" or like "processing-time 2 seconds"'
        raise ConfigError(f"[pipeline]: trigger must be {form}, not {text!r}")
    return Trigger(f"{match[1]} {_UNITS.get(match[2], match[2])}")


def _source(section: _Section) -> Input:
    found = _input(section, streaming=True)
    if bool(found.watermark) != bool(found.event_time):
        raise ConfigError(f"{section.where}: event_time and watermark go together: give both or none")
    return found


def _table(section: _Section) -> Input:
    return _input(section, streaming=False)


def _input(section: _Section, *, streaming: bool) -> Input:
    file = "" if streaming else section.text("file")
    topic = section.text("topic", None if streaming else "")
    if not streaming and bool(file) == bool(topic):
        raise ConfigError(f"{section.where}: give either topic or file")
    found = Input(
        name=section.name(),
        topic=topic,
        file=file,
        format=section.text("format", None if file else "raw", _FILE_FORMATS if file else _TOPIC_FORMATS),
        schema=section.text("schema"),
        malformed=section.text("malformed", "keep", ("keep", "drop", "fail")),
        event_time=section.text("event_time") if streaming else "",
        watermark=section.text("watermark") if streaming else "",
        options=section.flat("options"),
        streaming=streaming,
        refresh_s=0.0 if streaming else _refresh_s(section),
    )
    section.close()
    if topic and (found.format in ("json", "csv")) != bool(found.schema):
        need = "needs a schema, as Spark DDL" if not found.schema else "has no schema: use json or csv, or remove it"
        raise ConfigError(f"{section.where}: format {found.format} {need}")
    return found


def _refresh_s(section: _Section) -> float:
    text = section.text("refresh")
    match = re.fullmatch(r"(\d+)\s*([a-z]+)", text)
    unit = _UNITS.get(match[2], match[2]).removesuffix("s") if match else ""
    if match and unit in _SECONDS and int(match[1]):
        return int(match[1]) * _SECONDS[unit]
    if text:
        raise ConfigError(f'{section.where}: refresh must be a time like "30 seconds" or "10 minutes", not {text!r}')
    return 0.0


def _step(section: _Section) -> Step:
    found = Step(section.name(), section.text("sql", None))
    section.close()
    return found


def _sink(section: _Section) -> Sink:
    source = section.name("from")
    found = Sink(
        name=section.name(default=source),
        source=source,
        topic=section.text("topic"),
        path=section.text("path"),
        mode=section.text("mode", "append", ("append", "update", "complete")),
        key=section.text("key"),
        options=section.flat("options"),
    )
    section.close()
    if bool(found.topic) == bool(found.path):
        raise ConfigError(f"{section.where}: give either topic or path")
    if found.path and (found.mode != "append" or found.key):
        raise ConfigError(f"{section.where}: Parquet takes mode append and no key; a topic takes all of them")
    return found


def _check_refresh(spec: PipelineSpec) -> None:
    for table in spec.inputs:
        if table.refresh_s and not spec.trigger.interval:
            raise ConfigError(
                f'[[table]] {table.name}: refresh needs a trigger like "processing-time 10 seconds": a run that takes '
                "all there is and stops reads each table once")


def _check_names(spec: PipelineSpec) -> None:
    if not any(each.streaming for each in spec.inputs):
        raise ConfigError("there is no [[source]]")
    if not spec.sinks:
        raise ConfigError("there is no [[sink]]")
    views = [each.name for each in spec.inputs] + [each.name for each in spec.steps]
    for names, what in ((views, "sources, tables and steps"), ([each.name for each in spec.sinks], "sinks")):
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ConfigError(f"names of {what} must differ: {', '.join(sorted(twice))} stands twice")
    for sink in spec.sinks:
        if sink.source not in views:
            close = difflib.get_close_matches(sink.source, views, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(views)}"
            raise ConfigError(f"[[sink]] {sink.name}: from = {sink.source!r} names no source, table or step; {hint}")
