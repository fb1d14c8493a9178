"""`AdminClient`: administration for synchronous programs, under confluent_kafka's names and behaviour.

It signs the calls of `client.admin.admin_calls` and has them done on the process's loop thread. It must not know what a
call does. Read next: `client.admin.admin_calls`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from headrace.client.admin.admin_calls import AdminCalls, ByKey
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
        self, new_topics: list[NewTopic], *, operation_timeout: float | None = None,
        request_timeout: float | None = None, validate_only: bool = False,
    ) -> dict[str, Future[None]]:
        """Create topics. Futures by topic name; they resolve to None or raise KafkaException."""
        return self._futures(self._calls.create_topics(new_topics, operation_timeout, request_timeout, validate_only))

    def delete_topics(
        self, topics: list[str], *, operation_timeout: float | None = None, request_timeout: float | None = None
    ) -> dict[str, Future[None]]:
        """Delete topics. Futures by topic name."""
        return self._futures(self._calls.delete_topics(topics, operation_timeout, request_timeout))

    def create_partitions(
        self, new_partitions: list[NewPartitions], *, operation_timeout: float | None = None,
        request_timeout: float | None = None, validate_only: bool = False,
    ) -> dict[str, Future[None]]:
        """Add partitions to topics. Futures by topic name."""
        return self._futures(
            self._calls.create_partitions(new_partitions, operation_timeout, request_timeout, validate_only))

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, broker: int = -1
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
        """Read configurations. Futures by resource; each resolves to its entries by name."""
        return self._futures(self._calls.describe_configs(resources, request_timeout, broker))

    def alter_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, validate_only: bool = False,
        broker: int = -1,
    ) -> dict[ConfigResource, Future[None]]:
        """Replace whole configurations: what is not given goes back to its default. Futures by resource."""
        return self._futures(self._calls.alter_configs(resources, request_timeout, validate_only, broker))

    def incremental_alter_configs(
        self, resources: list[ConfigResource], *, request_timeout: float | None = None, validate_only: bool = False,
        broker: int = -1,
    ) -> dict[ConfigResource, Future[None]]:
        """Change single properties and leave the others alone (KIP-339). Futures by resource."""
        return self._futures(self._calls.incremental_alter_configs(resources, request_timeout, validate_only, broker))

    def list_offsets(
        self, topic_partition_offsets: dict[TopicPartition, OffsetSpec], *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED, request_timeout: float | None = None,
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        """Find the first, the next, or the offset at some time. Futures by partition."""
        return self._futures(self._calls.list_offsets(topic_partition_offsets, isolation_level, request_timeout))

    def delete_records(
        self, topic_partition_offsets: list[TopicPartition], *, request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> dict[TopicPartition, Future[DeletedRecords]]:
        """Drop the records before each partition's offset; offset -1 drops all. Futures by partition."""
        return self._futures(self._calls.delete_records(topic_partition_offsets, request_timeout, operation_timeout))

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None
    ) -> dict[str, Future[None]]:
        """Delete groups that have no members, with their offsets. Futures by group id."""
        return self._futures(self._calls.delete_consumer_groups(group_ids, request_timeout))

    def list_consumer_groups(
        self, *, request_timeout: float | None = None, states: Collection[str] | None = None
    ) -> Future[ListConsumerGroupsResult]:
        """Find the consumer groups of the cluster, with `states` only those in one of these states."""
        return self._thread.submit(self._calls.list_consumer_groups(request_timeout, states))

    def describe_cluster(self, *, request_timeout: float | None = None) -> Future[DescribeClusterResult]:
        """Find the cluster's id, controller and brokers."""
        return self._thread.submit(self._calls.describe_cluster(request_timeout))

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Brokers, and all topics or one of them. Raises KafkaException when no broker answers in time."""
        return self._thread.call(self._calls.list_topics(topic, timeout))

    def list_groups(self, group: str | None = None, timeout: float = -1) -> list[GroupMetadata]:
        """All classic groups with their members, or one of them."""
        return self._thread.call(self._calls.list_groups(group, timeout))

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

    def _futures(self, call: ByKey[_K, _V]) -> dict[_K, Future[_V]]:
        futures: dict[_K, Future[_V]] = {key: Future() for key in call.keys}
        self._thread.submit(call.settle(futures))
        return futures


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
