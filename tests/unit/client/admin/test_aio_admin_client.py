"""`AIOAdminClient`: the same on the running loop, whose futures are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from headrace import ConsumerGroupTopicPartitions, TopicCollection
from headrace.admin import AclBindingFilter, ConfigResource, NewPartitions, NewTopic, OffsetReset, OffsetSpec
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


def test_calls_of_all_areas_are_awaited_and_refuse_at_once_what_makes_no_sense(broker: EmbeddedBroker) -> None:
    async def work(admin: AIOAdminClient) -> None:
        group = ConsumerGroupTopicPartitions("aio", [TopicPartition("one", 0, 0)])
        await admin.alter_consumer_group_offsets([group])["aio"]
        topics, offsets, reset, everybody, rules = await asyncio.gather(
            admin.describe_topics(TopicCollection(["two"]))["two"],
            admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("aio")])["aio"],
            admin.reset_consumer_group_offsets("aio", to=OffsetSpec.latest(), dry_run=True),
            admin.describe_user_scram_credentials(), admin.describe_acls(
                AclBindingFilter("any", None, "any", None, None, "any", "any")), return_exceptions=True)
        assert not isinstance(topics, BaseException)
        assert len(topics.partitions) == 2
        assert not isinstance(offsets, BaseException)
        assert [tp.offset for tp in offsets.topic_partitions or ()] == [0]
        assert reset == {TopicPartition("one", 0): OffsetReset(0, 0)}
        assert everybody == {}
        assert isinstance(rules, KafkaException)
        assert rules.error == KafkaError.SECURITY_DISABLED
        with pytest.raises(TypeError):
            admin.describe_consumer_groups("aio")  # type: ignore[arg-type]
        assert set(admin.describe_user_scram_credentials(["a"])) == {"a"}
        await admin.set_sasl_credentials("alice", "secret")
        await admin.delete_consumer_groups(["aio"])["aio"]  # other tests count them

    run(broker.bootstrap_servers, work)
