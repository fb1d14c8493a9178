"""A registry without sockets: the API over a cluster in memory."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.cluster import BrokerCluster, BrokerNode
from headrace.broker.dispatch import served_by
from headrace.broker.registry.rest_api import RegistryApi
from headrace.broker.settings import BrokerSettings

Ask = Callable[..., tuple[int, Any]]


def new_cluster() -> BrokerCluster:
    """One node, in memory, which is up."""
    numbers = count(1)
    settings = BrokerSettings()
    return BrokerCluster([BrokerNode(1, "localhost", is_up=True)], settings, served_by(settings),
                         lambda: UUID(int=next(numbers)))


def asking(api: RegistryApi) -> Ask:
    """Calls of an API: `ask("GET", "/subjects")` gives the status and the JSON."""
    def ask(method: str, target: str, body: Any = None) -> tuple[int, Any]:
        given = b"" if body is None else json.dumps(body).encode()
        reply = api.handle(method, target, given, 1_700_000_000_000)
        return reply.status, json.loads(reply.body)

    return ask


@pytest.fixture
def cluster() -> BrokerCluster:
    return new_cluster()


@pytest.fixture
def ask(cluster: BrokerCluster) -> Ask:
    return asking(RegistryApi(cluster))
