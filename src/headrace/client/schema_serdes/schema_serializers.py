"""What serializers of all formats do: which subject, which schema, its id, and the bytes of many messages after that.

What a subject's messages need is found out with the first of them and bound into one function; those that follow call
it, and ask nobody. A format says what its schema is and how a value becomes bytes.
It must not know formats. Read next: `client.schema_serdes.avro_serdes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from headrace.client.registry.schema_ids import SchemaId, prefix_schema_id_serializer
from headrace.client.schema_serdes.registry_steps import Steps, run, run_async
from headrace.client.schema_serdes.schema_rules import check_no_rule
from headrace.client.schema_serdes.serde_settings import VALIDATION, settings_of
from headrace.client.schema_serdes.subject_choice import SubjectChoice
from headrace.client.serdes import MessageField, SerializationContext, Serializer
from headrace.errors import SerializationError
from headrace.interpreter import SteadyLock
from headrace.types.registry import RegisteredSchema, RuleMode, RulePhase, Schema

__all__ = ["AsyncBaseSerde", "AsyncBaseSerializer", "BaseSerde", "BaseSerializer", "WritingFormat", "chosen_schema",
           "converter_of", "follows_latest", "keep", "no_rule_registry", "subject_choice_of"]

MAX_KEPT = 1000
"""Topics, subjects and schemas that a serializer keeps at hand; it asks its client again for those of others."""
Convert = Callable[[Any, SerializationContext], Any]
Encode = Callable[[Any, SerializationContext | None], bytes]
_Bound = tuple[RegisteredSchema | None, Encode]
_T = TypeVar("_T")


class WritingFormat(Protocol):
    """What a serializer must be told about its format."""

    schema_type: str
    """AVRO, JSON or PROTOBUF."""
    form: str | None
    """In which form the registry is to send schemas; None for its own."""
    message_indexes: list[int] | None
    """For Protobuf, which type of its file the messages are."""

    def prepared(self, client: Any) -> Steps[None]:
        """The rule: read the schema, if there is one and it was not yet."""

    def record_name(self) -> str | None:
        """Name of the record's type, for strategies."""

    def check(self, obj: Any) -> None:
        """Refuse an object that is none of the format's, before a schema is registered for it."""

    def own_schema(self, ctx: SerializationContext | None, client: Any) -> Steps[Schema]:
        """The rule: the schema to register."""

    def writer(self, schema: Schema | None, client: Any) -> Steps[Callable[[Any], bytes | bytearray]]:
        """The rule: a function that turns values into bytes, by a schema of the registry, or by the format's own."""


class BaseSerde:
    """What serializers and deserializers have in common: a registry client, perhaps their own, and subjects."""

    _registry: Any
    _subjects: SubjectChoice
    _owns_registry = False

    def own_schema_registry_client(self) -> None:
        """Have the registry client closed by `close()`."""
        self._owns_registry = True

    def configure_subject_name_strategy(
        self, subject_name_strategy_type: Any = None, subject_name_strategy_conf: dict[str, Any] | None = None,
        subject_name_strategy: Callable[..., Any] | None = None,
    ) -> None:
        """Choose how subjects are named, before the first message.

        Args:
            subject_name_strategy_type: the strategy's name.
            subject_name_strategy_conf: what ASSOCIATED is given.
            subject_name_strategy: a function, which goes before the name.

        Raises:
            ValueError: there is no such strategy.
        """
        self._subjects = SubjectChoice(subject_name_strategy, subject_name_strategy_type, subject_name_strategy_conf)

    def configure_validation_rules(self, conf: dict[str, Any]) -> None:
        """Take the properties `validation.rules.*` out of a dict.

        Raises:
            ValueError: rules are to be run, which they are not here.
        """
        settings_of({name: conf.pop(name) for name in VALIDATION if name in conf}, VALIDATION)

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Take a function that asks for the cluster's id, for ASSOCIATED; it may wait for a broker."""
        associations = self._subjects.associations()
        if associations is not None:
            associations.resolve_with(resolver)

    def close(self) -> None:
        """Close the registry client, if it is this serializer's own."""
        if self._owns_registry:
            self._owns_registry = False
            self._registry.close()


class AsyncBaseSerde(BaseSerde):
    """As `BaseSerde`, awaited."""

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Take a coroutine function that asks for the cluster's id, for ASSOCIATED."""
        super().set_cluster_id_resolver(resolver)

    def close(self) -> None:
        """Nothing: see `aclose`."""

    async def aclose(self) -> None:
        """Close the registry client, if it is this serializer's own."""
        if self._owns_registry:
            self._owns_registry = False
            await self._registry.aclose()


