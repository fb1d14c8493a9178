"""The picture of the cluster: when it is asked for, and what is believed."""

from typing import Any
from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import (
    UNKNOWN_HOSTS_S,
    HostsUnknown,
    Metadata,
    MetadataChanged,
    MetadataFailed,
)
from headrace.machines.machine import Send
from headrace.types.records import NodeAddress
from headrace.wire import topic_rows
from headrace.wire.codec import encode
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.topic_rows import decode_metadata

ID = UUID(int=7)


def machine(**settings: Any) -> Metadata:
    return Metadata([("a", 1), ("b", 2)], **settings)


def reply(*topics: MetadataResponseTopic, nodes: tuple[int, ...] = (1, 2), error_code: int = 0) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=n, host=f"h{n}", port=n) for n in nodes]
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=list(topics),
                            error_code=error_code)


def topic(name: str, leader: int = 1, epoch: int = 5, error_code: int = 0, topic_id: UUID = ID) -> Any:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2],
                                          isr_nodes=[1], offline_replicas=[2])
    return MetadataResponseTopic(name=name, topic_id=topic_id, error_code=error_code,
                                 partitions=[] if error_code else [partition])


def ask(metadata: Metadata, now: float) -> Send | None:
    sends = list(metadata.poll(now))
    assert len(sends) <= 1
    return sends[0] if sends else None


def exchange(metadata: Metadata, answer: MetadataResponse, now: float) -> MetadataRequest:
    send = ask(metadata, now)
    assert send is not None
    metadata.on_reply(send, answer, now)
    assert isinstance(send.request, MetadataRequest)
    return send.request


def exchange_again(metadata: Metadata, answer: MetadataResponse, now: float) -> None:
    """The picture was found wrong, and a broker was asked once more."""
    metadata.refresh(now)
    exchange(metadata, answer, now)


def names(request: MetadataRequest) -> list[str | None] | None:
    return None if request.topics is None else [each.name for each in request.topics]


def test_bootstrap_servers_are_nodes_until_the_real_ones_are_known() -> None:
    metadata = machine()
    assert {node.id: node.host for node in metadata.cluster.nodes.values()} == {-1000: "a", -1001: "b"}
    exchange(metadata, reply(), 0.0)
    assert set(metadata.cluster.nodes) == {1, 2}
    assert metadata.cluster.controller_id == 1
    assert metadata.cluster.cluster_id == "c"


def test_the_first_picture_is_asked_for_at_once_and_the_next_when_it_is_old() -> None:
    metadata = machine(refresh_s=300.0)
    exchange(metadata, reply(), 1000.0)
    assert metadata.deadline() == 1300.0
    assert ask(metadata, 1299.9) is None
    assert ask(metadata, 1300.0) is not None


def test_without_a_refresh_interval_it_is_asked_once() -> None:
    metadata = machine(refresh_s=None)
    exchange(metadata, reply(), 0.0)
    assert metadata.deadline() is None


def test_a_new_topic_is_asked_for_at_once_and_a_known_one_is_not() -> None:
    metadata = machine()
    exchange(metadata, reply(), 0.0)
    metadata.want_topics(["t"])
    assert names(exchange(metadata, reply(topic("t")), 0.0)) == ["t"]
    metadata.want_topics(["t"])
    assert ask(metadata, 1.0) is None


def test_a_topic_wanted_before_a_request_is_written_is_asked_for_with_it() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    send = ask(metadata, 0.0)
    assert send is not None
    assert send.for_version is not None
    assert send.for_version(send.request, 12) is send.request
    metadata.want_topics(["u"])  # the connection opens only now
    written = send.for_version(send.request, 12)
    assert isinstance(written, MetadataRequest)
    assert names(written) == ["t", "u"]
    metadata.want_topics(["v"])
    metadata.on_reply(send, reply(topic("t"), topic("u")), 1.0)
    assert names(exchange(metadata, reply(topic("v")), 1.0)) == ["v"]
    assert metadata.cluster.topics.keys() == {"t", "u", "v"}
    assert ask(metadata, 100.0) is None


def test_nothing_is_asked_again_when_all_was_wanted_before_the_request_was_written() -> None:
    metadata = machine()
    send = ask(metadata, 0.0)
    assert send is not None
    assert send.for_version is not None
    metadata.want_topics(["t"])
    send.for_version(send.request, 12)
    metadata.on_reply(send, reply(topic("t")), 1.0)
    assert ask(metadata, 100.0) is None


