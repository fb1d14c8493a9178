"""What happens beside a share consumer: errors become messages, topics that are not there are told once, it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headrace.client.share.share_machines import ShareMachines
from headrace.config import SHARE, Config
from headrace.errors import IllegalStateException, KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Cluster, MetadataChanged, MetadataFailed, TopicInfo
from headrace.machines.groups.membership import GroupFailed
from headrace.machines.machine import ErrorEvent, Event
from headrace.machines.share.share_fetcher import ShareFailure
from headrace.net.timers import monotonic

DENIED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


def after(*events: Event, check: Callable[[ShareMachines], Any] = lambda _: None, **properties: Any) -> list[Any]:
    """What is queued after some events of the machines."""
    async def run() -> list[Any]:
        config = Config(SHARE, {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **properties})
        machines = ShareMachines(config, "me", lambda: None, connector=None, clock=monotonic)
        machines.group.topics = ("t",)
        try:
            for event in events:
                machines.client._on_event(event)
            check(machines)
            return [(found.key, found.error.code()) for found in machines.fetcher.queue
                    if isinstance(found, ShareFailure)]
        finally:
            await machines.client.close()

    return asyncio.run(run())


def picture(error: KafkaError | None) -> MetadataChanged:
    topics = {"t": TopicInfo("t", error=error), "u": TopicInfo("u", error=DENIED)}
    return MetadataChanged(Cluster(nodes={}, topics=topics))


def test_a_topic_that_cannot_be_read_is_told_once_until_it_can() -> None:
    told = (("t", -1), KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert after(picture(DENIED), picture(DENIED)) == [told]
    assert after(picture(DENIED), picture(None), picture(DENIED)) == [told, told]


def test_a_topic_that_is_not_there_yet_is_waited_for_and_told_to_error_cb_once() -> None:
    missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    callbacks: list[Any] = []
    assert after(picture(missing), picture(missing), check=lambda machines: callbacks.extend(machines.callbacks),
                 error_cb=print) == []
    assert [error.code() for _, (error,) in callbacks] == [KafkaError.UNKNOWN_TOPIC_OR_PART]


def test_who_waits_for_records_is_woken_for_a_callback() -> None:
    def check(machines: ShareMachines) -> None:
        has_news = machines.news_since(machines.news)
        machines.notify(print, "text")
        assert has_news()

    after(check=check)


def test_its_waits_are_spread_by_the_clients_jitter() -> None:
    waits: list[float] = []

    def look(machines: ShareMachines) -> None:
        finder = next(each for each in machines.client.driver._machines if isinstance(each, CoordinatorFinder))
        assert finder.retries is machines.client.retries
        waits.extend(finder.retries.wait_s(1) for _ in range(100))

    after(check=look)
    assert len(set(waits)) > 1


def test_brokers_that_let_nobody_in_are_told_of_once_until_one_answers() -> None:
    refused = MetadataFailed(KafkaError(KafkaError._AUTHENTICATION))
    told = (None, KafkaError._AUTHENTICATION)
    assert after(refused, refused) == [told]
    assert after(refused, picture(None), refused) == [told, told]


def test_what_the_group_says_is_told() -> None:
    assert after(GroupFailed(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))) == [
        (None, KafkaError.GROUP_AUTHORIZATION_FAILED)]


def test_errors_of_connections_wait_for_the_application() -> None:
    errors: list[KafkaError] = []

    def serve(machines: ShareMachines) -> None:
        assert errors == []
        for function, arguments in machines.callbacks:
            function(*arguments)

    assert after(ErrorEvent(DENIED), check=serve, error_cb=errors.append) == []
    assert errors == [DENIED]


def test_a_closed_consumer_is_said_to_be_closed() -> None:
    def close(machines: ShareMachines) -> None:
        machines.check_open()
        assert machines.usable
        machines.closed = True
        assert not machines.usable
        with pytest.raises(IllegalStateException, match=r"^Share consumer closed$"):
            machines.check_open()

    after(check=close)


def test_who_is_no_member_leaves_at_once() -> None:
    async def run() -> None:
        config = Config(SHARE, {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "error_cb": lambda _: None})
        machines = ShareMachines(config, "me", lambda: None, connector=None, clock=monotonic)
        async with asyncio.timeout(2):
            await machines.leave()
        await machines.client.close()

    asyncio.run(run())
