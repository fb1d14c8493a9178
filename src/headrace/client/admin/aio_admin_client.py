"""`AIOAdminClient`: administration for asyncio programs, under confluent_kafka's names.

Each method that changes or asks for several things returns a dict of awaitable futures at once, one for each thing:

    await admin.create_topics([NewTopic("flights", 4)])["flights"]

It must not know requests. Read next: `client.admin.admin_engine`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from headrace.arguments import list_of, mapping_of
from headrace.client.admin.admin_engine import AdminCalls
from headrace.client.cluster_metadata import ClusterMetadata, GroupMetadata
from headrace.client.core import ClientCore
from headrace.client.coroutine_callbacks import with_started
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError, KafkaException
from headrace.types.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConsumerGroupListing,
    DeletedRecords,
    DescribeClusterResult,
    IsolationLevel,
    ListConsumerGroupsResult,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from headrace.types.records import TopicPartition

__all__ = [
    "AIOAdminClient",
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConsumerGroupListing",
    "DeletedRecords",
    "DescribeClusterResult",
    "IsolationLevel",
    "ListConsumerGroupsResult",
    "ListOffsetsResultInfo",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "ResourceType",
    "changes_of",
    "partitions_of",
    "settle",
    "specs_of",
    "states_of",
]

_K = TypeVar("_K")


class AIOAdminClient:
    """Creates, describes, changes and deletes topics, configurations, records and groups.

    What is to be given as a list must be one, with members of the right kind (else `TypeError`), and not be empty
    (`ValueError`); offsets may be asked for, and records deleted, of no partition.

    Times are seconds. `request_timeout` bounds the whole call, attempts at other brokers included, and is
    socket.timeout.ms by default; `operation_timeout` is how long the brokers may take to carry it out.

    Args:
        conf: properties, see `headrace.config`; `bootstrap.servers` is enough.
        logger: logging.Logger to use instead of `headrace`.

    Raises:
        ConfigError: a property is unknown or wrong.
    """

    def __init__(self, conf: Mapping[str, Any], logger: Any = None) -> None:
        given = with_started(conf if logger is None else {**conf, "logger": logger})
        self._core = ClientCore(Config(ADMIN, given, servers_needed=False))
        self._calls = AdminCalls(self._core)
        self._tasks: set[asyncio.Task[Any]] = set()

    def create_topics(
        self,
        new_topics: list[NewTopic],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
        validate_only: bool = False,
    ) -> dict[str, asyncio.Future[None]]:
        """Create topics. Futures by topic name; they resolve to None or raise KafkaException."""
        new_topics = list_of(NewTopic, new_topics, "new_topics", filled=True)
        limit_s = self._calls.timeout_s(request_timeout)
        operation_s = limit_s if operation_timeout is None else operation_timeout
        work = self._calls.create_topics(new_topics, limit_s, operation_s, validate_only)
        return self._futures([topic.topic for topic in new_topics], work)

    def delete_topics(
        self,
        topics: list[str],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
    ) -> dict[str, asyncio.Future[None]]:
        """Delete topics. Futures by topic name."""
        topics = list_of(str, topics, "topics", filled=True)
        limit_s = self._calls.timeout_s(request_timeout)
        operation_s = limit_s if operation_timeout is None else operation_timeout
        return self._futures(topics, self._calls.delete_topics(topics, limit_s, operation_s))

    def create_partitions(
        self,
        new_partitions: list[NewPartitions],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
        validate_only: bool = False,
    ) -> dict[str, asyncio.Future[None]]:
        """Add partitions to topics. Futures by topic name."""
        new_partitions = list_of(NewPartitions, new_partitions, "new_partitions", filled=True)
        limit_s = self._calls.timeout_s(request_timeout)
        operation_s = limit_s if operation_timeout is None else operation_timeout
        work = self._calls.create_partitions(new_partitions, limit_s, operation_s, validate_only)
        return self._futures([new.topic for new in new_partitions], work)

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, broker: int = -1
    ) -> dict[ConfigResource, asyncio.Future[dict[str, ConfigEntry]]]:
        """Read configurations. Futures by resource; each resolves to its entries by name."""
        resources = list_of(ConfigResource, resources, "resources", filled=True)
        work = self._calls.describe_configs(resources, self._calls.timeout_s(request_timeout), broker)
        return self._futures(resources, work)

    def alter_configs(
        self,
        resources: list[ConfigResource],
        *,
        request_timeout: float | None = None,
        validate_only: bool = False,
        broker: int = -1,
    ) -> dict[ConfigResource, asyncio.Future[None]]:
        """Replace whole configurations: what is not given goes back to its default. Futures by resource."""
        resources = list_of(ConfigResource, resources, "resources", filled=True)
        work = self._calls.alter_configs(resources, self._calls.timeout_s(request_timeout), validate_only, broker)
        return self._futures(resources, work)

    def incremental_alter_configs(
        self,
        resources: list[ConfigResource],
        *,
        request_timeout: float | None = None,
        validate_only: bool = False,
        broker: int = -1,
    ) -> dict[ConfigResource, asyncio.Future[None]]:
        """Change single properties and leave the others alone (KIP-339). Futures by resource."""
        resources = changes_of(resources)
        limit_s = self._calls.timeout_s(request_timeout)
        return self._futures(
            resources, self._calls.incremental_alter_configs(resources, limit_s, validate_only, broker))

    def list_offsets(
        self,
        topic_partition_offsets: dict[TopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        request_timeout: float | None = None,
    ) -> dict[TopicPartition, asyncio.Future[ListOffsetsResultInfo]]:
        """Find the first, the next, or the offset at some time. Futures by partition."""
        wanted = specs_of(topic_partition_offsets)
        limit_s = self._calls.timeout_s(request_timeout)
        work = self._calls.list_offsets(wanted, isolation_level.value, limit_s)
        return self._futures(wanted, work)

    def delete_records(
        self,
        topic_partition_offsets: list[TopicPartition],
        *,
        request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> dict[TopicPartition, asyncio.Future[DeletedRecords]]:
        """Drop the records before each partition's offset; offset -1 drops all. Futures by partition."""
        wanted = partitions_of(topic_partition_offsets)
        limit_s = self._calls.timeout_s(request_timeout)
        operation_s = limit_s if operation_timeout is None else operation_timeout
        work = self._calls.delete_records(wanted, limit_s, operation_s)
        return self._futures(wanted, work)

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None
    ) -> dict[str, asyncio.Future[None]]:
        """Delete groups that have no members, with their offsets. Futures by group id."""
        group_ids = list_of(str, group_ids, "group_ids", filled=True)
        work = self._calls.delete_groups(group_ids, self._calls.timeout_s(request_timeout))
        return self._futures(group_ids, work)

    async def list_consumer_groups(
        self, *, request_timeout: float | None = None, states: Collection[str] | None = None
    ) -> ListConsumerGroupsResult:
        """Find the consumer groups of the cluster, with `states` only those in one of these states."""
        return await self._calls.list_consumer_groups(states_of(states), self._calls.timeout_s(request_timeout))

    async def describe_cluster(self, *, request_timeout: float | None = None) -> DescribeClusterResult:
        """Find the cluster's id, controller and brokers."""
        return await self._calls.describe_cluster(self._calls.timeout_s(request_timeout))

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Brokers, and all topics or one of them. Raises KafkaException when no broker answers in time."""
        return await self._core.list_topics(topic, self._calls.timeout_s(timeout))

    async def list_groups(self, group: str | None = None, timeout: float = -1) -> list[GroupMetadata]:
        """All classic groups with their members, or one of them."""
        return await self._calls.list_groups(group, self._calls.timeout_s(timeout))

    async def close(self) -> None:
        """Close all connections; what is not settled yet fails. The second call does nothing."""
        await self._core.close()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> AIOAdminClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _futures(
        self, keys: Iterable[_K], work: Coroutine[Any, Any, Mapping[_K, Any]]
    ) -> dict[_K, asyncio.Future[Any]]:
        try:
            self._core.check_open()
        except BaseException:
            work.close()
            raise
        loop = asyncio.get_running_loop()
        futures: dict[_K, asyncio.Future[Any]] = {key: loop.create_future() for key in keys}
        task = loop.create_task(settle(futures, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return futures


def changes_of(given: list[ConfigResource]) -> list[ConfigResource]:
    """Resources of which something is to be changed.

    Raises:
        TypeError: not a list of `ConfigResource`.
        ValueError: it is empty, or nothing of one is to be changed.
    """
    resources = list_of(ConfigResource, given, "resources", filled=True)
    for resource in resources:
        if not resource.incremental_configs:
            raise ValueError(f"{resource!r} has no change: give incremental_configs, or call add_incremental_config()")
    return resources


def partitions_of(given: list[TopicPartition]) -> list[TopicPartition]:
    """Partitions of which records are to be deleted.

    Raises:
        TypeError: not a list of `TopicPartition`.
        ValueError: one is no partition.
    """
    partitions = list_of(TopicPartition, given, "topic_partition_offsets")
    _check_numbers(partitions)
    return partitions


def specs_of(given: dict[TopicPartition, OffsetSpec]) -> dict[TopicPartition, OffsetSpec]:
    """Partitions of which offsets are to be found.

    Raises:
        TypeError: not a dict of `TopicPartition` to `OffsetSpec`.
        ValueError: one is no partition.
    """
    specs = mapping_of(TopicPartition, OffsetSpec, given, "topic_partition_offsets")
    _check_numbers(specs)
    return specs


def _check_numbers(partitions: Iterable[TopicPartition]) -> None:
    for tp in partitions:
        if tp.partition < 0:
            raise ValueError(f"{tp.topic}[{tp.partition}] is no partition: they are numbered from 0")


def states_of(given: Collection[str] | None) -> list[str]:
    """The states of groups that are asked for: confluent_kafka takes a set.

    Raises:
        TypeError: not a collection of str, or a str itself.
    """
    if given is None:
        return []
    return list_of(str, list(given) if isinstance(given, (set, frozenset, tuple)) else given, "states")


async def settle(futures: Mapping[_K, Any], work: Coroutine[Any, Any, Mapping[_K, Any]]) -> None:
    """Run the work and hand each result, or its error, to the future of its key.

    Args:
        futures: asyncio's or concurrent.futures' futures by key.
        work: gives results by key; a `KafkaError` as a result is a failure.
    """
    try:
        results: Mapping[_K, Any] = await work
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
