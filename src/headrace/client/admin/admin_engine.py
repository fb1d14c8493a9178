"""What the admin client does, as coroutines: find the right brokers, ask, try again while leaders move, merge.

A call that concerns several things returns a dict from each of them to its result, or to the `KafkaError` that it ended
with. It must not know the faces, and is given arguments that `client.admin.admin_calls` has checked.
Read next: `machines.admin.requests`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from headrace.client.cluster_metadata import BrokerMetadata, GroupMember, GroupMetadata
from headrace.client.core import ClientCore
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import requests as admin
from headrace.machines.admin.admin_error_actions import AdminErrorAction, admin_error_action
from headrace.machines.cluster.coordinator import GROUP
from headrace.machines.machine import ANY_NODE, CONTROLLER
from headrace.types.admin import (
    ConfigEntry,
    ConfigResource,
    ConsumerGroupListing,
    DeletedRecords,
    DescribeClusterResult,
    ListConsumerGroupsResult,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from headrace.types.records import TopicPartition
from headrace.wire.messages.admin.configs import (
    AlterConfigsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from headrace.wire.messages.cluster.metadata import DescribeClusterRequest, DescribeClusterResponse
from headrace.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from headrace.wire.schema import Request

__all__ = ["AdminEngine"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_R = TypeVar("_R")
_LAST_DELETE_BY_NAME = 5
_CONSUMER = "consumer"


class AdminEngine:
    """The work of the calls, on the event loop of their client.

    Args:
        core: metadata and connections.
    """

    def __init__(self, core: ClientCore) -> None:
        self._core = core

    # Topics

    async def create_topics(
        self, topics: Sequence[NewTopic], timeout_s: float, operation_s: float, validate_only: bool
    ) -> dict[str, KafkaError | None]:
        """Create topics on the controller."""
        request = admin.create_topics(topics, operation_s, validate_only)
        return await self._at_controller(request, timeout_s, admin.read_created)

    async def delete_topics(
        self, names: Sequence[str], timeout_s: float, operation_s: float
    ) -> dict[str, KafkaError | None]:
        """Delete topics on the controller."""
        request = admin.delete_topics(names, operation_s)
        return await self._at_controller(request, timeout_s, admin.read_deleted_topics, _LAST_DELETE_BY_NAME)

    async def create_partitions(
        self, additions: Sequence[NewPartitions], timeout_s: float, operation_s: float, validate_only: bool
    ) -> dict[str, KafkaError | None]:
        """Add partitions on the controller."""
        request = admin.create_partitions(additions, operation_s, validate_only)
        return await self._at_controller(request, timeout_s, admin.read_new_partitions)

    async def _at_controller(
        self,
        request: Request,
        timeout_s: float,
        read: Callable[[Any], dict[str, KafkaError | None]],
        max_version: int | None = None,
    ) -> dict[str, KafkaError | None]:
        async def attempt(settled: Collection[str], left_s: float) -> dict[str, KafkaError | None]:
            return read(await self._core.request(CONTROLLER, request, left_s, max_version=max_version,
                                                 repeatable=False))

        return await self._until_settled(attempt, timeout_s)

    # Configurations

    async def describe_configs(
        self, resources: Iterable[ConfigResource], timeout_s: float, broker: int
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        """Read configurations, of a broker from that broker."""
        found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
        for node_id, group in self._by_broker(resources, broker).items():
            reply = await self._core.request(node_id, admin.describe_configs(group), timeout_s)
            assert isinstance(reply, DescribeConfigsResponse)
            found.update(admin.read_described_configs(reply))
        return found

    async def alter_configs(
        self, resources: Iterable[ConfigResource], timeout_s: float, validate_only: bool, broker: int
    ) -> dict[ConfigResource, KafkaError | None]:
        """Replace whole configurations."""
        done: dict[ConfigResource, KafkaError | None] = {}
        for node_id, group in self._by_broker(resources, broker).items():
            reply = await self._core.request(node_id, admin.alter_configs(group, validate_only), timeout_s)
            assert isinstance(reply, AlterConfigsResponse)
            done.update(admin.read_altered(reply))
        return done

    async def incremental_alter_configs(
        self, resources: Iterable[ConfigResource], timeout_s: float, validate_only: bool, broker: int
    ) -> dict[ConfigResource, KafkaError | None]:
        """Change single properties."""
        done: dict[ConfigResource, KafkaError | None] = {}
        for node_id, group in self._by_broker(resources, broker).items():
            reply = await self._core.request(
                node_id, admin.incremental_alter_configs(group, validate_only), timeout_s, repeatable=False)
            assert isinstance(reply, IncrementalAlterConfigsResponse)
            done.update(admin.read_altered(reply))
        return done

    def _by_broker(self, resources: Iterable[ConfigResource], broker: int) -> dict[int, list[ConfigResource]]:
        """A broker's own configuration is known to that broker only; any broker knows the rest."""
        groups: dict[int, list[ConfigResource]] = defaultdict(list)
        for resource in resources:
            own = resource.restype is ResourceType.BROKER and resource.name.isdigit()
            groups[broker if broker >= 0 else int(resource.name) if own else ANY_NODE].append(resource)
        return groups

    # Offsets and records

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec], isolation_level: int, timeout_s: float
    ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
        """Find offsets at the partitions' leaders."""
        times = {tp: spec.timestamp for tp, spec in wanted.items()}
        return await self._at_leaders(
            times, timeout_s, lambda part, left_s: admin.list_offsets(part, isolation_level, left_s),
            admin.read_offsets)

    async def delete_records(
        self, wanted: Iterable[TopicPartition], timeout_s: float, operation_s: float
    ) -> dict[TopicPartition, DeletedRecords | KafkaError]:
        """Drop records at the partitions' leaders, up to each `TopicPartition`'s offset."""
        return await self._at_leaders(
            {tp: tp.offset for tp in wanted}, timeout_s, lambda part, _: admin.delete_records(part, operation_s),
            admin.read_deleted_records)

    async def _at_leaders(
        self,
        wanted: Mapping[TopicPartition, int],
        timeout_s: float,
        ask: Callable[[Mapping[TopicPartition, int], float], Request],
        read: Callable[[Any], dict[TopicPartition, _V | KafkaError]],
    ) -> dict[TopicPartition, _V | KafkaError]:
        async def attempt(settled: Collection[TopicPartition], left_s: float) -> dict[TopicPartition, _V | KafkaError]:
            open_ones = {tp: value for tp, value in wanted.items() if tp not in settled}
            errors, leaders = await self._leaders(open_ones, left_s)
            results: dict[TopicPartition, _V | KafkaError] = dict(errors)
            for node_id, part in leaders.items():
                try:
                    results.update(read(await self._core.driver.request(node_id, ask(part, left_s), left_s)))
                except KafkaException as failed:  # another broker may lead when the metadata is fresh
                    results.update(dict.fromkeys(part, failed.error))
            return results

        try:
            return await self._until_settled(attempt, timeout_s)
        finally:
            self._core.metadata.unwant({tp.topic for tp in wanted})

    async def _leaders(
        self, wanted: Mapping[TopicPartition, int], timeout_s: float
    ) -> tuple[dict[TopicPartition, KafkaError], dict[int, dict[TopicPartition, int]]]:
        """Sort partitions by leader; those without one get their error."""
        topics = {tp.topic for tp in wanted}
        self._core.metadata.want_topics(topics)
        self._core.wake()
        await self._core.wait_for_metadata(lambda cluster: topics <= cluster.topics.keys(), timeout_s)
        errors: dict[TopicPartition, KafkaError] = {}
        leaders: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for tp, value in wanted.items():
            error = self._trouble(tp)
            leader, _ = self._core.metadata.leader(tp.topic, tp.partition)
            if error is not None or leader is None:
                errors[tp] = error or KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{tp.topic}[{tp.partition}] has no "
                                                                                  "leader at the moment")
            else:
                leaders[leader][tp] = value
        return errors, leaders

    def _trouble(self, tp: TopicPartition) -> KafkaError | None:
        topic = self._core.metadata.cluster.topics[tp.topic]
        if topic.error is not None:
            return topic.error
        if tp.partition not in topic.partitions:
            return KafkaError(KafkaError._UNKNOWN_PARTITION,
                              f'topic "{tp.topic}" has partitions 0 to {len(topic.partitions) - 1}, not {tp.partition}')
        return None

    # Cluster and groups

    async def describe_cluster(self, timeout_s: float) -> DescribeClusterResult:
        """Ask any broker for the cluster (KIP-700)."""
        reply = await self._core.request(ANY_NODE, DescribeClusterRequest(), timeout_s)
        assert isinstance(reply, DescribeClusterResponse)
        if reply.error_code:
            raise KafkaException(KafkaError(reply.error_code, reply.error_message))
        return admin.read_cluster(reply)

    async def list_groups(self, group_id: str | None, timeout_s: float) -> list[GroupMetadata]:
        """Ask all brokers for the classic groups that they coordinate, and describe each."""
        listed, errors = await self._listed(timeout_s, [])
        if errors:
            raise errors[0]
        found = []
        for node_id, groups in listed.items():
            wanted = [group.group_id for group in groups if group_id in (None, group.group_id)]
            if wanted:
                reply = await self._core.request(node_id, DescribeGroupsRequest(groups=wanted), timeout_s)
                assert isinstance(reply, DescribeGroupsResponse)
                found += [self._group(node_id, group) for group in reply.groups]
        return found

    async def list_consumer_groups(self, states: Sequence[str], timeout_s: float) -> ListConsumerGroupsResult:
        """Ask all brokers for the consumer groups that they coordinate."""
        listed, errors = await self._listed(timeout_s, states)
        valid = [
            ConsumerGroupListing(group.group_id, not group.protocol_type, group.group_state or None,
                                 group.group_type or None)
            for groups in listed.values() for group in groups if group.protocol_type in ("", _CONSUMER)
        ]
        return ListConsumerGroupsResult(valid, errors)

    async def delete_groups(self, group_ids: Iterable[str], timeout_s: float) -> dict[str, KafkaError | None]:
        """Delete groups without members at their coordinators."""
        names = list(group_ids)

        async def attempt(settled: Collection[str], left_s: float) -> dict[str, KafkaError | None]:
            results: dict[str, KafkaError | None] = {}
            for name in names:
                if name not in settled:
                    node_id = await self._core.coordinator(GROUP, name, left_s)
                    reply = await self._core.request(node_id, DeleteGroupsRequest(groups_names=[name]), left_s)
                    assert isinstance(reply, DeleteGroupsResponse)
                    results.update(admin.read_deleted_groups(reply))
            return results

        return await self._until_settled(attempt, timeout_s)

    async def _listed(
        self, timeout_s: float, states: Sequence[str]
    ) -> tuple[dict[int, list[ListedGroup]], list[KafkaException]]:
        """The groups of each broker, and the errors of those that could not be asked."""
        cluster = await self._core.wait_for_metadata(lambda cluster: True, timeout_s)
        request = ListGroupsRequest(states_filter=list(states))
        replies = await asyncio.gather(
            *(self._core.request(node_id, request, timeout_s) for node_id in cluster.nodes), return_exceptions=True)
        listed: dict[int, list[ListedGroup]] = {}
        errors: list[KafkaException] = []
        for node_id, reply in zip(cluster.nodes, replies, strict=True):
            if isinstance(reply, KafkaException):
                errors.append(reply)
            elif isinstance(reply, BaseException):
                raise reply
            else:
                assert isinstance(reply, ListGroupsResponse)
                listed[node_id] = reply.groups
                if reply.error_code:
                    errors.append(KafkaException(KafkaError(reply.error_code)))
        return listed, errors

    def _group(self, node_id: int, group: DescribedGroup) -> GroupMetadata:
        node = self._core.metadata.cluster.nodes[node_id]
        members = [
            GroupMember(m.member_id, m.client_id, m.client_host, bytes(m.member_metadata), bytes(m.member_assignment))
            for m in group.members
        ]
        error = admin.named_result(f'group "{group.group_id}"', group.error_code, group.error_message)
        return GroupMetadata(BrokerMetadata(node.id, node.host, node.port), group.group_id, error, group.group_state,
                             group.protocol_type, group.protocol_data, members)

    async def _until_settled(
        self, attempt: Callable[[Collection[_K], float], Awaitable[dict[_K, _R]]], timeout_s: float
    ) -> dict[_K, _R]:
        """Repeat a call for what failed because a leader, coordinator or controller is moving, until it is settled."""
        clock = asyncio.get_running_loop().time
        end, failures = clock() + timeout_s, 0
        settled: dict[_K, _R] = {}
        results: dict[_K, _R] = {}
        while True:
            try:
                results = await attempt(settled, max(end - clock(), 0.0))
            except KafkaException:
                if not results or clock() < end:
                    raise
                return {**settled, **results}  # there was no time for another answer: the last one stands
            moving = {key: value for key, value in results.items()
                      if isinstance(value, KafkaError) and admin_error_action(value.code()) is AdminErrorAction.MOVED}
            settled.update((key, value) for key, value in results.items() if key not in moving)
            failures += 1
            wait_s = self._core.retry_wait_s(failures)
            if not moving or clock() + wait_s >= end:
                return {**settled, **results}
            self._core.metadata.refresh(clock())
            self._core.wake()
            await asyncio.sleep(wait_s)
