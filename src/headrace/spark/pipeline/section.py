"""Sections of a pipeline file: what a key may hold, and the one line that says what is wrong with it.

This module knows TOML's values and nothing of pipelines. Read next: `headrace.spark.pipeline.spec`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.errors import ConfigError

__all__ = ["Section", "duration"]

_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
"""Short names of units of time, and Spark's."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECONDS: Final = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


def duration(text: str) -> tuple[int, str] | None:
    """The number and the unit, as Spark writes it, of a time like "30 seconds" or "5m"; None of any other text."""
    match = re.fullmatch(r"(\d+)\s*([a-z]+)", text)
    unit = _UNITS.get(match[2], match[2]) if match else ""
    return (int(match[1]), unit) if match and unit.removesuffix("s") in _SECONDS else None


class Section:
    """One table of the file: keys are taken out, what is left over is a mistake.

    Args:
        values: what is in it.
        where: it stands, for people.
        path: its name in the file, with those of the tables around it; empty for the file.
    """

    def __init__(self, values: Mapping[str, Any], where: str, path: str = "") -> None:
        self.left = dict(values)
        self.where = where
        self._around, self._prefix = (f"{where}: ", f"{path}.") if path else ("", "")
        self.asked: list[str] = []

    def _take(self, key: str) -> Any:
        self.asked.append(key)
        return self.left.pop(key, None)

    def has(self, key: str) -> bool:
        """True when the section has the key."""
        return key in self.left

    def text(self, key: str, default: str | None = "", among: Iterable[str] = ()) -> str:
        """The text under a key; a missing one is an error when `default` is None."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{self.where}: {key} is missing{self._instead_of(key)}" if value is None else
                              f"{self.where}: {key} must be text that is not empty, not {value!r}")
        allowed = tuple(among)
        if allowed and value not in allowed:
            raise ConfigError(f"{self.where}: {key} must be one of {', '.join(allowed)}, not {value!r}")
        return value.strip()

    def _instead_of(self, key: str) -> str:
        close = difflib.get_close_matches(key, self.left, n=1)
        return f"; did you mean {key!r} by {close[0]!r}?" if close else ""

    def word(self, key: str) -> str:
        """Text, or a whole number as text."""
        value = self.left.get(key)
        if type(value) is int:
            self.left[key] = str(value)
        return self.text(key)

    def name(self, key: str = "name", default: str | None = None) -> str:
        """A name that Spark SQL takes without quotes."""
        value = self.text(key, default)
        if not _NAME.fullmatch(value):
            raise ConfigError(f"{self.where}: {key} must be a plain SQL name (letters, digits, _), not {value!r}")
        return value

    def seconds(self, key: str, default: float) -> float:
        """A time like "30 seconds", in seconds."""
        text = self.text(key)
        found = duration(text)
        if found and found[0]:
            return found[0] * _SECONDS[found[1].removesuffix("s")]
        if text:
            raise ConfigError(f'{self.where}: {key} must be a time like "30 seconds" or "10 minutes", not {text!r}')
        return default

    def count(self, key: str, default: int) -> int:
        """A whole number of at least 0."""
        value = self._take(key)
        if value is None:
            return default
        if type(value) is not int or value < 0:
            raise ConfigError(f"{self.where}: {key} must be a whole number of at least 0, not {value!r}")
        return value

    def table(self, key: str) -> Section:
        """A table under a key; an empty one when it is not there."""
        value, path = self._take(key), self._prefix + key
        if not isinstance(value, dict | None):
            raise ConfigError(f"{self.where}: {key} must be a table, [{path}]")
        return Section(value or {}, f"{self._around}[{path}]", path)

    def tables(self, key: str) -> list[Section]:
        """A list of tables under a key."""
        value, path = self._take(key) or [], self._prefix + key
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ConfigError(f"{self.where}: {key} must be a list of tables, [[{path}]]")
        return [Section(each, f"{self._around}[[{path}]] {each.get('name') or number}", path)
                for number, each in enumerate(value, 1)]

    def flat(self, key: str) -> dict[str, str]:
        """A table of settings; dotted names may be quoted or not, values become text, and lists have commas."""
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
            yield prefix + key, ",".join(map(_plain, value)) if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