def test_a_new_topic_is_asked_for_by_itself_and_the_others_stay_as_they_were() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["a", "b"])
    exchange(metadata, reply(topic("a"), topic("b", topic_id=UUID(int=8))), 0.0)
    before = metadata.cluster
    metadata.want_topics(["c"])
    assert names(exchange(metadata, reply(topic("c", topic_id=UUID(int=9)), nodes=(1, 2, 3)), 10.0)) == ["c"]
    after = metadata.cluster
    assert after.topics.keys() == {"a", "b", "c"}
    assert (after.topics["a"], after.topics["b"]) == (before.topics["a"], before.topics["b"])
    assert after.names == {ID: "a", UUID(int=8): "b", UUID(int=9): "c"}
    assert set(after.nodes) == {1, 2, 3}
    assert metadata.deadline() == 300.0, "the others are as old as they were"
    assert names(exchange(metadata, reply(topic("a"), topic("b"), topic("c")), 300.0)) == ["a", "b", "c"]


def test_only_topics_that_are_not_usable_yet_are_asked_for_again() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["old", "new"])
    absent = topic("new", error_code=KafkaError.UNKNOWN_TOPIC_OR_PART)
    exchange(metadata, reply(topic("old"), absent), 0.0)
    waits, now = [], 0.0
    for _ in range(3):
        deadline = metadata.deadline()
        assert deadline is not None
        waits.append(round(deadline - now, 3))
        now = deadline
        assert names(exchange(metadata, reply(absent), now)) == ["new"]
    assert waits == [0.1, 0.2, 0.4]
    deadline = metadata.deadline()
    assert deadline is not None
    exchange(metadata, reply(topic("new", topic_id=UUID(int=8))), deadline)
    assert metadata.deadline() == 300.0
    assert metadata.cluster.topics.keys() == {"old", "new"}


def test_topics_that_nobody_wants_any_more_leave_the_picture_with_the_next_answer() -> None:
    metadata = machine()
    metadata.want_topics(["a", "b"])
    exchange(metadata, reply(topic("a"), topic("b", topic_id=UUID(int=8))), 0.0)
    metadata.unwant(["a"])
    metadata.want_topics(["c"])
    exchange(metadata, reply(topic("c", topic_id=UUID(int=9))), 1.0)
    assert metadata.cluster.topics.keys() == {"b", "c"}
    assert metadata.cluster.names.keys() == {UUID(int=8), UUID(int=9)}


def test_a_topic_that_is_not_wanted_any_more_is_not_asked_for_again() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["a", "gone"])
    exchange(metadata, reply(topic("a"), topic("gone", error_code=KafkaError.UNKNOWN_TOPIC_OR_PART)), 0.0)
    metadata.unwant(["gone"])
    assert metadata.deadline() == 300.0
    metadata.want_topics(["b"])
    metadata.want_only(["a"], every=False)
    assert metadata.deadline() == 300.0


def test_a_topic_that_was_made_anew_between_two_wants_has_one_id() -> None:
    metadata = machine()
    metadata.want_topics(["a", "b"])
    exchange(metadata, reply(topic("a"), topic("b", topic_id=UUID(int=8))), 0.0)
    metadata.unwant(["a"])
    metadata.want_topics(["a"])
    assert names(exchange(metadata, reply(topic("a", topic_id=UUID(int=9))), 1.0)) == ["a"]
    assert metadata.cluster.names == {UUID(int=9): "a", UUID(int=8): "b"}


def test_a_picture_that_is_wrong_is_asked_for_as_a_whole_although_a_new_topic_is_under_way() -> None:
    metadata = machine()
    metadata.want_topics(["a"])
    exchange(metadata, reply(topic("a")), 0.0)
    metadata.want_topics(["b"])
    send = ask(metadata, 5.0)
    assert send is not None
    metadata.refresh(5.0)
    metadata.on_reply(send, reply(topic("b", topic_id=UUID(int=8))), 5.1)
    assert names(exchange(metadata, reply(topic("a"), topic("b")), 5.1)) == ["a", "b"]


