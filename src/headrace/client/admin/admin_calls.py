"""The admin client's calls as an application makes them: arguments are checked and times settled, once for both faces.

A call that concerns several things gives `ByKey`, of which a face makes a dict of futures; one that has a single result
gives a coroutine. What is wrong with the arguments is raised before there is either. It must not know the faces.
Read next: `client.admin.admin_engine`, which does the work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from headrace.arguments import list_of, mapping_of
from headrace.client.admin.admin_engine import AdminEngine
from headrace.client.cluster_metadata import ClusterMetadata, GroupMetadata
from headrace.client.core import ClientCore
from headrace.errors import KafkaError, KafkaException
from headrace.types.admin import (
    ConfigEntry,
    ConfigResource,
    DeletedRecords,
    DescribeClusterResult,
    IsolationLevel,
    ListConsumerGroupsResult,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from headrace.types.records import TopicPartition

__all__ = ["AdminCalls", "ByKey"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_P = ParamSpec("_P")
_Results = Mapping[_K, _V | KafkaError]


class ByKey(Generic[_K, _V]):
    """Work that has a result for each of several things.

    Args:
        keys: the things.
        work: gives results by key; a `KafkaError` as a result is a failure.
    """

    def __init__(self, keys: Iterable[_K], work: Awaitable[_Results[_K, _V]]) -> None:
        self.keys = list(keys)
        self._work = work

    async def settle(self, futures: Mapping[_K, Any]) -> None:
        """Do the work and hand each result, or its error, to the future of its key.

        Args:
            futures: asyncio's or concurrent.futures' futures by key.
        """
        try:
            results: Mapping[_K, Any] = await self._work
        except Exception as error:
            results = dict.fromkeys(futures, error)
        missing = KafkaException(KafkaError(KafkaError._FAIL, "the broker's answer does not mention it"))
        for key, future in futures.items():
            result = results.get(key, missing)
            if future.done():
                continue
            if isinstance(result, KafkaError):
                future.set_exception(KafkaException(result))
            elif isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class AdminCalls:
    """Every call of the admin client.

    `request_timeout` bounds the whole call, and is socket.timeout.ms when it is None or negative; `operation_timeout`,
    which is how long the brokers may take to carry it out, is as long when it is None.

    Args:
        core: metadata and connections.
    """

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._engine = AdminEngine(core)

    # Topics

    def create_topics(
        self, new_topics: list[NewTopic], operation_timeout: float | None, request_timeout: float | None,
        validate_only: bool,
    ) -> ByKey[str, None]:
        """Create topics; by name."""
        topics = list_of(NewTopic, new_topics, "new_topics", filled=True)
        times = self._times(request_timeout, operation_timeout)
        return self._by_key((new.topic for new in topics), self._engine.create_topics, topics, *times, validate_only)

    def delete_topics(
        self, topics: list[str], operation_timeout: float | None, request_timeout: float | None
    ) -> ByKey[str, None]:
        """Delete topics; by name."""
        names = list_of(str, topics, "topics", filled=True)
        return self._by_key(names, self._engine.delete_topics, names, *self._times(request_timeout, operation_timeout))

    def create_partitions(
        self, new_partitions: list[NewPartitions], operation_timeout: float | None, request_timeout: float | None,
        validate_only: bool,
    ) -> ByKey[str, None]:
        """Add partitions to topics; by name."""
        new = list_of(NewPartitions, new_partitions, "new_partitions", filled=True)
        times = self._times(request_timeout, operation_timeout)
        return self._by_key((each.topic for each in new), self._engine.create_partitions, new, *times, validate_only)

    # Configurations

    def describe_configs(
        self, resources: list[ConfigResource], request_timeout: float | None, broker: int
    ) -> ByKey[ConfigResource, dict[str, ConfigEntry]]:
        """Read configurations; by resource."""
        given = list_of(ConfigResource, resources, "resources", filled=True)
        return self._by_key(given, self._engine.describe_configs, given, self._limit(request_timeout), broker)

    def alter_configs(
        self, resources: list[ConfigResource], request_timeout: float | None, validate_only: bool, broker: int
    ) -> ByKey[ConfigResource, None]:
        """Replace whole configurations; by resource."""
        given = list_of(ConfigResource, resources, "resources", filled=True)
        limit_s = self._limit(request_timeout)
        return self._by_key(given, self._engine.alter_configs, given, limit_s, validate_only, broker)

    def incremental_alter_configs(
        self, resources: list[ConfigResource], request_timeout: float | None, validate_only: bool, broker: int
    ) -> ByKey[ConfigResource, None]:
        """Change single properties; by resource."""
        given = _changes_of(resources)
        limit_s = self._limit(request_timeout)
        return self._by_key(given, self._engine.incremental_alter_configs, given, limit_s, validate_only, broker)

    # Offsets and records

    def list_offsets(
        self, wanted: dict[TopicPartition, OffsetSpec], isolation_level: IsolationLevel, request_timeout: float | None
    ) -> ByKey[TopicPartition, ListOffsetsResultInfo]:
        """Find offsets; by partition."""
        specs = mapping_of(TopicPartition, OffsetSpec, wanted, "topic_partition_offsets")
        _check_numbers(specs)
        limit_s = self._limit(request_timeout)
        return self._by_key(specs, self._engine.list_offsets, specs, isolation_level.value, limit_s)

    def delete_records(
        self, before: list[TopicPartition], request_timeout: float | None, operation_timeout: float | None
    ) -> ByKey[TopicPartition, DeletedRecords]:
        """Drop the records before each partition's offset; by partition."""
        given = list_of(TopicPartition, before, "topic_partition_offsets")
        _check_numbers(given)
        return self._by_key(given, self._engine.delete_records, given, *self._times(request_timeout, operation_timeout))

    # Cluster and groups

    def delete_consumer_groups(self, group_ids: list[str], request_timeout: float | None) -> ByKey[str, None]:
        """Delete groups; by id."""
        ids = list_of(str, group_ids, "group_ids", filled=True)
        return self._by_key(ids, self._engine.delete_groups, ids, self._limit(request_timeout))

    def list_consumer_groups(
        self, request_timeout: float | None, states: Collection[str] | None
    ) -> Coroutine[Any, Any, ListConsumerGroupsResult]:
        """Find the consumer groups of the cluster."""
        return self._one(self._engine.list_consumer_groups, _states_of(states), self._limit(request_timeout))

    def describe_cluster(self, request_timeout: float | None) -> Coroutine[Any, Any, DescribeClusterResult]:
        """Find the cluster's id, controller and brokers."""
        return self._one(self._engine.describe_cluster, self._limit(request_timeout))

    def list_topics(self, topic: str | None, timeout: float) -> Coroutine[Any, Any, ClusterMetadata]:
        """Brokers, and all topics or one of them."""
        return self._one(self._core.list_topics, topic, self._limit(timeout))

    def list_groups(self, group: str | None, timeout: float) -> Coroutine[Any, Any, list[GroupMetadata]]:
        """All classic groups with their members, or one of them."""
        return self._one(self._engine.list_groups, group, self._limit(timeout))

    # What all calls have in common

    def _limit(self, request_timeout: float | None) -> float:
        if request_timeout is None or request_timeout < 0:
            return self._core.config.seconds("socket.timeout.ms")
        return request_timeout

    def _times(self, request_timeout: float | None, operation_timeout: float | None) -> tuple[float, float]:
        limit_s = self._limit(request_timeout)
        return limit_s, limit_s if operation_timeout is None else operation_timeout

    def _one(
        self, call: Callable[_P, Coroutine[Any, Any, _V]], *arguments: _P.args, **named: _P.kwargs
    ) -> Coroutine[Any, Any, _V]:
        self._core.check_open()
        return call(*arguments, **named)

    def _by_key(
        self, keys: Iterable[_K], call: Callable[_P, Awaitable[_Results[_K, _V]]], *arguments: _P.args,
        **named: _P.kwargs,
    ) -> ByKey[_K, _V]:
        self._core.check_open()
        return ByKey(keys, call(*arguments, **named))


def _changes_of(given: list[ConfigResource]) -> list[ConfigResource]:
    """Resources of which something is to be changed."""
    resources = list_of(ConfigResource, given, "resources", filled=True)
    for resource in resources:
        if not resource.incremental_configs:
            raise ValueError(f"{resource!r} has no change: give incremental_configs, or call add_incremental_config()")
    return resources


def _check_numbers(partitions: Iterable[TopicPartition]) -> None:
    for tp in partitions:
        if tp.partition < 0:
            raise ValueError(f"{tp.topic}[{tp.partition}] is no partition: they are numbered from 0")


def _states_of(given: Collection[str] | None) -> list[str]:
    """The states of groups that are asked for: confluent_kafka takes a set."""
    if given is None:
        return []
    return list_of(str, list(given) if isinstance(given, (set, frozenset, tuple)) else given, "states")
