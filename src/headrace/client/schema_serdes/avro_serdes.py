"""Avro's serializers and deserializers, under confluent_kafka's names.

`headrace.schema_registry.avro` is the public face. Read next: `client.schema_serdes.codecs.avro_codec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.client.registry.schema_ids import SchemaId
from headrace.client.schema_serdes.codecs.avro_codec import (
    AvroSchema,
    Decode,
    Encode,
    avro_name,
    declared,
    parsed,
    reader_of,
    writer_of,
)
from headrace.client.schema_serdes.registry_steps import Steps
from headrace.client.schema_serdes.schema_deserializers import AsyncBaseDeserializer, BaseDeserializer
from headrace.client.schema_serdes.schema_references import referenced
from headrace.client.schema_serdes.schema_serializers import (
    AsyncBaseSerializer,
    BaseSerializer,
    Convert,
    converter_of,
    no_rule_registry,
)
from headrace.client.schema_serdes.serde_settings import READING, VALIDATION, WRITING, SerdeProperty, settings_of
from headrace.client.serdes import SerializationContext
from headrace.errors import SerializationError
from headrace.types.registry import Schema

__all__ = ["AVRO_TYPE", "AsyncAvroDeserializer", "AsyncAvroSerializer", "AvroDeserializer", "AvroSerializer"]

AVRO_TYPE = "AVRO"
_WRITING = WRITING | VALIDATION | {
    "validate.strict": SerdeProperty(False, bool, None, "must be a boolean value"),
    "validate.strict.allow.default": SerdeProperty(False, bool, None, "must be a boolean value"),
}


def _schema_of(schema: str | Schema | None) -> Schema | None:
    if schema is None or isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return Schema(declared(schema), AVRO_TYPE)
    raise TypeError(f"You must pass either schema string or schema object as schema_str, not {type(schema).__name__}")


_MOST_PARSED = 1000


class _Parsed:
    """Schemas that were read, with those that they refer to."""

    def __init__(self) -> None:
        self._parsed: dict[Schema, AvroSchema] = {}

    def schema(self, schema: Schema, client: Any) -> Steps[AvroSchema]:
        """The rule: a schema, read once."""
        found = self._parsed.get(schema)
        if found is None:
            references = yield from referenced(schema, client)
            found = parsed(schema.schema_str or "", {name: one.schema_str or "" for name, one in references.items()})
            if len(self._parsed) < _MOST_PARSED:
                self._parsed[schema] = found
        return found


class _AvroWriting:
    """What serializers of Avro do."""

    schema_type = AVRO_TYPE
    form: str | None = None
    message_indexes: list[int] | None = None

    def __init__(self, schema: Schema | None, settings: Mapping[str, Any]) -> None:
        self._own = schema
        self._strict = settings["validate.strict"], settings["validate.strict.allow.default"]
        self._schemas = _Parsed()
        self._name: str | None = None
        self._read = schema is None

    def prepared(self, client: Any) -> Steps[None]:
        if not self._read and self._own is not None:
            self._name = avro_name((yield from self._schemas.schema(self._own, client)))
            self._read = True

    def record_name(self) -> str | None:
        return self._name

    def check(self, obj: Any) -> None:
        """Nothing: the schema's function says what is wrong with a value."""

    def own_schema(self, ctx: SerializationContext | None, client: Any) -> Steps[Schema]:
        yield from ()
        if self._own is None:
            raise SerializationError("there is no schema to write: give one, or set use.latest.version")
        return self._own

    def writer(self, schema: Schema | None, client: Any) -> Steps[Encode]:
        used = schema or (yield from self.own_schema(None, client))
        return writer_of((yield from self._schemas.schema(used, client)), *self._strict)


class _AvroReading:
    """What deserializers of Avro do."""

    schema_type = AVRO_TYPE
    form: str | None = None

    def __init__(self, schema: Schema | None, return_record_name: bool) -> None:
        self.own = schema
        self._return_record_name = return_record_name
        self._schemas = _Parsed()

    def prepared(self, client: Any) -> Steps[None]:
        if self.own is not None:
            yield from self._schemas.schema(self.own, client)

    def record_name(self, writer: Schema, schema_id: SchemaId, client: Any) -> Steps[str | None]:
        return avro_name((yield from self._schemas.schema(writer, client)))

    def reader(
        self, writer: Schema | None, latest: Schema | None, schema_id: SchemaId, client: Any
    ) -> Steps[Decode]:
        if writer is None:
            raise SerializationError("Avro cannot be read without the schema that it was written with: give the "
                                     "deserializer a Schema Registry client")
        written = yield from self._schemas.schema(writer, client)
        wanted = latest or self.own
        reader = None if wanted is None else (yield from self._schemas.schema(wanted, client))
        return reader_of(written, reader, self._return_record_name)