def converter_of(convert: Convert | None, name: str) -> Convert | None:
    """Check `to_dict` or `from_dict`.

    Raises:
        ValueError: it cannot be called.
    """
    if convert is not None and not callable(convert):
        raise ValueError(f"{name} must be callable with an object and a SerializationContext, not {convert!r:.80}")
    return convert


def no_rule_registry(rule_registry: object | None) -> None:
    """Check that no engine for rules was given.

    Raises:
        ValueError: there is one: rules are not run here, and none must be left out silently.
    """
    if rule_registry is not None:
        raise ValueError("rule_registry cannot be given: rules of schemas are not run here (decision 0034)")


def subject_choice_of(settings: Mapping[str, Any]) -> SubjectChoice:
    """The strategy that properties name."""
    return SubjectChoice(settings["subject.name.strategy"], settings["subject.name.strategy.type"],
                         settings["subject.name.strategy.conf"])


def chosen_schema(settings: Mapping[str, Any], subject: str, client: Any, form: str | None
                  ) -> Steps[RegisteredSchema | None]:
    """The rule: the schema that properties choose, `use.schema.id`, `use.latest.with.metadata` or `use.latest.version`.

    Args:
        settings: the properties.
        subject: of the message.
        client: of the registry, which keeps what it was told for as long as it is set to.
        form: in which form the registry is to send it.

    Returns:
        The schema, or None if they choose none.
    """
    found: RegisteredSchema | None = None
    number, metadata = settings.get("use.schema.id"), settings["use.latest.with.metadata"]
    if number is not None:
        schema: Schema = yield partial(client.get_schema, number, subject, form)
        found = yield partial(client.lookup_schema, subject, schema, normalize_schemas=False, deleted=True)
    elif metadata is not None:
        found = yield partial(client.get_latest_with_metadata, subject, metadata, deleted=True, fmt=form)
    elif settings["use.latest.version"]:
        found = yield partial(client.get_latest_version, subject, form)
    return found


def is_chosen(settings: Mapping[str, Any]) -> bool:
    """Whether properties choose a schema of the registry, see `chosen_schema`, whatever the application has given."""
    return (settings.get("use.schema.id") is not None or settings["use.latest.with.metadata"] is not None
            or settings["use.latest.version"])


def follows_latest(settings: Mapping[str, Any]) -> bool:
    """Whether the schema may become another one while messages flow."""
    return settings.get("use.schema.id") is None and is_chosen(settings)


class SchemaWriting:
    """The rules of a serializer, and what it has found out.

    Args:
        form: its format.
        client: of the registry.
        settings: its properties.
        to_dict: what is called before.
        alone: runs a rule while no other thread or task runs one, so that a schema is registered once.
    """

    def __init__(
        self, form: WritingFormat, client: Any, settings: Mapping[str, Any], to_dict: Convert | None,
        alone: Callable[[Steps[_Bound]], Any],
    ) -> None:
        self._form = form
        self._client = client
        self._settings = settings
        self._to_dict = to_dict
        self._alone = alone
        self._moves = follows_latest(settings)
        self._by_subject: dict[str, _Bound] = {}
        self.ready: dict[tuple[str, MessageField], Encode] = {}

    def encoder(self, subjects: SubjectChoice, obj: Any, ctx: SerializationContext | None) -> Steps[Encode]:
        """The rule: the function for a message.

        Args:
            subjects: how they are named.
            obj: what is to be written.
            ctx: where the message goes to.

        Raises:
            SerializationError: there is no schema, or it has rules.
            TypeError: `to_dict` needs a context, and there is none.
            ValueError: the object is none of the format's.
        """
        self._form.check(obj)
        if ctx is None and self._to_dict is not None:
            raise TypeError("SerializationContext cannot be None: to_dict is called with it")
        yield from self._form.prepared(self._client)
        subject = yield from subjects.subject(ctx, self._form.record_name(), self._client)
        if subject is None:
            raise SerializationError("the strategy names no subject for the schema: it has no name")
        known = self._by_subject.get(subject)
        if known is None or self._moves:
            chosen = yield from chosen_schema(self._settings, subject, self._client, self._form.form)
            if known is None or (known[0] is not chosen and known[0] != chosen):
                known = yield lambda: self._alone(self._bound(subject, chosen, ctx))
        if ctx is not None and subjects.lasting and not self._moves:
            keep(self.ready, (ctx.topic, ctx.field), known[1])
        return known[1]

    def _bound(
        self, subject: str, chosen: RegisteredSchema | None, ctx: SerializationContext | None
    ) -> Steps[_Bound]:
        known = self._by_subject.get(subject)
        if known is not None and known[0] == chosen:
            return known
        registered = chosen or (yield from self._registered(subject, ctx))
        schema = None if chosen is None else chosen.schema
        check_no_rule(schema, RuleMode.WRITE, (RulePhase.DOMAIN, RulePhase.ENCODING))
        write = yield from self._form.writer(schema, self._client)
        known = chosen, self._encode(write, registered)
        keep(self._by_subject, subject, known)
        return known

    def _registered(self, subject: str, ctx: SerializationContext | None) -> Steps[RegisteredSchema]:
        schema = yield from self._form.own_schema(ctx, self._client)
        call = (self._client.register_schema_full_response if self._settings["auto.register.schemas"]
                else self._client.lookup_schema)
        registered: RegisteredSchema = yield partial(
            call, subject, schema, normalize_schemas=self._settings["normalize.schemas"])
        return registered

    def _encode(self, write: Callable[[Any], bytes | bytearray], registered: RegisteredSchema) -> Encode:
        to_dict, framed = self._to_dict, self._settings["schema.id.serializer"]
        schema_id = SchemaId(self._form.schema_type, registered.schema_id, registered.guid,
                             self._form.message_indexes)
        if framed is not prefix_schema_id_serializer:
            return lambda obj, ctx: framed(bytes(write(_dict_of(to_dict, obj, ctx))), ctx, schema_id)
        prefix = schema_id.id_to_bytes()
        if to_dict is None:
            return lambda obj, ctx: prefix + write(obj)
        return lambda obj, ctx: prefix + write(_dict_of(to_dict, obj, ctx))


