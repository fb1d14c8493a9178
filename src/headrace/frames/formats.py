"""What the bytes of keys and values are: the arguments of a read or write, as the options that Spark's faces have.

The codecs, and what becomes of malformed values, are those of `headrace.values`, which imports no pyspark.
Read next: `headrace.values.value_format`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.property import close_matches
from headrace.errors import ConfigError, DependencyError
from headrace.values.value_format import REGISTRY_PREFIX, SINK_NAMES, SOURCE_NAMES, ValueFormat

if TYPE_CHECKING:
    from headrace.values.value_planning import DecodedRead

__all__ = ["decoded_read", "need_pyarrow", "side_formats"]

_READ = tuple(name for name in SOURCE_NAMES if name != "deadLetterTopic")


def need_pyarrow() -> None:
    """Check that pyarrow is there.

    Raises:
        DependencyError: it is not.
    """
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise DependencyError("frames need pyarrow: pip install 'headrace[arrow]'")


def side_formats(
    value_format: str, key_format: str, registry: str | Mapping[str, Any] | None, schemas: Mapping[str, str] | None,
    *, reading: bool,
) -> tuple[ValueFormat, ValueFormat]:
    """What values are, and what keys are.

    Args:
        value_format: of the values.
        key_format: of the keys.
        registry: URL of a Schema Registry, or the properties of its client.
        schemas: more options, such as `value.schema`.
        reading: they are for a read, else for a write.

    Raises:
        ConfigError: an option is unknown, malformed, or contradicts another.
    """
    given = {"value.format": value_format, "key.format": key_format, **_registry(registry), **(schemas or {})}
    _check_names(given, _READ if reading else SINK_NAMES)
    value, key = ValueFormat.parse(given, "value"), ValueFormat.parse(given, "key")
    for of in (value, key):
        if of.malformed == "dead-letter":
            raise ConfigError(f"{of.side}.malformed is fail or null here: a frame has nowhere to put dead letters")
    if registry is not None and not (value.has_schema or key.has_schema):
        raise ConfigError("registry has no meaning without value_format or key_format avro, protobuf or json-schema")
    return value, key


def _registry(given: str | Mapping[str, Any] | None) -> dict[str, str]:
    if given is None:
        return {}
    properties = {"url": given} if isinstance(given, str) else given
    return {f"{REGISTRY_PREFIX}{name}": str(value) for name, value in properties.items() if value is not None}


def _check_names(given: Mapping[str, str], known: Collection[str]) -> None:
    for name in given:
        if name not in known and not name.startswith(REGISTRY_PREFIX):
            close = close_matches(name, list(known))
            raise ConfigError(f"unknown option {name!r} in schemas" + (f"; did you mean {close[0]!r}?" if close else
                                                                       f": there are {', '.join(known)}"))


def decoded_read(value: ValueFormat, key: ValueFormat, topic: str) -> DecodedRead | None:
    """What a read has to decode; None for bytes alone.

    Raises:
        ConfigError: no schema can be found.
        SchemaRegistryError: the registry did not answer, or refused.
    """
    if value.name == key.name == "raw":
        return None
    from headrace.values.value_planning import DecodedRead, planned_read

    sides = {each.side: planned_read(each, [topic]) for each in (value, key) if each.has_schema}
    return DecodedRead(sides, tuple(each.side for each in (value, key) if each.name == "string"))
