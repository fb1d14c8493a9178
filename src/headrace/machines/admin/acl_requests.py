"""Requests about access rules, and what their replies mean: pure functions.

Read next: `client.admin.acl_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, TypeVar

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import failure, raise_failure
from headrace.types.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from headrace.wire.messages.admin import security as wire
from headrace.wire.schema import Request

__all__ = [
    "acls_for_version", "create_acls", "delete_acls", "describe_acls", "read_created_acls", "read_deleted_acls",
    "read_found_acls",
]

_Wanted = TypeVar("_Wanted", wire.DescribeAclsRequest, wire.DeleteAclsFilter)
_ALTER = "ALTER on the cluster"
_PATTERNS_FROM = 1
"""From this version on there are rules whose names are prefixes (KIP-290); before, all are literal."""
_ANY, _LITERAL = ResourcePatternType.ANY.value, ResourcePatternType.LITERAL.value


def create_acls(bindings: Sequence[AclBinding]) -> wire.CreateAclsRequest:
    """Ask for new rules."""
    return wire.CreateAclsRequest(creations=[
        wire.AclCreation(
            resource_type=each.restype.value, resource_name=each.name,
            resource_pattern_type=each.resource_pattern_type.value, principal=each.principal, host=each.host,
            operation=each.operation.value, permission_type=each.permission_type.value)
        for each in bindings
    ])


def read_created_acls(
    reply: wire.CreateAclsResponse, bindings: Sequence[AclBinding]
) -> dict[AclBinding, KafkaError | None]:
    """How each creation ended: a reply has them in the order of the request."""
    return {binding: failure(repr(binding), result.error_code, result.error_message, _ALTER)
            for binding, result in zip(bindings, reply.results, strict=True)}


def describe_acls(wanted: AclBindingFilter) -> wire.DescribeAclsRequest:
    """Ask for the rules that fit."""
    return wire.DescribeAclsRequest(
        resource_type_filter=wanted.restype.value, resource_name_filter=wanted.name,
        pattern_type_filter=wanted.resource_pattern_type.value, principal_filter=wanted.principal,
        host_filter=wanted.host, operation=wanted.operation.value, permission_type=wanted.permission_type.value)


def read_found_acls(reply: wire.DescribeAclsResponse) -> list[AclBinding]:
    """The rules that fit.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("access rules", reply.error_code, reply.error_message, "DESCRIBE on the cluster")
    return [_binding(resource, acl) for resource in reply.resources for acl in resource.acls]


def delete_acls(filters: Sequence[AclBindingFilter]) -> wire.DeleteAclsRequest:
    """Ask to delete the rules that fit."""
    return wire.DeleteAclsRequest(filters=[
        wire.DeleteAclsFilter(
            resource_type_filter=each.restype.value, resource_name_filter=each.name,
            pattern_type_filter=each.resource_pattern_type.value, principal_filter=each.principal,
            host_filter=each.host, operation=each.operation.value, permission_type=each.permission_type.value)
        for each in filters
    ])


def acls_for_version(request: Request, version: int) -> Request:
    """What asks for rules of any pattern asks for literal ones before Kafka 2.0, which had no others; as in Java."""
    if version >= _PATTERNS_FROM:
        return request
    if isinstance(request, wire.DeleteAclsRequest):
        return wire.DeleteAclsRequest(filters=[_literal(each) for each in request.filters])
    assert isinstance(request, wire.DescribeAclsRequest)
    return _literal(request)


def _literal(wanted: _Wanted) -> _Wanted:
    """The same filter; literal where it takes any pattern."""
    changed = copy(wanted)
    if wanted.pattern_type_filter == _ANY:
        changed.pattern_type_filter = _LITERAL
    return changed


def read_deleted_acls(
    reply: wire.DeleteAclsResponse, filters: Sequence[AclBindingFilter]
) -> dict[AclBindingFilter, list[AclBinding] | KafkaError]:
    """What each filter has deleted, or the first error: a reply has them in the order of the request."""
    found: dict[AclBindingFilter, list[AclBinding] | KafkaError] = {}
    for each, result in zip(filters, reply.filter_results, strict=True):
        parts: list[Any] = [result, *result.matching_acls]
        errors = [failure(repr(each), part.error_code, part.error_message, _ALTER) for part in parts]
        found[each] = next(filter(None, errors), None) or [_binding(acl, acl) for acl in result.matching_acls]
    return found


def _binding(resource: Any, acl: Any) -> AclBinding:
    return AclBinding(
        _known(ResourceType, resource.resource_type), resource.resource_name,
        _known(ResourcePatternType, resource.pattern_type), acl.principal, acl.host,
        _known(AclOperation, acl.operation), _known(AclPermissionType, acl.permission_type))


def _known(kind: Any, number: int) -> Any:
    """The member with a number; brokers that are newer may have others."""
    try:
        return kind(number)
    except ValueError:
        return kind.UNKNOWN