def test_after_a_failure_the_whole_picture_is_asked_for_with_what_was_new() -> None:
    metadata = machine()
    metadata.want_topics(["a"])
    exchange(metadata, reply(topic("a")), 0.0)
    metadata.want_topics(["b"])
    send = ask(metadata, 5.0)
    assert send is not None
    metadata.on_error(send, KafkaError(KafkaError._TRANSPORT), 5.0)
    deadline = metadata.deadline()
    assert deadline is not None
    assert deadline > 5.0
    assert names(exchange(metadata, reply(topic("a"), topic("b")), deadline)) == ["a", "b"]


def test_where_all_topics_are_in_the_picture_none_is_asked_for_by_its_name() -> None:
    metadata = machine(allow_auto_create=True)
    metadata.want_all()
    exchange(metadata, reply(topic("a")), 0.0)
    metadata.want_topics(["gone"])
    assert names(exchange(metadata, reply(topic("a")), 1.0)) is None, "by name it would be made"
    deadline = metadata.deadline()
    assert deadline is not None
    assert names(exchange(metadata, reply(topic("a")), deadline)) is None


def test_a_forgotten_topic_is_not_believed_from_an_answer_about_new_ones() -> None:
    metadata = machine()
    metadata.want_topics(["a", "b"])
    exchange(metadata, reply(topic("a"), topic("b", topic_id=UUID(int=8))), 0.0)
    metadata.want_topics(["c"])
    send = ask(metadata, 1.0)
    assert send is not None
    metadata.forget(["a"])
    metadata.on_reply(send, reply(topic("c", topic_id=UUID(int=9))), 1.1)
    assert metadata.cluster.topics.keys() == {"b", "c"}
    assert names(exchange(metadata, reply(topic("a"), topic("b"), topic("c")), 1.1)) == ["a", "b", "c"]
    assert metadata.cluster.topics.keys() == {"a", "b", "c"}


def test_a_topic_that_one_broker_does_not_know_is_asked_for_again_by_itself() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["a", "b"])
    exchange(metadata, reply(topic("a"), topic("b", topic_id=UUID(int=8))), 0.0)
    unknown = topic("a", error_code=KafkaError.UNKNOWN_TOPIC_OR_PART)
    exchange_again(metadata, reply(unknown, topic("b", topic_id=UUID(int=8))), 10.0)
    assert metadata.cluster.doubted == {"a"}
    deadline = metadata.deadline()
    assert deadline is not None
    assert names(exchange(metadata, reply(unknown), deadline)) == ["a"]
    assert metadata.cluster.doubted == {"a"}
    assert metadata.cluster.topics["a"].error is None
    metadata.refresh(20.0)
    exchange(metadata, reply(unknown, topic("b", topic_id=UUID(int=8))), 20.0)
    assert metadata.cluster.topics["a"].error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert metadata.cluster.doubted == set()


def test_a_topic_wanted_while_a_request_is_in_flight_is_asked_for_after_it() -> None:
    metadata = machine()
    send = ask(metadata, 0.0)
    assert send is not None
    metadata.want_topics(["t"])
    assert ask(metadata, 0.0) is None
    metadata.on_reply(send, reply(), 0.0)
    assert names(exchange(metadata, reply(topic("t")), 0.0)) == ["t"]


def test_a_forgotten_topic_is_asked_for_at_once_and_no_earlier_answer_about_it_is_believed() -> None:
    metadata, new = machine(), UUID(int=8)
    metadata.want_topics(["t", "u"])
    exchange(metadata, reply(topic("t"), topic("u")), 0.0)
    metadata.refresh(1.0)
    earlier = ask(metadata, 1.0)
    assert earlier is not None
    metadata.forget(["t"])
    assert set(metadata.cluster.topics) == {"u"}
    metadata.on_reply(earlier, reply(topic("t"), topic("u")), 1.0)
    assert set(metadata.cluster.topics) == {"u"}
    assert names(exchange(metadata, reply(topic("t", topic_id=new), topic("u")), 1.0)) == ["t", "u"]
    assert metadata.topic_id("t") == new
    metadata.forget(["t"])
    exchange(metadata, reply(topic("t", error_code=3), topic("u")), 1.0)
    assert metadata.missing("t", 0) == KafkaError._UNKNOWN_PARTITION  # it is not kept as one that was there


