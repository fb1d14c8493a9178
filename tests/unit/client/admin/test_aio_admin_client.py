"""`AIOAdminClient`: the same on the running loop, whose futures are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from headrace.admin import ConfigResource, NewPartitions, NewTopic, OffsetSpec
from headrace.aio import AIOAdminClient
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition

PATIENCE_S = 10


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "two": 2}) as made:
        yield made


def run(servers: str, work: Callable[[AIOAdminClient], Awaitable[None]], **properties: Any) -> None:
    async def main() -> None:
        async with AIOAdminClient({"bootstrap.servers": servers, **properties}) as admin:
            await asyncio.wait_for(work(admin), 3 * PATIENCE_S)

    asyncio.run(main())


def test_each_thing_has_a_future_of_the_loop_with_its_own_result_or_error(broker: EmbeddedBroker) -> None:
    async def work(admin: AIOAdminClient) -> None:
        futures = admin.create_topics([NewTopic("aio-a", 2), NewTopic("one", 1)])
        assert all(isinstance(future, asyncio.Future) for future in futures.values())
        assert await futures["aio-a"] is None
        with pytest.raises(KafkaException) as refused:
            await futures["one"]
        assert refused.value.error == KafkaError.TOPIC_ALREADY_EXISTS
        assert await admin.create_partitions([NewPartitions("aio-a", 3)])["aio-a"] is None
        assert len((await admin.list_topics("aio-a")).topics["aio-a"].partitions) == 3
        assert await admin.delete_topics(["aio-a"])["aio-a"] is None

    run(broker.bootstrap_servers, work)


def test_questions_are_answered_together(broker: EmbeddedBroker) -> None:
    async def work(admin: AIOAdminClient) -> None:
        resource, partition = ConfigResource("topic", "one"), TopicPartition("two", 1)
        entries, offset, cluster, groups, all_groups = await asyncio.gather(
            admin.describe_configs([resource])[resource],
            admin.list_offsets({partition: OffsetSpec.earliest()})[partition],
            admin.describe_cluster(), admin.list_consumer_groups(), admin.list_groups())
        assert entries["cleanup.policy"].value == "delete"
        assert offset.offset == 0
        assert len(cluster.nodes) == 1
        assert (groups.errors, all_groups) == ([], [])

    run(broker.bootstrap_servers, work)


def test_a_future_that_is_cancelled_hurts_no_other(broker: EmbeddedBroker) -> None:
    async def work(admin: AIOAdminClient) -> None:
        futures = admin.create_topics([NewTopic("aio-b", 1), NewTopic("aio-c", 1)])
        futures["aio-b"].cancel()
        assert await futures["aio-c"] is None

    run(broker.bootstrap_servers, work)


def test_error_cb_may_be_a_coroutine_function() -> None:
    async def work(admin: AIOAdminClient) -> None:
        with pytest.raises(KafkaException):
            await admin.list_topics(timeout=0.3)
        await asyncio.wait_for(told.wait(), PATIENCE_S)

    told = asyncio.Event()

    async def error_cb(error: KafkaError) -> None:
        await asyncio.sleep(0)
        told.set()

    run("127.0.0.1:1", work, error_cb=error_cb)
    assert told.is_set()


def test_closing_ends_what_is_under_way_and_every_call_after_it_says_so(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        admin = AIOAdminClient({"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None})
        future = admin.create_topics([NewTopic("t")], request_timeout=60)["t"]
        await admin.close()
        assert future.done()
        with pytest.raises((KafkaException, ClientClosedError)):
            await future
        await admin.close()
        with pytest.raises(ClientClosedError):
            admin.delete_topics(["t"])
        with pytest.raises(ClientClosedError):
            await admin.list_topics()

    asyncio.run(main())
