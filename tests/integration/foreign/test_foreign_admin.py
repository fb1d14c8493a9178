"""Administration by five clients: the embedded broker answers each of them as a real Kafka does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from .client import Client, ForeignError, Record
from .conftest import CLIENTS, FRANZ_GO, JAVA, KAFKAJS, LIBRDKAFKA, OURS, Clients, make_topic
from .samples import TIME_MS
from .sites import Site

LACKS = {
    OURS: set(),
    LIBRDKAFKA: {"delete_offsets"},
    KAFKAJS: {"alter_configs", "alter_offsets", "delete_offsets"},
    FRANZ_GO: set(),
    JAVA: {"replace_configs"},
}
"""Operations that a client does not have; kafkajs can alter offsets, in a test of its own."""

SETTLED_AFTER_S = 5.0
_NUMBERS = count()
_FOR_ALL_BROKERS, _BUILT_IN = 3, 5
"""Sources of a setting. A Kafka that elects leaders with KIP-966 sets `min.insync.replicas` for all its brokers."""


class Story:
    """What one client does at one broker, and what it is told.

    Args:
        client: who does it.
        name: its name.
        site: where.
        topic: name of the topic that it works on.
        model: the same story at the other broker. Questions are repeated for a while until they have its answers: a
            real cluster does some things in its own time.
    """

    def __init__(self, client: Client, name: str, site: Site, topic: str, model: Story | None = None) -> None:
        self.topic = topic
        self.told: list[tuple[str, Any]] = []
        self._client = client
        self._lacks = LACKS[name]
        self._servers = site.servers
        self._model = model

    def ask(self, op: str, show: Callable[[Any], Any] = lambda answer: answer, **arguments: Any) -> None:
        """Do something and remember the answer, or the error's code."""
        if op in self._lacks:
            return
        deadline = time.monotonic() + SETTLED_AFTER_S
        answer = self._answer(op, show, arguments)
        if self._model is not None and op.startswith(("list_", "describe_", "fetch_")):
            while answer != self._model.told[len(self.told)] and time.monotonic() < deadline:
                time.sleep(0.05)
                answer = self._answer(op, show, arguments)
        self.told.append(answer)

    def _answer(self, op: str, show: Callable[[Any], Any], arguments: dict[str, Any]) -> tuple[str, Any]:
        try:
            return op, show(self._client.ask(op, servers=self._servers, **arguments))
        except ForeignError as error:
            return op, f"error {error.code or error}"


def both(clients: Clients, name: str, embedded: Site, kafka: Site) -> Iterator[tuple[Story, Site]]:
    """The same story at both brokers; the second compares as it goes."""
    topic = f"admin-{name}-{next(_NUMBERS)}"
    model = Story(clients[name], name, embedded, topic)
    yield model, embedded
    story = Story(clients[name], name, kafka, topic, model)
    yield story, kafka
    assert len(story.told) > 3
    for expected, told in zip(story.told, model.told, strict=True):
        assert told == expected


@pytest.mark.parametrize("name", CLIENTS)
def test_topics_are_made_grown_shown_and_deleted(clients: Clients, embedded: Site, kafka: Site, name: str) -> None:
    for story, _ in both(clients, name, embedded, kafka):
        topic = story.topic
        story.ask("describe_cluster")
        story.ask("create_topic", topic=topic, partitions=2, replicas=1, configs={"retention.ms": "-1"})
        story.ask("list_topics", lambda found, topic=topic: topic in found)
        story.ask("describe_topic", topic=topic)
        story.ask("create_topic", topic=topic, partitions=2, replicas=1, configs={})
        story.ask("create_topic", topic="not/allowed", partitions=1, replicas=1, configs={})
        story.ask("create_topic", topic=f"{topic}-0", partitions=0, replicas=1, configs={})
        story.ask("create_topic", topic=f"{topic}-9", partitions=1, replicas=9, configs={})
        story.ask("create_topic", topic=f"{topic}-c", partitions=1, replicas=1, configs={"no.such": "setting"})
        story.ask("create_topic", topic=f"{topic}-v", partitions=1, replicas=1, configs={"retention.ms": "soon"})
        story.ask("create_partitions", topic=topic, partitions=5)
        story.ask("describe_topic", topic=topic)
        story.ask("create_partitions", topic=topic, partitions=5)
        story.ask("create_partitions", topic=topic, partitions=1)
        story.ask("create_partitions", topic=f"{topic}-nowhere", partitions=3)
        story.ask("delete_topic", topic=topic)
        story.ask("list_topics", lambda found, topic=topic: topic in found)
        story.ask("delete_topic", topic=topic)


@pytest.mark.parametrize("name", CLIENTS)
def test_settings_of_topics_are_shown_and_changed(clients: Clients, embedded: Site, kafka: Site, name: str) -> None:
    for story, _ in both(clients, name, embedded, kafka):
        topic = story.topic
        story.ask("create_topic", topic=topic, partitions=1, replicas=1,
                  configs={"cleanup.policy": "compact", "max.message.bytes": "2000000"})
        story.ask("describe_topic", topic=topic)
        story.ask("describe_configs", settings, topic=topic)
        for change in (
            {"set": {"retention.ms": "123456", "segment.bytes": "2097152"}, "delete": ["max.message.bytes"]},
            {"append": {"cleanup.policy": "delete"}},
            {"subtract": {"cleanup.policy": "compact"}},
            {"set": {"no.such": "setting"}},
            {"set": {"retention.ms": "soon"}},
            {"set": {"cleanup.policy": "sweep"}},
            {"append": {"retention.ms": "1"}},
        ):
            story.ask("alter_configs", topic=topic, **change)
            story.ask("describe_configs", settings, topic=topic)
        story.ask("alter_configs", topic=f"{topic}-nowhere", set={"retention.ms": "1"})
        for configs in ({"compression.type": "lz4", "min.insync.replicas": "1"}, {"retention.ms": "soon"}, {}):
            story.ask("replace_configs", topic=topic, configs=configs)
            story.ask("describe_configs", settings, topic=topic)
        story.ask("describe_configs", settings, topic=f"{topic}-nowhere")
        story.ask("delete_topic", topic=topic)