def test_all_topics_are_asked_for_with_null_and_forgotten_topics_not_at_all() -> None:
    metadata = machine()
    metadata.want_topics(["t", "u"])
    metadata.unwant(["u"])
    assert names(exchange(metadata, reply(topic("t")), 0.0)) == ["t"]
    metadata.want_all()
    assert names(exchange(metadata, reply(topic("t"), topic("x")), 0.0)) is None


def test_what_alone_is_wanted_is_asked_for_and_at_once_if_it_is_new() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["t", "u"])
    exchange(metadata, reply(topic("t"), topic("u")), 0.0)
    metadata.want_only(["t"], every=False)
    assert ask(metadata, 1.0) is None, "nothing is new"
    assert names(exchange(metadata, reply(topic("t")), 300.0)) == ["t"]
    metadata.want_only(["v"], every=False)
    assert names(exchange(metadata, reply(topic("v")), 300.0)) == ["v"]


def test_after_a_pattern_only_the_topics_are_asked_for_that_are_wanted_then() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_only([], every=True)
    assert names(exchange(metadata, reply(topic("t"), topic("u")), 0.0)) is None
    metadata.want_only(["t"], every=True)
    assert ask(metadata, 1.0) is None, "it is in the picture"
    metadata.want_only(["t"], every=False)
    assert names(exchange(metadata, reply(topic("t")), 300.0)) == ["t"]
    metadata.want_only([], every=False)
    assert names(exchange(metadata, reply(), 600.0)) == []
    metadata.want_only([], every=True)
    assert names(exchange(metadata, reply(topic("t"), topic("u")), 600.0)) is None


def test_refresh_is_limited_by_the_retry_backoff() -> None:
    metadata = machine()
    exchange(metadata, reply(), 10.0)
    metadata.refresh(10.01)
    assert metadata.deadline() == 10.1
    metadata.refresh(11.0)
    assert ask(metadata, 10.1) is not None


def test_a_topic_that_does_not_exist_is_asked_for_again_with_growing_waits() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    waits = []
    now = 0.0
    for _ in range(6):
        exchange(metadata, reply(topic("t", error_code=3)), now)
        deadline = metadata.deadline()
        assert deadline is not None
        waits.append(round(deadline - now, 3))
        now = deadline
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    error = metadata.cluster.topics["t"].error
    assert error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert error.str().startswith('topic "t": ')


def test_a_topic_that_is_forbidden_is_asked_for_again_as_one_that_does_not_exist_for_the_right_may_be_given() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["t"])
    waits, now = [], 0.0
    for _ in range(6):
        exchange(metadata, reply(topic("t", error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED)), now)
        assert metadata.cluster.topics["t"].error == KafkaError.TOPIC_AUTHORIZATION_FAILED
        deadline = metadata.deadline()
        assert deadline is not None
        waits.append(round(deadline - now, 3))
        now = deadline
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    exchange(metadata, reply(topic("t")), now)
    assert metadata.deadline() == now + 300.0


def test_a_topic_whose_name_is_refused_is_not_asked_for_again_and_again() -> None:
    metadata = machine(refresh_s=300.0)
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", error_code=KafkaError.TOPIC_EXCEPTION)), 0.0)
    assert metadata.deadline() == 300.0


def test_leader_and_topic_by_id() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", leader=2)), 0.0)
    assert metadata.leader("t", 0) == (2, 5)
    assert metadata.leader("t", 9) == (None, -1)
    assert metadata.leader("u", 0) == (None, -1)
    found = metadata.cluster.topic_by_id(ID)
    assert found is not None
    assert found.name == "t"
    assert list(found.partitions[0].offline) == [2]
    assert metadata.cluster.topic_by_id(UUID(int=8)) is None


def test_an_older_leader_epoch_is_not_believed_unless_the_topic_is_a_new_one() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", leader=2, epoch=5)), 0.0)
    exchange_again(metadata, reply(topic("t", leader=1, epoch=4)), 1.0)
    assert metadata.leader("t", 0) == (2, 5)
    exchange_again(metadata, reply(topic("t", leader=1, epoch=0, topic_id=UUID(int=9))), 2.0)
    assert metadata.leader("t", 0) == (1, 0)


UNKNOWN = KafkaError.UNKNOWN_TOPIC_OR_PART


def known(every: bool = False) -> Metadata:
    """A machine that has topics "t" and "u" in its picture, or all topics."""
    metadata = machine(retries=RetryPolicy(0.1, 1.0))
    metadata.want_only([] if every else ["t", "u"], every=every)
    exchange(metadata, reply(topic("t"), topic("u", topic_id=UUID(int=8))), 0.0)
    return metadata


