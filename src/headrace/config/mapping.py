"""The checked mapping that clients read: every name known, every value converted, contradictions settled or refused.

A property is known under librdkafka's name and, where Java calls it otherwise, under Java's as well. Values may be
given as text or as Python values. Secrets are hidden wherever a configuration is shown. This module knows no client.

Read next: `headrace.config.rules`, for how properties belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headrace.config.property import ADMIN, SHARE, Property, close_matches, convert
from headrace.config.rows_common import COMMON_ROWS
from headrace.config.rows_consumer import CONSUMER_ROWS
from headrace.config.rows_producer import PRODUCER_ROWS
from headrace.config.rules import Draft, settle
from headrace.errors import ConfigError

__all__ = ["PROPERTIES", "Config", "is_secret"]

_ROWS = (*COMMON_ROWS, *PRODUCER_ROWS, *CONSUMER_ROWS)
PROPERTIES: dict[str, Property] = {row.name: row for row in _ROWS}
_BY_ANY_NAME: dict[str, Property] = {alias: row for row in _ROWS for alias in (row.name, *row.aliases)}
_OF_TOPICS: Final = "default.topic.config"
_TELLING: Final = re.compile(r"password|passphrase|secret|token|credential|user\.info|jaas|private|access.?key", re.I)


def is_secret(name: str) -> bool:
    """Whether the value of a property is not to be shown; of a name that is not known, what the name says."""
    row = _BY_ANY_NAME.get(name)
    return row.kind == "secret" if row is not None else bool(_TELLING.search(name))


class Config(Mapping[str, Any]):
    """The checked properties of one client: every property has a value.

    Args:
        role: `PRODUCER`, `CONSUMER`, `SHARE` or `ADMIN`.
        properties: what the user gave; None as a value means "not given".
        servers_needed: bootstrap.servers must be given, too.

    Attributes:
        role: whose properties they are.
        given: the properties that were given, by their first name, converted.
        original: the same as they were given, those of interceptors included.
        without_effect: names that were given and change nothing for this client, with the reason.

    Raises:
        ConfigError: unknown name, malformed or out-of-range value, or a contradiction.
    """

    def __init__(self, role: str, properties: Mapping[str, Any], *, servers_needed: bool = True) -> None:
        self.role = role
        self.given: dict[str, Any] = {}
        levels = tuple(_levels(properties))
        self.original = {name: value for level in levels for name, value in level.items() if value is not None}
        self.without_effect: dict[str, str] = {}
        names: dict[str, str] = {}
        for level in levels:
            names.update(self._take_level(level))
        self._values = {row.name: self.given.get(row.name, row.default) for row in _ROWS}
        if servers_needed and not self._values["bootstrap.servers"]:
            raise ConfigError('"bootstrap.servers" is missing: give at least one broker as host:port')
        settle(role, Draft(self.given, names, self._values))

    def _take_level(self, level: Mapping[str, Any]) -> dict[str, str]:
        """Take what counts instead of what was taken before. Returns the names used, by the first name of each."""
        names: dict[str, str] = {}
        for name, value in level.items():
            row = _BY_ANY_NAME.get(name)
            if self.role == SHARE and value is not None:
                _refuse_for_share_group(name, row)
            if row is not None and value is not None:
                self._take(row, name, value, names)
            elif row is None and not ("interceptor" in name.split(".") and self.original.get("interceptor.classes")):
                self._take_elsewhere(name, value)  # else an interceptor's own
        return names

    def _take(self, row: Property, name: str, value: Any, names: dict[str, str]) -> None:
        converted = convert(row, name, value)
        if row.name in names and self.given[row.name] != converted:
            raise ConfigError(f'"{name}" and "{names[row.name]}" are the same property and have different values: '
                              "give one of them")
        names[row.name] = name
        self.given[row.name] = converted
        if self.role not in row.roles:
            readers = " or ".join(f"a {role}" for role in row.roles)
            client = "an admin client" if self.role == ADMIN else f"a {self.role}"
            self.without_effect[name] = f"it is read by {readers}, not by {client}"

    def _take_elsewhere(self, name: str, value: Any) -> None:
        """A name of librdkafka's or Java's that does nothing here, or nobody's."""
        from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT  # few give one of these

        row = WITHOUT_EFFECT.get(name)
        if row is None and (value is not None or name not in NOT_SUPPORTED):
            raise ConfigError(_refusal(name))
        if row is not None and value is not None:
            convert(row, name, value)
            self.without_effect[name] = row.doc

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = {n: "[hidden]" if PROPERTIES[n].kind == "secret" else v for n, v in self.given.items()}
        return f"Config({self.role!r}, {shown!r})"

    def seconds(self, name: str) -> float:
        """The value of a property in milliseconds, as seconds."""
        return float(self._values[name]) / 1000.0

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password for the connections, and renewed authentications, that come after this.

        Raises:
            ConfigError: one is empty, or has a character that cannot be sent.
            TypeError: one is not str.
        """
        for name, value in (("sasl.username", username), ("sasl.password", password)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be str, not {type(value).__name__}")
            if not value or "\0" in value:
                raise ConfigError(f'"{name}" must not be empty, and have no NUL character')
            convert(PROPERTIES[name], name, value)
        self._values.update({"sasl.username": username, "sasl.password": password})


def _levels(properties: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The properties, then those of the old `default.topic.config`, which count instead of them in confluent_kafka."""
    for name in properties:
        if not isinstance(name, str):
            raise ConfigError(f"property names are str, not {type(name).__name__}: {name!r}")
    inner = properties.get(_OF_TOPICS, {})
    if not isinstance(inner, Mapping):
        raise ConfigError(f'"{_OF_TOPICS}" must be a mapping of property names to values')
    yield {name: value for name, value in properties.items() if name != _OF_TOPICS}
    if inner:
        yield from _levels(inner)


def _refuse_for_share_group(name: str, row: Property | None) -> None:
    from headrace.config.rows_elsewhere import NOT_FOR_SHARE_GROUPS  # who makes no share consumer does without

    why = NOT_FOR_SHARE_GROUPS.get(name if row is None else row.name)
    if why is not None:
        raise ConfigError(f"{name} is not supported on a share consumer: {why}")


def _refusal(name: str) -> str:
    from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT

    if name in NOT_SUPPORTED:
        return f'"{name}" is not supported: {NOT_SUPPORTED[name]}'
    close = close_matches(name.lower(), [*_BY_ANY_NAME, *WITHOUT_EFFECT])
    hint = f' Did you mean "{close[0]}"?' if close else " `headrace.config.PROPERTIES` lists all of them."
    return f'No such configuration property: "{name}".{hint}'
