"""Schemas as `AvroProducer` and its relatives take them: `load` from a file, `loads` from a text.

`str()` of one is its JSON. Where the avro package is installed, a schema is one of its: programs of before 1.4 go on
with it, and confluent_kafka cannot read a schema without that package.
"""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from headrace.avro.error import ClientError
from headrace.client.schema_serdes.codecs.avro_codec import avro_name, parsed
from headrace.errors import SerializationError

__all__ = ["LoadedSchema", "load", "loads"]


class LoadedSchema:
    """A schema that was read without the avro package. It is equal to others of the same JSON.

    Args:
        schema_str: its JSON.

    Attributes:
        fullname: of a named type, with its namespace; of another, the type.

    Raises:
        ClientError: it is not a schema.
    """

    def __init__(self, schema_str: str) -> None:
        try:
            self._json = json.loads(schema_str)
            self.fullname = avro_name(parsed(schema_str))
        except (SerializationError, ValueError, RecursionError) as error:
            raise ClientError(f"Schema parse failed: {error}") from error
        self._text = json.dumps(self._json)

    @property
    def name(self) -> str | None:
        """The last part of `fullname`."""
        return None if self.fullname is None else self.fullname.rpartition(".")[2]

    @property
    def namespace(self) -> str | None:
        """What stands before the last part of `fullname`; None for nothing."""
        return None if self.fullname is None else self.fullname.rpartition(".")[0] or None

    def to_json(self) -> Any:
        """The schema as JSON has it."""
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"LoadedSchema({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoadedSchema) and self._json == other.to_json()

    def __hash__(self) -> int:
        return hash(self._text)


def loads(schema_str: str) -> Any:
    """The schema that a text describes.

    Args:
        schema_str: its JSON.

    Returns:
        A `Schema` of the avro package where that is installed, else a `LoadedSchema`.

    Raises:
        ClientError: it is not a schema.
    """
    try:
        import avro.schema
    except ImportError:
        return LoadedSchema(schema_str)
    try:
        return avro.schema.parse(schema_str)
    except Exception as error:  # of whatever kind: the text is not ours
        raise ClientError(f"Schema parse failed: {error}") from error


def load(fp: str | PathLike[str]) -> Any:
    """The schema that a file describes.

    Args:
        fp: path of the file.

    Returns:
        As `loads`.

    Raises:
        ClientError: it is not a schema.
        OSError: the file cannot be read.
    """
    with open(fp, encoding="utf-8") as file:
        return loads(file.read())