def ignorant(every: bool) -> MetadataResponse:
    """A broker that does not know "t" answers: it says so, or leaves it out where all are asked for."""
    return reply(*([] if every else [topic("t", error_code=UNKNOWN, topic_id=UUID(int=0))]),
                 topic("u", topic_id=UUID(int=8)))


@pytest.mark.parametrize("every", [False, True], ids=["named", "all"])
def test_a_topic_that_one_broker_does_not_know_stays_for_a_while_and_is_asked_for_again_soon(every: bool) -> None:
    metadata = known(every)
    for now in (10.0, 10.5, 14.9):
        exchange_again(metadata, ignorant(every), now)
        assert metadata.leader("t", 0) == (1, 5)
        assert metadata.cluster.topics["t"].error is None
        assert metadata.cluster.topic_by_id(ID) is not None
        assert metadata.cluster.doubted == {"t"}
        deadline = metadata.deadline()
        assert deadline is not None
        assert deadline <= now + 1.0
    exchange_again(metadata, ignorant(every), 15.0)
    gone = metadata.cluster.topics.get("t")
    assert (gone is None) if every else (gone is not None and gone.error == UNKNOWN)
    assert metadata.cluster.doubted == set()
    assert metadata.leader("u", 0) == (1, 5)


@pytest.mark.parametrize("every", [False, True], ids=["named", "all"])
def test_a_broker_that_knows_the_topic_ends_the_doubt(every: bool) -> None:
    metadata = known(every)
    for now in (10.0, 20.0, 30.0):
        exchange_again(metadata, ignorant(every), now)
        exchange_again(metadata, reply(topic("t"), topic("u", topic_id=UUID(int=8))), now + 4.0)
        assert metadata.cluster.doubted == set()
    exchange_again(metadata, ignorant(every), 34.5)
    assert metadata.leader("t", 0) == (1, 5), "the time counts anew"


def test_each_topic_that_a_broker_does_not_know_stays_for_a_while() -> None:
    metadata = machine()
    metadata.want_topics(["s", "t", "u"])
    others = [UUID(int=8), UUID(int=9)]
    exchange(metadata, reply(
        topic("s"), topic("t", topic_id=others[0]), topic("u", topic_id=others[1])), 0.0)
    exchange_again(metadata, reply(topic("s"), *(topic(name, error_code=UNKNOWN, topic_id=UUID(int=0))
                                                 for name in "tu")), 10.0)
    assert [metadata.leader(name, 0) for name in "stu"] == [(1, 5)] * 3
    assert metadata.cluster.doubted == {"t", "u"}


def test_a_topic_that_was_made_anew_is_taken_at_once_and_an_error_that_is_no_doubt_as_well() -> None:
    metadata = known()
    exchange_again(metadata, ignorant(False), 10.0)
    exchange_again(metadata, reply(topic("t", leader=2, epoch=0, topic_id=UUID(int=9)),
                                   topic("u", error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED)), 11.0)
    assert metadata.leader("t", 0) == (2, 0)
    assert metadata.topic_id("t") == UUID(int=9)
    assert metadata.cluster.topics["u"].error == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert metadata.cluster.doubted == set()


def test_a_broker_that_does_not_know_of_new_partitions_takes_none_away() -> None:
    def partitions(count: int, topic_id: UUID = ID) -> Any:
        return MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[
            MetadataResponsePartition(partition_index=number, leader_id=1, leader_epoch=5) for number in range(count)])

    for topic_id, after in ((ID, 3), (UUID(int=0), 2)):  # without an id it may be another topic
        metadata = machine()
        metadata.want_topics(["t"])
        exchange(metadata, reply(partitions(3, topic_id)), 0.0)
        exchange_again(metadata, reply(partitions(2, topic_id)), 1.0)
        assert sorted(metadata.cluster.topics["t"].partitions) == list(range(after))
        exchange_again(metadata, reply(partitions(1, UUID(int=9))), 2.0)
        assert sorted(metadata.cluster.topics["t"].partitions) == [0]


def test_a_topic_that_nobody_wants_any_more_is_not_kept() -> None:
    metadata = known()
    metadata.want_only(["u"], every=False)
    exchange_again(metadata, reply(topic("u", topic_id=UUID(int=8))), 10.0)
    assert set(metadata.cluster.topics) == {"u"}


