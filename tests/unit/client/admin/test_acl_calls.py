"""Calls about access rules: each has its own end, and what is no rule is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.admin import AclBinding, AclBindingFilter, AdminClient
from headrace.client.admin.admin_calls import AdminCalls
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.admin.security import (
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from tests.support.scripted_broker import ScriptedBroker, admin_config

RULE = AclBinding("topic", "t", "literal", "User:a", "*", "read", "allow")
OTHER = AclBinding("topic", "u", "literal", "User:a", "*", "read", "allow")
ALL = AclBindingFilter("any", None, "any", None, None, "any", "any")
NOBODY = {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}


def test_rules_are_made_found_and_deleted() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("one", 1))
        broker.on(CreateAclsRequest, CreateAclsResponse(results=[AclCreationResult(),
                                                                 AclCreationResult(error_code=31)]))
        broker.on(DescribeAclsRequest, DescribeAclsResponse(resources=[DescribeAclsResource(
            resource_type=2, resource_name="t", pattern_type=3,
            acls=[AclDescription(principal="User:a", host="*", operation=3, permission_type=3)])]))
        broker.on(DeleteAclsRequest, DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=[
            DeleteAclsMatchingAcl(resource_type=2, resource_name="t", pattern_type=3, principal="User:a", host="*",
                                  operation=3, permission_type=3)])]))
        core = ClientCore(Config(ADMIN, admin_config()), connector=broker.connector)
        admin = AdminCalls(core)
        assert await admin.create_acls([RULE, OTHER]).results() == {
            RULE: None, OTHER: KafkaError.CLUSTER_AUTHORIZATION_FAILED}
        assert await admin.describe_acls(ALL) == [RULE]
        assert await admin.delete_acls([ALL]).results() == {ALL: [RULE]}
        await core.close()

    asyncio.run(run())


@pytest.mark.parametrize("given", [
    [RULE, RULE], [], "topic", ["topic"], [None, RULE], [ALL],
    [AclBinding("unknown", "t", "literal", "User:a", "*", "read", "allow")],
    [AclBinding("topic", "t", "literal", "User:a", "*", "unknown", "allow")]])
def test_what_is_no_list_of_different_rules_is_refused(given: Any) -> None:
    with AdminClient(NOBODY) as admin, pytest.raises(ValueError, match=r"."):
        admin.create_acls(given)


@pytest.mark.parametrize("given", [[ALL, ALL], [], [RULE], [None]])
def test_what_is_no_list_of_different_filters_is_refused(given: Any) -> None:
    with AdminClient(NOBODY) as admin:
        with pytest.raises(ValueError, match=r"."):
            admin.delete_acls(given)
        with pytest.raises(TypeError):
            admin.describe_acls(RULE)  # type: ignore[arg-type]


def test_a_broker_without_an_authorizer_says_so() -> None:
    with EmbeddedBroker() as broker, AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        with pytest.raises(KafkaException) as refused:
            admin.create_acls([RULE])[RULE].result(10)
        assert refused.value.error == KafkaError.SECURITY_DISABLED
        with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
            admin.describe_acls(ALL).result(10)
