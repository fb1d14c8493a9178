"""What deserializers of all formats do: which schema a message was written with, and the function that reads it.

What a schema's messages need is found out with the first of them and bound into one function; those that follow call
it, and ask nobody. They must not know formats. Read next: `client.schema_serdes.schema_serializers`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Protocol, Self

from headrace.client.registry.schema_ids import (
    KEY_SCHEMA_ID_HEADER,
    VALUE_SCHEMA_ID_HEADER,
    SchemaId,
    dual_schema_id_deserializer,
    prefix_schema_id_deserializer,
)
from headrace.client.schema_serdes.registry_steps import Steps, run, run_async
from headrace.client.schema_serdes.schema_rules import check_no_rule, has_migrations
from headrace.client.schema_serdes.schema_serializers import (
    AsyncBaseSerde,
    BaseSerde,
    Convert,
    chosen_schema,
    follows_latest,
    keep,
    subject_choice_of,
)
from headrace.client.schema_serdes.subject_choice import SubjectChoice
from headrace.client.serdes import Deserializer, MessageField, SerializationContext
from headrace.errors import SerializationError
from headrace.types.registry import RegisteredSchema, RuleMode, RulePhase, Schema

__all__ = ["AsyncBaseDeserializer", "BaseDeserializer", "ReadingFormat"]

ID_SIZE = 5
"""Bytes of a schema's id before the payload."""
Decode = Callable[[bytes, SerializationContext | None], Any]
Read = Callable[[bytes], Any]


class ReadingFormat(Protocol):
    """What a deserializer must be told about its format."""

    schema_type: str
    """AVRO, JSON or PROTOBUF."""
    form: str | None
    """In which form the registry is to send schemas; None for its own."""
    own: Schema | None
    """The schema that values are to have, if the application gave one."""

    def prepared(self, client: Any) -> Steps[None]:
        """The rule: read the schema, if there is one and it was not yet."""

    def record_name(self, writer: Schema, schema_id: SchemaId, client: Any) -> Steps[str | None]:
        """The rule: name of the type that a message was written with, for strategies."""

    def reader(self, writer: Schema | None, latest: Schema | None, schema_id: SchemaId, client: Any) -> Steps[Read]:
        """The rule: a function from bytes that were written with one schema to a value of another.

        Args:
            writer: what it was written with; None if there is no registry to ask.
            latest: what it is to become, if properties choose a schema of the registry.
            schema_id: which one the writer's is.
            client: of the registry.
        """


