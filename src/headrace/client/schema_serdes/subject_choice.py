"""Which subject a serializer uses: a strategy by name, an application's function, or what the registry associates.

confluent_kafka's strategies. Read next: `client.registry.subject_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from headrace.client.registry.subject_names import (
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from headrace.client.schema_serdes.registry_steps import Steps, run, run_async
from headrace.client.serdes import MessageField, SerializationContext
from headrace.errors import SerializationError

__all__ = [
    "DEFAULT_CACHE_CAPACITY",
    "FALLBACK_TYPE",
    "KAFKA_CLUSTER_ID",
    "NAMESPACE_WILDCARD",
    "STRATEGY_TYPE_MAP",
    "AssociatedNameStrategy",
    "AsyncAssociatedNameStrategy",
    "SubjectChoice",
    "SubjectNameStrategyType",
]

KAFKA_CLUSTER_ID = "subject.name.strategy.kafka.cluster.id"
FALLBACK_TYPE = "subject.name.strategy.fallback.type"
NAMESPACE_WILDCARD = "-"
"""Stands for any cluster where its id is not known."""
DEFAULT_CACHE_CAPACITY = 1000
_NOT_FOUND = 404


class SubjectNameStrategyType(StrEnum):
    """A strategy, as `subject.name.strategy.type` names it."""

    NONE = "NONE"
    TOPIC = "TOPIC"
    RECORD = "RECORD"
    TOPIC_RECORD = "TOPIC_RECORD"
    ASSOCIATED = "ASSOCIATED"


Strategy = Callable[..., Any]
STRATEGY_TYPE_MAP: dict[SubjectNameStrategyType, Strategy] = {
    SubjectNameStrategyType.TOPIC: topic_subject_name_strategy,
    SubjectNameStrategyType.RECORD: record_subject_name_strategy,
    SubjectNameStrategyType.TOPIC_RECORD: topic_record_subject_name_strategy,
}
"""Those that need no registry."""


class _Associations:
    """What registries associate with topics, kept once it was asked for."""

    def __init__(self, cache_capacity: int = DEFAULT_CACHE_CAPACITY) -> None:
        self._kept: dict[tuple[str, bool, str | None], str] = {}
        self._capacity = cache_capacity
        self._resolver: Callable[[], Any] | None = None

    def clear_cache(self) -> None:
        """Ask again for every topic."""
        self._kept.clear()

    def resolve_with(self, resolver: Callable[[], Any]) -> None:
        """Take a function, or a coroutine function, that asks for the cluster's id; called when it is needed."""
        self._resolver = resolver

    def subject(
        self, ctx: SerializationContext | None, record_name: str | None, client: Any, conf: Mapping[str, Any] | None
    ) -> Steps[str | None]:
        """The rule: the subject that the registry associates with the topic, or one by another strategy.

        Args:
            ctx: where the message goes to.
            record_name: name of the record's type.
            client: of the registry; None for none.
            conf: `subject.name.strategy.kafka.cluster.id` and `subject.name.strategy.fallback.type`.

        Returns:
            The subject; None where the other strategy is one by the record's type, and that has no name.

        Raises:
            SerializationError: there are several, or there is none and the fallback is NONE.
            ValueError: there is no context, or the fallback cannot be one.
        """
        if ctx is None:
            raise ValueError("AssociatedNameStrategy needs a SerializationContext, which names the topic: pass one, "
                             "or use another strategy")
        key = ctx.topic, ctx.field == MessageField.KEY, record_name
        if key not in self._kept:
            found: str | None = yield from self._asked(ctx, record_name, client, conf or {})
            if found is None:
                return None
            while len(self._kept) >= self._capacity:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = found
            return found
        return self._kept[key]

    def _asked(
        self, ctx: SerializationContext, record_name: str | None, client: Any, conf: Mapping[str, Any]
    ) -> Steps[str | None]:
        fallback = _type_of(conf.get(FALLBACK_TYPE) or SubjectNameStrategyType.TOPIC, FALLBACK_TYPE)
        if fallback == SubjectNameStrategyType.ASSOCIATED:
            raise ValueError(f"{FALLBACK_TYPE} cannot be ASSOCIATED")
        associations = [] if client is None else (yield from self._associations(ctx, client, conf))
        if len(associations) > 1:
            raise SerializationError(f"Multiple associated subjects found for topic {ctx.topic}: "
                                     f"{', '.join(str(one.subject) for one in associations)}")
        if associations:
            subject: str | None = associations[0].subject
            return subject
        if fallback == SubjectNameStrategyType.NONE:
            raise SerializationError(f"No associated subject found for topic {ctx.topic}")
        named: str | None = STRATEGY_TYPE_MAP[fallback](ctx, record_name)
        return named

    def _associations(self, ctx: SerializationContext, client: Any, conf: Mapping[str, Any]) -> Steps[list[Any]]:
        cluster_id = yield from self._cluster_id(conf)
        try:
            found: list[Any] = yield partial(
                client.get_associations_by_resource_name, resource_name=ctx.topic, resource_namespace=cluster_id,
                resource_type="topic", association_types=["key" if ctx.field == MessageField.KEY else "value"],
                offset=0, limit=-1)
        except Exception as error:
            if getattr(error, "http_status_code", None) != _NOT_FOUND:
                raise
            return []  # also what a registry without associations says
        return found

    def _cluster_id(self, conf: Mapping[str, Any]) -> Steps[str]:
        given: str | None = conf.get(KAFKA_CLUSTER_ID)
        if given or self._resolver is None:
            return given or NAMESPACE_WILDCARD
        try:
            asked: str | None = yield self._resolver
        except Exception as error:
            raise SerializationError(f"the Kafka cluster's id is not known, because no broker was reached yet: "
                                     f"{error}; {KAFKA_CLUSTER_ID} names it") from error
        if not asked:
            raise SerializationError(f"the id of the Kafka cluster is empty; {KAFKA_CLUSTER_ID} names one")
        return asked


