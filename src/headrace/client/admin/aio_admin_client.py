"""`AIOAdminClient`: administration for asyncio programs, under confluent_kafka's names.

Each method that changes or asks for several things returns a dict of awaitable futures at once, one for each thing:

    await admin.create_topics([NewTopic("flights", 4)])["flights"]

It signs the calls of `client.admin.admin_calls` and has them done on the running loop. It must not know what a call
does. Read next: `client.admin.admin_calls`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from headrace.client.admin.admin_calls import AdminCalls, ByKey
from headrace.client.cluster_metadata import ClusterMetadata, GroupMetadata
from headrace.client.core import ClientCore
from headrace.client.coroutine_callbacks import with_started
from headrace.config import ADMIN, Config
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

__all__ = ["AIOAdminClient"]

_K = TypeVar("_K")
_V = TypeVar("_V")


class AIOAdminClient:
    """Creates, describes, changes and deletes topics, configurations, records and groups: `AdminClient` for asyncio.

    Methods that concern several things return a dict of `asyncio.Future` at once, one for each thing; the others are
    awaited.

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
        self, new_topics: list[NewTopic], *, operation_timeout: float | None = None,
        request_timeout: float | None = None, validate_only: bool = False,
    ) -> dict[str, asyncio.Future[None]]:
        """As `AdminClient.create_topics`."""
        return self._futures(self._calls.create_topics(new_topics, operation_timeout, request_timeout, validate_only))

    def delete_topics(
        self, topics: list[str], *, operation_timeout: float | None = None, request_timeout: float | None = None
    ) -> dict[str, asyncio.Future[None]]:
        """As `AdminClient.delete_topics`."""
        return self._futures(self._calls.delete_topics(topics, operation_timeout, request_timeout))

    def create_partitions(
        self, new_partitions: list[NewPartitions], *, operation_timeout: float | None = None,
        request_timeout: float | None = None, validate_only: bool = False,
    ) -> dict[str, asyncio.Future[None]]:
        """As `AdminClient.create_partitions`."""
        return self._futures(
            self._calls.create_partitions(new_partitions, operation_timeout, request_timeout, validate_only))

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, broker: int = -1
    ) -> dict[ConfigResource, asyncio.Future[dict[str, ConfigEntry]]]:
        """As `AdminClient.describe_configs`."""
        return self._futures(self._calls.describe_configs(resources, request_timeout, broker))

    def alter_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, validate_only: bool = False,
        broker: int = -1,
    ) -> dict[ConfigResource, asyncio.Future[None]]:
        """As `AdminClient.alter_configs`."""
        return self._futures(self._calls.alter_configs(resources, request_timeout, validate_only, broker))

    def incremental_alter_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, validate_only: bool = False,
        broker: int = -1,
    ) -> dict[ConfigResource, asyncio.Future[None]]:
        """As `AdminClient.incremental_alter_configs`."""
        return self._futures(self._calls.incremental_alter_configs(resources, request_timeout, validate_only, broker))

    def list_offsets(
        self, topic_partition_offsets: dict[TopicPartition, OffsetSpec], *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED, request_timeout: float | None = None,
    ) -> dict[TopicPartition, asyncio.Future[ListOffsetsResultInfo]]:
        """As `AdminClient.list_offsets`."""
        return self._futures(self._calls.list_offsets(topic_partition_offsets, isolation_level, request_timeout))

    def delete_records(
        self, topic_partition_offsets: list[TopicPartition], *, request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> dict[TopicPartition, asyncio.Future[DeletedRecords]]:
        """As `AdminClient.delete_records`."""
        return self._futures(self._calls.delete_records(topic_partition_offsets, request_timeout, operation_timeout))

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None
    ) -> dict[str, asyncio.Future[None]]:
        """As `AdminClient.delete_consumer_groups`."""
        return self._futures(self._calls.delete_consumer_groups(group_ids, request_timeout))

    async def list_consumer_groups(
        self, *, request_timeout: float | None = None, states: Collection[str] | None = None
    ) -> ListConsumerGroupsResult:
        """As `AdminClient.list_consumer_groups`, awaited."""
        return await self._calls.list_consumer_groups(request_timeout, states)

    async def describe_cluster(self, *, request_timeout: float | None = None) -> DescribeClusterResult:
        """As `AdminClient.describe_cluster`, awaited."""
        return await self._calls.describe_cluster(request_timeout)

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """As `AdminClient.list_topics`, awaited."""
        return await self._calls.list_topics(topic, timeout)

    async def list_groups(self, group: str | None = None, timeout: float = -1) -> list[GroupMetadata]:
        """As `AdminClient.list_groups`, awaited."""
        return await self._calls.list_groups(group, timeout)

    async def close(self) -> None:
        """As `AdminClient.close`, awaited."""
        await self._core.close()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> AIOAdminClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _futures(self, call: ByKey[_K, _V]) -> dict[_K, asyncio.Future[_V]]:
        loop = asyncio.get_running_loop()
        futures: dict[_K, asyncio.Future[_V]] = {key: loop.create_future() for key in call.keys}
        task = loop.create_task(call.settle(futures))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return futures
