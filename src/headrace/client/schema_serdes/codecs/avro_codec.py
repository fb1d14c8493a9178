"""Avro by fastavro: schemas read with what they refer to, and functions for the values of one schema.

It must not know registries. Read next: `client.schema_serdes.codecs.avro_limits`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from headrace.client.schema_serdes.codecs.avro_limits import check_nesting, payload_check
from headrace.client.schema_serdes.codecs.plain_values import plain
from headrace.errors import DependencyError, SerializationError

__all__ = ["AvroSchema", "Decode", "Encode", "avro_name", "declared", "decoder_of", "encoder_of", "parsed",
           "reader_of", "writer_of"]


class AvroSchema(NamedTuple):
    """A schema that was read.

    Args:
        content: as fastavro parses it: a dict, a list for a union.
        names: the named types in it, and those that it refers to.
    """

    content: Any
    names: Mapping[str, Any]


Encode = Callable[[Any], bytes | bytearray]
Decode = Callable[[bytes], Any]


class _Taken(list[Any]):
    """A file that keeps what is written into it."""

    __slots__ = ()
    write = list.append


def fastavro() -> Any:
    """The library, imported on first use.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        import fastavro
    except ImportError as error:
        raise DependencyError("Avro needs fastavro: pip install headrace[avro]") from error
    return fastavro


def declared(text: str) -> str:
    """A schema's declaration as a JSON object or array: the name of a primitive type alone becomes an object.

    Raises:
        SerializationError: there is nothing.
    """
    text = text.strip()
    if not text:
        raise SerializationError("the Avro schema is empty")
    return text if text[0] in "{[" else f'{{"type":{text}}}'


def parsed(text: str, references: Mapping[str, str] | None = None) -> AvroSchema:
    """Read a schema.

    Args:
        text: its declaration.
        references: the declarations of those that it refers to, by name, each behind those that it refers to itself.

    Raises:
        SerializationError: it is not a schema, or one that is too deep.
    """
    names: dict[str, Any] = {}
    for name, reference in (references or {}).items():
        found = _parsed(reference, names, f"schema {name}, which is referred to")
        if name not in names:  # referred to by another name than its own
            names[name] = found
    return AvroSchema(_with_names(_parsed(text, names, "the Avro schema"), names), names)


def _with_names(content: Any, names: Mapping[str, Any]) -> Any:
    """The same with the marks that fastavro leaves on a record alone: it would parse others again for each value."""
    if isinstance(content, list):
        return [_with_names(branch, names) for branch in content]
    if isinstance(content, str):
        return _with_names(names[content], names) if content in names else content
    return {**content, "__fastavro_parsed": True, "__named_schemas": names}


def _parsed(text: str, names: dict[str, Any], what: str) -> Any:
    library = fastavro()
    try:
        schema = json.loads(declared(text))
        check_nesting(schema)
        found = library.parse_schema(schema, named_schemas=names)
    except SerializationError:
        raise
    except (Exception, RecursionError) as error:
        raise SerializationError(f"{what} cannot be read: {_said(error)}") from error
    return found


def avro_name(schema: AvroSchema) -> str | None:
    """The name of a schema's type: a record's full name, a primitive's own; None of a union."""
    if not isinstance(schema.content, dict):
        return None
    name: str | None = schema.content.get("name", schema.content.get("type"))
    return name


def writer_of(schema: AvroSchema, strict: bool = False, strict_allow_default: bool = False) -> Encode:
    """As `encoder_of`; of a schema of bytes alone, they are written as they are, as Confluent's serializers do."""
    return _raw if _is_bytes(schema) else encoder_of(schema, strict, strict_allow_default)


def reader_of(schema: AvroSchema, reader: AvroSchema | None = None, return_record_name: bool = False) -> Decode:
    """As `decoder_of`; of a schema of bytes alone, they are read as they are, as Confluent's deserializers do."""
    return bytes if _is_bytes(schema) else decoder_of(schema, reader, return_record_name)


def encoder_of(schema: AvroSchema, strict: bool = False, strict_allow_default: bool = False) -> Encode:
    """A function that turns values into bytes.

    Args:
        schema: parsed.
        strict: fields that are not in the schema, or that are missing, are errors.
        strict_allow_default: the same, but for missing fields with a default.

    Returns:
        The function. What it raises for a value that does not fit is fastavro's.
    """
    write, content = fastavro().schemaless_writer, schema.content
    if strict or strict_allow_default:
        write, write_plain = partial(write, strict=strict, strict_allow_default=strict_allow_default), None
    else:
        from headrace.client.schema_serdes.codecs.avro_plans import plain_writer

        write_plain = plain_writer(content, schema.names)

    def write_any(value: Any) -> bytes | bytearray:
        if type(value) is not dict:
            value = plain(value)
        if write_plain is not None:
            try:
                return write_plain(value)
            except Exception:  # fastavro's: it says what is wrong, or finds that nothing is
                pass
        taken = _Taken()
        write(taken, content, value)
        return taken[0]  # type: ignore[no-any-return]
    return write_any


def decoder_of(schema: AvroSchema, reader: AvroSchema | None = None, return_record_name: bool = False) -> Decode:
    """A function that turns bytes into values.

    Args:
        schema: parsed, that they were written with.
        reader: parsed, that the values are to have; None for the same.
        return_record_name: of a union of records, give pairs of a name and a record.

    Returns:
        The function. It raises `SerializationError` if the bytes do not fit.

    Raises:
        SerializationError: values of the schema nest too deep.
    """
    check = payload_check(schema.content, schema.names)
    read, stream = fastavro().schemaless_reader, io.BytesIO
    written, wanted = schema.content, None if reader is None or reader == schema else reader.content

    def read_one(payload: bytes) -> Any:
        try:
            if check is not None:
                check(payload)
            return read(stream(payload), written, wanted, return_record_name)
        except SerializationError:
            raise
        except Exception as error:
            raise SerializationError(f"the bytes do not fit Avro schema {avro_name(schema)}: {_said(error)}") from error
    return read_one


def _is_bytes(schema: AvroSchema) -> bool:
    return schema.content == "bytes" or (isinstance(schema.content, dict) and schema.content.get("type") == "bytes")


def _raw(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a schema of bytes takes bytes or str, not {type(value).__name__}")


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
