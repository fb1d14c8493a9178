"""Builders: a client's property has them make a serializer, together with the registry client that it asks.

confluent_kafka's names. Read next: `client.serdes`, which says when clients call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from headrace.client.schema_serdes.avro_serdes import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from headrace.client.schema_serdes.json_serdes import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from headrace.client.schema_serdes.protobuf_serdes import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from headrace.client.schema_serdes.schema_serializers import Convert
from headrace.client.serdes import DeserializerBuilder, SerializerBuilder, settled
from headrace.types.registry import Schema

__all__ = [
    "AsyncAvroDeserializerBuilder",
    "AsyncAvroSerializerBuilder",
    "AsyncJSONDeserializerBuilder",
    "AsyncJSONSerializerBuilder",
    "AsyncProtobufDeserializerBuilder",
    "AsyncProtobufSerializerBuilder",
    "AvroDeserializerBuilder",
    "AvroSerializerBuilder",
    "JSONDeserializerBuilder",
    "JSONSerializerBuilder",
    "ProtobufDeserializerBuilder",
    "ProtobufSerializerBuilder",
    "async_build_serde",
    "build_serde",
]

Conf = Mapping[str, Any]


def build_serde(
    schema_registry_client: Any, schema_registry_conf: Conf | None, construct: Callable[[Any], Any],
    init: Callable[[Any], Any] | None = None,
) -> Any:
    """Make a serializer with a registry client.

    Args:
        schema_registry_client: one that is there; it stays the application's.
        schema_registry_conf: properties of one to make; it is closed with the serializer.
        construct: called with the client, or None for none, returns the serializer.
        init: called with the serializer.

    Returns:
        The serializer.

    Raises:
        ValueError: both a client and properties were given.
    """
    client, owned = schema_registry_client, _is_to_be_made(schema_registry_client, schema_registry_conf)
    if owned:
        from headrace.client.registry.schema_registry_client import SchemaRegistryClient

        client = SchemaRegistryClient.new_client(dict(schema_registry_conf or {}))
    try:
        serde = construct(client)
        if init is not None:
            init(serde)
    except BaseException:
        if owned:
            client.close()
        raise
    if owned:
        serde.own_schema_registry_client()
    return serde


async def async_build_serde(
    schema_registry_client: Any, schema_registry_conf: Conf | None, construct: Callable[[Any], Any],
    init: Callable[[Any], Any] | None = None,
) -> Any:
    """As `build_serde`; what functions return is awaited, if it can be."""
    client, owned = schema_registry_client, _is_to_be_made(schema_registry_client, schema_registry_conf)
    if owned:
        from headrace.client.registry.async_schema_registry_client import AsyncSchemaRegistryClient

        client = AsyncSchemaRegistryClient.new_client(dict(schema_registry_conf or {}))
    try:
        serde = await settled(construct(client))
        if init is not None:
            await settled(init(serde))
    except BaseException:
        if owned:
            await client.aclose()
        raise
    if owned:
        serde.own_schema_registry_client()
    return serde


def _is_to_be_made(client: Any, conf: Conf | None) -> bool:
    if client is not None and conf is not None:
        raise ValueError("both a Schema Registry client and a configuration of one are given: use one or the other")
    return client is None and conf is not None


class _Building:
    """What a builder knows: arguments for what it makes, by name."""

    _serde: ClassVar[Callable[..., Any]]
    _given: dict[str, Any]

    def _take(self, client: Any, config: Conf | None, init: Callable[[Any], Any] | None, **given: Any) -> None:
        self._client, self._conf, self._init, self._given = client, config, init, given

    def _with(self, **given: Any) -> Self:
        self._given.update(given)
        return self

    def set_schema_registry_config(self, schema_registry_conf: dict[str, Any]) -> Self:
        """Make a registry client of these properties; it is closed with what is built."""
        self._conf = schema_registry_conf
        return self

    def set_schema_registry_client(self, schema_registry_client: Any) -> Self:
        """Use this registry client."""
        self._client = schema_registry_client
        return self

    def set_rule_config(self, rule_conf: dict[str, Any]) -> Self:
        """Properties for rules, which are not run."""
        return self._with(rule_conf=rule_conf)

    def set_rule_registry(self, rule_registry: Any) -> Self:
        """Cannot be given: `build` raises ValueError."""
        return self._with(rule_registry=rule_registry)

    def _construct(self, client: Any) -> Any:
        return type(self)._serde(schema_registry_client=client, **self._given)

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Any, dict[str, Any]]:
        """Make it; see `SerializerBuilder.build`.

        Args:
            conf: the client's properties; none is taken.
            is_key: it is for keys.

        Raises:
            ValueError: a registry client and properties of one are both given.
        """
        return build_serde(self._client, self._conf, self._construct, self._init), dict(conf)


class _AsyncBuilding(_Building):
    """As `_Building`, awaited."""

    async def build(  # type: ignore[override]
        self, conf: dict[str, Any], is_key: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Make it; see `SerializerBuilder.build`. Awaited."""
        return await async_build_serde(self._client, self._conf, self._construct, self._init), dict(conf)


