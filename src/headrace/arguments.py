"""The check of arguments: of lists, where a str is none, nor anything else that could be iterated over, and of
properties.

One text, taken for a list, would be a list of its letters. confluent_kafka takes nothing but lists either. Knows no
call. Read next: `client.consumer.consumer_engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ["ArgumentError", "given_properties", "instance_of", "list_of", "mapping_of", "member_of"]

T = TypeVar("T")
K = TypeVar("K")


class ArgumentError(TypeError, ValueError):
    """A member of an argument is of the wrong kind.

    For some calls confluent_kafka raises TypeError then, for others ValueError: a program may catch either.
    """


def list_of(kind: type[T], given: Any, name: str, *, filled: bool = False) -> list[T]:
    """A copy of a list that an application gave, for it may change the list afterwards.

    Args:
        kind: what its members must be.
        given: the argument.
        name: its name.
        filled: it must not be empty.

    Raises:
        ArgumentError: it is no list, or has another member.
        ValueError: it is empty.
    """
    if not isinstance(given, list):
        raise ArgumentError(f"{name}: expected list of {kind.__name__}, not {type(given).__name__}")
    for place, member in enumerate(given):
        if not isinstance(member, kind):
            raise ArgumentError(
                f"{name}: expected list of {kind.__name__}, but {name}[{place}] is {type(member).__name__}")
    if filled and not given:
        raise ValueError(f"{name} is empty: give a list of at least one {kind.__name__}")
    return list(given)


def mapping_of(keys: type[K], values: type[T], given: Any, name: str) -> dict[K, T]:
    """A copy of a dict that an application gave.

    Raises:
        TypeError: it is no dict, or has another key or value.
    """
    if not isinstance(given, dict):
        raise TypeError(f"{name} must be a dict of {keys.__name__} to {values.__name__}, not {type(given).__name__}")
    for key, value in given.items():
        instance_of(keys, key, f"each key of {name}")
        instance_of(values, value, f"each value of {name}")
    return dict(given)


def instance_of(kind: type[T], given: Any, name: str) -> T:
    """An argument that must be of a kind.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(given, kind):
        raise TypeError(f"{name} must be {kind.__name__}, not {type(given).__name__}")
    return given


def member_of(kind: Any, given: Any, name: str) -> Any:
    """The member of an enum that is meant: itself, its name in any case, or its number.

    Raises:
        TypeError: it is none of these.
        ValueError: the enum has no such member, or nothing is given.
    """
    if given is None:
        raise ValueError(f"{name} must be {kind.__name__}, not None")
    if isinstance(given, kind):
        return given
    if not isinstance(given, (str, int)):
        raise TypeError(f"{name} must be {kind.__name__}, its name or its number, not {type(given).__name__}")
    try:
        return kind[given.upper()] if isinstance(given, str) else kind(given)
    except (KeyError, ValueError):
        known = ", ".join(entry.name for entry in kind)
        raise ValueError(f"unknown {name} {given!r}: expected one of {known}") from None


def given_properties(config: Mapping[str, Any] | None, logger: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that a client is made with.

    Args:
        config: a mapping of them; may be left out where some are given by keyword.
        logger: the property "logger", if it is not None.
        properties: those that were given by keyword.

    Raises:
        TypeError: no properties were given.
    """
    if not isinstance(config, Mapping) and not (config is None and properties):
        raise TypeError("expected configuration dict")
    given = {**(config or {}), **properties}
    if logger is not None:
        given["logger"] = logger
    return given
