"""Calls about share groups and where they begin.

It must not know the faces. Read next: `machines.admin.share_group_requests`.
"""

from __future__ import annotations

from headrace.arguments import mapping_of
from headrace.client.admin.admin_area import (
    AdminArea,
    ByKey,
    Single,
    check_numbers,
    flag,
    partitions_of,
    texts_of,
    value_of,
)
from headrace.client.admin.group_calls import read_listed
from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import group_requests
from headrace.machines.admin import share_group_requests as requests
from headrace.types.groups import ListedShareGroup, ShareGroupDescription, SharePartitionOffset
from headrace.types.records import TopicPartition
from headrace.wire.messages.groups.classic_groups import ListGroupsRequest
from headrace.wire.messages.groups.share_groups import ShareGroupDescribeResponse

__all__ = ["ShareGroupCalls"]

_SHARE = "share"


class ShareGroupCalls(AdminArea):
    """Share groups (KIP-932)."""

    def list_share_groups(self, *, request_timeout: float | None = None) -> Single[list[ListedShareGroup]]:
        """Find the share groups of the cluster. The result is the list of them.

        Raises KafkaException when a broker does not answer.
        """
        limit_s = self.limit(request_timeout)

        async def list_them() -> list[ListedShareGroup]:
            found, errors = await self.engine.at_brokers(ListGroupsRequest(types_filter=[_SHARE]), limit_s, read_listed)
            if errors:
                raise KafkaException(next(iter(errors.values())))
            return [ListedShareGroup(group.group_id, group.group_state)
                    for groups in found.values() for group in groups if group.group_type.lower() == _SHARE]

        return list_them()

    def describe_share_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None,
        include_authorized_operations: bool = False,
    ) -> ByKey[str, ShareGroupDescription]:
        """Find members, assignments and coordinators of share groups. Futures by group id.

        Each resolves to the group's description.
        """
        ids, limit_s = texts_of(group_ids, "group_ids"), self.limit(request_timeout)
        authorized = flag(include_authorized_operations, "include_authorized_operations")

        def read(
            reply: ShareGroupDescribeResponse, node_id: int
        ) -> dict[str, ShareGroupDescription | KafkaError]:
            return {each.group_id: requests.share_description(each, self.engine.node(node_id))
                    for each in reply.groups}

        return ByKey(dict.fromkeys(ids), lambda: self.engine.at_coordinators(
            ids, limit_s, lambda part: requests.describe_share_groups(part, authorized), read))

    def delete_share_groups(self, group_ids: list[str], *, request_timeout: float | None = None) -> ByKey[str, None]:
        """Delete share groups that have no members. Futures by group id."""
        ids, limit_s = texts_of(group_ids, "group_ids"), self.limit(request_timeout)
        return ByKey(dict.fromkeys(ids), lambda: self.engine.at_coordinators(
            ids, limit_s, group_requests.delete_groups, lambda reply, _: group_requests.read_deleted_groups(reply)))

    def list_share_group_offsets(
        self, group_id: str, partitions: list[TopicPartition] | None = None, *, request_timeout: float | None = None
    ) -> Single[dict[TopicPartition, SharePartitionOffset | KafkaError]]:
        """Find where a share group's records begin, and how many are left; with None, of all that it has read.

        The result has both by partition; one that cannot be told has its error there. Raises KafkaException when that
        is the whole group.
        """
        (name,) = texts_of([group_id], "group_id")
        given = None if partitions is None else partitions_of(partitions, "partitions", filled=True)
        limit_s = self.limit(request_timeout)

        async def find() -> dict[TopicPartition, SharePartitionOffset | KafkaError]:
            found = await self.engine.at_coordinators(
                [name], limit_s, lambda _: requests.list_share_offsets(name, given),
                lambda reply, _: {name: requests.read_share_offsets(reply, name)})
            return value_of(found, name)

        return find()

    def alter_share_group_offsets(
        self, group_id: str, offsets: dict[TopicPartition, int], *, request_timeout: float | None = None
    ) -> ByKey[TopicPartition, None]:
        """Let a share group without members begin elsewhere. Futures by partition."""
        (name,) = texts_of([group_id], "group_id")
        given = mapping_of(TopicPartition, int, offsets, "offsets")
        check_numbers(given)
        limit_s = self.limit(request_timeout)

        async def alter() -> dict[TopicPartition, KafkaError | None]:
            found = await self.engine.at_coordinators(
                [name], limit_s, lambda _: requests.alter_share_offsets(name, given),
                lambda reply, _: {name: requests.read_altered_share_offsets(reply, name)})
            return value_of(found, name)

        return ByKey(given, alter)

    def delete_share_group_offsets(
        self, group_id: str, topics: list[str], *, request_timeout: float | None = None
    ) -> ByKey[str, None]:
        """Let a share group without members forget topics. Futures by topic."""
        (name,) = texts_of([group_id], "group_id")
        names, limit_s = texts_of(topics, "topics"), self.limit(request_timeout)

        async def delete() -> dict[str, KafkaError | None]:
            found = await self.engine.at_coordinators(
                [name], limit_s, lambda _: requests.delete_share_offsets(name, names),
                lambda reply, _: {name: requests.read_deleted_share_offsets(reply, name)})
            return value_of(found, name)

        return ByKey(dict.fromkeys(names), delete)
