"""A real Kafka with access rules, and rules that hold for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.admin import AclBinding, AclBindingFilter, AdminClient
from tests.support.configuration import GENERAL
from tools.kafka import KafkaCluster
from tools.kafka.security import USERS

NOBODY = sorted(USERS)[1]
"""Who may do nothing."""


def with_rules() -> KafkaCluster:
    """One broker with access rules, where users come by SCRAM and may do nothing; without a user one may do all."""
    return KafkaCluster(GENERAL, quick=True, listeners=("SASL_PLAINTEXT",), properties={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS"})


def as_nobody(cluster: KafkaCluster) -> dict[str, Any]:
    """A client's properties."""
    return {**cluster.client_properties("SASL_PLAINTEXT", "SCRAM-SHA-256"), "sasl.username": NOBODY,
            "sasl.password": USERS[NOBODY]}


@contextmanager
def allowed(cluster: KafkaCluster, kind: str, name: str, operation: str) -> Iterator[None]:
    """Nobody may do one thing, inside."""
    rule = AclBinding(kind, name, "literal", f"User:{NOBODY}", "*", operation, "allow")
    gone = AclBindingFilter(kind, name, "match", f"User:{NOBODY}", None, "any", "any")
    with AdminClient(cluster.client_properties()) as admin:
        admin.create_acls([rule])[rule].result(30)
        try:
            yield
        finally:
            assert admin.delete_acls([gone])[gone].result(30) == [rule]