class SchemaReading:
    """The rules of a deserializer, and what it has found out.

    Args:
        form: its format.
        client: of the registry; None for none.
        settings: its properties.
        from_dict: what is called behind.
    """

    def __init__(
        self, form: ReadingFormat, client: Any, settings: Mapping[str, Any], from_dict: Convert | None
    ) -> None:
        self._form = form
        self._client = client
        self._settings = settings
        self._from_dict = from_dict
        self._moves = follows_latest(settings)
        self._split = settings["schema.id.deserializer"]
        self._in_front = self._split in (dual_schema_id_deserializer, prefix_schema_id_deserializer)
        self._by_schema: dict[Any, Decode] = {}
        self.ready: dict[tuple[str, MessageField, bytes], Decode] = {}

    def decoder(
        self, subjects: SubjectChoice, data: bytes, ctx: SerializationContext | None
    ) -> Steps[tuple[Decode, bytes]]:
        """The rule: the function for a message, and what to call it with.

        Args:
            subjects: how they are named.
            data: the message's bytes.
            ctx: where it comes from.

        Raises:
            SerializationError: the bytes do not begin with an id, or the schema has rules.
            TypeError: `from_dict` needs a context, and there is none.
        """
        if ctx is None and self._from_dict is not None:
            raise TypeError("SerializationContext cannot be None: from_dict is called with it")
        yield from self._form.prepared(self._client)
        schema_id = SchemaId(self._form.schema_type)
        rest: Any = self._split(data, ctx, schema_id)
        payload: bytes = rest.read() if isinstance(rest, io.IOBase) else rest
        decode = yield from self._of_schema(subjects, schema_id, ctx)
        if ctx is not None and self._in_front and subjects.lasting and not self._moves and len(payload) < len(data):
            keep(self.ready, (ctx.topic, ctx.field, bytes(data[:len(data) - len(payload)])), decode)
        return decode, payload

    def _of_schema(
        self, subjects: SubjectChoice, schema_id: SchemaId, ctx: SerializationContext | None
    ) -> Steps[Decode]:
        subject = None if ctx is None else (yield from subjects.subject(ctx, None, self._client))
        latest = yield from self._chosen(subject)
        written_with = schema_id.id if schema_id.id is not None else schema_id.guid
        key = subject, written_with, tuple(schema_id.message_indexes or ())
        if subject is not None or ctx is None or not self._moves:
            known = self._by_schema.get((key, latest))
            if known is not None:
                return known
        writer = yield from self._writer(schema_id, subject)
        if subject is None and ctx is not None and writer is not None:
            name = yield from self._form.record_name(writer, schema_id, self._client)
            subject = yield from subjects.subject(ctx, name, self._client)
            latest = yield from self._chosen(subject)
            if self._moves:
                key = subject, *key[1:]
                known = self._by_schema.get((key, latest))
                if known is not None:
                    return known
        decode = yield from self._bound(subject, writer, latest, schema_id)
        keep(self._by_schema, (key, latest), decode)
        return decode

    def _chosen(self, subject: str | None) -> Steps[RegisteredSchema | None]:
        if subject is None or self._client is None:
            return None
        return (yield from chosen_schema(self._settings, subject, self._client, self._form.form))

    def _writer(self, schema_id: SchemaId, subject: str | None) -> Steps[Schema | None]:
        if self._client is None:
            return None
        call = (partial(self._client.get_schema, schema_id.id, subject, self._form.form) if schema_id.id is not None
                else partial(self._client.get_schema_by_guid, str(schema_id.guid), self._form.form))
        schema: Schema = yield call
        if schema.schema_str is None:
            raise SerializationError(f"the registry told nothing of schema {schema_id.id or schema_id.guid}")
        return schema

    def _bound(
        self, subject: str | None, writer: Schema | None, latest: RegisteredSchema | None, schema_id: SchemaId
    ) -> Steps[Decode]:
        newest = None if latest is None else latest.schema
        if subject is not None:
            check_no_rule(writer, RuleMode.READ, (RulePhase.ENCODING,))
            check_no_rule(newest or self._form.own or writer, RuleMode.READ, (RulePhase.DOMAIN,))
            if latest is not None and writer is not None:
                yield from _no_migrations(subject, writer, latest, self._client)
        read = yield from self._form.reader(writer, newest, schema_id, self._client)
        from_dict = self._from_dict
        if from_dict is None:
            return lambda payload, ctx: read(payload)
        return lambda payload, ctx: from_dict(read(payload), ctx)  # type: ignore[arg-type]


def _no_migrations(subject: str, writer: Schema, latest: RegisteredSchema, client: Any) -> Steps[None]:
    """The rule: no rules lead from one version to the other."""
    source: RegisteredSchema = yield partial(
        client.lookup_schema, subject, writer, normalize_schemas=False, deleted=True)
    if source.version is None or latest.version is None or source.version == latest.version:
        return
    first, last = sorted((source, latest), key=lambda one: one.version or 0)
    mode = RuleMode.UPGRADE if last is latest else RuleMode.DOWNGRADE
    for version in range((first.version or 0) + 1, (last.version or 0) + 1):
        step = last if version == last.version else (yield partial(client.get_version, subject, version, True))
        if has_migrations(step.schema, mode):
            raise SerializationError(f"version {version} of {subject} has migration rules, and rules are not run here "
                                     "(decision 0034)")