def test_a_leader_named_in_an_error_is_taken_over_when_it_is_newer() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", leader=1, epoch=5)), 0.0)
    metadata.events()
    assert not metadata.update_leader("t", 0, 2, 5)
    assert not metadata.update_leader("t", 0, 99, 6)
    assert not metadata.update_leader("t", 1, 2, 6)
    assert not metadata.update_leader("u", 0, 2, 6)
    assert metadata.update_leader("t", 0, 3, 6, [NodeAddress(3, "h3", 3)])
    assert metadata.leader("t", 0) == (3, 6)
    assert metadata.cluster.nodes[3].host == "h3"
    assert [type(event) for event in metadata.events()] == [MetadataChanged]


def test_only_what_time_does_not_heal_is_told_and_why_no_broker_answers_is_known_until_one_does() -> None:
    metadata = machine()
    for code, told in ((KafkaError._TRANSPORT, []), (KafkaError._UNSUPPORTED_FEATURE, [MetadataFailed]),
                       (KafkaError._AUTHENTICATION, [MetadataFailed])):
        send = ask(metadata, metadata.deadline() or 0.0)
        assert send is not None
        metadata.on_error(send, KafkaError(code), 0.0)
        assert [type(event) for event in metadata.events()] == told
        assert metadata.last_error == code
    exchange(metadata, reply(), metadata.deadline() or 0.0)
    assert metadata.last_error is None


def test_who_changes_what_is_to_be_asked_for_has_the_machine_polled() -> None:
    metadata = machine()
    exchange(metadata, reply(), 0.0)
    assert ask(metadata, 0.0) is None
    metadata.want_topics(["t"])
    assert metadata.stirred
    exchange(metadata, reply(topic("t")), 0.0)
    assert ask(metadata, 0.0) is None
    assert not metadata.stirred
    metadata.want_topics(["t"])
    assert not metadata.stirred, "it is known"
    for change in (lambda: metadata.refresh(1.0), lambda: metadata.want_only([], every=True)):
        change()
        assert metadata.stirred
        exchange(metadata, reply(topic("t")), 9.0)
        assert ask(metadata, 9.0) is None
        assert not metadata.stirred


def test_a_leader_named_in_an_error_ends_the_error_of_the_partition() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    without = topic("t", leader=-1)
    without.partitions[0].error_code = KafkaError.LEADER_NOT_AVAILABLE
    exchange(metadata, reply(without), 0.0)
    assert metadata.leader("t", 0) == (None, 5)
    assert metadata.cluster.topics["t"].partitions[0].error == KafkaError.LEADER_NOT_AVAILABLE
    assert metadata.update_leader("t", 0, 2, 6)
    assert metadata.cluster.topics["t"].partitions[0].error is None


def test_broker_0_may_lead() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", leader=0), nodes=(0, 1)), 0.0)
    assert metadata.leader("t", 0) == (0, 5)


def test_why_a_partition_cannot_be_had_is_said_once_the_topic_is_known() -> None:
    metadata = machine()
    metadata.want_topics(["t", "u", "v", "w"])
    assert metadata.missing("t", 0) is None
    exchange(metadata, reply(
        topic("t"), topic("u", error_code=KafkaError.UNKNOWN_TOPIC_OR_PART),
        topic("v", error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED),
        topic("w", error_code=KafkaError.LEADER_NOT_AVAILABLE)), 0.0)
    assert metadata.missing("t", 0) is None
    told = [metadata.missing(name, partition) for name, partition in (("t", 1), ("u", 0), ("v", 0), ("w", 0))]
    assert [error and error.code() for error in told] == [
        KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_PARTITION, KafkaError.TOPIC_AUTHORIZATION_FAILED, None]
    assert "t[1] does not exist: the topic has 1 partition(s)" in str(told[0])
    assert "there is no such topic" in str(told[1])


def test_a_snapshot_is_never_changed() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", leader=1, epoch=5)), 0.0)
    before, updates = metadata.cluster, metadata.updates
    metadata.update_leader("t", 0, 2, 6)
    assert before.topics["t"].partitions[0].leader_id == 1
    assert metadata.updates == updates + 1


