"""Groups that the coordinator plans for (KIP-848) on real Kafka: alone, with librdkafka's members, and migrations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, NewPartitions
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from tests.integration.kafka.test_kafka_groups import Member, fill
from tests.support.configuration import OLDER, Configuration
from tests.support.raw_client import RawClient
from tests.support.real_kafka import make_topic, running, take, until
from tools.kafka import KafkaCluster

QUICK = {"group.consumer.heartbeat.interval.ms": "300", "group.consumer.min.heartbeat.interval.ms": "300",
         "group.consumer.session.timeout.ms": "6000", "group.consumer.min.session.timeout.ms": "6000"}


@pytest.fixture(scope="module")
def site(configured: Configuration) -> Iterator[KafkaCluster]:
    """Kafka whose groups hear of their members often."""
    yield from running(configured.cluster(properties=QUICK))


@pytest.fixture
def shared(site: KafkaCluster) -> str:
    """A topic of 4 partitions."""
    return make_topic(site, 4)


def settings(cluster: KafkaCluster, group: str, **more: Any) -> dict[str, Any]:
    return {**cluster.connection, "group.id": group, "auto.offset.reset": "earliest", "group.protocol": "consumer",
            **more}


def classic(cluster: KafkaCluster, group: str) -> dict[str, Any]:
    return {**settings(cluster, group), "group.protocol": "classic", "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 300}


def coordinated_by(cluster: KafkaCluster, group: str) -> int:
    """The node of a group's coordinator; nodes are numbered from 1."""
    with RawClient(cluster.bootstrap_servers) as client:
        found: list[Any] = []
        until(lambda: found.append(client.call(FindCoordinatorRequest(key=group), 3)) or not found[-1].error_code)
        return int(found[-1].node_id)


def poll_until(consumer: Consumer, happened: Any, timeout_s: float = 30.0) -> list[Any]:
    deadline, messages = time.monotonic() + timeout_s, []
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        messages += consumer.consume(100, 0.05)
    return messages


def first_error(consumer: Consumer) -> KafkaError:
    found: list[Any] = []
    until(lambda: found.extend(message.error() for message in consumer.consume(1, 0.1)) or found)
    return found[0]  # type: ignore[no-any-return]


def test_a_member_joins_reads_commits_and_leaves(site: KafkaCluster, shared: str) -> None:
    fill(site, shared, 40, 4)
    where = [TopicPartition(shared, p) for p in range(4)]
    with Consumer(settings(site, shared)) as consumer:
        consumer.subscribe([shared])
        take(consumer, 40)
        member = consumer.consumer_group_metadata()
        assert member is not None
        assert (member.generation > 0, member.member_id) == (True, consumer.memberid())
        assert [tp.error for tp in consumer.commit(asynchronous=False) or ()] == [None] * 4
        assert [tp.offset for tp in consumer.committed(where, 10)] == [10] * 4
        with RawClient(site.bootstrap_servers, coordinated_by(site, shared)) as client:
            [group] = client.call(ConsumerGroupDescribeRequest(group_ids=[shared]), 1).groups
            assert [(each.member_id, each.member_epoch) for each in group.members] == [
                (member.member_id, member.generation)]
    with RawClient(site.bootstrap_servers, coordinated_by(site, shared)) as client:
        [group] = client.call(ConsumerGroupDescribeRequest(group_ids=[shared]), 1).groups
        assert (group.group_state, group.members) == ("Empty", [])


