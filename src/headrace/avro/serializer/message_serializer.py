"""`MessageSerializer`: values to the id of a schema and Avro's bytes, and back."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

from headrace.avro.error import ClientError
from headrace.avro.serializer import KeySerializerError, SerializerError, ValueSerializerError
from headrace.client.schema_serdes.codecs.avro_codec import decoder_of, encoder_of, parsed
from headrace.errors import SerializationError

__all__ = ["HAS_FAST", "MAGIC_BYTE", "ContextStringIO", "MessageSerializer"]

MAGIC_BYTE = 0
HAS_FAST = True
"""fastavro is what writes and reads."""
_FRAME = struct.Struct(">bI")


class ContextStringIO(io.BytesIO):
    """Bytes in memory that a `with` block closes."""


class MessageSerializer:
    """Writes and reads messages whose schemas are in a registry.

    Args:
        registry_client: a `CachedSchemaRegistryClient`.
        reader_key_schema: that keys are to have; None for the one that they were written with.
        reader_value_schema: the same for values.
    """

    def __init__(self, registry_client: Any, reader_key_schema: Any = None, reader_value_schema: Any = None) -> None:
        self.registry_client = registry_client
        self.id_to_decoder_func: dict[tuple[int, bool], Callable[[bytes], Any]] = {}
        self.id_to_writers: dict[int, Callable[[Any], bytes | bytearray]] = {}
        self.reader_key_schema = reader_key_schema
        self.reader_value_schema = reader_value_schema

    def encode_record_with_schema(self, topic: str, schema: Any, record: Any, is_key: bool = False) -> bytes:
        """Write a value of a schema, which is registered under the topic's name and "-key" or "-value".

        Args:
            topic: the topic's name.
            schema: as `loads` gives it.
            record: the value.
            is_key: it is a key.

        Returns:
            The bytes of the message: a zero byte, the schema's id in four bytes, the value.

        Raises:
            ClientError: the registry refused.
            SerializerError: the registry knows no id.
        """
        subject = f"{topic}-{'key' if is_key else 'value'}"
        registry = self.registry_client
        ask = registry.register if registry.auto_register_schemas else registry.check_registration
        schema_id = ask(subject, schema)
        if not schema_id:
            raise _error(is_key)(f"Unable to retrieve schema id for subject {subject}")
        if schema_id not in self.id_to_writers:
            self.id_to_writers[schema_id] = encoder_of(parsed(str(schema)))
        return self.encode_record_with_schema_id(schema_id, record, is_key)

    def encode_record_with_schema_id(self, schema_id: int, record: Any, is_key: bool = False) -> bytes:
        """Write a value of a schema of the registry. Returns the bytes as `encode_record_with_schema` does.

        Args:
            schema_id: its number.
            record: the value.
            is_key: it is a key.

        Raises:
            SerializerError: the registry does not know the schema.
        """
        write = self.id_to_writers.get(schema_id)
        if write is None:
            try:
                schema = self.registry_client.get_by_id(schema_id)
            except ClientError as error:
                raise _error(is_key)(repr(error)) from error
            if not schema:
                raise _error(is_key)("Schema does not exist")
            write = self.id_to_writers[schema_id] = encoder_of(parsed(str(schema)))
        return _FRAME.pack(MAGIC_BYTE, schema_id) + write(record)

    def decode_message(self, message: bytes | None, is_key: bool = False) -> Any:
        """Read a key or a value.

        Args:
            message: its bytes.
            is_key: it is a key.

        Returns:
            The value, as the reader's schema has it if there is one; None if there are no bytes.

        Raises:
            SerializerError: the bytes do not fit, or the registry does not know the schema.
        """
        if message is None:
            return None
        if len(message) <= _FRAME.size:
            raise SerializerError("message is too small to decode")
        magic, schema_id = _FRAME.unpack_from(message)
        if magic != MAGIC_BYTE:
            raise SerializerError("message does not start with magic byte")
        try:
            return self._decoder(schema_id, is_key)(bytes(message[_FRAME.size:]))
        except SerializationError as error:
            raise SerializerError(str(error)) from error

    def _decoder(self, schema_id: int, is_key: bool) -> Callable[[bytes], Any]:
        decode = self.id_to_decoder_func.get((schema_id, is_key))
        if decode is None:
            try:
                schema = self.registry_client.get_by_id(schema_id)
            except ClientError as error:
                raise SerializerError(f"unable to fetch schema with id {schema_id}: {error}") from error
            if schema is None:
                raise SerializerError(f"unable to fetch schema with id {schema_id}")
            reader = self.reader_key_schema if is_key else self.reader_value_schema
            decode = self.id_to_decoder_func[schema_id, is_key] = decoder_of(
                parsed(str(schema)), None if reader is None else parsed(str(reader)))
        return decode


def _error(is_key: bool) -> type[SerializerError]:
    return KeySerializerError if is_key else ValueSerializerError
