"""What each source, table and sink of a pipeline asks of `format("headrace")`: its options, checked and shown.

Brokers and registry are those of the file until an embedded one has its address. This module knows neither Spark nor a
socket. Read next: `headrace.spark.pipeline.run`, which hands the options to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headrace.config import is_secret
from headrace.errors import ConfigError
from headrace.spark.options import SinkOptions, SourceOptions
from headrace.spark.pipeline.declared import (
    AT_LEAST_ONCE,
    EMBEDDED,
    REGISTERED,
    Input,
    PipelineSpec,
    Sink,
    key_format,
)

__all__ = ["HIDDEN", "Endpoints", "shown"]

HIDDEN: Final = "[hidden]"
_KAFKA: Final = "kafka."
_REGISTRY: Final = "schema.registry."
_MALFORMED: Final = {"keep": "null", "drop": "null", "fail": "fail", "dead-letter": "dead-letter"}
_SCHEMA_OPTIONS: Final = {"subject": "value.subject", "schema_version": "value.schema.version",
                          "message": "value.message"}
_SOMEWHERE: Final = "localhost:9092"
"""Stands for an embedded broker that does not run yet."""


class Endpoints:
    """The options of every read and write of a pipeline.

    Args:
        spec: the checked file.
        directory: where relative paths of the file start.
        bootstrap: brokers as host:port instead of the file's; empty for the file's.
        registry: URL of a Schema Registry instead of the file's; empty for the file's.

    Attributes:
        kafka: properties of the client; the bootstrap servers of an embedded broker come when it runs.
        registry: properties of the registry's client, without a prefix; empty without a registry.
    """

    def __init__(self, spec: PipelineSpec, directory: Path, *, bootstrap: str = "", registry: str = "") -> None:
        self.spec = spec
        self.directory = directory
        self.kafka = dict(spec.kafka)
        self.registry = dict(spec.registry)
        if bootstrap:
            self.kafka["bootstrap.servers"] = bootstrap
        if registry:
            self.registry["url"] = registry
        if self.registry.get("url") == EMBEDDED and not self.embedded:
            raise ConfigError('[registry]: url = "embedded" is beside the embedded broker only: '
                              "name the registry of the brokers that you gave")

    @property
    def embedded(self) -> bool:
        """True when a broker in this process is asked for and does not run yet."""
        return self.kafka["bootstrap.servers"] == EMBEDDED

    def reading(self, each: Input) -> dict[str, str]:
        """Options of the read of a topic."""
        options = {"startingOffsets": "earliest", **self._clients(each), "subscribe": each.topic}
        if each.is_decoded:
            options |= {**self._schema(each), "value.malformed": _MALFORMED[each.malformed]}
        if each.dead_letters:
            options["deadLetterTopic"] = each.dead_letters
        if each.group:
            options["groupId"] = each.group
        return {**options, **each.options}

    def writing(self, sink: Sink) -> dict[str, str]:
        """Options of the write of a topic, or of a transaction's writes."""
        options = {**self._clients(sink), "topic": sink.topic}
        if sink.format in REGISTERED:
            options |= self._schema(sink)
        if sink.guarantee != AT_LEAST_ONCE:
            options |= {"delivery.guarantee": sink.guarantee, "sinkId": self.sink_id(sink)}
        if sink.writes:
            del options["topic"]  # each write has its own
        if sink.group:
            options["groupId"] = sink.group
        return {**options, **sink.options}

    def sink_id(self, sink: Sink) -> str:
        """The name by which brokers know the sink's transactions, whichever process runs the pipeline."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{self.spec.name}-{sink.name}")

    def _clients(self, each: Input | Sink) -> dict[str, str]:
        options = {_KAFKA + name: value for name, value in self.kafka.items()}
        if each.format in REGISTERED or key_format(each.options) in REGISTERED:
            options |= {_REGISTRY + name: value for name, value in self.registry.items()}
        return options

    def _schema(self, each: Input | Sink) -> dict[str, str]:
        options = {"value.format": each.format}
        if each.schema:
            options["value.schema"] = each.schema
        if "schema_file" in each.schema_keys:
            options["value.schema.file"] = str(self.directory / each.schema_keys["schema_file"])
        return options | {option: each.schema_keys[key] for key, option in _SCHEMA_OPTIONS.items()
                          if key in each.schema_keys}

    def check(self) -> None:
        """Check the options of all.

        Raises:
            ConfigError: one line that names the source, table or sink, and the option.
        """
        for each in self.spec.inputs:
            if each.topic:
                self.parsed(each)
        for sink in self.spec.sinks:
            if sink.topics:
                self.written(sink)

    def parsed(self, each: Input) -> SourceOptions:
        """The checked options of the read of a topic.

        Raises:
            ConfigError: an unknown option or a malformed value.
        """
        with _named(each.title):
            return SourceOptions.parse(self._somewhere(self.reading(each)), streaming=each.streaming)

    def written(self, sink: Sink) -> SinkOptions:
        """The checked options of a write of topics.

        Raises:
            ConfigError: an unknown option or a malformed value.
        """
        with _named(f"sink {sink.name}"):
            # These two are those of `headrace.spark.transactional` alone.
            options = {name: value for name, value in self.writing(sink).items()
                       if not (sink.writes and name.lower() in ("groupid", "maxattempts"))}
            return SinkOptions.parse(self._somewhere(options))

    @staticmethod
    def topics_of(sink: Sink, options: SinkOptions) -> tuple[str, ...]:
        """The topics that a sink writes with its checked options, which may name another one than the file."""
        return sink.topics if sink.writes else (options.topic,)

    def _somewhere(self, options: dict[str, str]) -> dict[str, str]:
        return {**options, "kafka.bootstrap.servers": _SOMEWHERE} if self.embedded else options


@contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from None


def shown(options: Mapping[str, str]) -> dict[str, str]:
    """The same options or settings for people: secrets are hidden, and credentials in a URL left out."""
    return {name: HIDDEN if _is_secret(name) else re.sub(r"//[^/@\s]*@", "//", str(value))
            for name, value in options.items()}


def _is_secret(name: str) -> bool:
    return is_secret(name.removeprefix(_KAFKA).removeprefix(_REGISTRY))