def test_a_member_that_was_dropped_learns_the_committed_offsets_before_it_reads_again(
    site: KafkaCluster, shared: str
) -> None:
    fill(site, shared, 40, 4)
    with Consumer(settings(site, shared)) as consumer:
        consumer.subscribe([shared])
        take(consumer, 40)
        consumer.commit(asynchronous=False)
        with RawClient(site.bootstrap_servers, coordinated_by(site, shared)) as client:
            away = ConsumerGroupHeartbeatRequest(group_id=shared, member_id=consumer.memberid() or "", member_epoch=-1)
            assert client.call(away, 0).error_code == 0
        found = consumer.committed([TopicPartition(shared, p) for p in range(4)], 30)
        assert [tp.offset for tp in found] == [10] * 4


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.parametrize("other", [Consumer, confluent_kafka.Consumer], ids=["ours", "librdkafka"])
def test_two_members_share_and_the_last_takes_over(
    site: KafkaCluster, shared: str, other: Any, assignor: str
) -> None:
    fill(site, shared, 400, 4)
    config = settings(site, shared, **{"group.remote.assignor": assignor})
    with Consumer(config) as consumer:
        consumer.subscribe([shared])
        leaving = other(config)
        leaving.subscribe([shared])
        with Member(consumer) as first:
            with Member(leaving) as second:
                until(lambda: len(first.partitions) == len(second.partitions) == 2
                      and first.partitions | second.partitions == {0, 1, 2, 3})
                until(lambda: len(first.received | second.received) == 400)
            leaving.close()
            until(lambda: first.partitions == {0, 1, 2, 3})


def test_no_record_is_read_twice_when_members_come_and_go(site: KafkaCluster, shared: str) -> None:
    """What a member gives up it has committed before another gets it."""
    fill(site, shared, 2000, 4)
    read: list[tuple[int, int]] = []
    with ExitStack() as stack:
        members = [stack.enter_context(Consumer(settings(site, shared))) for _ in range(3)]
        for count, member in enumerate(members):
            member.subscribe([shared])
            deadline = time.monotonic() + 3.0
            while time.monotonic() < deadline and len(read) < (count + 1) * 600:
                for each in members[:count + 1]:
                    read += [(m.partition(), m.offset()) for m in each.consume(20, 0.02)]
        until(lambda: [read.extend((m.partition(), m.offset()) for m in each.consume(500, 0.05))
                       for each in members] and len(set(read)) == 2000)
    assert len(read) == 2000


def test_a_static_member_finds_its_partitions_again_and_a_second_of_its_name_waits(
    site: KafkaCluster, shared: str
) -> None:
    config = settings(site, shared, **{"group.instance.id": "a"})
    with Consumer(settings(site, shared, **{"group.instance.id": "b"})) as stays, Consumer(config) as leaves:
        for member in (stays, leaves):
            member.subscribe([shared])
        until(lambda: [m.poll(0.05) for m in (stays, leaves)] and
              [len(m.assignment()) for m in (stays, leaves)] == [2, 2])
        had, kept = leaves.assignment(), stays.assignment()
        with Consumer(config) as second:
            second.subscribe([shared])
            error = first_error(second)
            assert (error, error.fatal()) == (KafkaError.UNRELEASED_INSTANCE_ID, False)
        leaves.close()
        with Consumer(config) as back:
            back.subscribe([shared])
            until(lambda: stays.poll(0.05) or back.poll(0.05) or len(back.assignment()) == 2)
            assert ([tp.partition for tp in back.assignment()], [tp.partition for tp in stays.assignment()]) == (
                [tp.partition for tp in had], [tp.partition for tp in kept])


def test_a_pattern_is_matched_by_the_coordinator_as_a_whole_and_finds_new_topics(site: KafkaCluster) -> None:
    first = make_topic(site, 1)
    with Consumer(settings(site, f"pattern-{first}", **{"topic.metadata.refresh.interval.ms": 500})) as consumer:
        consumer.subscribe([f"^{first}(-more)?", f"^{first}-else.*"])
        poll_until(consumer, lambda: {tp.topic for tp in consumer.assignment()} == {first})
        with AdminClient(site.connection) as admin:
            admin.create_partitions([NewPartitions(first, 2)])[first].result(10)
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        consumer.subscribe([first[:-1]])
        poll_until(consumer, lambda: not consumer.assignment())


