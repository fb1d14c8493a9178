"""The options that begin with ``key.``, ``value.`` and ``schema.registry.``: what the bytes of a topic are.

A `ValueFormat` is one side's, and goes with the reader or writer to the tasks: texts only. Credentials of the registry
are among them, and shown nowhere. This module knows neither Spark nor a registry. Read next:
`headrace.values.value_planning`.
"""

from __future__ import annotations

import base64
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headrace.errors import ConfigError

__all__ = ["FORMATS", "RAW_KEY", "RAW_VALUE", "REGISTRY_PREFIX", "SINK_NAMES", "SOURCE_NAMES", "ValueFormat",
           "has_formats", "malformed_remedy"]

REGISTRY_PREFIX: Final = "schema.registry."
FORMATS: Final = ("raw", "string", "json", "avro", "protobuf", "json-schema")
_STRATEGIES: Final = ("topic", "record", "topic_record")
_MALFORMED: Final = ("fail", "null", "dead-letter")
_FRAMINGS: Final = ("confluent", "none")
_BOTH: Final = (
    "format", "schema", "schema.file", "subject", "schema.version", "message", "subject.strategy", "framing",
    "validate")
_OF_SOURCE: Final = ("malformed", "emit.default.values")
_FLAGS: Final = {"validate": "json-schema", "emit.default.values": "protobuf"}
"""Options that one format has, and which."""
_OF_SINK: Final = ("auto.register", "use.latest")
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Bytes that no text of a schema has, and each descriptor: the tags and lengths of its fields."""
_NUMBERS: Final = ("timeout", "cache.capacity", "cache.latest.ttl.sec", "max.retries", "retries.wait.ms",
                   "retries.max.wait.ms")


def _names(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{side}.{part}" for side in ("value", "key") for part in parts)


SOURCE_NAMES: Final = (*_names(_BOTH + _OF_SOURCE), "deadLetterTopic")
"""Options of a read."""
SINK_NAMES: Final = _names(_BOTH + _OF_SINK)
"""Options of a write."""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """What the bytes of one side are.

    Attributes:
        side: `value` or `key`.
        name: one of `FORMATS`.
        schema: text of the schema that was given; empty when the registry has it.
        subject: name in the registry; empty for the strategy's.
        version: of the subject; None for the latest.
        message: full name of the record or message type.
        strategy: how subjects are named: `topic`, `record` or `topic_record`.
        malformed: what becomes of bytes that cannot be read: `fail`, `null` or `dead-letter`.
        framed: a schema's number stands before each payload.
        auto_register: the sink registers schemas that are not known.
        use_latest: the sink writes with the subject's latest schema.
        flags: `validate` and `emit.default.values`, if they are set.
        registry: properties of the registry's client.
    """

    side: str
    name: str = "raw"
    schema: str = ""
    subject: str = ""
    version: int | None = None
    message: str = ""
    strategy: str = "topic"
    malformed: str = "fail"
    framed: bool = False
    auto_register: bool = True
    use_latest: bool = False
    flags: frozenset[str] = frozenset()
    registry: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def has_schema(self) -> bool:
        """Whether the column has a type of its own, which a codec reads and writes."""
        return self.name not in ("raw", "string")

    @property
    def registry_properties(self) -> dict[str, Any]:
        """What a `SchemaRegistryClient` is made with; empty without a registry."""
        return {name: float(value) if name in _NUMBERS else value for name, value in self.registry}

    @classmethod
    def parse(cls, given: Mapping[str, str], side: str) -> ValueFormat:
        """Check the options of one side.

        Args:
            given: options by name in lower case.
            side: `value` or `key`.

        Raises:
            ConfigError: a malformed value, or options that contradict each other.
        """
        options = _Side(given, side)
        name = options.one_of("format", FORMATS)
        registry = _registry(given)
        if name in ("raw", "string"):
            options.refuse_others(name)
            return cls(side, name)
        return cls(
            side=side, name=name, schema=options.schema(name), subject=options.text("subject"),
            version=options.version(), message=options.text("message"),
            strategy=options.one_of("subject.strategy", _STRATEGIES),
            malformed=options.one_of("malformed", _MALFORMED),
            framed=_framed(options, name, bool(registry)),
            auto_register=options.flag("auto.register", True), use_latest=options.flag("use.latest", False),
            flags=frozenset(flag for flag in _FLAGS if options.own_flag(flag, name)), registry=registry,
        )


RAW_KEY: Final = ValueFormat("key")
RAW_VALUE: Final = ValueFormat("value")


def malformed_remedy(side: str) -> str:
    """What may be done about bytes that cannot be read, in words for who gives options."""
    return f"Set {side}.malformed to null to read such values as null, or to dead-letter to set the records aside"


def has_formats(given: Mapping[str, str]) -> bool:
    """Whether options, by name in lower case, ask for more than bytes."""
    return any(str(given.get(f"{side}.format") or "raw").strip().lower() != "raw" for side in ("value", "key"))


class _Side:
    """The options of one side, checked on demand."""

    def __init__(self, given: Mapping[str, str], side: str) -> None:
        self._given = given
        self._side = side

    def text(self, part: str) -> str:
        return str(self._given.get(f"{self._side}.{part}") or "").strip()

    def one_of(self, part: str, allowed: tuple[str, ...]) -> str:
        """One of some words; the first is the default."""
        text = self.text(part).lower()
        if text and text not in allowed:
            close = difflib.get_close_matches(text, allowed, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"option {self._side}.{part} must be {', '.join(allowed)}, not {text!r}.{hint}")
        return text or allowed[0]

    def flag(self, part: str, default: bool) -> bool:
        text = self.text(part).lower()
        if text not in ("", "true", "false"):
            raise ConfigError(f"option {self._side}.{part} must be true or false, not {text!r}")
        return text == "true" if text else default

    def own_flag(self, part: str, name: str) -> bool:
        """A flag of one format; False without it."""
        if self.text(part) and name != _FLAGS[part]:
            raise ConfigError(f"option {self._side}.{part} has no meaning with {self._side}.format {name}: it is of "
                              f"{_FLAGS[part]}")
        return self.flag(part, False)

    def version(self) -> int | None:
        text = self.text("schema.version").lower()
        if text in ("", "latest"):
            return None
        if not text.isdigit() or int(text) < 1:
            raise ConfigError(f"option {self._side}.schema.version must be latest or a number from 1, not {text!r}")
        return int(text)

    def schema(self, name: str) -> str:
        """The text of the schema; a compiled file of Protobuf's as base64."""
        text, path = self.text("schema"), self.text("schema.file")
        if not path:
            return text
        if text:
            raise ConfigError(f"give one of {self._side}.schema and {self._side}.schema.file, not both")
        try:
            data = Path(path).read_bytes()
            if name == "protobuf" and _NO_TEXT.search(data):
                return base64.b64encode(data).decode()
            return data.decode("utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(f"option {self._side}.schema.file cannot be read: {error}") from None

    def refuse_others(self, name: str) -> None:
        lost = [f"{self._side}.{part}" for part in (*_BOTH[1:], *_OF_SOURCE, *_OF_SINK) if self.text(part)]
        if lost:
            raise ConfigError(f"option {lost[0]} has no meaning with {self._side}.format {name}: give one of "
                              f"{', '.join(FORMATS[2:])}")


def _framed(options: _Side, name: str, has_registry: bool) -> bool:
    if not options.text("framing"):
        return has_registry and name != "json"
    framed = options.one_of("framing", _FRAMINGS) == "confluent"
    if framed and name == "json":
        raise ConfigError("plain JSON has no framing: choose the format json-schema")
    return framed


def _registry(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = {name[len(REGISTRY_PREFIX):]: str(value).strip() for name, value in given.items()
             if name.startswith(REGISTRY_PREFIX) and value is not None}
    if not found:
        return ()
    if "url" not in found:
        raise ConfigError(f"option {REGISTRY_PREFIX}url is missing: give the registry's address")
    for name in _NUMBERS:
        if name in found and not found[name].replace(".", "", 1).isdigit():
            raise ConfigError(f"option {REGISTRY_PREFIX}{name} must be a number, not {found[name]!r}")
    return tuple(sorted(found.items()))