class AssociatedNameStrategy(_Associations):
    """Asks the registry which subject is associated with the topic, and keeps the answer.

    Args:
        cache_capacity: answers that are kept at most.
    """

    def set_cluster_id_resolver(self, resolver: Callable[[], str]) -> None:
        """See `resolve_with`."""
        self.resolve_with(resolver)

    def __call__(
        self, ctx: SerializationContext | None, record_name: str | None, schema_registry_client: Any,
        conf: dict[str, Any] | None = None,
    ) -> str | None:
        """The subject; see `_Associations.subject`."""
        return run(self.subject(ctx, record_name, schema_registry_client, conf))


class AsyncAssociatedNameStrategy(_Associations):
    """As `AssociatedNameStrategy`, awaited."""

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """See `resolve_with`."""
        self.resolve_with(resolver)

    async def __call__(
        self, ctx: SerializationContext | None, record_name: str | None, schema_registry_client: Any,
        conf: dict[str, Any] | None = None,
    ) -> str | None:
        """As `AssociatedNameStrategy`, awaited."""
        return await run_async(self.subject(ctx, record_name, schema_registry_client, conf))


class SubjectChoice:
    """The strategy of a serializer.

    Args:
        strategy: the application's function of context and record name, which may be a coroutine function where it is
            awaited; it goes before `kind`.
        kind: the strategy's name; None for ASSOCIATED.
        conf: what ASSOCIATED is given.

    Attributes:
        lasting: the subject depends on topic, part and record name alone, so that it need not be asked for again.

    Raises:
        ValueError: there is no such strategy.
    """

    def __init__(
        self, strategy: Strategy | None = None, kind: SubjectNameStrategyType | str | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self.conf = conf
        self._strategy = strategy if strategy is not None else _strategy_of(kind)
        if strategy is not None and not callable(strategy):
            raise ValueError(f"subject.name.strategy must be callable, not {strategy!r:.80}")
        self.lasting = isinstance(self._strategy, _Associations) or self._strategy in STRATEGY_TYPE_MAP.values()

    def associations(self) -> _Associations | None:
        """The strategy that may ask for the cluster's id; None if it is another."""
        return self._strategy if isinstance(self._strategy, _Associations) else None

    def subject(self, ctx: SerializationContext | None, record_name: str | None, client: Any) -> Steps[str | None]:
        """The rule: the subject of a message.

        Args:
            ctx: where the message goes to, or comes from.
            record_name: name of the record's type.
            client: of the registry; None for none.
        """
        if isinstance(self._strategy, _Associations):
            return (yield from self._strategy.subject(ctx, record_name, client, self.conf))
        name: str | None = yield partial(self._strategy, ctx, record_name)
        return name


def _strategy_of(kind: SubjectNameStrategyType | str | None) -> Strategy | _Associations:
    found = SubjectNameStrategyType.ASSOCIATED if kind is None else _type_of(kind, "subject.name.strategy.type")
    if found == SubjectNameStrategyType.NONE:
        raise ValueError("subject.name.strategy.type cannot be NONE")
    return _Associations() if found == SubjectNameStrategyType.ASSOCIATED else STRATEGY_TYPE_MAP[found]


def _type_of(value: SubjectNameStrategyType | str, name: str) -> SubjectNameStrategyType:
    try:
        return SubjectNameStrategyType(str(value).upper())
    except ValueError:
        raise ValueError(f"Invalid {name}: {value!r}; it is one of {', '.join(SubjectNameStrategyType)}") from None