class AvroSerializer(BaseSerializer):
    """Objects to the schema's id and Avro's bytes.

    Values are dicts, dataclasses or pydantic models for records, what fastavro takes for other types, and a tuple of
    a type's name and a value where a union leaves it open which type is meant.

    Args:
        schema_registry_client: a `SchemaRegistryClient`.
        schema_str: the schema, as JSON or as a `Schema`, which may refer to others; None where a property chooses one.
        to_dict: called as to_dict(object, `SerializationContext`) before.
        conf: `auto.register.schemas` (True), `normalize.schemas` (False), `use.schema.id`, `use.latest.version`
            (False), `use.latest.with.metadata`, `subject.name.strategy`, `subject.name.strategy.type` (ASSOCIATED),
            `subject.name.strategy.conf`, `schema.id.serializer` (`prefix_schema_id_serializer`), `validate.strict`
            (False): fields must be those of the schema, `validate.strict.allow.default` (False): those with a default
            may be missing.
        rule_conf: for rules, which are not run.
        rule_registry: cannot be given.

    Raises:
        DependencyError: fastavro is not installed.
        SchemaRegistryError: the registry does not know a schema that is referred to.
        SerializationError: the schema cannot be read.
        ValueError: a property is unknown or will not do.
    """

    def __init__(
        self, schema_registry_client: Any, schema_str: str | Schema | None = None, to_dict: Convert | None = None,
        conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _WRITING)
        super().__init__(_AvroWriting(_schema_of(schema_str), settings), schema_registry_client, settings,
                         converter_of(to_dict, "to_dict"))


class AsyncAvroSerializer(AsyncBaseSerializer):
    """As `AvroSerializer`, awaited: `serializer = await AsyncAvroSerializer(...)`, `await serializer(obj, ctx)`."""

    def __init__(
        self, schema_registry_client: Any, schema_str: str | Schema | None = None, to_dict: Convert | None = None,
        conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _WRITING)
        super().__init__(_AvroWriting(_schema_of(schema_str), settings), schema_registry_client, settings,
                         converter_of(to_dict, "to_dict"))


class AvroDeserializer(BaseDeserializer):
    """A schema's id and Avro's bytes to dicts and other values.

    Args:
        schema_registry_client: a `SchemaRegistryClient`.
        schema_str: the schema that values are to have, as JSON or as a `Schema`; None for the one that they were
            written with.
        from_dict: called as from_dict(dict, `SerializationContext`) behind.
        return_record_name: of a union of records, give pairs of a name and a record.
        conf: `use.latest.version` (False): values are to have the subject's latest schema, `use.latest.with.metadata`,
            `subject.name.strategy`, `subject.name.strategy.type` (ASSOCIATED), `subject.name.strategy.conf`,
            `schema.id.deserializer` (`dual_schema_id_deserializer`).
        rule_conf: for rules, which are not run.
        rule_registry: cannot be given.

    Raises:
        DependencyError: fastavro is not installed.
        SchemaRegistryError: the registry does not know a schema that is referred to.
        SerializationError: the schema cannot be read.
        TypeError: `schema_str` is no schema.
        ValueError: a property is unknown or will not do.
    """

    def __init__(
        self, schema_registry_client: Any, schema_str: str | Schema | None = None, from_dict: Convert | None = None,
        return_record_name: bool = False, conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None,
        rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        super().__init__(_reading(schema_str, return_record_name), schema_registry_client, settings_of(conf, READING),
                         converter_of(from_dict, "from_dict"))


class AsyncAvroDeserializer(AsyncBaseDeserializer):
    """As `AvroDeserializer`, awaited."""

    def __init__(
        self, schema_registry_client: Any, schema_str: str | Schema | None = None, from_dict: Convert | None = None,
        return_record_name: bool = False, conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None,
        rule_registry: Any = None,
    ) -> None:
        no_rule_registry(rule_registry)
        super().__init__(_reading(schema_str, return_record_name), schema_registry_client, settings_of(conf, READING),
                         converter_of(from_dict, "from_dict"))


def _reading(schema: str | Schema | None, return_record_name: bool) -> _AvroReading:
    if not isinstance(return_record_name, bool):
        raise ValueError(f"return_record_name must be a boolean value, not {return_record_name!r:.80}")
    return _AvroReading(_schema_of(schema), return_record_name)
