"""Keys and values that have schemas, or are JSON, as texts of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.consuming.portions import Portion
from headrace.errors import ConfigError, SerializationError

if TYPE_CHECKING:
    from headrace.values.written_values import WrittenValues

__all__ = ["ValueReader", "value_reader"]

ValueReader = Callable[[Portion], Sequence[bytes | None]]
"""Texts of JSON for the keys or the values of a portion."""


def value_reader(form: str, registry: Mapping[str, Any], *, is_key: bool) -> ValueReader | None:
    """What reads keys or values of a format; None where they stay as they are.

    Args:
        form: "bytes", "json", "avro", "protobuf" or "json-schema".
        registry: properties of the Schema Registry's client.
        is_key: keys are meant.

    Raises:
        ConfigError: pyarrow is missing, or a property is wrong.
        DependencyError: what asks the registry is missing.
    """
    if form == "bytes":
        return None
    column = "keys" if is_key else "values"
    if form == "json":
        return lambda portion: [_checked(portion, row, cell) for row, cell in enumerate(getattr(portion, column))]
    reader = _with_schemas(form, registry)

    def read(portion: Portion) -> Sequence[bytes | None]:
        from headrace.values.written_values import UnreadableValueError

        try:
            return reader.texts(getattr(portion, column))
        except UnreadableValueError as error:
            raise _unreadable(portion, error.row, f"{column[:-1]} is no {form}: {error}") from None

    return read


def _with_schemas(form: str, registry: Mapping[str, Any]) -> WrittenValues:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigError(f"the format {form} needs pyarrow: pip install 'headrace[arrow,registry]'") from None
    from headrace.values.registry_access import RegistryAccess
    from headrace.values.written_values import WrittenValues

    return WrittenValues(form, RegistryAccess(dict(registry)))


def _checked(portion: Portion, row: int, cell: bytes | None) -> bytes | None:
    try:
        if cell is not None:
            json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise _unreadable(portion, row, f"not JSON: {error}") from None
    return None if cell is None else b" ".join(cell.splitlines())


def _unreadable(portion: Portion, row: int, why: str) -> SerializationError:
    where = f"{portion.topic} [{portion.partition}] offset {portion.offsets[row]}"
    return SerializationError(f"{where}: {why}; --value-format bytes shows it as it is")