def _dict_of(to_dict: Convert | None, obj: Any, ctx: SerializationContext | None) -> Any:
    return obj if to_dict is None else to_dict(obj, ctx)  # type: ignore[arg-type]


def keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    """Add to what is kept, which does not grow without end."""
    if len(kept) >= MAX_KEPT:
        kept.clear()
    kept[key] = value


class BaseSerializer(BaseSerde, Serializer):
    """A serializer of any format; see those of the formats."""

    def __init__(self, form: WritingFormat, client: Any, settings: Mapping[str, Any], to_dict: Convert | None) -> None:
        self._registry = client
        self._lock = SteadyLock()
        self._subjects = subject_choice_of(settings)
        self._writing = SchemaWriting(form, client, settings, to_dict, self._alone)
        self._ready = self._writing.ready
        run(form.prepared(client))

    def _alone(self, steps: Steps[_T]) -> _T:
        with self._lock:
            return run(steps)

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Convert an object.

        Args:
            obj: what to convert; None stays None.
            ctx: where it goes to.

        Returns:
            The schema's id and the bytes.

        Raises:
            SchemaRegistryError: the registry does not know the schema, or does not take it.
            SerializationError: the value does not fit, or the schema cannot be used.
            TypeError, ValueError: the same, as the format's library says it.
        """
        if obj is None:
            return None
        try:
            encode = self._ready[ctx.topic, ctx.field]  # type: ignore[union-attr]
        except (AttributeError, KeyError):
            encode = run(self._writing.encoder(self._subjects, obj, ctx))
        return encode(obj, ctx)


class AsyncBaseSerializer(AsyncBaseSerde, Serializer):
    """As `BaseSerializer`, awaited; awaiting it itself reads its schema."""

    def __init__(self, form: WritingFormat, client: Any, settings: Mapping[str, Any], to_dict: Convert | None) -> None:
        self._registry = client
        self._form = form
        self._lock = asyncio.Lock()
        self._subjects = subject_choice_of(settings)
        self._writing = SchemaWriting(form, client, settings, to_dict, self._alone)
        self._ready = self._writing.ready

    def __await__(self) -> Generator[Any, None, Self]:
        return self._made().__await__()

    async def _made(self) -> Self:
        await run_async(self._form.prepared(self._registry))
        return self

    async def _alone(self, steps: Steps[_T]) -> _T:
        async with self._lock:
            return await run_async(steps)

    async def __call__(  # type: ignore[override]
        self, obj: Any, ctx: SerializationContext | None = None
    ) -> bytes | None:
        """As `BaseSerializer.__call__`, awaited."""
        if obj is None:
            return None
        try:
            encode = self._ready[ctx.topic, ctx.field]  # type: ignore[union-attr]
        except (AttributeError, KeyError):
            encode = await run_async(self._writing.encoder(self._subjects, obj, ctx))
        return encode(obj, ctx)
