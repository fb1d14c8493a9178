"""Calls that make, grow, delete and describe topics.

It must not know the faces. Read next: `machines.admin.topic_requests`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.arguments import instance_of, list_of
from headrace.client.admin.admin_area import AdminArea, ByKey, Single, flag, texts_of, without_duplicates
from headrace.client.admin.admin_engine import ANY_NODE, CONTROLLER
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.errors import KafkaError
from headrace.machines.admin import topic_requests as requests
from headrace.types.admin import NewPartitions, NewTopic, TopicDescription
from headrace.types.cluster import TopicCollection

__all__ = ["TopicCalls"]

Reader = Callable[[Any], dict[str, KafkaError | None]]
_MOST_PARTITIONS = 100_000
_MOST_REPLICAS = 10_000


class TopicCalls(AdminArea):
    """Topics."""

    def create_topics(
        self, new_topics: list[NewTopic], *, operation_timeout: float | None = None,
        request_timeout: float | None = None, validate_only: bool = False,
    ) -> ByKey[str, None]:
        """Create topics. Futures by topic name; each resolves to None or raises KafkaException.

        Args:
            new_topics: the topics.
            operation_timeout: seconds that the brokers may take until all of them know the topics; 0 does not wait,
                and work that goes on behind the answer is no error.
            request_timeout: seconds for the whole call.
            validate_only: check whether it could be done, and do nothing.

        Raises:
            TypeError, ValueError: an argument is of the wrong type, or out of range.
        """
        topics = list_of(NewTopic, new_topics, "new_topics", filled=True)
        for topic in topics:
            _check_new_topic(topic)
        limit_s, operation_s = self.times(request_timeout, operation_timeout)
        request = requests.create_topics(topics, operation_s, flag(validate_only, "validate_only"))
        return ByKey(dict.fromkeys(new.topic for new in topics), lambda: self.engine.at(
            CONTROLLER, request, limit_s, _reader(requests.read_created, operation_s), repeatable=False,
            for_version=requests.create_topics_for_version))

    def delete_topics(
        self, topics: list[str], *, operation_timeout: float | None = None, request_timeout: float | None = None
    ) -> ByKey[str, None]:
        """Delete topics. Futures by topic name; arguments as of `create_topics`."""
        names = texts_of(topics, "topics")
        limit_s, operation_s = self.times(request_timeout, operation_timeout)
        request = requests.delete_topics(names, operation_s)
        return ByKey(dict.fromkeys(names), lambda: self.engine.at(
            CONTROLLER, request, limit_s, _reader(requests.read_deleted_topics, operation_s),
            max_version=requests.LAST_DELETE_BY_NAME, repeatable=False))

    def create_partitions(
        self, new_partitions: list[NewPartitions], *, operation_timeout: float | None = None,
        request_timeout: float | None = None, validate_only: bool = False,
    ) -> ByKey[str, None]:
        """Add partitions to topics. Futures by topic name; arguments as of `create_topics`."""
        additions = list_of(NewPartitions, new_partitions, "new_partitions", filled=True)
        for new in additions:
            _check_new_partitions(new)
        limit_s, operation_s = self.times(request_timeout, operation_timeout)
        request = requests.create_partitions(additions, operation_s, flag(validate_only, "validate_only"))
        return ByKey(dict.fromkeys(each.topic for each in additions), lambda: self.engine.at(
            CONTROLLER, request, limit_s, _reader(requests.read_new_partitions, operation_s), repeatable=False))

    def describe_topics(
        self, topics: TopicCollection, *, request_timeout: float | None = None,
        include_authorized_operations: bool = False,
    ) -> ByKey[str, TopicDescription]:
        """Find ids, partitions, leaders and replicas of topics. Futures by topic name.

        Each resolves to the topic's description, its partitions in the order of their numbers.

        Args:
            topics: their names.
            request_timeout: seconds for the whole call.
            include_authorized_operations: find out, too, what this client may do with them.
        """
        names = texts_of(instance_of(TopicCollection, topics, "topics").topic_names, "topic_names", filled=False)
        if "" in names:
            raise ValueError("the name of a topic is empty")
        limit_s = self.limit(request_timeout)
        request = requests.describe_topics(names, flag(include_authorized_operations,
                                                       "include_authorized_operations"))

        async def describe() -> dict[str, TopicDescription | KafkaError]:
            without_duplicates(names, "topics")
            return await self.engine.at(ANY_NODE, request, limit_s, requests.read_described_topics)

        return ByKey(dict.fromkeys(names), describe)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Single[ClusterMetadata]:
        """Brokers, and all topics or one of them. Raises KafkaException when no broker answers in time.

        Args:
            topic: one of them; None for all.
            timeout: seconds; socket.timeout.ms when it is negative.
        """
        return self.core.list_topics(topic, self.limit_of(timeout))


def _reader(read: Reader, operation_s: float) -> Reader:
    """Who lets the brokers take no time wants the work begun, and not to hear that it was not finished."""
    return read if operation_s else requests.begun(read)


def _check_new_topic(new: NewTopic) -> None:
    """What librdkafka does not let pass."""
    if not -1 <= new.num_partitions <= _MOST_PARTITIONS:
        raise ValueError(f"{new!r}: num_partitions must be 1 to {_MOST_PARTITIONS}, or -1 for the broker's default")
    if not -1 <= new.replication_factor <= _MOST_REPLICAS:
        raise ValueError(f"{new!r}: replication_factor must be 1 to {_MOST_REPLICAS}, or -1 for the broker's default")
    if new.replica_assignment is None:
        return
    if new.replication_factor != -1:
        raise ValueError(f"{new!r}: give replication_factor or replica_assignment, not both")
    count = len(new.replica_assignment)
    if new.num_partitions not in (-1, count) or not all(new.replica_assignment):
        raise ValueError(f"{new!r}: replica_assignment must have brokers for each of num_partitions")


def _check_new_partitions(new: NewPartitions) -> None:
    if not 1 <= new.new_total_count <= _MOST_PARTITIONS:
        raise ValueError(f"{new!r}: new_total_count must be 1 to {_MOST_PARTITIONS}")
    assigned = new.replica_assignment
    if assigned is not None and (not 1 <= len(assigned) <= new.new_total_count or not all(assigned)):
        raise ValueError(f"{new!r}: replica_assignment must have brokers for each partition that is added")
