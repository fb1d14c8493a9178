"""Calls about consumer groups and their members.

It must not know the faces. Read next: `machines.admin.group_requests`.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Any, TypeVar

from headrace.client.admin.admin_area import AdminArea, ByKey, Single, flag, texts_of, value_of, without_duplicates
from headrace.client.cluster_metadata import BrokerMetadata, GroupMember, GroupMetadata
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.admin import group_requests as requests
from headrace.machines.admin.admin_results import failure, raise_failure
from headrace.types.cluster import ConsumerGroupState, ConsumerGroupType
from headrace.types.groups import ConsumerGroupDescription, ListConsumerGroupsResult
from headrace.wire.messages.groups.classic_groups import (
    DescribedGroup,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupDescribeResponse

__all__ = ["GroupCalls", "read_listed"]

_E = TypeVar("_E", bound=Enum)
_LAST_WITHOUT_UNKNOWN = 5
"""The last version of DescribeGroups that describes a group that is not there, or of another type, as dead."""
_NOT_PLANNED = (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE)
_REASON = "an administrator has removed it"


class GroupCalls(AdminArea):
    """Consumer groups."""

    def list_consumer_groups(
        self, *, request_timeout: float | None = None, states: Collection[ConsumerGroupState] | None = None,
        types: Collection[ConsumerGroupType] | None = None,
    ) -> Single[ListConsumerGroupsResult]:
        """Find the consumer groups of the cluster.

        The result has them, and the errors of brokers that could not be asked; one error if no broker is known in time.

        Args:
            request_timeout: seconds for the whole call.
            states: only groups in one of these states.
            types: only groups of one of these types.
        """
        wanted = _members(ConsumerGroupState, states, "states")
        kinds = _members(ConsumerGroupType, types, "types")
        if ConsumerGroupType.UNKNOWN in kinds:
            raise ValueError("types has UNKNOWN: no group is of that type")
        limit_s = self.limit(request_timeout)

        async def list_them() -> ListConsumerGroupsResult:
            request = requests.list_groups(wanted, kinds)
            try:
                found, errors = await self.engine.at_brokers(request, limit_s, read_listed)
            except ClientClosedError:
                raise
            except KafkaException as failed:  # no broker is known
                return ListConsumerGroupsResult([], [failed.error])
            listed = [requests.listing(group) for groups in found.values() for group in groups]
            return ListConsumerGroupsResult([group for group in listed if group is not None],
                                            list(errors.values()))

        return list_them()

    def describe_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None,
        include_authorized_operations: bool = False,
    ) -> ByKey[str, ConsumerGroupDescription]:
        """Find members, assignments and coordinators of groups of all types. Futures by group id.

        Each resolves to the group's description; one that is not there is described as dead.

        Args:
            group_ids: the groups.
            request_timeout: seconds for the whole call.
            include_authorized_operations: find out, too, what this client may do with them.
        """
        ids = texts_of(group_ids, "group_ids")
        authorized = flag(include_authorized_operations, "include_authorized_operations")
        limit_s = self.limit(request_timeout)

        async def describe() -> dict[str, ConsumerGroupDescription | KafkaError]:
            without_duplicates(ids, "groups")
            found = await self.engine.at_coordinators(
                ids, limit_s, lambda part: requests.describe_planned(part, authorized), self._planned)
            others = [name for name, each in found.items()
                      if isinstance(each, KafkaError) and each.code() in _NOT_PLANNED]
            if others:
                found |= await self.engine.at_coordinators(
                    others, limit_s, lambda part: requests.describe_classic(part, authorized), self._classic,
                    max_version=_LAST_WITHOUT_UNKNOWN)
            return found

        return ByKey(dict.fromkeys(ids), describe)

    def _planned(
        self, reply: ConsumerGroupDescribeResponse, node_id: int
    ) -> dict[str, ConsumerGroupDescription | KafkaError]:
        return {group.group_id: requests.planned_description(group, self.engine.node(node_id))
                for group in reply.groups}

    def _classic(
        self, reply: DescribeGroupsResponse, node_id: int
    ) -> dict[str, ConsumerGroupDescription | KafkaError]:
        return {group.group_id: requests.classic_description(group, self.engine.node(node_id))
                for group in reply.groups}

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float | None = None
    ) -> ByKey[str, None]:
        """Delete groups that have no members, with their offsets. Futures by group id."""
        ids, limit_s = texts_of(group_ids, "group_ids"), self.limit(request_timeout)

        async def delete() -> dict[str, KafkaError | None]:
            without_duplicates(ids, "groups")
            return await self.engine.at_coordinators(
                ids, limit_s, requests.delete_groups, lambda reply, _: requests.read_deleted_groups(reply))

        return ByKey(dict.fromkeys(ids), delete)

    def remove_members_from_consumer_group(
        self, group_id: str, instance_ids: list[str] | None = None, *, request_timeout: float | None = None
    ) -> Single[dict[str, KafkaError | None]]:
        """Put members out of a classic group: static ones by instance id, or with None all.

        The result has None for each that is out, else the error, by instance id or member id.
        """
        (name,) = texts_of([group_id], "group_id")
        instances = None if instance_ids is None else texts_of(instance_ids, "instance_ids")
        limit_s = self.limit(request_timeout)

        async def remove() -> dict[str, KafkaError | None]:
            static, others = (instances, []) if instances is not None else await self._members_of(name, limit_s)
            if not static and not others:
                return {}
            found: dict[str, dict[str, KafkaError | None] | KafkaError] = await self.engine.at_coordinators(
                [name], limit_s, lambda _: requests.remove_members(name, static, others, _REASON),
                lambda reply, _: {name: requests.read_removed(reply, name)})
            return value_of(found, name)

        return remove()

    async def _members_of(self, name: str, limit_s: float) -> tuple[list[str], list[str]]:
        """Instance ids of static members, and member ids of others."""
        found = await self.engine.at_coordinators(
            [name], limit_s, lambda part: requests.describe_classic(part, False), self._classic)
        group = value_of(found, name)
        return ([m.group_instance_id for m in group.members if m.group_instance_id is not None],
                [m.member_id for m in group.members if m.group_instance_id is None])

    def list_groups(self, group: str | None = None, timeout: float = -1) -> Single[list[GroupMetadata]]:
        """All classic groups with their members, or one of them. Raises KafkaException when a broker does not answer.

        Args:
            group: one of them; None for all.
            timeout: seconds; socket.timeout.ms when it is negative.
        """
        if group is not None and not isinstance(group, str):
            raise TypeError(f"group must be str or None, not {type(group).__name__}")
        limit_s = self.limit_of(timeout)

        async def list_them() -> list[GroupMetadata]:
            listed, errors = await self.engine.at_brokers(ListGroupsRequest(), limit_s, read_listed)
            if errors:
                raise KafkaException(next(iter(errors.values())))
            found: list[GroupMetadata] = []
            for node_id, groups in listed.items():
                wanted = [each.group_id for each in groups if group in (None, each.group_id)]
                if wanted:
                    reply: DescribeGroupsResponse = await self.engine.single(
                        node_id, requests.describe_classic(wanted, False), limit_s, _itself,
                        max_version=_LAST_WITHOUT_UNKNOWN)
                    found += [self._metadata(node_id, each) for each in reply.groups]
            return found

        return list_them()

    def _metadata(self, node_id: int, group: DescribedGroup) -> GroupMetadata:
        node = self.core.metadata.cluster.nodes[node_id]
        members = [
            GroupMember(m.member_id, m.client_id, m.client_host, bytes(m.member_metadata), bytes(m.member_assignment))
            for m in group.members
        ]
        error = failure(f'group "{group.group_id}"', group.error_code, group.error_message,
                        f'DESCRIBE on group "{group.group_id}"')
        return GroupMetadata(BrokerMetadata(node.id, node.host, node.port), group.group_id, error, group.group_state,
                             group.protocol_type, group.protocol_data, members)


def _itself(reply: DescribeGroupsResponse) -> DescribeGroupsResponse:
    return reply


def read_listed(reply: ListGroupsResponse) -> list[ListedGroup]:
    """The groups of one broker.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("groups", reply.error_code, None, "DESCRIBE on the cluster")
    return reply.groups


def _members(kind: type[_E], given: Any, name: str) -> list[_E]:
    """A set of members of an enum: confluent_kafka takes nothing else."""
    if given is None:
        return []
    if not isinstance(given, (set, frozenset)):
        raise TypeError(f"{name} must be a set of {kind.__name__}, not {type(given).__name__}")
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"{name} must be a set of {kind.__name__}, not of {type(each).__name__}")
    return list(given)
