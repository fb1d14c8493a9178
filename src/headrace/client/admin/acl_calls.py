"""Calls about access rules.

It must not know the faces. Read next: `machines.admin.acl_requests`.
"""

from __future__ import annotations

from typing import TypeVar

from headrace.arguments import ArgumentError, instance_of, list_of
from headrace.client.admin.admin_area import AdminArea, ByKey, Single
from headrace.client.admin.admin_engine import ANY_NODE, CONTROLLER
from headrace.errors import KafkaError
from headrace.machines.admin import acl_requests as requests
from headrace.types.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

__all__ = ["AclCalls"]

_UNKNOWN = (ResourceType.UNKNOWN, ResourcePatternType.UNKNOWN, AclOperation.UNKNOWN, AclPermissionType.UNKNOWN)
_B = TypeVar("_B", bound=AclBinding)


class AclCalls(AdminArea):
    """Access rules."""

    def create_acls(
        self, acls: list[AclBinding], *, request_timeout: float | None = None
    ) -> ByKey[AclBinding, None]:
        """Make access rules. Futures by rule."""
        bindings = _different(AclBinding, acls, "acls")
        for binding in bindings:
            _check_rule(binding)
        limit_s, request = self.limit(request_timeout), requests.create_acls(bindings)
        return ByKey(bindings, lambda: self.engine.at(
            CONTROLLER, request, limit_s, lambda reply: requests.read_created_acls(reply, bindings)))

    def describe_acls(
        self, acl_binding_filter: AclBindingFilter, *, request_timeout: float | None = None
    ) -> Single[list[AclBinding]]:
        """Find the access rules that fit a filter. The result is the list of them."""
        wanted = instance_of(AclBindingFilter, acl_binding_filter, "acl_binding_filter")
        limit_s = self.limit(request_timeout)
        return self.engine.single(ANY_NODE, requests.describe_acls(wanted), limit_s, requests.read_found_acls,
                                  for_version=requests.acls_for_version)

    def delete_acls(
        self, acl_binding_filters: list[AclBindingFilter], *, request_timeout: float | None = None
    ) -> ByKey[AclBindingFilter, list[AclBinding]]:
        """Delete the access rules that fit filters. Futures by filter; each resolves to the rules that are gone."""
        filters = _different(AclBindingFilter, acl_binding_filters, "acl_binding_filters")
        limit_s, request = self.limit(request_timeout), requests.delete_acls(filters)

        async def delete() -> dict[AclBindingFilter, list[AclBinding] | KafkaError]:
            return await self.engine.at(
                CONTROLLER, request, limit_s, lambda reply: requests.read_deleted_acls(reply, filters),
                repeatable=False, for_version=requests.acls_for_version)

        return ByKey(filters, delete)


def _different(kind: type[_B], given: list[_B], name: str) -> list[_B]:
    """A list without repetition: the answers to it are told apart by what was asked."""
    found = list_of(kind, given, name, filled=True)
    if len(set(found)) < len(found):
        raise ValueError(f"{name} has one {kind.__name__} twice")
    return found


def _check_rule(binding: AclBinding) -> None:
    if isinstance(binding, AclBindingFilter) and None in (binding.name, binding.principal, binding.host):
        raise ArgumentError(f"{binding!r} is a filter, no rule: something in it is None")
    for given in (binding.restype, binding.resource_pattern_type, binding.operation, binding.permission_type):
        if given in _UNKNOWN:
            raise ValueError(f"{binding!r}: {given} is no value for a rule")
