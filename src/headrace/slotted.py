"""Small classes of named fields, as `dataclasses` makes them, but cheap to define: importing a client makes dozens.

`dataclasses` compiles up to seven functions for each class. Here a class gets slots and methods that all share, and
only its `__init__` is compiled, when the first value is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copyreg import __newobj__  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from headrace.compiled import function_of
from headrace.interpreter import SteadyLock

__all__ = ["Late", "LateInDict", "field", "hashed_by", "late", "later", "replace", "slotted", "source_of"]

_T = TypeVar("_T")
_ABSENT: Any = object()
_get = object.__getattribute__
_set = object.__setattr__
_making = SteadyLock()


def _after_fork() -> None:
    """Another thread of the parent may have held it."""
    global _making
    _making = SteadyLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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


class Late:
    """Base of classes with fields that may be made when somebody first asks for them.

    A client asks for ten thousand topics to look into a few. `late` and `later` say of a value what makes those of its
    fields that are not set; to everybody else they are fields as all others (decision 0047).
    """

    __slots__ = ("_late_makers", "_late_source")

    if not TYPE_CHECKING:  # a type checker would take any name for a field
        def __getattr__(self, name: str) -> Any:
            """Make a field. Two threads that ask for it at once get the same value."""
            with _making:
                maker = _late_part(self, "_late_makers", {}).get(name)
                if maker is None:
                    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
                found = _late_part(self, name, _ABSENT)  # another thread has been faster
                if found is _ABSENT:
                    found = maker(_late_part(self, "_late_source", None))
                    _set(self, name, found)
                return found


class _InDict(Late):
    """Has the `__dict__` that `LateInDict` completes."""


class LateInDict(_InDict):
    """As `Late`, of values with a `__dict__`: who looks into it finds all fields."""

    if not TYPE_CHECKING:
        @property
        def __dict__(self) -> dict[str, Any]:
            for name in _late_part(self, "_late_makers", ()):
                getattr(self, name)
            return _dict_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return __newobj__, (type(self),), vars(self)


_dict_of = vars(_InDict)["__dict__"].__get__


def later(instance: Any, makers: Mapping[str, Callable[[Any], Any]], source: Any) -> None:
    """As `late`, of a value that is there already: for loops in which that matters.

    Args:
        instance: the value, not frozen.
        makers: what makes each of these fields; the same for many values.
        source: of what they are made; it is kept.
    """
    instance._late_makers = makers
    instance._late_source = source


def late(cls: type[_T], makers: Mapping[str, Callable[[Any], Any]], source: Any, **fields: Any) -> _T:
    """A value of a class on `Late`, frozen ones too, without its `__init__`.

    Args:
        cls: its class.
        makers: what makes each of the fields that are not given; the same for many values.
        source: of what they are made; it is kept.
        fields: all others.
    """
    made = object.__new__(cls)
    _set(made, "_late_makers", makers)
    _set(made, "_late_source", source)
    for name, value in fields.items():
        _set(made, name, value)
    return made


def source_of(instance: Late) -> Any:
    """Of what the fields of a value are made; None if they were given."""
    return _late_part(instance, "_late_source", None)


def _late_part(instance: Any, name: str, otherwise: Any) -> Any:
    try:
        return _get(instance, name)
    except AttributeError:
        return otherwise


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
    text = f"def __init__(self, {', '.join(parameters)}):\n " + "\n ".join(lines)
    return function_of("__init__", text, scope, f"{cls.__qualname__}.__init__")


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


def _fields(self: Any) -> dict[str, Any]:
    """The fields by their names: confluent_kafka's values have a `__dict__`, and programs look into it by `vars()`.

    A copy: what is changed in it is not changed in the value.
    """
    return dict(zip(_names(self), _contents(self), strict=True))


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set; make another one with replace()")


_INSTANCE = {"__dict__", "__weakref__"}
_SHARED: dict[str, Any] = {"__repr__": _repr, "__reduce__": _reduce, "__dict__": property(_fields)}
_EQUAL: dict[str, Any] = {"__eq__": _eq, "__hash__": None}
_FROZEN: dict[str, Any] = {"__setattr__": _refuse, "__delattr__": _refuse}
