"""confluent_kafka's registry in memory for both packages' serializers: with the same ids, bytes can be compared."""

import uuid
from typing import Any

from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference as TheirReference
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient

from headrace.types.registry import RegisteredSchema, Schema


def their_client() -> Any:
    """A client of a registry of its own."""
    return TheirClient.new_client({"url": f"mock://{uuid.uuid4()}"})


def emptied(client: Any) -> Any:
    """The same client, of a registry that knows nothing any more."""
    client._store = type(client._store)()
    client.clear_caches()
    return client


class OverTheirs:
    """The client for our serializers: it asks theirs and speaks in our types."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def asked(*arguments: Any, **named: Any) -> Any:
            return _ours(call(*map(_theirs, arguments), **named))

        return asked


def _theirs(value: Any) -> Any:
    if not isinstance(value, Schema):
        return value
    return TheirSchema(value.schema_str, value.schema_type, [
        TheirReference(each.name, each.subject, each.version) for each in value.references or ()])


def _ours(value: Any) -> Any:
    name = type(value).__name__
    if name == "Schema":
        return Schema.from_dict(value.to_dict())
    return RegisteredSchema.from_dict(value.to_dict()) if name == "RegisteredSchema" else value
