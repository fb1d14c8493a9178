"""What futures end with, and values with all that they have, in a form in which two packages can be compared."""

import enum
from typing import Any

PATIENCE_S = 30


def settled(found: Any) -> Any:
    """What the futures of a call end with."""
    if isinstance(found, dict):
        return {str(key).partition(",offset")[0]: settled(each) for key, each in found.items()}
    error = found.exception(PATIENCE_S)
    return error.args[0].code() if error is not None else told(found.result())


def told(value: Any) -> Any:
    """A value with all that it has, in a form that can be compared."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return [told(each) for each in value]
    if isinstance(value, dict):
        return {str(key): told(each) for key, each in value.items()}
    if hasattr(value, "code") and hasattr(value, "retriable"):
        return value.code()
    if type(value).__name__ in ("TopicPartition", "Uuid", "Node"):
        return str(value)
    names = sorted(name for name in dir(value) if not name.startswith("_"))
    return {name: told(getattr(value, name)) for name in names if not callable(getattr(value, name))}
