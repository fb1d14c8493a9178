"""JSON and JSON Schema: text of values, and validators by jsonschema-rs.

orjson writes and reads where it is installed, Python's own json otherwise; their bytes are the same for what JSON can
say, but for the exponents of large floats. It must not know registries. Read next: `client.schema_serdes.json_serdes`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Never

from headrace.errors import DependencyError, SerializationError

__all__ = ["Validate", "json_codec", "loaded", "validator_of"]

Validate = Callable[[Any], None]
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)(?:(")|\\?\Z)', re.DOTALL)
"""A text in JSON, or all that is left where it does not end: so each character is looked at once."""


@cache
def json_codec() -> tuple[Callable[[Any], bytes | str], Callable[[bytes | str], Any]]:
    """The functions that write and read JSON."""
    try:
        import orjson
    except ImportError:
        return json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode, json.loads
    return orjson.dumps, orjson.loads


def loaded(text: str, what: str) -> Any:
    """Read the text of a schema.

    Args:
        text: JSON.
        what: what it is, for errors.

    Raises:
        SerializationError: it is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"{what} cannot be read: {error}") from error


def validator_of(schema: Any, references: Mapping[str, Any]) -> Validate:
    """A function that checks values.

    Args:
        schema: as JSON has it; its `$schema` says which draft, without one that is known it is 2020-12.
        references: those that it refers to, by URI, draft 7 where they do not say.

    Returns:
        The function, which raises `SerializationError` if a value does not fit.

    Raises:
        DependencyError: jsonschema-rs is not installed.
        SerializationError: it is not a schema, or refers to one that is not there.
    """
    library = _library()
    try:
        registry = library.Registry([*references.items()], draft=library.Draft7, retriever=_refuse)
        validate = library.validator_cls_for(schema)(
            schema, registry=registry, validate_formats=False, retriever=_refuse).validate
    except Exception as error:
        raise SerializationError(f"the JSON schema cannot be used: {_said(error)}") from error

    def check(value: Any) -> None:
        try:
            validate(value)
        except ValueError as error:
            raise SerializationError(_said(error)) from error
    return check


def _library() -> Any:
    try:
        import jsonschema_rs
    except ImportError as error:
        raise DependencyError("JSON Schema needs jsonschema-rs: pip install headrace[json]") from error
    return jsonschema_rs


def _refuse(uri: str) -> Never:
    """Schemas come from the registry, and from nowhere else."""
    raise ValueError(f"{uri} is not among the references of the schema")


def _quoted(found: re.Match[str]) -> str:
    """A text of an error, in single quotes, as jsonschema has it."""
    if not found[2]:
        return found[0]
    try:
        return repr(json.loads(found[0]))
    except ValueError:  # a pattern, which the library does not escape
        return repr(found[1])


def _said(error: Exception) -> str:
    message = _TEXT.sub(_quoted, str(getattr(error, "message", error)))
    path = "/".join(map(str, getattr(error, "instance_path", ())))
    return f"{message} (at {path})" if path else message