def _id_is_in_front(ctx: Any) -> bool:
    """Whether no header says which schema it is."""
    headers: Any = ctx.headers
    if not headers:
        return True
    name = KEY_SCHEMA_ID_HEADER if ctx.field == MessageField.KEY else VALUE_SCHEMA_ID_HEADER
    if isinstance(headers, dict):
        return name not in headers
    return all(header[0] != name for header in headers)


def _is_too_short(data: bytes, ctx: SerializationContext | None) -> bool:
    """Whether a message that could not be read has no room for an id and a value."""
    return len(data) <= ID_SIZE and (ctx is None or _id_is_in_front(ctx))


def _with_size(error: SerializationError, data: bytes) -> SerializationError:
    return SerializationError(f"Expecting data framing of length {ID_SIZE + 1} bytes or more but total data size is "
                              f"{len(data)} bytes: {error}")


class BaseDeserializer(BaseSerde, Deserializer):
    """A deserializer of any format; see those of the formats."""

    def __init__(
        self, form: ReadingFormat, client: Any, settings: Mapping[str, Any], from_dict: Convert | None
    ) -> None:
        self._registry = client
        self._subjects = subject_choice_of(settings)
        self._reading = SchemaReading(form, client, settings, from_dict)
        self._ready = self._reading.ready
        run(form.prepared(client))

    def _frame(self, data: bytes) -> int:
        """Bytes before the payload, of those frames that may be ready."""
        return ID_SIZE

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Convert bytes.

        Args:
            value: a schema's id and what was written with the schema; None stays None.
            ctx: where they come from; without one the id is in front, and the schema that they were written with
                is the one to read.

        Returns:
            The value.

        Raises:
            SchemaRegistryError: the registry does not know the schema.
            SerializationError: the bytes do not fit the schema.
        """
        if value is None:
            return None
        size = self._frame(value)
        try:
            ready = self._ready[ctx.topic, ctx.field, value[:size]]  # type: ignore[union-attr]
        except (AttributeError, KeyError, TypeError):  # no context, the first of its kind, or not bytes
            ready = None
        try:
            if ready is not None and _id_is_in_front(ctx):
                return ready(value[size:], ctx)
            decode, payload = run(self._reading.decoder(self._subjects, value, ctx))
            return decode(payload, ctx)
        except SerializationError as error:
            if not _is_too_short(value, ctx):
                raise
            raise _with_size(error, value) from error


class AsyncBaseDeserializer(AsyncBaseSerde, Deserializer):
    """As `BaseDeserializer`, awaited; awaiting it itself reads its schema."""

    def __init__(
        self, form: ReadingFormat, client: Any, settings: Mapping[str, Any], from_dict: Convert | None
    ) -> None:
        self._registry = client
        self._form = form
        self._subjects = subject_choice_of(settings)
        self._reading = SchemaReading(form, client, settings, from_dict)
        self._ready = self._reading.ready

    def __await__(self) -> Generator[Any, None, Self]:
        return self._made().__await__()

    async def _made(self) -> Self:
        await run_async(self._form.prepared(self._registry))
        return self

    def _frame(self, data: bytes) -> int:
        return ID_SIZE

    async def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """As `BaseDeserializer.__call__`, awaited."""
        if value is None:
            return None
        size = self._frame(value)
        try:
            ready = self._ready[ctx.topic, ctx.field, value[:size]]  # type: ignore[union-attr]
        except (AttributeError, KeyError, TypeError):  # no context, the first of its kind, or not bytes
            ready = None
        try:
            if ready is not None and _id_is_in_front(ctx):
                return ready(value[size:], ctx)
            decode, payload = await run_async(self._reading.decoder(self._subjects, value, ctx))
            return decode(payload, ctx)
        except SerializationError as error:
            if not _is_too_short(value, ctx):
                raise
            raise _with_size(error, value) from error
