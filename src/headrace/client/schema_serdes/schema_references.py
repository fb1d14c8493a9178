"""The schemas that a schema refers to, asked for once each, within bounds.

Read next: `client.schema_serdes.codecs.avro_codec`, which reads them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from headrace.client.schema_serdes.registry_steps import Steps
from headrace.errors import SerializationError
from headrace.types.registry import Schema

__all__ = ["MAX_REFERENCES", "referenced"]

MAX_REFERENCES = 1000
"""Schemas that one may refer to, those that they refer to included."""
_DONE = True
_UNDER_WAY = False


def referenced(schema: Schema, client: Any) -> Steps[dict[str, Schema]]:
    """The rule: all that a schema refers to.

    Args:
        schema: which refers to others.
        client: of the registry.

    Returns:
        The schemas by the names that they are referred to by, each behind those that it refers to itself.

    Raises:
        SerializationError: they refer to each other in a circle, they are too many, or a reference is incomplete.
    """
    found: dict[str, Schema] = {}
    state: dict[str, bool] = {}
    path: list[tuple[str, Schema]] = [("", schema)]
    while path:
        name, current = path[-1]
        following = next((one for one in current.references or () if state.get(_name(one)) is not _DONE), None)
        if following is None:
            path.pop()
            state[name] = _DONE
            if path:
                found[name] = current
        else:
            if _name(following) in state:
                raise SerializationError(f"schemas refer to each other in a circle: {following.name} again")
            if len(state) >= MAX_REFERENCES:
                raise SerializationError(f"a schema refers to more than {MAX_REFERENCES} others")
            state[_name(following)] = _UNDER_WAY
            path.append((_name(following), (yield from _fetched(following, client))))
    return found


def _name(reference: Any) -> str:
    if reference.name is None or reference.subject is None or reference.version is None:
        raise SerializationError(f"a reference needs a name, a subject and a version: {reference}")
    name: str = reference.name
    return name


def _fetched(reference: Any, client: Any) -> Steps[Schema]:
    if client is None:
        raise SerializationError(f"schema {reference.name} is referred to, and there is no Schema Registry client")
    registered = yield partial(client.get_version, reference.subject, reference.version, True)
    schema: Schema = registered.schema
    if schema.schema_str is None:
        raise SerializationError(f"the registry told nothing of schema {reference.name}")
    return schema
