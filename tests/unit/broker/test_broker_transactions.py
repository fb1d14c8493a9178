"""Transactions at the embedded broker, rule by rule; `test_broker_answers_as_kafka_does` holds them against Kafka."""

import time
from collections.abc import Callable, Iterator
from itertools import count
from uuid import UUID

import pytest

from headrace.broker.cluster import BrokerCluster, BrokerNode
from headrace.broker.deadlines import Now
from headrace.broker.dispatch import SERVED
from headrace.broker.faults import Action, Fault
from headrace.errors import KafkaError
from headrace.records import Cursor, scan
from headrace.records.control import control_records
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.messages.producer.transactions import EndTxnRequest, TxnOffsetCommitRequest
from headrace.wire.schema import Request
from tests.support.raw_client import ASK_VERSIONS, RawClient, batch_of
from tests.support.transactional_client import Transactional, Who


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "u": 1}) as embedded:
        yield embedded


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Transactional]:
    with Transactional(broker) as transactional:
        assert transactional.init() == 0
        yield transactional


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.01)


def values(data: bytes) -> list[bytes]:
    return [message.value() or b"" for message in Cursor(data, "t", 0, 0).take(1000)]


# -- identities

def test_the_next_producer_of_a_transactional_id_fences_the_one_before(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    with Transactional(broker) as second:
        assert second.init() == 0
        assert second.who == Who(client.who.producer_id, client.who.epoch + 1)
        assert client.add(0) == {KafkaError.PRODUCER_FENCED}
        assert client.add_group("g") == KafkaError.PRODUCER_FENCED
        assert client.store(b"x") == KafkaError.INVALID_PRODUCER_EPOCH
        assert client.commit_offset("g", 1) == KafkaError.INVALID_PRODUCER_EPOCH
        assert client.end(True) == KafkaError.PRODUCER_FENCED
        assert client.init(had=client.who) == KafkaError.PRODUCER_FENCED


def test_versions_that_do_not_know_that_they_are_fenced_hear_of_their_epoch(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    with Transactional(broker) as second:
        second.init()
    assert client.add(0, version=1) == {KafkaError.INVALID_PRODUCER_EPOCH}
    assert client.end(True, version=1) == KafkaError.INVALID_PRODUCER_EPOCH
    assert client.init(had=client.who, version=3) == KafkaError.INVALID_PRODUCER_EPOCH


def test_a_producer_that_goes_on_after_an_error_gets_the_next_epoch_once(client: Transactional) -> None:
    first = client.who
    assert client.init(had=first) == 0
    assert client.who == Who(first.producer_id, first.epoch + 1)
    assert client.init(had=first) == 0
    assert client.who == Who(first.producer_id, first.epoch + 1)


def test_a_used_up_producer_id_is_replaced_by_another(broker: EmbeddedBroker, client: Transactional) -> None:
    def wear_out(epoch: int) -> None:
        broker.apply(lambda cluster: setattr(cluster.transactions.get("tx", Now(0.0, 0)), "epoch", epoch))

    first = client.who.producer_id
    wear_out(32766)
    assert client.init(had=Who(first, 32766)) == 0
    assert (client.who.producer_id != first, client.who.epoch) == (True, 0)
    assert client.init(had=Who(first, 32766)) == 0  # the reply was lost
    second = client.who.producer_id
    wear_out(32766)
    client.who = Who(second, 32766)
    assert client.store(b"last") == 0
    assert client.end(True) == 0
    assert (client.who.producer_id not in (first, second), client.who.epoch) == (True, 0)
    assert client.end(True, who=Who(second, 32766)) == 0  # again
    assert client.store(b"next") == 0


def test_the_last_epoch_is_kept_for_fencing(broker: EmbeddedBroker, client: Transactional) -> None:
    broker.apply(lambda cluster: setattr(cluster.transactions.get("tx", Now(0.0, 0)), "epoch", 32766))
    old = client.who.producer_id
    client.who = Who(old, 32766)
    client.store(b"open")
    assert client.init() == KafkaError.CONCURRENT_TRANSACTIONS
    assert (client.state().producer_id != old, client.state().producer_epoch) == (True, 0)
    assert client.init() == 0
    assert (client.who.producer_id != old, client.who.epoch) == (True, 1)


def test_a_producer_whose_transaction_is_aborted_in_its_last_epoch_goes_on_with_a_new_id(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    """With the last epoch, 32767, it could go on in the transaction that another request for its id aborts."""
    broker.apply(lambda cluster: setattr(cluster.transactions.get("tx", Now(0.0, 0)), "epoch", 32766))
    old = client.who.producer_id
    client.who = Who(old, 32766)
    client.store(b"open")
    with Transactional(broker) as second:
        assert second.init() == KafkaError.CONCURRENT_TRANSACTIONS  # and is gone: the transaction is aborted
    assert client.end(False) == 0
    assert (client.who.producer_id != old, client.who.epoch) == (True, 0)
    assert client.end(False, who=Who(old, 32766)) == 0  # the reply was lost
    assert client.store(b"next") == 0
    assert client.end(True) == 0
    assert broker.apply(lambda cluster: cluster.catalog.topics["t"].partitions[0].last_stable_offset) == 4


def test_an_end_with_version_1_is_not_what_another_producer_asks_for_again_with_version_2(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    zombie = client.who
    with Transactional(broker) as second:
        assert second.init() == 0
        assert second.add(0) == {0}
        assert second.end(False, version=4) == 0
        assert client.end(False, who=zombie) == KafkaError.PRODUCER_FENCED


def test_a_producer_waits_for_its_new_id_until_all_markers_are_written() -> None:
    settings = BrokerSettings(marker_delay_ms=1500)
    with EmbeddedBroker(topics={"t": 1}, settings=settings) as broker, Transactional(broker) as client:
        client.init()
        broker.apply(lambda cluster: setattr(cluster.transactions.get("tx", Now(0.0, 0)), "epoch", 32766))
        client.who = Who(client.who.producer_id, 32766)
        client.store(b"last")
        assert client.end(True) == 0
        assert client.who.epoch == 0
        assert client.store(b"next") == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.end(False) == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.init(had=client.who) == KafkaError.CONCURRENT_TRANSACTIONS
        until(lambda: client.store(b"next") == 0)


def test_a_transactional_id_that_was_not_used_for_long_is_forgotten(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    def age() -> None:
        broker.apply(lambda cluster: setattr(cluster.transactions.get("tx", Now(0.0, 0)), "updated_ms", 0))

    client.store(b"open")
    age()
    assert client.state().transaction_state == "Ongoing"
    client.end(False)
    age()
    assert client.state().error_code == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
    before = client.who
    assert client.init() == 0
    assert (client.who.producer_id != before.producer_id, client.who.epoch) == (True, 0)


# -- records

@pytest.mark.parametrize("version", [11, 12])
def test_records_are_there_for_all_when_they_are_committed(client: Transactional, version: int) -> None:
    if version < 12:
        assert client.add(0) == {0}
    assert client.store(b"a", b"b", version=version) == 0
    open_part = client.fetch()
    assert (open_part.high_watermark, open_part.last_stable_offset, bytes(open_part.records)) == (2, 0, b"")
    assert values(client.fetch(committed=False).records) == [b"a", b"b"]
    assert (client.latest(committed=True), client.latest(committed=False)) == (0, 2)
    assert client.end(True, version=3 if version < 12 else 5) == 0
    part = client.fetch()
    assert (part.last_stable_offset, part.aborted_transactions, values(part.records)) == (3, [], [b"a", b"b"])
    marker, = control_records(part.records)
    assert (marker.type, marker.offset, marker.producer_id) == (1, 2, client.who.producer_id)


def test_aborted_records_are_named_to_readers_of_committed_ones(client: Transactional) -> None:
    for mark in (b"first", b"second"):
        client.store(mark)
        client.end(False)
    client.store(b"third")
    client.end(True)
    part = client.fetch()
    assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions] == [
        (client.who.producer_id, 0), (client.who.producer_id, 2)]
    assert [each.first_offset for each in client.fetch(2).aborted_transactions] == [2]
    assert client.fetch(4).aborted_transactions == []
    assert client.fetch(committed=False).aborted_transactions is None


def test_a_reader_that_waits_gets_records_when_their_marker_comes(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    client.store(b"a")
    broker.add_fault(Fault(action=Action.DELAY, request=EndTxnRequest, delay_s=0.1))
    client.send(EndTxnRequest(transactional_id="tx", producer_id=client.who.producer_id,
                              producer_epoch=client.who.epoch, committed=True), 5)
    with Transactional(broker) as reader:
        assert values(reader.fetch(wait_ms=5000).records) == [b"a"]


def test_the_stable_end_is_the_oldest_open_transaction(broker: EmbeddedBroker, client: Transactional) -> None:
    with Transactional(broker, "second") as second:
        second.init()
        client.store(b"a")
        second.store(b"b")
        client.end(True)
        assert client.fetch().last_stable_offset == 1
        second.end(False)
        part = client.fetch()
        assert part.last_stable_offset == 4
        assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions] == [
            (second.who.producer_id, 1)]


def test_old_rules_want_partitions_added_first(client: Transactional) -> None:
    assert client.store(b"x", version=10) == KafkaError.INVALID_TXN_STATE
    assert client.store(b"x", version=11) == KafkaError.TRANSACTION_ABORTABLE
    assert client.add(0) == {0}
    assert client.store(b"x", version=11) == 0
    assert client.store(b"x", version=11, partition=1) == KafkaError.TRANSACTION_ABORTABLE


def test_partitions_are_added_all_or_none(client: Transactional) -> None:
    assert client.add(0, 7) == {KafkaError.OPERATION_NOT_ATTEMPTED, KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert client.add(0, topic="nowhere") == {KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert client.state().transaction_state == "Empty"


def test_records_of_an_ended_transaction_come_too_late(client: Transactional) -> None:
    before = client.who
    client.store(b"a")
    client.end(True)
    assert client.store(b"b", sequence=1, who=before) == KafkaError.INVALID_PRODUCER_EPOCH
    assert client.store(b"b", sequence=1) == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.store(b"b") == 0


def test_a_batch_outside_of_its_producers_open_transaction_is_refused(client: Transactional) -> None:
    client.store(b"a")
    plain = client.produce("t", 0, batch_of([b"b"], *client.who, 1))
    assert plain.error_code == KafkaError.INVALID_TXN_STATE


def test_records_deleted_within_an_open_transaction_leave_it_open(
    broker: EmbeddedBroker, client: Transactional
) -> None:
    client.store(b"a", b"b", b"c")
    broker.apply(lambda cluster: cluster.catalog.topics["t"].partitions[0].advance_start(2))
    assert client.fetch(2).last_stable_offset == 2
    client.end(False)
    assert client.fetch(2).last_stable_offset == 4


# -- offsets of groups

def test_offsets_are_the_groups_when_the_transaction_commits(client: Transactional) -> None:
    client.commit_offset("g", 5)
    assert client.offset("g") == (-1, 0)
    assert client.offset("g", stable=True) == (-1, KafkaError.UNSTABLE_OFFSET_COMMIT)
    client.end(True)
    assert client.offset("g", stable=True) == (5, 0)
    client.commit_offset("g", 9)
    assert client.offset("g") == (5, 0)
    client.end(False)
    assert client.offset("g", stable=True) == (5, 0)


def test_old_rules_want_the_group_added_first(client: Transactional) -> None:
    assert client.commit_offset("g", 5, version=3) == KafkaError.INVALID_TXN_STATE
    assert client.commit_offset("g", 5, version=4) == KafkaError.TRANSACTION_ABORTABLE
    assert client.add_group("g") == 0
    assert client.commit_offset("g", 5, version=3) == 0
    assert [each.topic for each in client.state().topics] == ["__consumer_offsets"]
    assert client.end(True, version=3) == 0
    assert client.offset("g") == (5, 0)


@pytest.mark.parametrize(("group", "partition"), [
    ("g", 3), ("polygenelubricants", 0), ("consumers", 33), ("gruppe-ü", 22), ("\U0001f600", 49)])
def test_a_transaction_with_offsets_shows_where_kafka_keeps_them(
    client: Transactional, group: str, partition: int
) -> None:
    assert client.add_group(group) == 0
    assert [(each.topic, each.partitions) for each in client.state().topics] == [("__consumer_offsets", [partition])]


def test_members_that_were_replaced_commit_nothing(client: Transactional) -> None:
    assert client.commit_offset("g", 5, member="nobody", generation=3) == KafkaError.ILLEGAL_GENERATION


# -- the end

def test_the_end_comes_again_without_harm(client: Transactional) -> None:
    before = client.who
    client.store(b"a")
    assert client.end(True) == 0
    after = client.who
    assert client.end(True, who=before) == 0
    assert client.who == after
    assert client.end(False, who=before) == KafkaError.INVALID_TXN_STATE
    assert client.latest(committed=False) == 2


def test_an_abort_with_nothing_in_it_gives_an_epoch_and_a_commit_does_not(client: Transactional) -> None:
    before = client.who
    assert client.end(True) == KafkaError.INVALID_TXN_STATE
    assert client.end(False) == 0
    assert client.who == Who(before.producer_id, before.epoch + 1)


def test_a_transaction_is_aborted_when_its_time_is_up(client: Transactional) -> None:
    client.init(timeout_ms=1000)
    client.store(b"a")
    client.commit_offset("g", 7)
    until(lambda: client.state().transaction_state == "CompleteAbort")
    part = client.fetch()
    assert [each.first_offset for each in part.aborted_transactions] == [0]
    assert client.offset("g", stable=True) == (-1, 0)
    assert client.store(b"b", sequence=1) == KafkaError.INVALID_PRODUCER_EPOCH
    assert client.end(True) == KafkaError.INVALID_TXN_STATE
    assert client.init(had=client.who) == 0  # it is not fenced, only late
    assert client.store(b"c") == 0


def test_a_transaction_has_nothing_of_the_one_before_and_its_own_time() -> None:
    ids = count(1)
    cluster = BrokerCluster([BrokerNode(1, "h", 1, True)], BrokerSettings(), SERVED, lambda: UUID(int=next(ids)))
    cluster.catalog.create("t", 1, 1)
    coordinator = cluster.transactions

    def at(seconds: float) -> Now:
        now = Now(seconds, int(seconds * 1000))
        cluster.deadlines.run(now)
        return now

    def state(seconds: float) -> str:
        found = coordinator.get("x", at(seconds))
        assert found is not None
        return found.state.value

    who = coordinator.initialise("x", 10_000, None, at(0))
    coordinator.add("x", who, [("t", 0)], ["g"], 1, at(0))
    who = coordinator.end("x", who, True, 1, at(5))
    ended = coordinator.verify("x", who, at(6))
    assert (ended.partitions, ended.groups) == ({}, {})
    coordinator.add("x", who, [("t", 0)], [], 1, at(6))
    assert [state(seconds) for seconds in (9, 11, 15.9)] == ["Ongoing"] * 3
    assert state(16) == "CompleteAbort"
    cluster.close()


def test_markers_that_take_their_time_hold_the_next_transaction_back() -> None:
    settings = BrokerSettings(marker_delay_ms=1500)
    with EmbeddedBroker(topics={"t": 1}, settings=settings) as broker, Transactional(broker) as client:
        client.init()
        client.store(b"a")
        before = client.who
        assert client.end(True) == 0
        assert client.state().transaction_state == "PrepareCommit"
        assert client.end(True, who=before) == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.end(False, who=before) == KafkaError.INVALID_TXN_STATE
        assert client.init() == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.store(b"b") == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.add(0) == {KafkaError.CONCURRENT_TRANSACTIONS}
        until(lambda: client.state().transaction_state == "CompleteCommit")
        assert client.store(b"b") == 0


# -- several nodes

def coordinator(broker: EmbeddedBroker, name: str) -> int:
    with RawClient(broker, broker.apply(lambda cluster: cluster.up_nodes[0].id)) as client:
        reply = client.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 4)
        return int(reply.coordinators[0].node_id)


def test_the_coordinator_moves_when_its_node_goes_and_the_transaction_goes_on(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 3)
    home = coordinator(three_nodes, "tx")
    elsewhere = next(node for node in (1, 2, 3) if node != home)
    partition = next(index for index in range(3) if three_nodes.leader("t", index) == elsewhere)
    with Transactional(three_nodes, node=home) as client, Transactional(three_nodes, node=elsewhere) as other:
        assert other.init() == KafkaError.NOT_COORDINATOR
        assert client.init() == 0
        other.who = client.who
        assert other.store(b"a", partition=partition) == 0
        assert other.end(True) == KafkaError.NOT_COORDINATOR
        three_nodes.stop_node(home)
        with Transactional(three_nodes, node=coordinator(three_nodes, "tx")) as moved:
            assert moved.end(True, who=other.who) == 0
        assert values(other.fetch(partition=partition).records) == [b"a"]


def test_markers_wait_for_a_partition_without_a_leader(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 3, replication_factor=1)
    leaders = {three_nodes.leader("t", index): index for index in range(3)}
    with Transactional(three_nodes, node=coordinator(three_nodes, "tx")) as client:
        client.init()
    who, committed_of = client.who, {1: b"one", 3: b"three"}
    for node, value in committed_of.items():
        with Transactional(three_nodes, node=node) as writer:
            assert writer.store(value, partition=leaders[node], who=who) == 0
    three_nodes.stop_node(3)
    with Transactional(three_nodes, node=coordinator(three_nodes, "tx")) as client:
        assert client.end(True, who=who) == 0
        assert client.state().transaction_state == "PrepareCommit"
    three_nodes.start_node(3)
    with Transactional(three_nodes, node=coordinator(three_nodes, "tx")) as client:
        assert client.state().transaction_state == "CompleteCommit"
    for node, value in committed_of.items():
        with Transactional(three_nodes, node=node) as reader:
            assert values(reader.fetch(partition=leaders[node]).records) == [value]


def test_a_deleted_topic_does_not_hold_up_the_end(broker: EmbeddedBroker, client: Transactional) -> None:
    client.store(b"a")
    client.store(b"b", topic="u")
    broker.apply(lambda cluster: cluster.catalog.delete(cluster.catalog.topics["u"]))
    assert client.end(True) == 0
    assert client.state().transaction_state == "CompleteCommit"


# -- what clients are told, and faults

@pytest.mark.parametrize(("settings", "level"), [
    (BrokerSettings(), 2), (BrokerSettings(transaction_version=1), 1), (BrokerSettings(transaction_version=0), None),
    (BrokerSettings.of_kafka("4.0"), 2), (BrokerSettings.of_kafka("3.9"), None),
    (BrokerSettings.of_kafka("4.4", transaction_version=1), 1), (BrokerSettings(api_versions={"EndTxn": (0, 4)}), 1),
])
def test_clients_are_told_which_transactions_there_are(settings: BrokerSettings, level: int | None) -> None:
    with EmbeddedBroker(settings=settings) as broker, RawClient(broker) as client:
        reply = client.call(ASK_VERSIONS, 4)
        found = {each.name: each.max_version_level for each in reply.finalized_features}
        assert found.get("transaction.version") == level
        highest = {each.name: each.max_version for each in reply.supported_features}
        assert highest.get("transaction.version") == (None if level is None else 2)
        assert client.call(ASK_VERSIONS, 3).supported_features == []


def test_a_transaction_version_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="transaction_version is 3; it can be 0, 1 or 2"):
        BrokerSettings(transaction_version=3)


def test_older_releases_abort_without_an_epoch_of_its_own() -> None:
    settings = BrokerSettings.of_kafka("3.9")
    with EmbeddedBroker(topics={"t": 1}, settings=settings) as broker, Transactional(broker) as client:
        client.init()
        client.add(0)
        client.store(b"a", version=11)
        before = client.who
        assert client.init() == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.init() == 0
        assert client.who == Who(before.producer_id, before.epoch + 2)


@pytest.mark.parametrize(("kind", "call"), [
    (EndTxnRequest, lambda client: client.end(True)),
    (TxnOffsetCommitRequest, lambda client: client.commit_offset("g", 1)),
], ids=["EndTxn", "TxnOffsetCommit"])
def test_faults_hit_transactions_too(
    broker: EmbeddedBroker, client: Transactional, kind: type[Request], call: Callable[[Transactional], int]
) -> None:
    client.store(b"a")
    broker.add_fault(Fault(action=Action.ERROR, request=kind, error_code=KafkaError.NOT_COORDINATOR))
    assert call(client) == KafkaError.NOT_COORDINATOR
    assert client.state().transaction_state == "Ongoing"
    assert call(client) == 0


def test_a_lost_reply_to_the_end_is_asked_for_again(broker: EmbeddedBroker, client: Transactional) -> None:
    client.store(b"a")
    broker.add_fault(Fault(action=Action.LOSE_REPLY, request=EndTxnRequest))
    with pytest.raises(ConnectionError):
        client.end(True)
    with Transactional(broker) as again:
        again.who = client.who
        assert again.end(True) == 0
        assert again.who.epoch == client.who.epoch + 1
        assert [info.is_control for info in scan(again.fetch().records)] == [False, True]
