"""Access rules: who may, or may not, do what with which resource. confluent_kafka's classes and names.

Numbers are those of the wire, where the peer's are. Read next: `machines.admin.acl_requests`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import total_ordering
from typing import Any

from headrace.arguments import member_of
from headrace.types.cluster import OrderedEnum

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "ResourcePatternType",
    "ResourceType",
    "operations_of",
]


class ResourceType(OrderedEnum):
    """What a configuration or an access rule belongs to. In a rule, BROKER is the cluster; its name is kafka-cluster.

    Names and numbers up to 5 are confluent_kafka's.
    """

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    BROKER = 4
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


class ResourcePatternType(OrderedEnum):
    """How the name of a resource is meant. MATCH, for filters, finds all rules that hold for the name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(OrderedEnum):
    """What is done. Names and numbers up to 12 are confluent_kafka's."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(OrderedEnum):
    """Whether a rule allows or forbids. What is forbidden stays so, whatever is allowed."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def operations_of(given: Iterable[Any] | None) -> list[AclOperation] | None:
    """Operations by themselves, name or number; None when there are none.

    Raises:
        TypeError: one is something else.
        ValueError: there is no such operation.
    """
    return [member_of(AclOperation, each, "operation") for each in given] if given else None


@total_ordering
class AclBinding:
    """An access rule. Equal, and in order, by all that it says.

    Args:
        restype: kind of the resource.
        name: its name; `*` stands for all.
        resource_pattern_type: how the name is meant.
        principal: who, for example ``User:alice``.
        host: from where; `*` stands for anywhere.
        operation: what is done.
        permission_type: whether that is allowed.

    Raises:
        TypeError: one is of another type.
        ValueError: one is None, there is no such member, or it is for filters only.
    """

    _texts_needed = True
    _for_others = frozenset((ResourceType.ANY, ResourcePatternType.ANY, ResourcePatternType.MATCH, AclOperation.ANY,
                             AclPermissionType.ANY))

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str | None,
        resource_pattern_type: ResourcePatternType | str | int,
        principal: str | None,
        host: str | None,
        operation: AclOperation | str | int,
        permission_type: AclPermissionType | str | int,
    ) -> None:
        self.name = self._text(name, "name")
        self.principal = self._text(principal, "principal")
        self.host = self._text(host, "host")
        self.restype: ResourceType = self._member(ResourceType, restype, "restype")
        self.resource_pattern_type: ResourcePatternType = self._member(
            ResourcePatternType, resource_pattern_type, "resource_pattern_type")
        self.operation: AclOperation = self._member(AclOperation, operation, "operation")
        self.permission_type: AclPermissionType = self._member(
            AclPermissionType, permission_type, "permission_type")
        self.restype_int = self.restype.value
        self.resource_pattern_type_int = self.resource_pattern_type.value
        self.operation_int = self.operation.value
        self.permission_type_int = self.permission_type.value

    def _text(self, given: Any, name: str) -> Any:
        if given is None and self._texts_needed:
            raise ValueError(f"{name} must be str, not None")
        if given is not None and not isinstance(given, str):
            raise TypeError(f"{name} must be str, not {type(given).__name__}")
        return given

    def _member(self, kind: Any, given: Any, name: str) -> Any:
        member = member_of(kind, given, name)
        if member in self._for_others:
            raise ValueError(f"{type(self).__name__} cannot have {name} {member.name}")
        return member

    def _key(self) -> tuple[Any, ...]:
        return (self.restype, self.name, self.resource_pattern_type, self.principal, self.host, self.operation,
                self.permission_type)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, AclBinding) else NotImplemented

    def __lt__(self, other: AclBinding) -> bool:
        return self._key() < other._key() if isinstance(other, AclBinding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(map(str, self._key()))})"


class AclBindingFilter(AclBinding):
    """Which access rules are meant: a text that is None, or a member ANY, fits all.

    Args:
        restype: kind of the resource.
        name: its name, or None.
        resource_pattern_type: how the name is meant; MATCH finds all rules that hold for it.
        principal: who, or None.
        host: from where, or None.
        operation: what is done.
        permission_type: whether that is allowed.

    Raises:
        TypeError: one is of another type.
        ValueError: there is no such member, or it is UNKNOWN.
    """

    _texts_needed = False
    _for_others = frozenset((ResourceType.UNKNOWN, ResourcePatternType.UNKNOWN, AclOperation.UNKNOWN,
                             AclPermissionType.UNKNOWN))
