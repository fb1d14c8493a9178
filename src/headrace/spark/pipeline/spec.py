"""A pipeline file: TOML in, checked values out. What can be checked without Spark is checked here.

    [pipeline]  name, checkpoint, trigger, guarantee    [spark]   Spark settings
    [kafka]     properties of the client; bootstrap.servers = "embedded" starts a broker in this process
    [registry]  properties of the registry's client; url = "embedded" starts one beside the embedded broker
    [restart]   how often and when a query that failed begins again
    [[source]]  a topic read as a stream          [[table]] a topic or a file, read whole, for joins
    [[step]]    Spark SQL over earlier names      [[sink]]  a step written to a topic or to Parquet
    [[transaction]] a step written to several topics, each [[transaction.write]], all of a micro-batch or nothing

A table is read once for the whole run; with `refresh = "10 minutes"` again after that time.

This module knows neither Spark nor Kafka. Read next: `headrace.spark.pipeline.endpoints`, which makes options of it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Final

from headrace.errors import ConfigError
from headrace.spark.pipeline.declared import (
    AT_LEAST_ONCE,
    EMBEDDED,
    EXACTLY_ONCE,
    REGISTERED,
    Input,
    PipelineSpec,
    RestartRule,
    Sink,
    Step,
    Trigger,
    Write,
)
from headrace.spark.pipeline.section import Section, duration

__all__ = ["EMBEDDED", "Input", "PipelineSpec", "Sink", "Step", "Trigger", "load_pipeline", "parse_pipeline"]

_TOPIC_FORMATS: Final = ("raw", "text", "json", "csv", *REGISTERED)
_SINK_FORMATS: Final = ("json", *REGISTERED)
_SCHEMA_KEYS: Final = ("schema_file", "subject", "schema_version", "message")
_GUARANTEES: Final = (AT_LEAST_ONCE, EXACTLY_ONCE)
_FILE_FORMATS: Final = ("csv", "json", "parquet")


def load_pipeline(path: Path) -> PipelineSpec:
    """Read a pipeline file.

    Raises:
        ConfigError: the file is missing, is not TOML or does not describe a pipeline.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors open a file with a mark
    except OSError as error:
        raise ConfigError(f"cannot read the pipeline file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"the pipeline file {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
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
        return _pipeline(Section(document, "the file"))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _pipeline(top: Section) -> PipelineSpec:
    head = top.table("pipeline")
    kafka = {"bootstrap.servers": EMBEDDED, **top.flat("kafka")}
    guarantee = head.text("guarantee", AT_LEAST_ONCE, _GUARANTEES)
    spec = PipelineSpec(
        name=head.text("name", None),
        checkpoint=head.text("checkpoint", None),
        trigger=_trigger(head.text("trigger", "available-now")),
        kafka=kafka,
        spark=top.flat("spark"),
        inputs=(*(_source(each) for each in top.tables("source")), *(_table(each) for each in top.tables("table"))),
        steps=tuple(_step(each) for each in top.tables("step")),
        sinks=(*(_sink(each, guarantee) for each in top.tables("sink")),
               *(_transaction(each) for each in top.tables("transaction"))),
        registry=top.flat("registry"),
        restart=_restart(top.table("restart")),
    )
    head.close()
    top.close()
    _check_names(spec)
    _check_refresh(spec)
    _check_registry(spec)
    return spec


def _trigger(text: str) -> Trigger:
    if text == "available-now":
        return Trigger()
    match = re.fullmatch(r"processing-time\s+(.+)", text)
    found = duration(match[1]) if match else None
    if found is None:
        form = '"available-now" or like "processing-time 2 seconds"'
        raise ConfigError(f"[pipeline]: trigger must be {form}, not {text!r}")
    return Trigger(f"{found[0]} {found[1]}")


def _restart(section: Section) -> RestartRule:
    usual = RestartRule()
    found = RestartRule(section.count("attempts", usual.attempts), section.seconds("first", usual.first_s),
                        section.seconds("longest", usual.longest_s), section.seconds("healthy", usual.healthy_s))
    section.close()
    return found


def _source(section: Section) -> Input:
    found = _input(section, streaming=True)
    if bool(found.watermark) != bool(found.event_time):
        raise ConfigError(f"{section.where}: event_time and watermark go together: give both or none")
    return found


def _table(section: Section) -> Input:
    return _input(section, streaming=False)


def _input(section: Section, *, streaming: bool) -> Input:
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
        schema_keys={} if file else _schema_keys(section),
        malformed=section.text("malformed", "keep", ("keep", "drop", "fail", "dead-letter")),
        dead_letters="" if file else section.text("dead_letters"),
        group=section.text("group") if streaming else "",
        event_time=section.text("event_time") if streaming else "",
        watermark=section.text("watermark") if streaming else "",
        options=section.flat("options"),
        streaming=streaming,
        refresh_s=0.0 if streaming else section.seconds("refresh", 0.0),
    )
    section.close()
    if topic:
        _check_values(section.where, found)
    return found


def _schema_keys(section: Section) -> dict[str, str]:
    return {key: section.word(key) for key in _SCHEMA_KEYS if section.has(key)}


def _check_values(where: str, found: Input) -> None:
    native = found.format in REGISTERED
    if not native and (found.format in ("json", "csv")) != bool(found.schema):
        need = "needs a schema, as Spark DDL" if not found.schema else "has no schema: use json or csv, or remove it"
        raise ConfigError(f"{where}: format {found.format} {need}")
    if found.schema_keys and not native:
        raise ConfigError(f"{where}: {next(iter(found.schema_keys))} belongs to formats {', '.join(REGISTERED)}")
    if found.schema and "schema_file" in found.schema_keys:
        raise ConfigError(f"{where}: give either schema or schema_file")
    if (found.malformed == "dead-letter") != bool(found.dead_letters):
        raise ConfigError(f'{where}: malformed = "dead-letter" and dead_letters go together: give both or none')
    if found.dead_letters and not found.is_decoded:
        raise ConfigError(f"{where}: dead letters are of formats json, {', '.join(REGISTERED)}, not {found.format}")


def _step(section: Section) -> Step:
    found = Step(section.name(), section.text("sql", None))
    section.close()
    return found


def _sink(section: Section, guarantee: str) -> Sink:
    source = section.name("from")
    given = section.has("guarantee")
    found = Sink(
        name=section.name(default=source),
        source=source,
        topic=section.text("topic"),
        path=section.text("path"),
        mode=section.text("mode", "append", ("append", "update", "complete")),
        key=section.text("key"),
        format=section.text("format", "json", _SINK_FORMATS),
        schema=section.text("schema"),
        schema_keys=_schema_keys(section),
        guarantee=section.text("guarantee", guarantee, _GUARANTEES),
        options=section.flat("options"),
    )
    section.close()
    if bool(found.topic) == bool(found.path):
        raise ConfigError(f"{section.where}: give either topic or path")
    if found.path and (found.mode != "append" or found.key):
        raise ConfigError(f"{section.where}: Parquet takes mode append and no key; a topic takes all of them")
    _check_written(section.where, found)
    if found.path and given:
        raise ConfigError(f"{section.where}: guarantee is of topics; files have each row once")
    return replace(found, guarantee=AT_LEAST_ONCE) if found.path else found


def _transaction(section: Section) -> Sink:
    source = section.name("from")
    found = Sink(
        name=section.name(default=source),
        source=source,
        format=section.text("format", "json", _SINK_FORMATS),
        schema=section.text("schema"),
        schema_keys=_schema_keys(section),
        guarantee=EXACTLY_ONCE,
        writes=tuple(_write(each) for each in section.tables("write")),
        group=section.text("group"),
        options=section.flat("options"),
    )
    section.close()
    if not found.writes:
        raise ConfigError(f"{section.where}: there is no [[transaction.write]]")
    _check_written(section.where, found)
    return found


def _write(section: Section) -> Write:
    found = Write(section.text("topic", None), section.text("sql"), section.text("key"))
    section.close()
    return found


def _check_written(where: str, sink: Sink) -> None:
    keys = [key for key in ("format", "schema") if getattr(sink, key) not in ("", "json")] + [*sink.schema_keys]
    if keys and sink.path:
        raise ConfigError(f"{where}: {keys[0]} is of topics; files are Parquet")
    if (sink.schema or sink.schema_keys) and sink.format not in REGISTERED:
        raise ConfigError(f"{where}: {keys[0]} belongs to formats {', '.join(REGISTERED)}")
    if sink.topic and sink.guarantee == EXACTLY_ONCE and sink.mode == "update":
        raise ConfigError(f"{where}: exactly_once takes mode append or complete; update is at_least_once")


def _check_registry(spec: PipelineSpec) -> None:
    url = spec.registry.get("url", "")
    if url == EMBEDDED and not spec.embedded:
        raise ConfigError('[registry]: url = "embedded" needs [kafka] bootstrap.servers = "embedded"')
    if spec.registry and not url:
        raise ConfigError("[registry]: url is missing")
    endpoints: list[Input | Sink] = [*spec.inputs, *spec.sinks]
    for each in endpoints:
        if each.format in REGISTERED and not (url or each.schema or "schema_file" in each.schema_keys):
            raise ConfigError(f"{each.name}: format {each.format} needs a [registry] with a url, or a schema")


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
        raise ConfigError("there is no [[sink]] and no [[transaction]]")
    views = [each.name for each in spec.inputs] + [each.name for each in spec.steps]
    for names, what in ((views, "sources, tables and steps"), ([each.name for each in spec.sinks], "sinks")):
        folded = [name.lower() for name in names]  # as Spark knows views: the later one would take the other's place
        twice = sorted({name for name in names if folded.count(name.lower()) > 1})
        if twice:
            raise ConfigError(f"names of {what} must differ{', not in case alone' if len(twice) > 1 else ''}: "
                              f"{', '.join(twice)} {'stand' if len(twice) > 1 else 'stands'} twice")
    for sink in spec.sinks:
        if sink.source not in views:
            close = difflib.get_close_matches(sink.source, views, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(views)}"
            kind = "[[transaction]]" if sink.writes else "[[sink]]"
            raise ConfigError(f"{kind} {sink.name}: from = {sink.source!r} names no source, table or step; {hint}")
