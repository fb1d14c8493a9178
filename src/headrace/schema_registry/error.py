"""What a Schema Registry, and schemas, may fail with.

Errors of Avro schemas are fastavro's, which is loaded for them.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import DependencyError, OAuthTokenError, SchemaRegistryError

__all__ = ["OAuthTokenError", "SchemaRegistryError"]

_OF_FASTAVRO = ("SchemaParseException", "UnknownType")


def __getattr__(name: str) -> Any:
    if name not in _OF_FASTAVRO:
        raise AttributeError(f"module 'headrace.schema_registry.error' has no attribute {name!r}")
    try:
        from fastavro import schema
    except ImportError:
        raise DependencyError(f"{name} is fastavro's: pip install headrace[avro]") from None
    return getattr(schema, name)