def settings(configs: dict[str, Any]) -> set[str]:
    """Settings as lines, which are easy to compare."""
    if configs["min.insync.replicas"]["source"] == _FOR_ALL_BROKERS:
        configs["min.insync.replicas"]["source"] = _BUILT_IN
    return {f"{name} {sorted(row.items())}" for name, row in configs.items()}


@pytest.mark.parametrize("name", CLIENTS)
def test_offsets_are_listed_and_records_deleted(clients: Clients, embedded: Site, kafka: Site, name: str) -> None:
    for story, site in both(clients, name, embedded, kafka):
        topic = story.topic
        story.ask("create_topic", topic=topic, partitions=2, replicas=1, configs={"retention.ms": "-1"})
        story.ask("describe_topic", topic=topic)
        for step in (0, 100, 50):
            clients[OURS].produce(site.servers, topic, [
                Record(0, TIME_MS + step + index, None, b"v") for index in range(10)], codec="lz4")
        for at in ("earliest", "latest", str(TIME_MS), str(TIME_MS + 5), str(TIME_MS + 55), str(TIME_MS + 500)):
            story.ask("list_offsets", topic=topic, at=at)
        if name != KAFKAJS:
            story.ask("list_offsets", topic=topic, at="max_timestamp")
        story.ask("delete_records", topic=topic, offsets={0: 7})
        story.ask("list_offsets", topic=topic, at="earliest")
        story.ask("delete_records", topic=topic, offsets={0: 3})
        story.ask("delete_records", topic=topic, offsets={0: -1, 1: 0})
        story.ask("list_offsets", topic=topic, at="earliest")
        if name != KAFKAJS:  # it does not know this error's number of the partition, and retries it for long
            story.ask("delete_records", topic=topic, offsets={0: 31})
        story.ask("delete_topic", topic=topic)


@pytest.mark.parametrize("name", CLIENTS)
def test_groups_are_listed_shown_moved_and_deleted(clients: Clients, embedded: Site, kafka: Site, name: str) -> None:
    for story, site in both(clients, name, embedded, kafka):
        topic = group = story.topic
        story.ask("create_topic", topic=topic, partitions=2, replicas=1, configs={"retention.ms": "-1"})
        story.ask("describe_topic", topic=topic)
        records = [Record(index % 2, TIME_MS, None, b"v") for index in range(10)]
        clients[OURS].produce(site.servers, topic, records)
        clients[LIBRDKAFKA].consume(site.servers, [topic], 10, group=group)
        story.ask("list_groups", lambda found, group=group: group in found)
        story.ask("describe_group", described, group=group)
        story.ask("fetch_offsets", group=group, topic=topic)
        story.ask("alter_offsets", group=group, topic=topic, offsets={0: 2, 1: 3})
        story.ask("fetch_offsets", group=group, topic=topic)
        story.ask("delete_offsets", group=group, topic=topic, offsets={1: 0})
        story.ask("fetch_offsets", group=group, topic=topic)

        clients[LIBRDKAFKA].ask("join", servers=site.servers, group=group, topics=[topic], member="m",
                                assignor="range")
        while not clients[LIBRDKAFKA].ask("assignment", member="m"):
            time.sleep(0.05)
        story.ask("describe_group", described, group=group)
        story.ask("delete_offsets", group=group, topic=topic, offsets={0: 0})
        story.ask("delete_group", group=group)
        clients[LIBRDKAFKA].ask("leave", member="m")
        story.ask("delete_group", group=group)
        story.ask("list_groups", lambda found, group=group: group in found)
        story.ask("delete_group", group=group)
        story.ask("describe_group", described, group=group)
        story.ask("fetch_offsets", group=group, topic=topic)
        story.ask("delete_topic", topic=topic)


@pytest.mark.slow  # kafkajs moves offsets as a consumer that waits five seconds for records
def test_kafkajs_moves_the_offsets_of_a_group(clients: Clients, site: Site) -> None:
    servers, topic, client = site.servers, "moved", clients[KAFKAJS]
    make_topic(clients, site, topic, 2)
    clients[OURS].produce(servers, topic, [Record(index % 2, TIME_MS, None, b"v") for index in range(10)])
    clients[LIBRDKAFKA].consume(servers, [topic], 10, group=topic)
    client.ask("alter_offsets", servers=servers, group=topic, topic=topic, offsets={0: 2, 1: 3})
    assert client.ask("fetch_offsets", servers=servers, group=topic, topic=topic) == {"0": 2, "1": 3}


def described(group: dict[str, Any]) -> dict[str, Any]:
    """A group, in the words that all clients share."""
    return {**group, "state": group["state"].upper()}
