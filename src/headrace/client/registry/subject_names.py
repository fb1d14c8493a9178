"""Under which subject a schema is registered: the ways to make the name, each a function of context and record name.

A strategy of an application has the same arguments. confluent_kafka's functions. Read next:
`client.registry.schema_ids`.
"""

from __future__ import annotations

from headrace.client.serdes import SerializationContext
from headrace.types.registry import SchemaReference

__all__ = [
    "record_subject_name_strategy",
    "reference_subject_name_strategy",
    "topic_record_subject_name_strategy",
    "topic_subject_name_strategy",
]


def topic_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """The topic and the part of the message, for example "orders-value". It is never None.

    Args:
        ctx: where the message goes to.
        record_name: name of the record's type; not used.

    Raises:
        ValueError: there is no context.
    """
    given = _context(ctx, "topic_subject_name_strategy")
    return f"{given.topic}-{given.field}"


def topic_record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """The topic and the record's type, for example "orders-org.example.Order"; None without such a type.

    Args:
        ctx: where the message goes to.
        record_name: name of the record's type.

    Raises:
        ValueError: there is no context.
    """
    given = _context(ctx, "topic_record_subject_name_strategy")
    return None if record_name is None else f"{given.topic}-{record_name}"


def record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """The record's type, for example "org.example.Order"; None without one.

    Args:
        ctx: where the message goes to; not used.
        record_name: name of the record's type.
    """
    return record_name


def reference_subject_name_strategy(
    ctx: SerializationContext | None, schema_ref: SchemaReference | None
) -> str | None:
    """The name by which one schema refers to another, for example "google/type/date.proto"; None without one.

    Args:
        ctx: where the message goes to; not used.
        schema_ref: the reference.
    """
    return None if schema_ref is None else schema_ref.name


def _context(ctx: SerializationContext | None, name: str) -> SerializationContext:
    if ctx is None:
        raise ValueError(f"{name} needs a SerializationContext, which names the topic: pass one, or use "
                         "record_subject_name_strategy, which needs none")
    return ctx
