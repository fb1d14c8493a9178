"""What a registry client remembers: schemas by id, GUID and version, ids by schema, and latest versions for a while.

No lock: each step is one operation of a dict, so that a fork leaves nothing locked. Knows no registry. Read next:
`client.registry.registry_engine`.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from headrace.types.registry import RegisteredSchema, Schema

__all__ = ["AS_REGISTERED", "SchemaForm", "LruCache", "SchemaCache"]


class LruCache:
    """Values by key; the ones that were not asked for longest go when there are too many.

    Args:
        capacity: the most that are kept; 0 keeps none.
        life_s: how long each is kept; None keeps them.
        clock: monotonic seconds.
    """

    def __init__(self, capacity: int, life_s: float | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._life_s, self._clock = capacity, life_s, clock
        self._kept: OrderedDict[Hashable, tuple[Any, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        try:
            value, until = self._kept[key]
            if until <= self._clock():
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
        except KeyError:  # also where another thread has dropped it meanwhile
            return None
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Remember a value."""
        self._kept[key] = (value, float("inf") if self._life_s is None else self._clock() + self._life_s)
        while len(self._kept) > self._capacity:
            try:
                self._kept.popitem(last=False)
            except KeyError:  # other threads have dropped them all
                return

    def drop(self, unwanted: Callable[[Any, Any], bool]) -> None:
        """Forget what a function says of key and value."""
        for key, (value, _) in self._items():
            if unwanted(key, value):
                self._kept.pop(key, None)

    def _items(self) -> list[tuple[Hashable, tuple[Any, float]]]:
        while True:
            try:
                return list(self._kept.items())
            except RuntimeError:  # without the GIL another thread may come in between
                continue

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


class SchemaForm(NamedTuple):
    """In which form a schema's text was asked for.

    Args:
        fmt: name of a format, None for the schema as it was registered.
        reference_format: the same for the schemas that it refers to.
    """

    fmt: str | None = None
    reference_format: str | None = None


AS_REGISTERED = SchemaForm()
_SERIALIZED = SchemaForm("serialized")
"""The form in which Protobuf's schemas are files' descriptors, and not their sources."""
_DESCRIPTOR = re.compile(r"[A-Za-z0-9+/]+={0,2}")
"""What no source of Protobuf can be: it has blanks."""


class _ById(NamedTuple):
    subject: str | None
    schema_id: int
    form: SchemaForm


class _ByVersion(NamedTuple):
    subject: str
    version: int
    form: SchemaForm
    may_be_deleted: bool = False


class _BySchema(NamedTuple):
    subject: str
    schema: Schema
    normalize: bool


class _ByMetadata(NamedTuple):
    subject: str
    metadata: frozenset[tuple[str, str]]
    deleted: bool
    form: SchemaForm


class _Latest(NamedTuple):
    subject: str
    form: SchemaForm


