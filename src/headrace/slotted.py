"""Small classes of named fields, as `dataclasses` makes them, but cheap to define: importing a client makes dozens.

`dataclasses` compiles up to seven functions for each class. Here a class gets slots and methods that all share, and
only its `__init__` is compiled, when the first value is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

__all__ = ["field", "hashed_by", "replace", "slotted"]

_T = TypeVar("_T")
_ABSENT: Any = object()


class _Factory:
    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], _T]) -> _T:
    """A field whose default is made anew for each value."""
    made: Any = _Factory(default_factory)
    return made  # type: ignore[no-any-return]


@dataclass_transform(field_specifiers=(field,))
def slotted(*, frozen: bool = False, eq: bool = True) -> Callable[[type[_T]], type[_T]]:
    """Turn the annotations of a class into its slots and the arguments of its `__init__`.

    Args:
        frozen: fields cannot be assigned to; with `eq` the values can be keys.
        eq: values are equal when their fields are; else only to themselves.
    """
    def define(cls: type[_T]) -> type[_T]:
        own = vars(cls)
        names = tuple(name for name, kind in own.get("__annotations__", {}).items() if not kind.startswith("ClassVar"))
        namespace = {**_SHARED, **(_FROZEN if frozen else {}), **(_EQUAL if eq else {})}
        if eq and frozen:
            namespace["__hash__"] = _hash
        namespace |= {name: what for name, what in own.items() if name not in names and name not in _INSTANCE}
        namespace |= {"__slots__": names, "__match_args__": names, "__qualname__": cls.__qualname__}
        defaults = {name: own[name] for name in names if name in own}

        def first(self: Any, *given: Any, **named: Any) -> None:
            """The first value compiles the real `__init__` and puts it in the place of this one."""
            made.__init__ = _compiled(made, names, defaults, frozen)
            made.__init__(self, *given, **named)

        namespace["__init__"] = first
        kind: Any = type(cls)
        made: Any = kind(cls.__name__, cls.__bases__, namespace)
        return made  # type: ignore[no-any-return]

    return define


def hashed_by(*names: str) -> Callable[[type[_T]], type[_T]]:
    """Let values that are equal by their fields, and can be changed, be keys and members of sets all the same.

    confluent_kafka's can, for none of them equals another.

    Args:
        names: of fields that tell most of them apart; they must not change while a value is a key.
    """
    def define(cls: type[_T]) -> type[_T]:
        def by_field(self: Any) -> int:
            return hash(tuple(getattr(self, each) for each in names))

        made: Any = cls
        made.__hash__ = by_field
        return cls

    return define


def replace(old: _T, **changes: Any) -> _T:
    """A value like another one, but for some fields."""
    return type(old)(**{name: getattr(old, name) for name in _names(old)} | changes)


def _compiled(cls: Any, names: tuple[str, ...], defaults: dict[str, Any], frozen: bool) -> Any:
    scope: dict[str, Any] = {"ABSENT": _ABSENT}
    parameters, lines = [], ["pass"]  # there may be no fields
    for name in names:
        default, given = defaults.get(name, _ABSENT), name
        if isinstance(default, _Factory):
            scope[f"make_{name}"], default = default.make, _ABSENT
            parameters.append(f"{name}=ABSENT")
            given = f"make_{name}() if {name} is ABSENT else {name}"
        elif name in defaults:
            scope[f"default_{name}"] = default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        if frozen:
            scope[f"set_{name}"] = getattr(cls, name).__set__
        lines.append(f"set_{name}(self, {given})" if frozen else f"self.{name} = {given}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    return scope["__init__"]


def _names(instance: Any) -> tuple[str, ...]:
    return instance.__match_args__  # type: ignore[no-any-return]


def _contents(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, name) for name in _names(instance))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self))
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> Any:
    return _contents(self) == _contents(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_contents(self))


def _reduce(self: Any) -> tuple[Any, ...]:
    return type(self), _contents(self)


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set; make another one with replace()")


_INSTANCE = {"__dict__", "__weakref__"}
_SHARED: dict[str, Any] = {"__repr__": _repr, "__reduce__": _reduce}
_EQUAL: dict[str, Any] = {"__eq__": _eq, "__hash__": None}
_FROZEN: dict[str, Any] = {"__setattr__": _refuse, "__delattr__": _refuse}
