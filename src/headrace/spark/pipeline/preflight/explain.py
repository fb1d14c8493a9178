"""`headrace run --explain`: what would run, as lines for people; nothing is started and nobody is asked.

Read next: `headrace.spark.pipeline.preflight.dry_run`, which asks.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from headrace.spark.pipeline.declared import EXACTLY_ONCE, Input, PipelineSpec, Sink
from headrace.spark.pipeline.endpoints import Endpoints, shown

__all__ = ["explained"]

_LIMITS: Final = {"minpartitions": "at least {}", "maxrecordsperpartition": "of at most {} records each"}


def explained(endpoints: Endpoints, master: str) -> Iterator[str]:
    """The lines.

    Args:
        endpoints: options of the pipeline's reads and writes.
        master: Spark master.
    """
    spec = endpoints.spec
    yield f"pipeline {spec.name}: trigger {spec.trigger}, checkpoint {spec.checkpoint}, Spark master {master}"
    yield f"  {_restarts(spec)}"
    yield from _settings(spec.spark)
    for each in spec.inputs:
        yield f"{each.title}: {_origin(each)}, format {each.format}"
        yield from _settings(endpoints.reading(each) if each.topic else each.options)
        yield f"  tasks: {_tasks(each)}"
    for step in spec.steps:
        yield f"step {step.name}:"
        yield textwrap.indent(inspect.cleandoc(step.sql), "  ")
    for sink in spec.sinks:
        yield f"sink {sink.name}: {sink.source} into {sink.target}, format {sink.stored_as}, mode {sink.mode}"
        yield f"  guarantee: {_guarantee(endpoints, sink)}"
        for write in sink.writes:
            yield f"  topic {write.topic}: {' '.join(write.sql.split()) or 'all rows'}"
        yield from _settings(endpoints.writing(sink) if sink.topics else sink.options)
        yield f"  its own query: reads {', '.join(_sources(spec))} by itself, checkpoint {spec.checkpoint}/{sink.name}"


def _settings(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(shown(options).items()):
        yield f"  {name} = {' '.join(value.split())}"


def _restarts(spec: PipelineSpec) -> str:
    rule = spec.restart
    if not rule.attempts:
        return "a query that fails ends the run"
    return (f"a query that fails begins again up to {rule.attempts} times in a row, after a random time of at most "
            f"{rule.first_s:g} s, doubled each time up to {rule.longest_s:g} s; {rule.healthy_s:g} s without a failure "
            "begin the count anew")


def _origin(each: Input) -> str:
    if each.streaming:
        return f"topic {each.topic}, read as a stream"
    when = f"read anew after {each.refresh_s:g} s" if each.refresh_s else "read once"
    return f"topic {each.topic}, {when}" if each.topic else f"file {each.file}, {when}"


def _tasks(each: Input) -> str:
    if not each.topic:
        return "as Spark divides the file"
    options = {name.lower(): value for name, value in each.options.items()}
    limits = [text.format(options[name]) for name, text in _LIMITS.items() if name in options]
    return ", ".join(["one for each partition with records, or fewer where ranges are small", *limits])


def _guarantee(endpoints: Endpoints, sink: Sink) -> str:
    if sink.path:
        return "exactly once, by the list of files that Spark's own sink keeps"
    if sink.guarantee == EXACTLY_ONCE:
        what = "all topics" if sink.writes else "the topic"
        return f"exactly once: {what} in one transaction for each micro-batch, sink id {endpoints.sink_id(sink)}"
    return "at least once: a micro-batch that runs again writes its rows again"


def _sources(spec: PipelineSpec) -> list[str]:
    return [each.name for each in spec.inputs if each.streaming]
