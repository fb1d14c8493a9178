"""JSON's serializers and deserializers, which check values by JSON Schema, under confluent_kafka's names.

`headrace.schema_registry.json_schema` is the public face. Read next: `client.schema_serdes.codecs.json_codec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.client.registry.schema_ids import SchemaId
from headrace.client.schema_serdes.codecs.json_codec import Validate, json_codec, loaded, validator_of
from headrace.client.schema_serdes.codecs.plain_values import plain
from headrace.client.schema_serdes.registry_steps import Steps
from headrace.client.schema_serdes.schema_deserializers import AsyncBaseDeserializer, BaseDeserializer
from headrace.client.schema_serdes.schema_references import referenced
from headrace.client.schema_serdes.schema_serializers import (
    AsyncBaseSerializer,
    BaseSerializer,
    Convert,
    converter_of,
    is_chosen,
    no_rule_registry,
)
from headrace.client.schema_serdes.serde_settings import READING, VALIDATION, WRITING, SerdeProperty, settings_of
from headrace.client.serdes import SerializationContext
from headrace.errors import SerializationError
from headrace.types.registry import Schema

__all__ = ["JSON_TYPE", "AsyncJSONDeserializer", "AsyncJSONSerializer", "JSONDeserializer", "JSONSerializer"]

JSON_TYPE = "JSON"
_VALIDATE = {"validate": SerdeProperty(True, bool, None, "must be a boolean value")}
_WRITING = WRITING | VALIDATION | _VALIDATE
_READING = READING | _VALIDATE


def _schema_of(schema: str | Schema | None) -> Schema | None:
    if schema is None or isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return Schema(schema, JSON_TYPE)
    raise TypeError(f"You must pass either str or Schema as schema_str, not {type(schema).__name__}")


def _validator(schema: Schema, client: Any) -> Steps[Validate]:
    """The rule: what checks values of a schema."""
    references = yield from referenced(schema, client)
    return validator_of(
        loaded(schema.schema_str or "", "the JSON schema"),
        {name: loaded(one.schema_str or "", f"schema {name}, which is referred to")
         for name, one in references.items()})


def _title(schema: Schema) -> str | None:
    content = loaded(schema.schema_str or "", "the JSON schema")
    return content.get("title") if isinstance(content, dict) else None


class _JsonWriting:
    """What serializers of JSON do."""

    schema_type = JSON_TYPE
    form: str | None = None
    message_indexes: list[int] | None = None

    def __init__(
        self, schema: Schema | None, settings: Mapping[str, Any], encode: Callable[[Any], bytes | str] | None
    ) -> None:
        self._own = schema
        self._validate = settings["validate"]
        self._is_chosen = is_chosen(settings)
        self._encode = encode or json_codec()[0]
        self._validator: Validate | None = None
        self._name: str | None = None
        self._read = schema is None

    def prepared(self, client: Any) -> Steps[None]:
        if not self._read and self._own is not None:
            self._name = _title(self._own)
            if self._validate and not self._is_chosen:  # else no value is held to it, and its references may be missing
                self._validator = yield from _validator(self._own, client)
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

    def writer(self, schema: Schema | None, client: Any) -> Steps[Callable[[Any], bytes]]:
        encode, check = self._encode, self._validator
        if schema is not None and self._validate:
            check = yield from _validator(schema, client)

        def write(value: Any) -> bytes:
            if type(value) is not dict:
                value = plain(value)
            if check is not None:
                check(value)
            text = encode(value)
            return text if type(text) is bytes else text.encode()  # type: ignore[union-attr]
        return write


class _JsonReading:
    """What deserializers of JSON do."""

    schema_type = JSON_TYPE
    form: str | None = None

    def __init__(
        self, schema: Schema | None, settings: Mapping[str, Any], decode: Callable[[bytes], Any] | None
    ) -> None:
        self.own = schema
        self._validate = settings["validate"]
        self._is_chosen = is_chosen(settings)
        self._decode = decode or json_codec()[1]
        self._validator: Validate | None = None

    def prepared(self, client: Any) -> Steps[None]:
        if not self._is_chosen:
            yield from self._own_validator(client)

    def _own_validator(self, client: Any) -> Steps[Validate | None]:
        if self.own is not None and self._validate and self._validator is None:
            self._validator = yield from _validator(self.own, client)
        return self._validator

    def record_name(self, writer: Schema, schema_id: SchemaId, client: Any) -> Steps[str | None]:
        yield from ()
        return _title(writer)

    def reader(
        self, writer: Schema | None, latest: Schema | None, schema_id: SchemaId, client: Any
    ) -> Steps[Callable[[bytes], Any]]:
        decode, wanted = self._decode, latest or (None if self.own is not None else writer)
        if wanted is None:
            check = yield from self._own_validator(client)
        else:
            check = (yield from _validator(wanted, client)) if self._validate else None

        def read(payload: bytes) -> Any:
            try:
                value = decode(payload)
            except (ValueError, RecursionError) as error:
                raise SerializationError(f"the bytes are not JSON: {error}") from error
            if check is not None:
                check(value)
            return value
        return read


class JSONSerializer(BaseSerializer):
    """Objects to the schema's id and JSON.

    Args:
        schema_str: the schema, as JSON or as a `Schema`, which may refer to others; None where a property chooses one.
        schema_registry_client: a `SchemaRegistryClient`.
        to_dict: called as to_dict(object, `SerializationContext`) before.
        conf: those of `AvroSerializer` but `validate.strict`, and `validate` (True): values must fit the schema.
        rule_conf: for rules, which are not run.
        rule_registry: cannot be given.
        json_encode: called with a value, returns JSON as bytes or str; orjson or json without it.

    Raises:
        DependencyError: jsonschema-rs is not installed.
        SchemaRegistryError: the registry does not know a schema that is referred to.
        SerializationError: the schema cannot be read.
        TypeError: `schema_str` is no schema.
        ValueError: a property is unknown or will not do.
    """

    def __init__(
        self, schema_str: str | Schema | None, schema_registry_client: Any, to_dict: Convert | None = None,
        conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
        json_encode: Callable[[Any], bytes | str] | None = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _WRITING)
        super().__init__(_JsonWriting(_schema_of(schema_str), settings, json_encode),
                         schema_registry_client, settings, converter_of(to_dict, "to_dict"))


class AsyncJSONSerializer(AsyncBaseSerializer):
    """As `JSONSerializer`, awaited: `serializer = await AsyncJSONSerializer(...)`, `await serializer(obj, ctx)`."""

    def __init__(
        self, schema_str: str | Schema | None, schema_registry_client: Any, to_dict: Convert | None = None,
        conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
        json_encode: Callable[[Any], bytes | str] | None = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _WRITING)
        super().__init__(_JsonWriting(_schema_of(schema_str), settings, json_encode),
                         schema_registry_client, settings, converter_of(to_dict, "to_dict"))


class JSONDeserializer(BaseDeserializer):
    """A schema's id and JSON to dicts and other values.

    Args:
        schema_str: the schema that values must fit, as JSON or as a `Schema`; None for the one that they were
            written with.
        from_dict: called as from_dict(dict, `SerializationContext`) behind.
        schema_registry_client: a `SchemaRegistryClient`; needed without a schema, or for one that refers to others.
        conf: those of `AvroDeserializer`, and `validate` (True).
        rule_conf: for rules, which are not run.
        rule_registry: cannot be given.
        json_decode: called with bytes, returns a value; orjson or json without it.

    Raises:
        DependencyError: jsonschema-rs is not installed.
        SchemaRegistryError: the registry does not know a schema that is referred to.
        SerializationError: the schema cannot be read.
        TypeError: `schema_str` is no schema.
        ValueError: a property is unknown or will not do, or the client is needed.
    """

    def __init__(
        self, schema_str: str | Schema | None, from_dict: Convert | None = None, schema_registry_client: Any = None,
        conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
        json_decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _READING)
        super().__init__(_reading(schema_str, schema_registry_client, settings, json_decode), schema_registry_client,
                         settings, converter_of(from_dict, "from_dict"))


class AsyncJSONDeserializer(AsyncBaseDeserializer):
    """As `JSONDeserializer`, awaited."""

    def __init__(
        self, schema_str: str | Schema | None, from_dict: Convert | None = None, schema_registry_client: Any = None,
        conf: dict[str, Any] | None = None, rule_conf: dict[str, Any] | None = None, rule_registry: Any = None,
        json_decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        no_rule_registry(rule_registry)
        settings = settings_of(conf, _READING)
        super().__init__(_reading(schema_str, schema_registry_client, settings, json_decode), schema_registry_client,
                         settings, converter_of(from_dict, "from_dict"))


def _reading(
    schema_str: str | Schema | None, client: Any, settings: Mapping[str, Any], decode: Callable[[bytes], Any] | None
) -> _JsonReading:
    schema = _schema_of(schema_str)
    if client is None and schema is None:
        raise ValueError('schema_registry_client must be provided if "schema_str" is not provided')
    if client is None and schema is not None and schema.references:
        raise ValueError('schema_registry_client must be provided if "schema_str" is a Schema instance with references')
    return _JsonReading(schema, settings, decode)