class _WithSchema(_Building):
    def set_schema(self, schema_str: str | Schema) -> Self:
        """The schema, as text or as a `Schema`."""
        return self._with(schema_str=schema_str)


class _Writing(_Building):
    def set_serializer_config(self, serializer_conf: dict[str, Any]) -> Self:
        """The serializer's properties."""
        return self._with(conf=serializer_conf)

    def set_serializer_init(self, serializer_init: Callable[[Any], Any]) -> Self:
        """A function that is called with the serializer when it is made."""
        self._init = serializer_init
        return self


class _Reading(_Building):
    def set_deserializer_config(self, deserializer_conf: dict[str, Any]) -> Self:
        """The deserializer's properties."""
        return self._with(conf=deserializer_conf)

    def set_deserializer_init(self, deserializer_init: Callable[[Any], Any]) -> Self:
        """A function that is called with the deserializer when it is made."""
        self._init = deserializer_init
        return self


class _FromObjects(_WithSchema, _Writing):
    def set_to_dict(self, to_dict: Convert) -> Self:
        """A function of object and `SerializationContext` that is called before."""
        return self._with(to_dict=to_dict)


class _ToObjects(_WithSchema, _Reading):
    def set_from_dict(self, from_dict: Convert) -> Self:
        """A function of dict and `SerializationContext` that is called behind."""
        return self._with(from_dict=from_dict)


