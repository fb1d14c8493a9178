"""`AdminClient`: administration for synchronous programs, under confluent_kafka's names and behaviour.

The work is done by `AdminCalls` on the process's loop thread. Read next: `client.admin.admin_engine`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from headrace.arguments import list_of
from headrace.client.admin.admin_engine import AdminCalls
from headrace.client.admin.aio_admin_client import changes_of, partitions_of, settle, specs_of, states_of
from headrace.client.cluster_metadata import ClusterMetadata, GroupMetadata
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError
from headrace.net.thread import LoopThread, loop_thread
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

__all__ = ["AdminClient", "list_these"]

_K = TypeVar("_K")
_V = TypeVar("_V")


class AdminClient:
    """Creates, describes, changes and deletes topics, configurations, records and groups.

    Methods that concern several things return a dict of `concurrent.futures.Future` at once, one for each thing:

        AdminClient({"bootstrap.servers": "localhost:9092"}).create_topics([NewTopic("t", 4)])["t"].result()

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
        config = Config(ADMIN, conf if logger is None else {**conf, "logger": logger}, servers_needed=False)
        self._thread = loop_thread()
        self._errors: deque[KafkaError] = deque()
        self._error_cb = config["error_cb"]
        self._core = self._thread.call(_make_core(config, self._errors))
        self._calls = AdminCalls(self._core)
        weakref.finalize(self, _close_forgotten, self._thread, self._core).atexit = False

    def create_topics(
        self,
        new_topics: list[NewTopic],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
        validate_only: bool = False,
    ) -> dict[str, Future[None]]:
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
    ) -> dict[str, Future[None]]:
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
    ) -> dict[str, Future[None]]:
        """Add partitions to topics. Futures by topic name."""
        new_partitions = list_of(NewPartitions, new_partitions, "new_partitions", filled=True)
        limit_s = self._calls.timeout_s(request_timeout)
        operation_s = limit_s if operation_timeout is None else operation_timeout
        work = self._calls.create_partitions(new_partitions, limit_s, operation_s, validate_only)
        return self._futures([new.topic for new in new_partitions], work)

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, broker: int = -1
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
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
    ) -> dict[ConfigResource, Future[None]]:
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
    ) -> dict[ConfigResource, Future[None]]:
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
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
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
    ) -> dict[TopicPartition, Future[DeletedRecords]]:
        """Drop the records before each partition's offset; offset -1 drops all. Futures by partition."""
        wanted = partitions_of(topic_partition_offsets)
        limit_s = self._calls.timeout_s(request_timeout)
        operation_s = limit_s if operation_timeout is None else operation_timeout
        work = self._calls.delete_records(wanted, limit_s, operation_s)
        return self._futures(wanted, work)

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None
    ) -> dict[str, Future[None]]:
        """Delete groups that have no members, with their offsets. Futures by group id."""
        group_ids = list_of(str, group_ids, "group_ids", filled=True)
        work = self._calls.delete_groups(group_ids, self._calls.timeout_s(request_timeout))
        return self._futures(group_ids, work)

    def list_consumer_groups(
        self, *, request_timeout: float | None = None, states: Collection[str] | None = None
    ) -> Future[ListConsumerGroupsResult]:
        """Find the consumer groups of the cluster, with `states` only those in one of these states."""
        return self._future(self._calls.list_consumer_groups(states_of(states), self._calls.timeout_s(request_timeout)))

    def describe_cluster(self, *, request_timeout: float | None = None) -> Future[DescribeClusterResult]:
        """Find the cluster's id, controller and brokers."""
        return self._future(self._calls.describe_cluster(self._calls.timeout_s(request_timeout)))

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Brokers, and all topics or one of them. Raises KafkaException when no broker answers in time."""
        self._core.check_open()
        return self._thread.call(self._core.list_topics(topic, self._calls.timeout_s(timeout)))

    def list_groups(self, group: str | None = None, timeout: float = -1) -> list[GroupMetadata]:
        """All classic groups with their members, or one of them."""
        self._core.check_open()
        return self._thread.call(self._calls.list_groups(group, self._calls.timeout_s(timeout)))

    def poll(self, timeout: float = -1) -> int:
        """Serve `error_cb` with the errors that have come; does not wait. Returns how many there were."""
        served = 0
        while self._errors:
            self._error_cb(self._errors.popleft())
            served += 1
        return served

    def close(self) -> None:
        """Close all connections; what is not settled yet fails. The second call does nothing."""
        if not self._core.closed:
            self._thread.call(self._core.close())

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _futures(self, keys: Iterable[_K], work: Coroutine[Any, Any, Mapping[_K, Any]]) -> dict[_K, Future[Any]]:
        futures: dict[_K, Future[Any]] = {key: Future() for key in keys}
        self._future(settle(futures, work), work)
        return futures

    def _future(self, work: Coroutine[Any, Any, _V], inner: Coroutine[Any, Any, Any] | None = None) -> Future[_V]:
        try:
            self._core.check_open()
        except BaseException:
            for unused in (work, inner):
                if unused is not None:
                    unused.close()
            raise
        return self._thread.submit(work)


def list_these(admin: AdminClient, topics: Collection[str] | None, timeout_s: float) -> ClusterMetadata:
    """As `AdminClient.list_topics`, of several topics in one request; of all with None.

    Raises:
        KafkaException: no broker answered in time.
    """
    return admin._thread.call(admin._core.list_these(topics, timeout_s))


def _close_forgotten(thread: LoopThread, core: ClientCore) -> None:
    """The client was dropped without `close()`."""
    if not core.closed:
        thread.submit(core.close())


async def _make_core(config: Config, errors: deque[KafkaError]) -> ClientCore:
    core = ClientCore(config)
    if config["error_cb"] is not None:
        core.on_error = errors.append
    return core
