"""Access rules as values: requests survive the wire in every version, replies are read in the order of requests."""

from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import acl_requests as admin
from headrace.types.acls import AclBinding, AclBindingFilter, AclOperation
from headrace.wire.codec import encode
from headrace.wire.messages.admin.security import (
    AclCreationResult,
    AclDescription,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from tests.support.travelling import travels

RULE = AclBinding("topic", "t", "prefixed", "User:a", "*", "read", "deny")
OTHER = AclBinding("group", "g", "literal", "User:a", "*", "all", "allow")
ALL = AclBindingFilter("any", None, "any", None, None, "any", "any")


def test_rules_are_created_and_each_has_its_own_end() -> None:
    creation = travels(admin.create_acls([RULE]), 1, 3).creations[0]
    assert (creation.resource_type, creation.resource_name, creation.resource_pattern_type, creation.principal,
            creation.host, creation.operation, creation.permission_type) == (2, "t", 4, "User:a", "*", 3, 2)
    reply = CreateAclsResponse(results=[AclCreationResult(), AclCreationResult(error_code=31)])
    found = admin.read_created_acls(reply, [RULE, OTHER])
    assert found[RULE] is None
    error = found[OTHER]
    assert error == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert error is not None
    assert error.str().endswith("this needs ALTER on the cluster")


def test_a_filter_leaves_open_what_is_none_or_any() -> None:
    request = travels(admin.describe_acls(ALL), 1, 3)
    assert (request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter,
            request.principal_filter, request.host_filter, request.operation, request.permission_type) == (
        1, None, 1, None, None, 1, 1)
    assert travels(admin.delete_acls([ALL]), 1, 3).filters[0].principal_filter is None


def test_rules_that_fit_are_read_with_members_that_are_not_known_yet() -> None:
    reply = DescribeAclsResponse(resources=[DescribeAclsResource(
        resource_type=2, resource_name="t", pattern_type=4,
        acls=[AclDescription(principal="User:a", host="*", operation=3, permission_type=2),
              AclDescription(principal="User:a", host="*", operation=77, permission_type=3)])])
    first, second = admin.read_found_acls(reply)
    assert first == RULE
    assert second.operation is AclOperation.UNKNOWN
    with pytest.raises(KafkaException, match="DESCRIBE on the cluster"):
        admin.read_found_acls(DescribeAclsResponse(error_code=31))


def test_deleted_rules_are_told_by_filter() -> None:
    gone = DeleteAclsMatchingAcl(resource_type=2, resource_name="t", pattern_type=4, principal="User:a", host="*",
                                 operation=3, permission_type=2)
    kept = DeleteAclsMatchingAcl(error_code=56, resource_type=2, resource_name="t", pattern_type=4,
                                 principal="User:a", host="*", operation=3, permission_type=2)
    other = AclBindingFilter("topic", None, "any", None, None, "any", "any")
    reply = DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=[gone]),
                                               DeleteAclsFilterResult(matching_acls=[kept])])
    found = admin.read_deleted_acls(reply, [ALL, other])
    assert found[ALL] == [RULE]
    assert found[other] == KafkaError.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("pattern", ["any", "literal", "match", "prefixed"])
@pytest.mark.parametrize("version", range(4))
def test_before_kafka_2_any_pattern_is_the_literal_one_and_nothing_else_changes(pattern: str, version: int) -> None:
    wanted = AclBindingFilter("topic", "t", pattern, "User:a", "h", "read", "allow")
    for request in (admin.describe_acls(wanted), admin.delete_acls([wanted])):
        written: Any = admin.acls_for_version(request, version)
        if version or pattern != "any":
            assert written == request
        else:
            literal = AclBindingFilter("topic", "t", "literal", "User:a", "h", "read", "allow")
            assert written in (admin.describe_acls(literal), admin.delete_acls([literal]))
            encode(written, version)
