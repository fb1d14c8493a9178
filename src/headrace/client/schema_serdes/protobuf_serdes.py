"""Protobuf's serializers and deserializers, under confluent_kafka's names.

`headrace.schema_registry.protobuf` is the public face. Read next: `client.schema_serdes.codecs.protobuf_codec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.client.registry.schema_ids import SchemaId
from headrace.client.registry.subject_names import reference_subject_name_strategy
from headrace.client.schema_serdes.codecs.protobuf_codec import (
    file_text,
    is_builtin,
    message_class,
    message_indexes,
    message_name,
)
from headrace.client.schema_serdes.registry_steps import Steps
from headrace.client.schema_serdes.schema_deserializers import ID_SIZE, AsyncBaseDeserializer, BaseDeserializer
from headrace.client.schema_serdes.schema_serializers import AsyncBaseSerializer, BaseSerializer, no_rule_registry
from headrace.client.schema_serdes.serde_settings import READING, VALIDATION, WRITING, SerdeProperty, settings_of
from headrace.client.serdes import SerializationContext
from headrace.errors import SerializationError
from headrace.types.registry import Schema, SchemaReference

__all__ = ["PROTOBUF_TYPE", "AsyncProtobufDeserializer", "AsyncProtobufSerializer", "ProtobufDeserializer",
           "ProtobufSerializer"]

PROTOBUF_TYPE = "PROTOBUF"
_FORM = "serialized"
"""The form of schemas in which they are files' descriptors, and not their sources."""
_MAX_IMPORTS = 100
"""Files that import one another, in a line."""
_DEPRECATED = {"use.deprecated.format": SerdeProperty(
    False, bool, lambda value: value is False, "must be a boolean value, and False: the format before 1.9 is gone")}
_WRITING = WRITING | VALIDATION | _DEPRECATED | {
    "skip.known.types": SerdeProperty(True, bool, None, "must be a boolean value"),
    "reference.subject.name.strategy": SerdeProperty(
        reference_subject_name_strategy, None, callable, "must be callable"),
}
_READING = READING | _DEPRECATED


class _ProtobufWriting:
    """What serializers of Protobuf do."""

    schema_type = PROTOBUF_TYPE
    form: str | None = _FORM

    def __init__(self, message_type: Any, settings: Mapping[str, Any]) -> None:
        self._type = message_type
        self._descriptor = message_type.DESCRIPTOR
        self._settings = settings
        self.message_indexes: list[int] | None = message_indexes(self._descriptor)

    def prepared(self, client: Any) -> Steps[None]:
        yield from ()

    def record_name(self) -> str | None:
        name: str = self._descriptor.full_name
        return name

    def check(self, obj: Any) -> None:
        if not isinstance(obj, self._type):
            raise ValueError(f"message must be of type {self._type} not {type(obj)}")

    def own_schema(self, ctx: SerializationContext | None, client: Any) -> Steps[Schema]:
        return (yield from self._of_file(self._descriptor.file, ctx, client, _MAX_IMPORTS))

    def _of_file(self, file: Any, ctx: SerializationContext | None, client: Any, left: int) -> Steps[Schema]:
        """The rule: a file's schema; the files that it imports are registered, if they are to be, and looked up."""
        if left == 0:
            raise SerializationError(f"{self._descriptor.file.name} imports files that import files, "
                                     f"more than {_MAX_IMPORTS} in a line")
        references = []
        for imported in file.dependencies:
            if self._settings["skip.known.types"] and is_builtin(imported.name):
                continue
            schema = yield from self._of_file(imported, ctx, client, left - 1)
            subject = yield partial(self._settings["reference.subject.name.strategy"], ctx, imported)
            normalize = self._settings["normalize.schemas"]
            if self._settings["auto.register.schemas"]:
                yield partial(client.register_schema, subject, schema, normalize_schemas=normalize)
            registered = yield partial(client.lookup_schema, subject, schema, normalize_schemas=normalize)
            references.append(SchemaReference(imported.name, subject, registered.version))
        return Schema(file_text(file), PROTOBUF_TYPE, references)

    def writer(self, schema: Schema | None, client: Any) -> Steps[Callable[[Any], bytes]]:
        yield from ()
        kind = self._type

        def write(message: Any) -> bytes:
            if not isinstance(message, kind):
                self.check(message)
            return message.SerializeToString()  # type: ignore[no-any-return]
        return write