class SchemaCache:
    """What is known of a registry.

    Args:
        capacity: the most of each kind that is kept.
        latest_life_s: how long the latest version of a subject is taken for it; None until the caches are cleared.
        clock: monotonic seconds.

    Attributes:
        changes: how often latest versions have become unknown; an answer to a question from before is not kept.
    """

    def __init__(self, capacity: int, latest_life_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._schemas, self._guids, self._versions, self._registered = (LruCache(capacity) for _ in range(4))
        self.changes = 0
        self._latest, self._latest_with = (LruCache(capacity, latest_life_s, clock) for _ in range(2))

    def schema(self, subject: str | None, schema_id: int, form: SchemaForm) -> Schema | None:
        """The schema of an id."""
        found: Schema | None = self._schemas.get(_ById(subject, schema_id, form))
        return found

    def schema_of_guid(self, guid: str, fmt: str | None) -> Schema | None:
        """The schema of a GUID."""
        found: Schema | None = self._guids.get((guid, fmt))
        return found

    def version(
        self, subject: str, version: int, fmt: str | None, may_be_deleted: bool = False
    ) -> RegisteredSchema | None:
        """A version of a subject."""
        found: RegisteredSchema | None = self._versions.get(_ByVersion(subject, version, SchemaForm(fmt)))
        if found is None and may_be_deleted:
            found = self._versions.get(_ByVersion(subject, version, SchemaForm(fmt), True))
        return found

    def registered(self, subject: str, schema: Schema, normalize: bool) -> RegisteredSchema | None:
        """What is known of a schema that was registered under a subject, or found there; without a version where the
        registry did not tell it.
        """
        found: RegisteredSchema | None = self._registered.get(_BySchema(subject, schema, normalize))
        return found

    def latest(self, subject: str, fmt: str | None) -> RegisteredSchema | None:
        """The latest version of a subject."""
        found: RegisteredSchema | None = self._latest.get(_Latest(subject, SchemaForm(fmt)))
        return found

    def latest_with(
        self, subject: str, metadata: dict[str, str], deleted: bool, fmt: str | None
    ) -> RegisteredSchema | None:
        """The latest version of a subject that has some metadata."""
        key = _ByMetadata(subject, frozenset(metadata.items()), deleted, SchemaForm(fmt))
        found: RegisteredSchema | None = self._latest_with.get(key)
        return found

    def put_schema(
        self, subject: str | None, schema_id: int, guid: str | None, schema: Schema, form: SchemaForm
    ) -> None:
        """Remember the schema of an id."""
        self._schemas.put(_ById(subject, schema_id, form), schema)
        if not form.reference_format:
            self.put_guid(guid, schema, form.fmt)

    def put_guid(self, guid: str | None, schema: Schema, fmt: str | None) -> None:
        """Remember the schema of a GUID, if there is one."""
        if guid is not None:
            self._guids.put((guid, fmt), schema)

    def put_registered(self, subject: str, given: Schema, normalize: bool, result: RegisteredSchema) -> None:
        """Remember what became of a schema that was registered. The subject may have another latest version now."""
        self._registered.put(_BySchema(subject, given, normalize), result)
        if result.schema_id is not None:
            self.put_schema(subject, result.schema_id, result.guid, result.schema, AS_REGISTERED)
            self._put_descriptor(subject, result.schema_id, result.guid, given)
        self.drop_latest(subject)

    def put_version(self, subject: str, found: RegisteredSchema, fmt: str | None, may_be_deleted: bool = False) -> None:
        """Remember a version of a subject; one that may be deleted, for who asks for such ones only.

        To write with it, it may have to be registered once more.
        """
        if found.version is not None:
            self._versions.put(_ByVersion(subject, found.version, SchemaForm(fmt), may_be_deleted), found)
        if may_be_deleted or found.schema_id is None:
            return
        self.put_schema(subject, found.schema_id, found.guid, found.schema, SchemaForm(fmt))
        if fmt is None:
            self._registered.put(_BySchema(subject, found.schema, False), found)

    def put_looked_up(self, subject: str, given: Schema, normalize: bool, found: RegisteredSchema) -> None:
        """Remember where a schema is registered."""
        self._registered.put(_BySchema(subject, given, normalize), found)
        if found.version is not None:
            self._versions.put(_ByVersion(subject, found.version, AS_REGISTERED), found)
        if found.schema_id is not None:
            self.put_schema(subject, found.schema_id, found.guid, given, AS_REGISTERED)
            self._put_descriptor(subject, found.schema_id, found.guid, given)

    def _put_descriptor(self, subject: str, schema_id: int, guid: str | None, given: Schema) -> None:
        """Who has written with a schema of Protobuf need not ask for it to read: what was given is what would come."""
        if given.schema_type == "PROTOBUF" and _DESCRIPTOR.fullmatch(given.schema_str or ""):
            self.put_schema(subject, schema_id, guid, given, _SERIALIZED)

    def put_looked_up_again(
        self, subject: str, given: Schema, normalize: bool, found: RegisteredSchema, since: int
    ) -> None:
        """Remember where a schema is that is known from before, unless another thread has dropped it meanwhile."""
        self.put_looked_up(subject, given, normalize, found)
        if since != self.changes and found.version is not None:  # a drop counts before it drops: none is missed
            self.drop_version(subject, found.version)

    def put_latest(self, subject: str, fmt: str | None, found: RegisteredSchema, since: int) -> None:
        """Remember the latest version of a subject, for its time, if nothing has changed since it was asked for."""
        if since == self.changes:
            self._latest.put(_Latest(subject, SchemaForm(fmt)), found)

    def put_latest_with(
        self, subject: str, metadata: dict[str, str], deleted: bool, fmt: str | None, found: RegisteredSchema,
        since: int,
    ) -> None:
        """As `put_latest`, of the latest version that has some metadata."""
        if since == self.changes:
            self._latest_with.put(_ByMetadata(subject, frozenset(metadata.items()), deleted, SchemaForm(fmt)), found)

    def drop_subject(self, subject: str) -> None:
        """Forget all versions of a subject."""
        self.drop_latest(subject)
        for cache in (self._schemas, self._versions, self._registered):
            cache.drop(lambda key, _: key.subject == subject)

    def drop_version(self, subject: str, version: int | str) -> None:
        """Forget a version of a subject, and what was registered under it: it may be that version."""
        self.drop_latest(subject)
        self._versions.drop(lambda key, _: (key.subject, key.version) == (subject, version))
        self._registered.drop(lambda key, found: key.subject == subject and found.version in (version, None))

    def drop_latest(self, subject: str | None = None) -> None:
        """Forget which versions are the latest, of one subject or of all."""
        self.changes += 1
        for cache in (self._latest, self._latest_with):
            cache.drop(lambda key, _: subject in (None, key.subject))

    def clear(self) -> None:
        """Forget all."""
        self.drop_latest()
        for cache in (self._schemas, self._guids, self._versions, self._registered):
            cache.clear()
