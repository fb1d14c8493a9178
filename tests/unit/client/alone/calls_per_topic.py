"""What a topic costs an administrator in Python calls, and in requests. Exact on any machine, as time is not."""

import pytest

from headrace import TopicCollection
from headrace.admin import AdminClient, ConfigResource, NewTopic
from headrace.testing import EmbeddedBroker
from tests.support.calls import counted

TOPICS, ATTEMPTS = 500, 3
NAMES = [f"topic-{number}" for number in range(TOPICS)]


@pytest.fixture(scope="module")
def servers():
    with EmbeddedBroker() as broker:
        with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            for future in admin.create_topics([NewTopic(name, 1, 1) for name in NAMES]).values():
                future.result(30)
        yield broker.bootstrap_servers


def resources():
    return [ConfigResource(ConfigResource.Type.TOPIC, name) for name in NAMES]


@pytest.mark.parametrize(("budget", "call"), [
    (6, lambda admin: admin.list_topics(timeout=30)),
    (40, lambda admin: [one.result(30) for one in admin.describe_topics(TopicCollection(NAMES)).values()]),
    (202, lambda admin: [one.result(30) for one in admin.describe_configs(resources()).values()]),
], ids=["list", "describe", "configurations"])
def test_a_topic_costs_few_calls_and_no_request_of_its_own(servers, budget, call):
    with AdminClient({"bootstrap.servers": servers}) as admin:
        for _ in range(2):  # the second asks the broker by the address that it gave, and connects once more
            call(admin)
        for _ in range(ATTEMPTS):
            with counted() as calls:
                call(admin)
            found = sum(calls.loop.values()) + sum(calls.here.values())
            if found <= budget * TOPICS:
                break
        assert found <= budget * TOPICS, calls.shown(TOPICS)
        assert calls.loop["stats.py:BrokerStats.on_sent"] == 1, calls.shown(TOPICS)