class _ProtobufReading:
    """What deserializers of Protobuf do."""

    schema_type = PROTOBUF_TYPE
    form: str | None = _FORM
    own: Schema | None = None

    def __init__(self, message_type: Any) -> None:
        self._parse = message_class(message_type).FromString

    def prepared(self, client: Any) -> Steps[None]:
        yield from ()

    def record_name(self, writer: Schema, schema_id: SchemaId, client: Any) -> Steps[str | None]:
        yield from ()
        return message_name(writer.schema_str or "", schema_id.message_indexes or [0])

    def reader(
        self, writer: Schema | None, latest: Schema | None, schema_id: SchemaId, client: Any
    ) -> Steps[Callable[[bytes], Any]]:
        from google.protobuf.message import DecodeError

        if writer is not None:  # there must be such a type
            yield from self.record_name(writer, schema_id, client)
        parse = self._parse

        def read(payload: bytes) -> Any:
            try:
                return parse(payload)
            except DecodeError as error:
                raise SerializationError(str(error)) from error
        return read


class ProtobufSerializer(BaseSerializer):
    """Messages to the schema's id, the place of their type in its file, and Protobuf's bytes.

    Args:
        msg_type: the class of the messages.
        schema_registry_client: a `SchemaRegistryClient`.
        conf: those of `AvroSerializer` but `validate.strict`, and `skip.known.types` (True): files that come with
            Protobuf are not registered, `reference.subject.name.strategy` (`reference_subject_name_strategy`): called
            with a `SerializationContext` and an imported file, `use.deprecated.format` (False, and nothing else).
        rule_conf: for rules, which are not run.
        rule_registry: cannot be given.

    Raises:
        ValueError: a property is unknown or will not do.
    """

    def __init__(
        self, msg_type: Any, schema_registry_client: Any, conf: dict[str, Any] | None = None,
        rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _WRITING)
        super().__init__(_ProtobufWriting(msg_type, settings), schema_registry_client, settings, None)


class AsyncProtobufSerializer(AsyncBaseSerializer):
    """As `ProtobufSerializer`, awaited: `serializer = await AsyncProtobufSerializer(...)`."""

    def __init__(
        self, msg_type: Any, schema_registry_client: Any, conf: dict[str, Any] | None = None,
        rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _WRITING)
        super().__init__(_ProtobufWriting(msg_type, settings), schema_registry_client, settings, None)


class ProtobufDeserializer(BaseDeserializer):
    """A schema's id and Protobuf's bytes to messages.

    Args:
        message_type: the class of the messages.
        conf: those of `AvroDeserializer`, and `use.deprecated.format` (False, and nothing else). Those of
            `ProtobufSerializer` are ignored, so that both can be given one dict.
        schema_registry_client: a `SchemaRegistryClient`; with it, the schema that a message was written with must be
            there and have the type that the message names.
        rule_conf: for rules, which are not run.
        rule_registry: cannot be given.

    Raises:
        DependencyError: protobuf is not installed.
        ValueError: a property is unknown or will not do.
    """

    def __init__(
        self, message_type: Any, conf: dict[str, Any] | None = None, schema_registry_client: Any = None,
        rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _READING, ignored=_WRITING)
        super().__init__(_ProtobufReading(message_type), schema_registry_client, settings, None)

    def _frame(self, data: bytes) -> int:
        return _frame_size(data)


class AsyncProtobufDeserializer(AsyncBaseDeserializer):
    """As `ProtobufDeserializer`, awaited."""

    def __init__(
        self, message_type: Any, conf: dict[str, Any] | None = None, schema_registry_client: Any = None,
        rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _READING, ignored=_WRITING)
        super().__init__(_ProtobufReading(message_type), schema_registry_client, settings, None)

    def _frame(self, data: bytes) -> int:
        return _frame_size(data)


def _frame_size(data: bytes) -> int:
    """Bytes of the id and of the message indexes: a length and small numbers, a byte each, as they usually are."""
    return ID_SIZE + 1 + (data[ID_SIZE] >> 1) if len(data) > ID_SIZE else ID_SIZE