class AvroSerializerBuilder(_FromObjects, SerializerBuilder):
    """Makes an `AvroSerializer`. Arguments are as those of its class; each has a setter."""

    _serde: ClassVar[Callable[..., Any]] = AvroSerializer

    def __init__(
        self, schema_registry_config: dict[str, Any] | None = None, schema_registry_client: Any = None,
        schema: str | Schema | None = None, to_dict: Convert | None = None,
        serializer_config: dict[str, Any] | None = None, rule_config: dict[str, Any] | None = None,
        rule_registry: Any = None, serializer_init: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take(schema_registry_client, schema_registry_config, serializer_init, schema_str=schema, to_dict=to_dict,
                   conf=serializer_config, rule_conf=rule_config, rule_registry=rule_registry)


class AvroDeserializerBuilder(_ToObjects, DeserializerBuilder):
    """Makes an `AvroDeserializer`. Arguments are as those of its class; each has a setter."""

    _serde: ClassVar[Callable[..., Any]] = AvroDeserializer

    def __init__(
        self, schema_registry_config: dict[str, Any] | None = None, schema_registry_client: Any = None,
        schema: str | Schema | None = None, from_dict: Convert | None = None, return_record_name: bool = False,
        deserializer_config: dict[str, Any] | None = None, rule_config: dict[str, Any] | None = None,
        rule_registry: Any = None, deserializer_init: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take(schema_registry_client, schema_registry_config, deserializer_init, schema_str=schema,
                   from_dict=from_dict, return_record_name=return_record_name, conf=deserializer_config,
                   rule_conf=rule_config, rule_registry=rule_registry)

    def set_return_record_name(self, return_record_name: bool) -> Self:
        """Whether a union of records gives pairs of a name and a record."""
        return self._with(return_record_name=return_record_name)


class JSONSerializerBuilder(_FromObjects, SerializerBuilder):
    """Makes a `JSONSerializer`. Arguments are as those of its class; each has a setter."""

    _serde: ClassVar[Callable[..., Any]] = JSONSerializer

    def __init__(
        self, schema_registry_config: dict[str, Any] | None = None, schema_registry_client: Any = None,
        schema: str | Schema | None = None, to_dict: Convert | None = None,
        serializer_config: dict[str, Any] | None = None, rule_config: dict[str, Any] | None = None,
        rule_registry: Any = None, json_encode: Callable[[Any], bytes | str] | None = None,
        serializer_init: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take(schema_registry_client, schema_registry_config, serializer_init, schema_str=schema, to_dict=to_dict,
                   conf=serializer_config, rule_conf=rule_config, rule_registry=rule_registry, json_encode=json_encode)

    def set_json_encode(self, json_encode: Callable[[Any], bytes | str]) -> Self:
        """A function that writes JSON."""
        return self._with(json_encode=json_encode)


class JSONDeserializerBuilder(_ToObjects, DeserializerBuilder):
    """Makes a `JSONDeserializer`. Arguments are as those of its class; each has a setter."""

    _serde: ClassVar[Callable[..., Any]] = JSONDeserializer

    def __init__(
        self, schema_registry_config: dict[str, Any] | None = None, schema_registry_client: Any = None,
        schema: str | Schema | None = None, from_dict: Convert | None = None,
        deserializer_config: dict[str, Any] | None = None, rule_config: dict[str, Any] | None = None,
        rule_registry: Any = None, json_decode: Callable[[bytes], Any] | None = None,
        deserializer_init: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take(schema_registry_client, schema_registry_config, deserializer_init, schema_str=schema,
                   from_dict=from_dict, conf=deserializer_config, rule_conf=rule_config, rule_registry=rule_registry,
                   json_decode=json_decode)

    def set_json_decode(self, json_decode: Callable[[bytes], Any]) -> Self:
        """A function that reads JSON."""
        return self._with(json_decode=json_decode)


class ProtobufSerializerBuilder(_Writing, SerializerBuilder):
    """Makes a `ProtobufSerializer`. Arguments are as those of its class; each has a setter."""

    _serde: ClassVar[Callable[..., Any]] = ProtobufSerializer

    def __init__(
        self, schema_registry_config: dict[str, Any] | None = None, schema_registry_client: Any = None,
        message_type: Any = None, serializer_config: dict[str, Any] | None = None,
        rule_config: dict[str, Any] | None = None, rule_registry: Any = None,
        serializer_init: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take(schema_registry_client, schema_registry_config, serializer_init, msg_type=message_type,
                   conf=serializer_config, rule_conf=rule_config, rule_registry=rule_registry)

    def set_message_type(self, msg_type: Any) -> Self:
        """The class of the messages."""
        return self._with(msg_type=msg_type)


class ProtobufDeserializerBuilder(_Reading, DeserializerBuilder):
    """Makes a `ProtobufDeserializer`. Arguments are as those of its class; each has a setter."""

    _serde: ClassVar[Callable[..., Any]] = ProtobufDeserializer

    def __init__(
        self, schema_registry_config: dict[str, Any] | None = None, schema_registry_client: Any = None,
        message_type: Any = None, deserializer_config: dict[str, Any] | None = None,
        rule_config: dict[str, Any] | None = None, rule_registry: Any = None,
        deserializer_init: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take(schema_registry_client, schema_registry_config, deserializer_init, message_type=message_type,
                   conf=deserializer_config, rule_conf=rule_config, rule_registry=rule_registry)

    def set_message_type(self, msg_type: Any) -> Self:
        """The class of the messages."""
        return self._with(message_type=msg_type)


class AsyncAvroSerializerBuilder(_AsyncBuilding, AvroSerializerBuilder):  # type: ignore[misc]
    """As `AvroSerializerBuilder`, awaited: for clients of `headrace.aio`."""

    _serde: ClassVar[Callable[..., Any]] = AsyncAvroSerializer


class AsyncAvroDeserializerBuilder(_AsyncBuilding, AvroDeserializerBuilder):  # type: ignore[misc]
    """As `AvroDeserializerBuilder`, awaited: for clients of `headrace.aio`."""

    _serde: ClassVar[Callable[..., Any]] = AsyncAvroDeserializer


class AsyncJSONSerializerBuilder(_AsyncBuilding, JSONSerializerBuilder):  # type: ignore[misc]
    """As `JSONSerializerBuilder`, awaited: for clients of `headrace.aio`."""

    _serde: ClassVar[Callable[..., Any]] = AsyncJSONSerializer


class AsyncJSONDeserializerBuilder(_AsyncBuilding, JSONDeserializerBuilder):  # type: ignore[misc]
    """As `JSONDeserializerBuilder`, awaited: for clients of `headrace.aio`."""

    _serde: ClassVar[Callable[..., Any]] = AsyncJSONDeserializer


class AsyncProtobufSerializerBuilder(_AsyncBuilding, ProtobufSerializerBuilder):  # type: ignore[misc]
    """As `ProtobufSerializerBuilder`, awaited: for clients of `headrace.aio`."""

    _serde: ClassVar[Callable[..., Any]] = AsyncProtobufSerializer


class AsyncProtobufDeserializerBuilder(_AsyncBuilding, ProtobufDeserializerBuilder):  # type: ignore[misc]
    """As `ProtobufDeserializerBuilder`, awaited: for clients of `headrace.aio`."""

    _serde: ClassVar[Callable[..., Any]] = AsyncProtobufDeserializer