def test_failures_are_repeated_with_backoff_and_lead_back_to_the_bootstrap_servers() -> None:
    metadata = machine()
    exchange(metadata, reply(), 0.0)
    metadata.refresh(1.0)
    now = 1.0
    for _ in range(4):
        assert set(metadata.cluster.nodes) == {1, 2}
        send = ask(metadata, now)
        assert send is not None
        metadata.on_error(send, KafkaError(KafkaError._TRANSPORT), now)
        deadline = metadata.deadline()
        assert deadline is not None
        assert now < deadline <= now + 1.0
        now = deadline
    assert set(metadata.cluster.nodes) == {1, 2, -1000, -1001}
    exchange(metadata, reply(nodes=(5,)), now)
    assert set(metadata.cluster.nodes) == {5}


def test_rebootstrap_may_be_switched_off_and_may_be_demanded_by_a_broker() -> None:
    stubborn = machine(rebootstrap=False)
    exchange(stubborn, reply(), 0.0)
    for now in range(1, 20):
        stubborn.refresh(now)
        send = ask(stubborn, now)
        assert send is not None
        stubborn.on_error(send, KafkaError(KafkaError._TRANSPORT), now)
    assert set(stubborn.cluster.nodes) == {1, 2}
    told = machine()
    exchange(told, reply(), 0.0)
    told.refresh(1.0)
    exchange(told, reply(error_code=129), 1.0)
    assert set(told.cluster.nodes) == {1, 2, -1000, -1001}


def test_a_reply_without_brokers_is_not_believed() -> None:
    metadata = machine()
    exchange(metadata, reply(nodes=()), 0.0)
    assert metadata.updates == 0
    assert metadata.deadline() == 0.1


def test_brokers_that_give_no_metadata_for_so_long_are_forgotten_for_the_bootstrap_servers() -> None:
    metadata = machine(rebootstrap_after_s=10.0, refresh_s=90.0)
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t")), 0.0)
    silent = ask(metadata, 90.0)
    assert silent is not None
    assert metadata.deadline() == 100.0
    assert ask(metadata, 99.9) is None
    assert set(metadata.cluster.nodes) == {1, 2}
    again = ask(metadata, 100.0)
    assert again is not None
    assert set(metadata.cluster.nodes) == {-1000, -1001}
    assert metadata.leader("t", 0) == (1, 5)
    assert metadata.deadline() is None  # the bootstrap servers have all the time that a request has
    metadata.on_error(silent, KafkaError(KafkaError._TIMED_OUT), 120.0)
    assert ask(metadata, 200.0) is None
    metadata.on_reply(again, reply(topic("t"), nodes=(5,)), 200.0)
    assert set(metadata.cluster.nodes) == {5}
    assert metadata.deadline() == 290.0


def test_the_time_without_metadata_counts_from_the_first_request_whatever_became_of_it() -> None:
    metadata = machine(rebootstrap_after_s=1.0, retries=RetryPolicy(0.3, 0.3))
    exchange(metadata, reply(nodes=(1, 2, 3, 4)), 0.0)
    metadata.refresh(50.0)
    times = [50.0]
    while set(metadata.cluster.nodes) == {1, 2, 3, 4}:
        send = ask(metadata, times[-1])
        if send is not None and set(metadata.cluster.nodes) == {1, 2, 3, 4}:
            metadata.on_error(send, KafkaError(KafkaError._TRANSPORT), times[-1])
        deadline = metadata.deadline()
        times.append(times[-1] + 1.0 if deadline is None else deadline)
    assert [round(time - 50.0, 3) for time in times[:5]] == [0.0, 0.3, 0.6, 0.9, 1.0]
    assert set(metadata.cluster.nodes) == {-1000, -1001}


def test_brokers_are_silent_that_were_asked_a_while_ago_whether_they_failed_or_say_nothing() -> None:
    metadata = machine()
    metadata.want_topics(["t"])
    exchange(metadata, reply(topic("t", error_code=KafkaError.UNKNOWN_TOPIC_OR_PART)), now=0.0)
    assert not metadata.is_silent(100.0)  # nobody was asked
    send = ask(metadata, now=1.0)
    assert send is not None
    assert not metadata.is_silent(3.0)
    assert metadata.is_silent(5.0)
    metadata.on_error(send, KafkaError(KafkaError._TIMED_OUT), now=31.0)
    assert metadata.is_silent(31.0)
    exchange(metadata, reply(topic("t")), now=33.0)
    assert not metadata.is_silent(33.0)


