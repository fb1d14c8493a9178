"""The properties of serializers and deserializers: which there are, what they may be, and what they are without.

They must not know formats: each names the properties it adds. Read next: `client.schema_serdes.subject_choice`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from headrace.client.registry.schema_ids import dual_schema_id_deserializer, prefix_schema_id_serializer
from headrace.config.property import close_matches

__all__ = ["READING", "VALIDATION", "WRITING", "SerdeProperty", "ValidationRulesExecution", "settings_of"]


class ValidationRulesExecution(StrEnum):
    """When the rules within a schema are to be checked. They are not run here: only DISABLED is taken."""

    DISABLED = "DISABLED"
    BEFORE_DOMAIN_RULES = "BEFORE_DOMAIN_RULES"
    AFTER_DOMAIN_RULES = "AFTER_DOMAIN_RULES"


class SerdeProperty(NamedTuple):
    """One property.

    Args:
        default: its value when it is not given.
        kind: the type that a value must have; None for any.
        fits: whether a value of the type will do; None if all do.
        must: what to say of one that does not, after the property's name.
    """

    default: Any
    kind: type | None = None
    fits: Callable[[Any], bool] | None = None
    must: str = ""


def _flag(default: bool) -> SerdeProperty:
    return SerdeProperty(default, bool, None, "must be a boolean value")


def _callable_or(default: Any) -> SerdeProperty:
    return SerdeProperty(default, None, callable, "must be callable")


_CHOICE: dict[str, SerdeProperty] = {
    "use.latest.version": _flag(False),
    "use.latest.with.metadata": SerdeProperty(None, dict, None, "must be a dict value"),
    "subject.name.strategy.type": SerdeProperty(None),
    "subject.name.strategy.conf": SerdeProperty(None),
    "subject.name.strategy": SerdeProperty(None),
}
WRITING: dict[str, SerdeProperty] = _CHOICE | {
    "auto.register.schemas": _flag(True),
    "normalize.schemas": _flag(False),
    "use.schema.id": SerdeProperty(None, int, None, "must be an int value"),
    "schema.id.serializer": _callable_or(prefix_schema_id_serializer),
}
"""Of every serializer."""
READING: dict[str, SerdeProperty] = _CHOICE | {"schema.id.deserializer": _callable_or(dual_schema_id_deserializer)}
"""Of every deserializer."""
VALIDATION: dict[str, SerdeProperty] = {
    "validation.rules.execution": SerdeProperty(
        ValidationRulesExecution.DISABLED, None, lambda value: value == ValidationRulesExecution.DISABLED,
        "can only be DISABLED: rules within a schema are not run (decision 0034)"),
    "validation.rules.fail.fast": _flag(False),
    "validation.rules.executor": SerdeProperty(
        None, None, lambda value: value is None, "cannot be set: rules within a schema are not run (decision 0034)"),
}
"""About rules within a schema, of every serializer."""


def settings_of(
    conf: Mapping[str, Any] | None, known: Mapping[str, SerdeProperty], ignored: Collection[str] = (),
) -> dict[str, Any]:
    """Check properties and add those that are not given.

    Args:
        conf: the application's; None for none.
        known: all that there are.
        ignored: names of others that may be given, and say nothing here.

    Returns:
        A value for each that there is.

    Raises:
        ValueError: one is unknown, has a value that will not do, or contradicts another.
    """
    given = {name: value for name, value in (conf or {}).items() if name in known or name not in ignored}
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        close = close_matches(unknown[0], [*known, *ignored])
        meant = f'; did you mean "{close[0]}"?' if close else "."
        raise ValueError(f"Unrecognized properties: {', '.join(unknown)}{meant} There are {', '.join(sorted(known))}")
    for name, value in given.items():
        if not _fits(value, known[name]):
            raise ValueError(f"{name} {known[name].must}, not {value!r:.80}")
    settings = {name: one.default for name, one in known.items()} | given
    if settings.get("use.latest.version") and settings.get("auto.register.schemas"):
        raise ValueError("cannot enable both use.latest.version and auto.register.schemas: set the latter to False")
    return settings


def _fits(value: Any, one: SerdeProperty) -> bool:
    if one.kind is not None and not isinstance(value, one.kind):
        return value is None and one.default is None
    return one.fits is None or one.fits(value)
