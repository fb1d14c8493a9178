"""Producers that stay open from one task to the next: when they are handed out again, and when they are closed."""

import os
import time

import pytest

from headrace import Producer
from headrace.admin import AdminClient, NewPartitions
from headrace.client.producer.kept_producers import KeptProducers
from headrace.testing import EmbeddedBroker

PATIENCE_S = 10


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"one": 1}) as made:
        yield made


@pytest.fixture
def conf(broker):
    return {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": "0"}


@pytest.fixture
def kept():
    made = KeptProducers()
    yield made
    made.close()


def used(kept, conf, topic="one"):
    """A producer that has delivered a record and was given back."""
    producer = kept.take(conf)
    send(producer, topic)
    kept.give_back(producer)
    return producer


def send(producer, topic="one", **record):
    told = []
    producer.produce(topic, b"v", on_delivery=lambda error, message: told.append(error), **record)
    assert producer.flush(PATIENCE_S) == 0
    assert told == [None]


def later(monkeypatch, seconds):
    """Let time pass, but not for the brokers."""
    now = time.monotonic
    monkeypatch.setattr("headrace.client.kept_clients._clock", lambda: now() + seconds)


def until(happened):
    end = time.monotonic() + PATIENCE_S
    while not happened() and time.monotonic() < end:
        time.sleep(0.01)
    assert happened()


def connections(broker):
    return broker.apply(lambda _: sum(len(listener.connections) for _, listener in broker._broker._open.values()))


def test_a_producer_is_handed_out_again_to_who_has_the_same_properties(kept, conf):
    first = used(kept, conf)
    assert kept.take({**conf, "client.id": "other"}) is not first
    assert kept.take(dict(reversed(conf.items()))) is first
    assert kept.take(conf) is not first  # it is in use


def test_after_a_while_brokers_are_asked_whether_all_is_as_it_was(kept, conf, monkeypatch):
    first = used(kept, conf)
    later(monkeypatch, 5)
    assert kept.take(conf) is first
    send(first)


def test_partitions_that_a_topic_got_meanwhile_are_there(kept, conf, broker, monkeypatch):
    first = used(kept, conf)
    admin = AdminClient(conf)
    for done in admin.create_partitions([NewPartitions("one", 3)]).values():
        done.result(PATIENCE_S)
    later(monkeypatch, 5)
    assert kept.take(conf) is first
    send(first, partition=2)
    assert broker.end_offsets("one") == [1, 0, 1]


@pytest.mark.parametrize("again", [True, False], ids=["made anew", "deleted"])
def test_a_producer_whose_topic_was_deleted_meanwhile_is_closed(kept, conf, broker, monkeypatch, again):
    first = used(kept, conf)
    admin = AdminClient(conf)
    for done in admin.delete_topics(["one"]).values():
        done.result(PATIENCE_S)
    if again:
        broker.create_topic("one", 2)
    later(monkeypatch, 5)
    second = kept.take(conf)
    assert second is not first
    assert first._engine.closed
    if again:
        send(second, partition=1)


def test_a_producer_whose_brokers_do_not_answer_is_closed(kept, conf, broker, monkeypatch):
    first = used(kept, conf)
    broker.stop()
    later(monkeypatch, 5)
    began_at = time.monotonic()
    assert kept.take(conf) is not first
    assert time.monotonic() - began_at < 5
    assert first._engine.closed


def test_a_producer_that_brokers_have_hung_up_on_connects_anew(kept, conf, broker, monkeypatch):
    first = used(kept, conf)
    broker.stop_node(1)
    broker.start_node(1)
    later(monkeypatch, 5)
    send(kept.take(conf))
    assert first is not None
    assert broker.end_offsets("one") == [2]


def test_a_producer_that_takes_no_records_any_more_is_not_handed_out(kept, conf):
    closed = used(kept, conf)
    closed.close()
    assert kept.take(conf) is not closed


def test_a_producer_with_records_under_way_is_not_kept(kept, conf):
    producer = kept.take({**conf, "linger.ms": "5000"})
    producer.produce("one", b"v")
    kept.give_back(producer)
    assert producer._engine.closed


def test_a_producer_that_is_not_used_is_closed(conf, broker):
    kept = KeptProducers(idle_s=1.0)
    producer = used(kept, conf)
    assert connections(broker) > 0
    until(lambda: producer._engine.closed)
    until(lambda: connections(broker) == 0)
    assert kept.take(conf) is not producer
    kept.close()


def test_a_producer_that_is_used_again_is_not_closed_for_the_time_before(conf):
    kept = KeptProducers(idle_s=1.0)
    producer = used(kept, conf)
    assert kept.take(conf) is producer
    time.sleep(1.5)
    send(producer)
    kept.close()


def test_an_old_producer_is_not_kept_so_that_new_certificates_are_read(kept, conf, monkeypatch):
    producer = kept.take(conf)
    later(monkeypatch, 3600)
    kept.give_back(producer)
    assert producer._engine.closed


def test_closing_closes_what_is_kept_and_what_is_given_back_later(kept, conf, broker):
    idle, busy = used(kept, conf), kept.take({**conf, "client.id": "busy"})
    kept.close()
    kept.give_back(busy)
    assert idle._engine.closed
    assert busy._engine.closed
    until(lambda: connections(broker) == 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_makes_its_own(kept, conf, broker):
    parents = used(kept, conf)
    child = os.fork()
    if not child:
        status = 1
        try:
            made = kept.take(conf)
            send(made)
            status = 0 if made is not parents else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept.take(conf) is parents
    send(parents)
    assert broker.end_offsets("one") == [3]


def test_a_wrong_property_is_told_at_once(kept):
    with pytest.raises(Exception, match=r"no\.such"):
        kept.take({"bootstrap.servers": "x:1", "no.such": "1"})
    assert isinstance(kept.take({"bootstrap.servers": "127.0.0.1:1"}), Producer)