def test_an_answer_that_comes_too_late_is_taken_and_the_newer_request_goes_on() -> None:
    metadata = machine(rebootstrap_after_s=0.0, refresh_s=None)
    exchange(metadata, reply(), 0.0)
    metadata.refresh(5.0)
    slow = ask(metadata, 5.0)
    assert slow is not None
    assert metadata.deadline() == 5.1  # not sooner than any other retry
    newer = ask(metadata, 5.1)
    assert newer is not None
    metadata.on_reply(slow, reply(nodes=(7,)), 6.0)
    assert set(metadata.cluster.nodes) == {7}
    metadata.refresh(7.0)
    assert ask(metadata, 8.0) is None
    metadata.on_reply(newer, reply(nodes=(8,)), 9.0)
    assert set(metadata.cluster.nodes) == {8}


def test_without_rebootstrap_brokers_are_waited_for_however_long_they_are_silent() -> None:
    metadata = machine(rebootstrap_after_s=10.0, rebootstrap=False)
    exchange(metadata, reply(), 0.0)
    metadata.refresh(20.0)
    assert ask(metadata, 20.0) is not None
    assert metadata.deadline() is None
    assert ask(metadata, 999.0) is None
    assert set(metadata.cluster.nodes) == {1, 2}


def received(*topics: MetadataResponseTopic) -> MetadataResponse:
    """A reply as a connection reads it."""
    return decode_metadata(encode(reply(*topics), 13), 13, 0)


def test_pictures_of_received_replies_are_those_of_the_messages_in_them() -> None:
    first, second = machine(), machine()
    for story in ([topic("t"), topic("u", epoch=3)], [topic("t", 2, 6), topic("u", 2, 2)],
                  [topic("t", 1, 5), topic("u", error_code=3)], [topic("t", 1, 5, topic_id=UUID(int=8))]):
        for metadata, how in ((first, received), (second, reply)):
            metadata.refresh(0.0)
            exchange(metadata, how(*story), 1000.0 + metadata.updates)
        assert first.cluster == second.cluster


def test_a_topic_of_which_the_same_is_said_again_stays_what_it_is() -> None:
    metadata = machine(refresh_s=1.0)
    exchange(metadata, received(topic("t"), topic("u")), 0.0)
    before = metadata.cluster.topics
    exchange(metadata, received(topic("t"), topic("u", 2, 6)), 10.0)
    after = metadata.cluster.topics
    assert after == {**before, "u": after["u"]}
    assert metadata.leader("u", 0) == (2, 6)
    if topic_rows.TopicReader is not None:
        assert after["t"] is before["t"]


def test_the_same_said_again_does_not_take_back_a_leader_that_a_broker_has_named() -> None:
    metadata = machine(refresh_s=1.0)
    exchange(metadata, received(topic("t", 1, 5)), 0.0)
    assert metadata.update_leader("t", 0, 2, 6)
    exchange(metadata, received(topic("t", 1, 5)), 10.0)
    assert metadata.leader("t", 0) == (2, 6)


def fail(metadata: Metadata, now: float, code: int) -> bool:
    """One more failure; whether the hosts are said to be unknown."""
    send = ask(metadata, now)
    assert send is not None
    metadata.on_error(send, KafkaError(code), now)
    return any(isinstance(event, HostsUnknown) for event in metadata.events())


def test_hosts_are_said_to_be_unknown_once_none_could_be_found_for_a_while_and_then_with_each_failure() -> None:
    metadata = machine()
    times = [0.0, 2.0, UNKNOWN_HOSTS_S, UNKNOWN_HOSTS_S + 2]
    assert [fail(metadata, now, KafkaError._RESOLVE) for now in times] == [False, False, True, True]


def test_hosts_of_which_one_was_found_are_not_said_to_be_unknown() -> None:
    metadata = machine()
    for now in range(0, 60, 4):
        assert not fail(metadata, now, KafkaError._RESOLVE)
        assert not fail(metadata, now + 2, KafkaError._TRANSPORT)


def test_a_name_service_that_is_down_makes_no_host_unknown_that_has_answered() -> None:
    metadata = machine()
    exchange(metadata, reply(), 0.0)
    metadata.refresh(1.0)
    assert not any(fail(metadata, now, KafkaError._RESOLVE) for now in range(1, 60, 3))
