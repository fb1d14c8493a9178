"""The owner of joint transactions at an embedded broker of either version of the protocol."""

import os

import pytest

from headrace import Consumer, KafkaError, KafkaException, TopicPartition
from headrace.broker.settings import BrokerSettings
from headrace.client.joint.joining_producer import JoiningProducer
from headrace.client.joint.transaction_owner import CommittedMark, TransactionOwner, kept_owner
from headrace.errors import ClientClosedError
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module", params=[0, 2], ids=["version-1", "version-2"])
def broker(request):
    with EmbeddedBroker(topics={"t": 3}, settings=BrokerSettings(transaction_version=request.param)) as made:
        yield made


def write(conf, transaction, partition=0, before=None):
    with JoiningProducer(conf) as producer:
        producer.join(transaction, before)
        producer.produce("t", b"v", partition=partition)
        assert producer.flush(10) == 0
        return producer.written()


def refused(call, *arguments):
    with pytest.raises(KafkaException) as raised:
        call(*arguments)
    return raised.value.error


def test_a_mark_is_there_once_its_transaction_is_committed(owner, conf):
    begun, last = owner.begin("marked", "marked")
    assert last is None
    owner.check(begun, write(conf, begun))
    owner.mark(begun, "marked", CommittedMark(0, "first"), ("t", 0))
    owner.end(begun)
    assert owner.begin("marked", "marked")[1] == CommittedMark(0, "first")


def test_a_mark_is_not_there_if_its_transaction_is_not_committed(owner, conf):
    begun, _ = owner.begin("unmarked", "unmarked")
    write(conf, begun)
    owner.mark(begun, "unmarked", CommittedMark(0, "never"), ("t", 0))
    assert owner.begin("unmarked", "unmarked")[1] is None


def test_each_transaction_has_an_epoch_of_its_own_and_the_version_of_the_brokers(owner, broker):
    first, _ = owner.begin("epochs")
    second, _ = owner.begin("epochs")
    assert (second.producer_id, second.epoch) == (first.producer_id, first.epoch + 1)
    assert first.version in (1, 2)


def test_who_takes_the_name_over_ends_what_was_open(owner, conf):
    begun, _ = owner.begin("taken")
    written = write(conf, begun)
    owner.begin("taken")
    assert refused(owner.check, begun, written) == KafkaError.INVALID_TXN_STATE
    assert refused(owner.end, begun).code() in (KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def test_an_abort_after_the_commit_changes_nothing(owner, conf):
    begun, _ = owner.begin("late-abort", "late-abort")
    write(conf, begun)
    owner.mark(begun, "late-abort", CommittedMark(3, "kept"), ("t", 0))
    owner.end(begun)
    owner.abort(begun)
    owner.abort(begun)
    assert owner.begin("late-abort", "late-abort")[1] == CommittedMark(3, "kept")


def test_an_abort_of_a_replaced_owner_leaves_its_successor_alone(owner, conf):
    begun, _ = owner.begin("replaced")
    write(conf, begun)
    successor, _ = owner.begin("replaced")
    written = write(conf, successor)
    owner.abort(begun)
    owner.check(successor, written)
    owner.end(successor)


def test_a_commit_may_be_repeated_for_its_answer_may_be_lost(owner, conf):
    begun, _ = owner.begin("twice")
    write(conf, begun)
    owner.end(begun)
    owner.end(begun)


def test_nothing_can_be_done_with_a_closed_owner(conf):
    owner = TransactionOwner(conf)
    owner.close()
    owner.close()
    with pytest.raises(ClientClosedError):
        owner.begin("closed")


def test_a_process_keeps_its_owner_and_a_forked_one_begins_anew(conf):
    assert kept_owner(conf) is kept_owner(dict(conf))
    assert kept_owner({**conf, "client.id": "other"}) is not kept_owner(conf)
    child = os.fork()
    if not child:
        before = kept_owner.__globals__["_kept"]
        os._exit(0 if not before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_second_participant_goes_on_in_a_partition_where_the_first_has_ended(owner, conf):
    begun, _ = owner.begin("one-after-the-other")
    first = write(conf, begun)
    assert first == {("t", 0): 1}
    assert write(conf, begun, before=first) == {("t", 0): 1}
    assert write(conf, begun, partition=1, before={("t", 0): 2}) == {("t", 1): 1}
    owner.check(begun, {("t", 0), ("t", 1)})
    owner.end(begun)


def test_offsets_of_groups_are_committed_with_the_transaction(owner, conf):
    begun, _ = owner.begin("offsets")
    write(conf, begun)
    owner.commit_offsets(begun, "readers", {("t", 0): 5, ("t", 2): 7})
    asked = [TopicPartition("t", partition) for partition in range(3)]
    with Consumer({**conf, "group.id": "readers"}) as consumer:
        owner.end(begun)
        assert [each.offset for each in consumer.committed(asked, 10)] == [5, -1001, 7]


@pytest.mark.parametrize(("release", "works"), [("2.7", False), ("3.0", True), ("3.9", True)])
def test_brokers_of_what_age_can_be_used_shows_before_anything_is_begun(release, works):
    with EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings.of_kafka(release)) as broker:
        conf = {"bootstrap.servers": broker.bootstrap_servers}
        owner = TransactionOwner(conf)
        if works:
            begun, _ = owner.begin("aged", "aged")
            owner.check(begun, write(conf, begun))
            owner.mark(begun, "aged", CommittedMark(0, "first"), ("t", 0))
            owner.end(begun)
            assert owner.begin("aged", "aged")[1] == CommittedMark(0, "first")
        else:
            assert refused(owner.begin, "aged", "aged") == KafkaError._UNSUPPORTED_FEATURE
        owner.close()