def test_a_member_that_was_dropped_loses_its_partitions_and_comes_back(site: KafkaCluster, shared: str) -> None:
    seen: list[tuple[str, int]] = []
    with Consumer(settings(site, shared)) as consumer:
        consumer.subscribe([shared], **{  # type: ignore[arg-type]
            f"on_{what}": lambda _, partitions, what=what: seen.append((what, len(partitions)))
            for what in ("assign", "revoke", "lost")})
        poll_until(consumer, lambda: len(consumer.assignment()) == 4)
        with RawClient(site.bootstrap_servers, coordinated_by(site, shared)) as client:
            reply = client.call(ConsumerGroupHeartbeatRequest(
                group_id=shared, member_id=consumer.memberid() or "", member_epoch=-1))
        assert reply.error_code == 0
        poll_until(consumer, lambda: len(seen) == 3 and len(consumer.assignment()) == 4)
    assert seen == [("assign", 4), ("lost", 4), ("assign", 4), ("revoke", 4)]


def test_offsets_in_a_transaction_are_those_of_a_present_member(site: KafkaCluster, shared: str) -> None:
    fill(site, shared, 8, 4)
    with Consumer(settings(site, shared, **{"enable.auto.commit": False})) as consumer, \
            Producer({**site.connection, "transactional.id": shared}) as producer:
        consumer.subscribe([shared])
        take(consumer, 8)
        member = consumer.consumer_group_metadata()
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(shared, 0, 2)], member)
        producer.commit_transaction()
        until(lambda: consumer.committed([TopicPartition(shared, 0)], 10)[0].offset == 2)
        consumer.unsubscribe()
        producer.begin_transaction()
        with pytest.raises(KafkaException) as refused:
            producer.send_offsets_to_transaction([TopicPartition(shared, 0, 1)], member)
        assert refused.value.error.txn_requires_abort()
        producer.abort_transaction()
        assert consumer.committed([TopicPartition(shared, 0)], 10)[0].offset == 2


@pytest.mark.parametrize("way", [("classic", "consumer"), ("consumer", "classic")], ids="-to-".join)
@pytest.mark.parametrize("other", [Consumer, confluent_kafka.Consumer], ids=["ours", "librdkafka"])
def test_the_members_of_a_group_change_from_one_protocol_to_the_other_one_by_one(
    site: KafkaCluster, shared: str, other: Any, way: tuple[str, str]
) -> None:
    fill(site, shared, 400, 4)
    of = {"classic": classic(site, shared), "consumer": settings(site, shared)}
    received: set[tuple[int, int]] = set()

    def share(*consumers: Any, written: int) -> None:
        with ExitStack() as stack:
            members = [stack.enter_context(Member(each)) for each in consumers]
            until(lambda: sorted(p for member in members for p in member.partitions) == [0, 1, 2, 3]
                  and all(len(member.partitions) == 2 for member in members), 60.0)
            until(lambda: len(received.union(*(member.received for member in members))) == written)
            received.update(*(member.received for member in members))

    kinds = [way[0], way[0], way[1], way[1]]
    consumers = [kind(of[protocol]) for kind, protocol in zip((Consumer, other, other, Consumer), kinds, strict=True)]
    written = 400
    for first in range(3):
        pair = consumers[first:first + 2]
        for each in pair if first == 0 else pair[1:]:
            each.subscribe([shared])
        share(*pair, written=written)
        consumers[first].close()
        fill(site, shared, 400, 4)
        written += 400
    consumers[3].close()


def test_an_assignor_that_the_coordinator_does_not_know_is_a_fatal_error(site: KafkaCluster, shared: str) -> None:
    with Consumer(settings(site, shared, **{"group.remote.assignor": "nobody"})) as consumer:
        consumer.subscribe([shared])
        error = first_error(consumer)
        assert (error, error.fatal()) == (KafkaError.UNSUPPORTED_ASSIGNOR, True)
        assert "uniform, range" in error.str()


@pytest.mark.parametrize("version", [OLDER])
def test_brokers_without_the_protocol_are_a_fatal_error_that_names_version_and_remedy(
    configured: Configuration, version: str
) -> None:
    for cluster in running(configured.cluster(version=version, brokers=1)):
        topic = make_topic(cluster, 1)
        with Consumer(settings(cluster, topic)) as consumer:
            consumer.subscribe([topic])
            error = first_error(consumer)
            assert error.fatal()
            assert "Apache Kafka 4.0" in error.str()
            assert 'set "group.protocol" to "classic"' in error.str()
