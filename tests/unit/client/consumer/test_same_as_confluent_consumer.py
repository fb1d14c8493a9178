"""`Consumer`: the same calls over confluent_kafka and headrace, without a broker and against one.

Arguments that are lists are in `test_same_as_confluent_lists`. Where headrace does otherwise, `OTHERWISE` and the tests
at the end say what and why.
"""

import json
import pickle
import threading
import time
import uuid
from collections.abc import Iterator

import confluent_kafka
import pytest

import headrace
from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.consumer.fetch import FetchRequest
from tests.support.same_as_confluent import QUIET, by_name, outcome, same

NOWHERE = "127.0.0.1:1"
WAIT_S = 10.0


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    topics = {"one": 1, "four": 4}
    with EmbeddedBroker(topics=topics, settings=BrokerSettings(auto_create_topics=False)) as made:
        producer = headrace.Producer({"bootstrap.servers": made.bootstrap_servers})
        for number in range(5):
            producer.produce("one", f"v{number}", "k", headers=[("h", b"x")])
        producer.flush(WAIT_S)
        producer.close()
        yield made


PROMPT = {"fetch.wait.max.ms": 50, "topic.metadata.refresh.fast.interval.ms": 20}
"""So that neither waits for what has nothing new: the peer looks for topics and brokers four times a second."""


@pytest.fixture
def nowhere():
    """Makes consumers whose broker is not there; they are closed in the end."""
    made = []

    def consumer(kafka, **given):
        properties = {name if name.endswith("_cb") or name == "on_commit" else name.replace("_", "."): value
                      for name, value in given.items()}
        made.append(kafka.Consumer({
            "bootstrap.servers": NOWHERE, "group.id": "g", "logger": QUIET, "error_cb": ignored,
            "session.timeout.ms": 1000, "heartbeat.interval.ms": 300, "auto.offset.reset": "earliest", **PROMPT,
            **properties}))
        return made[-1]

    yield consumer
    # Side by side: where no broker takes what is to be committed, each waits for it.
    closing = [threading.Thread(target=one.close) for one in made]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()


@pytest.fixture
def of(nowhere, broker):
    """The same for consumers that have a broker, each in a group of its own."""
    groups = iter(range(1000))

    def consumer(kafka, **given):
        group = f"{kafka.__name__}-{next(groups)}-{time.monotonic_ns()}"
        return nowhere(kafka, **{"bootstrap_servers": broker.bootstrap_servers, "group_id": group,
                                 "session_timeout_ms": 6000, **given})

    return consumer


def ignored(*arguments):
    pass


def boom(*arguments):
    raise ZeroDivisionError


def at(kafka, offset=-1001, partition=0, topic="one"):
    return kafka.TopicPartition(topic, partition, offset)


def plain(partitions):
    """What can be compared of partitions."""
    return [(tp.topic, tp.partition, tp.offset, tp.metadata, tp.leader_epoch, tp.error and tp.error.code())
            for tp in partitions]


def places(partitions):
    return [(tp.topic, tp.partition) for tp in partitions]


def read(consumer, polls=100):
    """The next message, or None."""
    return next((message for message in (consumer.poll(0.1) for _ in range(polls)) if message is not None), None)


def poll_until(consumer, happened):
    end = time.monotonic() + WAIT_S
    while not happened() and time.monotonic() < end:
        consumer.poll(0.05)


def text_of(call):
    """Class and text of what is raised."""
    try:
        return call()
    except Exception as error:
        return next(kind.__name__ for kind in (TypeError, RuntimeError) if isinstance(error, kind)), str(error)


def assigned(consumer, kafka, offset=0):
    consumer.assign([at(kafka, offset)])
    return consumer


def started(consumer, kafka):
    """Assigned, and some time ago: the peer cannot seek at once."""
    assigned(consumer, kafka)
    time.sleep(0.2)
    return consumer


# How one is made


def test_a_subclass_that_does_not_make_it_is_a_closed_consumer():
    def called(kafka):
        made = type("Mine", (kafka.Consumer,), {"__init__": lambda self, config: None})({"group.id": "x"})
        calls = {**CLOSED, "topics": lambda c, k: c.list_topics(), "cluster id": lambda c, k: c.cluster_id(),
                 "credentials": lambda c, k: c.set_sasl_credentials("u", "p"), "attribute": lambda c, k: c.no_such}
        said = {name: outcome(lambda k, call=call: call(made, k), kafka) for name, call in calls.items()}
        with pytest.raises(RuntimeError, match="Consumer closed"):
            made.poll()
        for call in (made.list_topics, made.cluster_id, lambda: made.set_sasl_credentials("u", "p")):
            with pytest.raises(RuntimeError, match="Handle has been closed"):
                call()
        return said, made.__enter__() is made, made.close(), made.__exit__(None, None, None)

    assert same(called)[0]["poll"] == "RuntimeError"


@by_name({
    "nothing": lambda k: k.Consumer(), "None": lambda k: k.Consumer(None), "a number": lambda k: k.Consumer(5),
    "text": lambda k: k.Consumer("x"), "a list": lambda k: k.Consumer([]),
})
def test_properties_that_are_none_are_refused_with_the_same_words(case):
    assert text_of(lambda: case(headrace)) == text_of(lambda: case(confluent_kafka)) == (
        "TypeError", "expected configuration dict")


@by_name({
    "a mapping": lambda k: bool(k.Consumer({"group.id": "x", "logger": QUIET})),
    "keywords": lambda k: bool(k.Consumer(**{"group.id": "x", "logger": QUIET})),
    "both": lambda k: bool(k.Consumer({"group.id": "x", "logger": QUIET}, **{"client.id": "x"})),
    "a logger beside it": lambda k: bool(k.Consumer({"group.id": "x"}, logger=QUIET)),
    "an unknown property": lambda k: k.Consumer({"group.id": "x", "should.fail": 1}),
    "a wrong value": lambda k: k.Consumer({"group.id": "x", "session.timeout.ms": "x"}),
    "an unknown reset": lambda k: k.Consumer({"group.id": "x", "auto.offset.reset": "x"}),
    "an unknown strategy": lambda k: k.Consumer({"group.id": "x", "partition.assignment.strategy": "x"}),
    "a property of producers": lambda k: bool(k.Consumer({"group.id": "x", "linger.ms": 5, "logger": QUIET})),
    "topic properties": lambda k: bool(k.Consumer(
        {"group.id": "x", "logger": QUIET, "default.topic.config": {"auto.offset.reset": "earliest"}})),
    "unknown topic properties": lambda k: k.Consumer({"group.id": "x", "default.topic.config": {"no": 1}}),
    "an error_cb that is none": lambda k: k.Consumer({"group.id": "x", "error_cb": 1}),
    "a stats_cb that is none": lambda k: k.Consumer({"group.id": "x", "stats_cb": 1}),
    "a subclass": lambda k: type("Mine", (k.Consumer,), {})({"group.id": "x", "logger": QUIET}).__class__.__name__,
    "one that is made again": lambda k: k.Consumer({"group.id": "x", "logger": QUIET}).__init__({"group.id": "x"}),
})
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_consumer_is_made_of(case):
    same(case)


def test_a_mapping_that_was_given_stays_as_it_is():
    def made(kafka):
        given = {"group.id": "x", "default.topic.config": {"auto.offset.reset": "earliest"}, "on_commit": ignored}
        kafka.Consumer(given, logger=QUIET).close()
        return sorted(given), given["default.topic.config"]

    same(made)


def test_a_subclass_may_change_what_a_call_takes():
    def polled(kafka):
        class Mine(kafka.Consumer):
            def __init__(self, group, **keywords):
                super().__init__({"group.id": group, "logger": QUIET}, **keywords)
                self.mine = []

            def poll(self, mark):
                self.mine.append(mark)
                return super().poll(timeout=0.001)

        consumer = Mine("x")
        return consumer.poll("a mark"), consumer.mine, consumer.close()

    assert same(polled) == (None, ["a mark"], None)


# Each call, on a consumer that was just made and has no broker


CALLS = {
    "subscribe": lambda c, k: c.subscribe(["one"]), "subscribe()": lambda c, k: c.subscribe(),
    "a pattern": lambda c, k: c.subscribe(["^a.*"]), "a bad pattern": lambda c, k: c.subscribe(["^(a"]),
    "subscribe with callbacks": lambda c, k: c.subscribe(["one"], ignored, ignored, ignored),
    "by name": lambda c, k: c.subscribe(topics=["one"], on_assign=ignored, on_revoke=ignored, on_lost=ignored),
    "too many callbacks": lambda c, k: c.subscribe(["one"], ignored, ignored, ignored, ignored),
    "on_assign of a number": lambda c, k: c.subscribe(["one"], on_assign=1),
    "on_revoke of a number": lambda c, k: c.subscribe(["one"], on_revoke=1),
    "on_lost of text": lambda c, k: c.subscribe(["one"], on_lost="x"),
    "an unknown callback": lambda c, k: c.subscribe(["one"], listener=ignored),
    "subscribe twice": lambda c, k: (c.subscribe(["a"]), c.subscribe(["b"])),
    "a topic with a space": lambda c, k: c.subscribe(["a b"]), "a long one": lambda c, k: c.subscribe(["a" * 300]),
    "a NUL": lambda c, k: c.subscribe(["a\0b"]),
    "unsubscribe": lambda c, k: c.unsubscribe(), "unsubscribe(1)": lambda c, k: c.unsubscribe(1),
    "unsubscribe twice": lambda c, k: (c.subscribe(["a"]), c.unsubscribe(), c.unsubscribe()),
    "unsubscribe from what was assigned": lambda c, k: (
        c.assign([at(k, 3)]), c.unsubscribe(), places(c.assignment())),
    "unassign": lambda c, k: c.unassign(), "unassign(1)": lambda c, k: c.unassign(1),
    "unassign twice": lambda c, k: (c.assign([at(k)]), c.unassign(), c.unassign(), c.assignment()),
    "assignment": lambda c, k: c.assignment(), "assign()": lambda c, k: c.assign(),
    "assign in order": lambda c, k: (c.assign([at(k, 7, 3, "b"), at(k, -2, 1, "b"), at(k, -1, 0, "a")]),
                                     places(c.assignment())),
    "assign anew": lambda c, k: (c.assign([at(k, 7)]), c.assign([at(k, 7, 3)]), places(c.assignment())),
    "assign while subscribed": lambda c, k: (c.subscribe(["one"]), c.assign([at(k)]), places(c.assignment())),
    "subscribe while assigned": lambda c, k: (c.assign([at(k)]), c.subscribe(["one"]), places(c.assignment())),
    "what was given stays": lambda c, k: (lambda given: (c.assign(given), plain(given)))([at(k, 7)]),
    "assign more": lambda c, k: (c.assign([at(k, 3, 5)]), c.incremental_assign([at(k, 4)]), places(c.assignment())),
    "assign more()": lambda c, k: c.incremental_assign(),
    "assign what is there": lambda c, k: (c.incremental_assign([at(k)]), c.incremental_assign([at(k)])),
    "assign less": lambda c, k: (c.assign([at(k), at(k, 0, 1)]), c.incremental_unassign([at(k)]),
                                 places(c.assignment())),
    "assign less()": lambda c, k: c.incremental_unassign(),
    "assign less than nothing": lambda c, k: c.incremental_unassign([at(k)]),
    "assign less of others": lambda c, k: (c.assign([at(k)]), c.incremental_unassign([at(k, 0, 1)])),
    "poll(0)": lambda c, k: c.poll(0), "poll by name": lambda c, k: c.poll(timeout=0.01),
    "poll of text": lambda c, k: c.poll("x"), "poll(0, 0)": lambda c, k: c.poll(0, 0),
    "poll of what": lambda c, k: c.poll(bogus=1),
    "consume nothing": lambda c, k: c.consume(0, 0), "consume less": lambda c, k: c.consume(-1, 0),
    "consume most": lambda c, k: c.consume(1_000_000, 0), "consume more": lambda c, k: c.consume(1_000_001, 0),
    "consume by name": lambda c, k: c.consume(num_messages=2, timeout=0.01),
    "consume text": lambda c, k: c.consume("x", 0), "consume a float": lambda c, k: c.consume(1.0, 0),
    "consume a bool": lambda c, k: c.consume(True, 0), "consume None": lambda c, k: c.consume(None, 0),
    "consume until text": lambda c, k: c.consume(1, "x"), "consume(1, 0, 0)": lambda c, k: c.consume(1, 0, 0),
    "consume what": lambda c, k: c.consume(bogus=1),
    "commit": lambda c, k: c.commit(), "commit and wait": lambda c, k: c.commit(asynchronous=False),
    "commit by place": lambda c, k: c.commit(None, [at(k, 3)], True), "commit what": lambda c, k: c.commit(bogus=1),
    "commit of nothing read": lambda c, k: (c.assign([at(k, 3)]), c.commit(asynchronous=False)),
    "commit a message": lambda c, k: c.commit(message=k.Message("t", 0, 1)),
    "commit text": lambda c, k: c.commit(message="x"),
    "commit both": lambda c, k: c.commit(message=k.Message("t", 0, 1), offsets=[at(k, 3)]),
    "commit an error": lambda c, k: c.commit(message=k.Message("t", 0, 1, error=k.KafkaError(-191))),
    "commit an error that is none": lambda c, k: c.commit(message=k.Message("t", 0, 1, error=k.KafkaError(0))),
    "store nothing": lambda c, k: c.store_offsets(), "store None": lambda c, k: c.store_offsets(None, None),
    "store both": lambda c, k: c.store_offsets(k.Message("t", 0, 1), [at(k, 1)]),
    "store text": lambda c, k: c.store_offsets("x"), "store no list": lambda c, k: c.store_offsets(offsets="x"),
    "store with automatic storing": lambda c, k: (c.assign([at(k)]), c.store_offsets(offsets=[at(k, 1)])),
    "store an error": lambda c, k: c.store_offsets(k.Message("t", 0, 1, error=k.KafkaError(-191))),
    "store what": lambda c, k: c.store_offsets(bogus=1),
    "committed()": lambda c, k: c.committed(), "committed": lambda c, k: c.committed([at(k)], timeout=0.05),
    "committed at once": lambda c, k: c.committed([at(k)], 0),
    "committed until text": lambda c, k: c.committed([at(k)], timeout="x"),
    "position()": lambda c, k: c.position(), "position of nothing": lambda c, k: c.position([]),
    "position": lambda c, k: plain(c.position([k.TopicPartition("a", 0, 7, "m")])),
    "position of what was assigned": lambda c, k: (c.assign([at(k)]), plain(c.position(partitions=[at(k, 9)]))),
    "position is another list": lambda c, k: (lambda given: (c.position(given) is given, plain(given)))([at(k, 7)]),
    "seek()": lambda c, k: c.seek(), "seek(1, 1)": lambda c, k: c.seek(at(k, 1), 1),
    "seek": lambda c, k: started(c, k).seek(partition=at(k, 1)),
    "seek without an offset": lambda c, k: started(c, k).seek(at(k)),
    "seek to both ends": lambda c, k: (started(c, k).seek(at(k, -2)), c.seek(at(k, -1))),
    "seek in no assignment": lambda c, k: c.seek(at(k, 1)), "seek no partition": lambda c, k: c.seek(at(k, 1, -1)),
    "pause()": lambda c, k: c.pause(), "resume()": lambda c, k: c.resume(),
    "pause": lambda c, k: (c.assign([at(k)]), c.pause([at(k)]), c.pause(partitions=[at(k)])),
    "resume": lambda c, k: (c.assign([at(k)]), c.resume([at(k)]), c.resume(partitions=[at(k)])),
    "pause in no assignment": lambda c, k: c.pause([at(k)]), "resume in no assignment": lambda c, k: c.resume([at(k)]),
    "pause of some": lambda c, k: (c.assign([at(k)]), c.pause([at(k), at(k, 0, 1)])),
    "commit of no offset": lambda c, k: c.commit(message=k.Message(topic="one", partition=0)),
    "commit of no offset, awaited": lambda c, k: c.commit(k.Message(topic="one", partition=0), asynchronous=False),
    "store of no offset": lambda c, k: (c.assign([at(k)]), c.store_offsets(k.Message(topic="one", partition=0))),
    "watermarks()": lambda c, k: c.get_watermark_offsets(),
    "watermarks of text": lambda c, k: c.get_watermark_offsets("x"),
    "watermarks until text": lambda c, k: c.get_watermark_offsets(at(k), timeout="x"),
    "cached watermarks": lambda c, k: c.get_watermark_offsets(at(k), cached=True),
    "cached by name": lambda c, k: c.get_watermark_offsets(partition=at(k), timeout=0.1, cached=True),
    "cached of what was assigned": lambda c, k: (c.assign([at(k)]), c.get_watermark_offsets(at(k), cached=True)),
    "times()": lambda c, k: c.offsets_for_times(), "times of nothing": lambda c, k: c.offsets_for_times([], 0.1),
    "times until text": lambda c, k: c.offsets_for_times([at(k, 100)], timeout="x"),
    "cluster id": lambda c, k: c.cluster_id(0.1), "cluster id by name": lambda c, k: c.cluster_id(timeout=0.1),
    "topics": lambda c, k: c.list_topics(timeout=0.1), "topics by name": lambda c, k: c.list_topics("one", timeout=0.1),
    "topics of a number": lambda c, k: c.list_topics(5), "topics until text": lambda c, k: c.list_topics("one", "x"),
    "topics(3)": lambda c, k: c.list_topics(None, 0.1, 1),
    "group(1)": lambda c, k: c.consumer_group_metadata(1), "member": lambda c, k: c.memberid(),
    "member(1)": lambda c, k: c.memberid(1), "member of no broker": lambda c, k: (c.subscribe(["a"]), c.memberid()),
    "credentials": lambda c, k: c.set_sasl_credentials("u", "p"),
    "credentials by name": lambda c, k: c.set_sasl_credentials(username="u", password="p"),
    "half of them": lambda c, k: c.set_sasl_credentials("u"), "none": lambda c, k: c.set_sasl_credentials(None, "p"),
    "numbers": lambda c, k: c.set_sasl_credentials(1, 2),
    "cluster id until text": lambda c, k: c.cluster_id("x"), "cluster id(2)": lambda c, k: c.cluster_id(0.1, 1),
    "close(1)": lambda c, k: c.close(1), "close twice": lambda c, k: (c.close(), c.close()),
    "with": lambda c, k: c.__enter__() is c, "end of with": lambda c, k: c.__exit__(None, None, None),
    "half an end": lambda c, k: c.__exit__(None), "end of with twice": lambda c, k: (
        c.__exit__(None, None, None), c.close(), c.__exit__(None, None, None)),
    "with after the end": lambda c, k: (c.close(), c.__enter__() is c),
    "len": lambda c, k: len(c), "bool": lambda c, k: bool(c), "a producer's call": lambda c, k: c.flush(),
}


@by_name(CALLS)
def test_calls(case, nowhere):
    same(lambda kafka: case(nowhere(kafka), kafka))


CLOSED = {
    "subscribe": lambda c, k: c.subscribe(["a"]), "subscribe to what": lambda c, k: c.subscribe(5),
    "unsubscribe": lambda c, k: c.unsubscribe(), "assign": lambda c, k: c.assign([at(k)]),
    "assign what": lambda c, k: c.assign(5), "unassign": lambda c, k: c.unassign(),
    "assign more": lambda c, k: c.incremental_assign([]), "assign less": lambda c, k: c.incremental_unassign([]),
    "assignment": lambda c, k: c.assignment(), "poll": lambda c, k: c.poll(), "poll(0)": lambda c, k: c.poll(0),
    "consume": lambda c, k: c.consume(1, 0), "consume nothing": lambda c, k: c.consume(0, 0),
    "consume less": lambda c, k: c.consume(-1, 0), "commit": lambda c, k: c.commit(),
    "commit offsets": lambda c, k: c.commit(offsets=[at(k, 1)], asynchronous=False),
    "commit what": lambda c, k: c.commit(offsets=5), "store nothing": lambda c, k: c.store_offsets(),
    "store": lambda c, k: c.store_offsets(offsets=[at(k, 1)]), "committed": lambda c, k: c.committed([at(k)], 0.1),
    "position": lambda c, k: c.position([at(k)]), "position of what": lambda c, k: c.position(5),
    "seek": lambda c, k: c.seek(at(k, 1)), "pause": lambda c, k: c.pause([at(k)]),
    "resume": lambda c, k: c.resume([at(k)]), "watermarks": lambda c, k: c.get_watermark_offsets(at(k), 0.1),
    "cached watermarks": lambda c, k: c.get_watermark_offsets(at(k), cached=True),
    "times": lambda c, k: c.offsets_for_times([at(k, 1)], 0.1), "member": lambda c, k: c.memberid(),
    "group": lambda c, k: c.consumer_group_metadata(),
}


@by_name(CLOSED)
def test_calls_of_a_closed_consumer_are_refused_with_the_same_words(case, nowhere):
    def closed(kafka):
        consumer = nowhere(kafka)
        consumer.subscribe(["test"])
        consumer.close()
        return text_of(lambda: case(consumer, kafka))

    assert same(closed) == ("RuntimeError", "Consumer closed")


@by_name({"topics": lambda c: c.list_topics(timeout=0.1), "cluster id": lambda c: c.cluster_id(0.1),
          "credentials": lambda c: c.set_sasl_credentials("u", "p")})
def test_calls_of_a_closed_client_are_refused(case, nowhere):
    def closed(kafka):
        consumer = nowhere(kafka)
        consumer.close()
        with pytest.raises(RuntimeError, match="Handle has been closed"):
            case(consumer)
        return case(consumer)

    assert same(closed) == "RuntimeError"


def test_what_is_raised_in_a_with_statement_comes_out_of_it_and_the_consumer_is_closed(nowhere):
    def left(kafka):
        consumer = nowhere(kafka)
        try:
            with consumer as same_one:
                assert same_one is consumer
                raise ZeroDivisionError
        except ZeroDivisionError:
            return text_of(lambda: consumer.poll(0))

    assert same(left) == ("RuntimeError", "Consumer closed")


STORING = {
    "an assigned one": lambda c, k: (c.assign([at(k)]), c.store_offsets(offsets=[at(k, 1)])),
    "of a message": lambda c, k: (c.assign([at(k)]), c.store_offsets(message=k.Message("one", 0, 4))),
    "none": lambda c, k: (c.assign([at(k)]), c.store_offsets(offsets=[at(k)])),
    "nothing": lambda c, k: c.store_offsets(offsets=[]),
    "one that is not": lambda c, k: c.store_offsets(offsets=[at(k, 1)]),
    "a message of another": lambda c, k: c.store_offsets(k.Message("one", 0, 4)),
    "one that is subscribed": lambda c, k: (c.subscribe(["one"]), c.store_offsets(offsets=[at(k, 1)])),
    "one that was": lambda c, k: (c.assign([at(k)]), c.unassign(), c.store_offsets(offsets=[at(k, 1)])),
    "text": lambda c, k: c.store_offsets(offsets="x"), "neither": lambda c, k: c.store_offsets(),
}


@by_name(STORING)
def test_storing_offsets_by_hand(case, nowhere):
    # Without a broker, a last commit would wait for one.
    same(lambda kafka: case(nowhere(kafka, enable_auto_offset_store=False, enable_auto_commit=False), kafka))


# Offsets, with a broker


@by_name({
    "of nothing": lambda c, k: plain(c.committed([], 5)), "of one": lambda c, k: plain(c.committed([at(k)], 5)),
    "in order": lambda c, k: plain(c.committed([at(k, topic="four", partition=3), at(k)], 5)),
    "of no topic": lambda c, k: plain(c.committed([at(k, topic="nope")], 5)),
    "of no partition": lambda c, k: plain(c.committed([at(k, partition=9)], 5)),
    "with metadata": lambda c, k: (plain(c.commit(offsets=[k.TopicPartition("one", 0, 3, "m")], asynchronous=False)),
                                   plain(c.committed([at(k)], 5))),
    "without metadata": lambda c, k: (plain(c.commit(offsets=[at(k, 3)], asynchronous=False)),
                                      plain(c.committed([at(k)], 5))),
    "without metadata, after some": lambda c, k: (
        c.commit(offsets=[k.TopicPartition("one", 0, 3, "m")], asynchronous=False) and 0,
        c.commit(offsets=[at(k, 4)], asynchronous=False) and 0, plain(c.committed([at(k)], 5))),
    "without an offset": lambda c, k: c.commit(offsets=[at(k)], asynchronous=False),
    "nothing read": lambda c, k: assigned(c, k).commit(asynchronous=False),
    "what was read": lambda c, k: (read(assigned(c, k)).offset(), plain(c.commit(asynchronous=False)),
                                   plain(c.committed([at(k)], 5))),
    "twice": lambda c, k: (read(assigned(c, k)) and c.commit(asynchronous=False) and c.commit(asynchronous=False)),
    "after a message": lambda c, k: plain(c.commit(read(assigned(c, k)), asynchronous=False)),
})
def test_what_is_committed(case, of):
    same(lambda kafka: case(of(kafka), kafka))


@by_name({
    "an offset": lambda k: {"offsets": [k.TopicPartition("one", 0, 3, leader_epoch=7)]},
    "a message": lambda k: {"message": k.Message("one", 0, 3, leader_epoch=8)},
})
def test_an_epoch_that_was_stored_is_committed(case, of):
    def committed(kafka):
        consumer = assigned(of(kafka, enable_auto_commit=False, enable_auto_offset_store=False), kafka)
        read(consumer)
        consumer.store_offsets(**case(kafka))
        return plain(consumer.commit(asynchronous=False)), plain(consumer.committed([at(kafka)], WAIT_S))

    assert same(committed)[1][0][4] in (7, 8)


def test_what_was_stored_by_hand_is_committed(of):
    def stored(kafka):
        consumer = assigned(of(kafka, enable_auto_offset_store=False), kafka)
        consumer.store_offsets(read(consumer))
        return plain(consumer.commit(asynchronous=False))

    assert same(stored) == [("one", 0, 1, None, 0, None)]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["waits", "is told"])
def test_a_commit_of_what_is_stored_names_every_partition_that_is_assigned(asynchronous, of):
    def committed(kafka):
        got = []
        consumer = of(kafka, enable_auto_commit=False, enable_auto_offset_store=False,
                      on_commit=lambda error, partitions: got.append(plain(partitions)))
        consumer.assign([at(kafka, 0), at(kafka, topic="four", partition=2), at(kafka, topic="four", partition=3)])
        consumer.store_offsets(read(consumer))
        returned = consumer.commit(asynchronous=asynchronous)
        poll_until(consumer, lambda: got or not asynchronous)
        return sorted((got[0] if asynchronous else plain(returned)), reverse=True)

    assert [offset for _, _, offset, *_ in same(committed)] == [1, -1001, -1001]


@pytest.mark.parametrize("by_hand", [0, 1, 4])
@pytest.mark.parametrize("before", [False, True], ids=["not committed", "committed"])
def test_a_commit_by_hand_is_not_set_back_by_what_was_stored_before(before, by_hand, of):
    def committed(kafka):
        consumer = assigned(of(kafka, enable_auto_commit=False), kafka)
        assert len(consumer.consume(2, 10)) == 2
        if before:
            consumer.commit(asynchronous=False)
        consumer.commit(offsets=[at(kafka, by_hand)], asynchronous=False)
        told = outcome(lambda _: plain(consumer.commit(asynchronous=False)), kafka)
        return told, plain(consumer.committed([at(kafka)], 5))

    assert same(committed)[1][0][2] == max(by_hand, 2)


@by_name({
    "of no topic": lambda c, k: c.commit(offsets=[at(k, 3, topic="nope")], asynchronous=False),
    "of no partition": lambda c, k: c.commit(offsets=[at(k, 3, 9)], asynchronous=False),
    "of one that is not there": lambda c, k: (
        outcome(lambda _: c.commit(offsets=[at(k, 3), at(k, 3, 9)], asynchronous=False), k),
        plain(c.committed([at(k)], 5))),
    "of one without an offset": lambda c, k: plain(
        c.commit(offsets=[at(k, 3, topic="four"), at(k), at(k, -2, 7)], asynchronous=False)),
    "with an epoch": lambda c, k: (
        plain(c.commit(offsets=[k.TopicPartition("one", 0, 3, "m", 5)], asynchronous=False)),
        plain(c.committed([at(k)], 5))),
    "told of no topic": lambda c, k: c.commit(offsets=[at(k, 3, topic="nope")]),
})
def test_what_cannot_be_committed_is_said_at_once(case, of):
    same(lambda kafka: case(of(kafka), kafka))


@by_name({
    "watermarks of no partition": lambda c, k: c.get_watermark_offsets(at(k, partition=9), 30),
    "watermarks of no topic": lambda c, k: c.get_watermark_offsets(at(k, topic="nope"), 30),
    "times of no partition": lambda c, k: c.offsets_for_times([at(k, 0, 9)], 30),
    "times of no topic": lambda c, k: c.offsets_for_times([at(k, 0, topic="nope")], 30),
    "times of some": lambda c, k: [(tp.partition, tp.offset, tp.error and tp.error.code())
                                   for tp in c.offsets_for_times([at(k, 0), at(k, 7, 9)], 30)],
    "committed": lambda c, k: plain(c.committed([at(k, topic="nope"), at(k)], 30)),
})
def test_what_is_not_there_is_said_at_once(case, of):
    def asked(kafka):
        consumer, started = of(kafka), time.monotonic()
        said = outcome(lambda _: case(consumer, kafka), kafka)
        return said, time.monotonic() - started < 10

    assert same(asked)[1]


@by_name({
    "the last": lambda c, k: [m.offset() for m in assigned(c, k, -2001).consume(1, 10)],
    "the last two": lambda c, k: [m.offset() for m in assigned(c, k, -2002).consume(2, 10)],
    "more than there are": lambda c, k: read(assigned(c, k, -2099)).offset(),
    "after a seek": lambda c, k: (started(c, k).seek(at(k, -2002)), read(c).offset()),
})
def test_the_last_so_many_records_are_read(case, of):
    same(lambda kafka: case(of(kafka), kafka), side_by_side=True)


@by_name({
    "position": lambda c, k: (read(assigned(c, k, 2)).offset(), plain(c.position([at(k)]))),
    "seek": lambda c, k: (read(assigned(c, k)).offset(), c.seek(at(k, 1)), read(c).offset()),
    "seek before reading": lambda c, k: (started(c, k).seek(at(k, 3)), read(c).offset()),
    "seek to the beginning": lambda c, k: (read(assigned(c, k, 3)).offset(), c.seek(at(k, -2)), read(c).offset()),
    "seek in what was assigned": lambda c, k: (assigned(c, k), c.unassign(), c.seek(at(k, 1))),
    "pause and resume": lambda c, k: (
        read(assigned(c, k)).offset(), c.pause([at(k)]), read(c, 3), c.resume([at(k)]), read(c).offset()),
    "unassign": lambda c, k: (read(assigned(c, k)).offset(), c.unassign(), read(c, 3)),
    "an assignment that is refused": lambda c, k: (
        outcome(lambda _: c.assign([at(k, -2), at(k, -2)]), k), c.assignment(), read(c, 3)),
    "one more that is refused": lambda c, k: (
        c.assign([at(k, -2, 1, "four")]),
        outcome(lambda _: c.incremental_assign([at(k, -2), at(k, -2, 1, "four")]), k), read(c, 3)),
    "pause what comes later": lambda c, k: (
        read(assigned(c, k, 5), 3), c.unassign(), c.pause([at(k)]), read(assigned(c, k), 3), c.resume([at(k)]),
        read(c).offset()),
    "unsubscribe from nothing": lambda c, k: (assigned(c, k, 2).unsubscribe(), read(c).offset()),
    "consume": lambda c, k: ([m.offset() for m in assigned(c, k).consume(3, 8)], [m.offset() for m in c.consume(9, 1)],
                             c.consume(1, 0.1)),
    "a message": lambda c, k: (lambda m: (
        m.error(), m.topic(), m.partition(), m.offset(), m.key(), m.value(), m.timestamp()[0], m.headers(), len(m),
        m.latency(), m.leader_epoch()))(read(assigned(c, k))),
    "watermarks": lambda c, k: c.get_watermark_offsets(at(k), 5),
    "cached watermarks": lambda c, k: read(assigned(c, k)) and c.get_watermark_offsets(at(k), cached=True),
    "times": lambda c, k: plain(c.offsets_for_times([at(k, 0), at(k, 0, 1, "four")], 5)),
    "time to come": lambda c, k: plain(c.offsets_for_times([at(k, 2**50)], 5)),
    "times of the ends": lambda c, k: [plain(c.offsets_for_times([at(k, end)], 5)) for end in (-1, -2)],
    "times that are none": lambda c, k: c.offsets_for_times([at(k, -1000)], 5),
    "topics": lambda c, k: sorted(topic for topic in c.list_topics(timeout=5).topics if topic[:2] != "__"),
    "one topic": lambda c, k: sorted(c.list_topics("one", 5).topics),
    "no topic": lambda c, k: c.list_topics("nope", 5).topics["nope"].error.code(),
    "cluster id": lambda c, k: c.cluster_id(5), "cluster id by name": lambda c, k: c.cluster_id(timeout=5),
})
def test_what_is_read(case, of):
    same(lambda kafka: case(of(kafka), kafka), side_by_side=True)


def test_the_end_of_a_partition_is_an_event(of):
    def ended(kafka):
        event = read(assigned(of(kafka, enable_partition_eof=True), kafka, 5))
        return (event.error().code(), event.error().fatal(), event.topic(), event.partition(), event.offset(),
                event.key(), event.timestamp(), event.headers(), event.latency())

    assert same(ended)[0] == headrace.KafkaError._PARTITION_EOF


@pytest.mark.parametrize("offset", [99, -1001])
def test_a_position_that_may_not_be_reset_is_an_event(offset, of):
    def refused(kafka):
        event = read(assigned(of(kafka, auto_offset_reset="error"), kafka, offset))
        return event.error().code(), event.topic(), event.partition(), event.offset(), event.timestamp()

    assert same(refused)[0] == headrace.KafkaError._AUTO_OFFSET_RESET


def test_a_message_that_was_read_can_be_pickled(of):
    def pickled(kafka):
        message = pickle.loads(pickle.dumps(read(assigned(of(kafka), kafka))))
        return message.topic(), message.partition(), message.offset(), message.key(), message.value(), message.headers()

    assert same(pickled) == ("one", 0, 0, b"k", b"v0", [("h", b"x")])


# Callbacks


@by_name({
    "offsets": lambda c, k: c.commit(offsets=[at(k, 3)]), "nothing": lambda c, k: c.commit(),
    "no offset": lambda c, k: c.commit(offsets=[at(k)]),
    "offsets at once": lambda c, k: plain(c.commit(offsets=[at(k, 3)], asynchronous=False)),
    "a message": lambda c, k: c.commit(read(c)), "a message at once": lambda c, k: bool(c.commit(read(c), None, False)),
})
def test_on_commit_is_told(case, of):
    def told(kafka):
        got = []
        consumer = assigned(of(kafka, enable_auto_commit=False, on_commit=lambda error, partitions: got.append(
            (error and error.code(), plain(partitions)))), kafka)
        returned = case(consumer, kafka)
        end = time.monotonic() + (0.3 if returned else WAIT_S)
        while not got and time.monotonic() < end:
            consumer.poll(0.05)
        return returned, got

    same(told)


def test_what_on_commit_raises_comes_out_of_poll(of):
    def raised(kafka):
        consumer = assigned(of(kafka, on_commit=boom, enable_auto_commit=False), kafka, 5)
        consumer.commit(offsets=[at(kafka, 3)])
        return read(consumer)

    assert same(raised) == "ZeroDivisionError"


def test_error_cb_is_told_of_brokers_that_are_not_there(nowhere):
    def told(kafka):
        got = []
        poll_until(nowhere(kafka, error_cb=got.append), lambda: len({error.code() for error in got}) > 1)
        return sorted({(type(error).__name__, error.code(), error.name(), error.fatal()) for error in got})

    assert [code for _, code, *_ in same(told)] == [
        headrace.KafkaError._TRANSPORT, headrace.KafkaError._ALL_BROKERS_DOWN]


@pytest.fixture
def slow_broker(broker):
    """Fetches are throttled for 250 ms."""
    def throttled(reply):  # behind length, correlation id and tagged fields
        return reply[:9] + (250).to_bytes(4) + reply[13:]

    broker.add_fault(Fault(action=Action.GARBLE, request=FetchRequest, garble=throttled, times=None))
    yield
    broker.clear_faults()


def test_throttle_cb_is_told_which_broker_and_for_how_long(of, slow_broker):
    def told(kafka):
        got = []
        poll_until(assigned(of(kafka, throttle_cb=got.append), kafka), lambda: got)
        return type(got[0]).__name__, got[0].broker_id, got[0].throttle_time, got[0].broker_name[:10], str(got[0])[-20:]

    assert same(told)[:3] == ("ThrottleEvent", 1, 0.25)


def test_what_throttle_cb_raises_comes_out_of_poll(of, slow_broker):
    def raised(kafka):
        said = []

        def once(event):
            if not said:
                said.append(event)
                raise ZeroDivisionError

        return poll_until(assigned(of(kafka, throttle_cb=once), kafka), lambda: False)

    assert same(raised) == "ZeroDivisionError"


@pytest.mark.parametrize(("case", "says"), [
    pytest.param(lambda c: c.close(), None, id="close"),
    pytest.param(lambda c: (c.close(), c.poll(0)), "RuntimeError", id="poll"),
    pytest.param(lambda c: (c.close(), c.assign([])), "RuntimeError", id="assign"),
])
def test_on_assign_may_close_the_consumer(case, says, of):
    """What confluent_kafka says as well. It is not called here: once in some hundred times that ends its process."""
    consumer, said = of(headrace), []
    consumer.subscribe(["four"], on_assign=lambda given, partitions: said.append(
        outcome(lambda _: case(given), headrace)))
    assert outcome(lambda _: poll_until(consumer, lambda: said), headrace) is None
    assert said == [says]
    assert text_of(lambda: consumer.poll(0)) == ("RuntimeError", "Consumer closed")


def test_stats_cb_gets_text_of_json(nowhere):
    def told(kafka):
        got = []
        poll_until(nowhere(kafka, stats_cb=got.append, statistics_interval_ms=20, client_id="c"), lambda: got)
        stats = json.loads(got[0])
        known = {"brokers", "topics", "cgrp", "ts", "time", "replyq"}
        return stats["type"], stats["client_id"], sorted(known.intersection(stats))

    assert same(told)[:2] == ("consumer", "c")


@pytest.mark.parametrize("name", ["error_cb", "stats_cb"])
@by_name({"poll": lambda c: c.poll(0.1), "consume": lambda c: c.consume(1, 0.1)})
def test_what_other_callbacks_raise_comes_out_of_whoever_reads(case, name, nowhere):
    armed = []

    def callback(*arguments):
        if armed:
            raise ZeroDivisionError

    def raised(kafka):
        armed.append(True)
        try:
            consumer = nowhere(kafka, **{"statistics_interval_ms": 50, name: callback})
            consumer.subscribe(["x"])
            return [case(consumer) for _ in range(50)] and None
        finally:
            armed.clear()

    assert same(raised) == "ZeroDivisionError"


def test_what_on_assign_raises_comes_out_of_poll_and_the_partitions_are_had(of):
    def raised(kafka):
        consumer = of(kafka)
        consumer.subscribe(["four"], on_assign=boom)
        said = outcome(lambda _: read(consumer), kafka)
        return said, len(consumer.assignment()), consumer.close()

    assert same(raised) == ("ZeroDivisionError", 4, None)


def member(consumer, **callbacks):
    """Let it become a member that has partitions."""
    got = []
    consumer.subscribe(["four"], on_assign=lambda _, partitions: got.append(places(partitions)), **callbacks)
    poll_until(consumer, lambda: got)
    return got


def test_what_on_revoke_raises_comes_out_of_close_and_the_consumer_is_closed(of):
    def raised(kafka):
        consumer = of(kafka)
        member(consumer, on_revoke=boom)
        return outcome(lambda _: consumer.close(), kafka), consumer.close(), text_of(lambda: consumer.poll(0))

    assert same(raised) == ("ZeroDivisionError", None, ("RuntimeError", "Consumer closed"))


@by_name({"close": lambda c: c.close(), "unsubscribe": lambda c: (c.unsubscribe(), c.poll(0.2), c.assignment())})
def test_the_end_of_a_membership_is_told_to_on_revoke(case, of):
    def told(kafka):
        consumer, got = of(kafka), []
        gained = member(consumer, on_revoke=lambda _, partitions: got.append(places(partitions)), on_lost=boom)
        return case(consumer), gained, got

    assert same(told)[1:] == ([[("four", number) for number in range(4)]],) * 2


@by_name({
    "nothing": lambda c, p, k: None, "assign": lambda c, p, k: c.assign(p),
    "assign elsewhere": lambda c, p, k: (setattr(p[0], "offset", 0), c.assign(p)),
    "assign less": lambda c, p, k: c.assign(p[:1]), "unassign": lambda c, p, k: c.unassign(),
    "poll": lambda c, p, k: c.poll(0),
    "commit": lambda c, p, k: plain(c.commit(offsets=[at(k, 0, 0, "four")], asynchronous=False)),
    "committed": lambda c, p, k: plain(c.committed(p, 5)), "position": lambda c, p, k: plain(c.position(p)),
    "seek": lambda c, p, k: c.seek(at(k, 0, 0, "four")), "assignment": lambda c, p, k: c.assignment(),
    "watermarks": lambda c, p, k: c.get_watermark_offsets(p[0], 5), "member": lambda c, p, k: bool(c.memberid()),
})
def test_on_assign_may_call(case, of):
    def called(kafka):
        consumer, got = of(kafka), []

        def on_assign(given, partitions):
            got.append((given is consumer, plain(partitions)))
            got.append(outcome(lambda _: case(given, partitions, kafka), kafka))

        consumer.subscribe(["four"], on_assign=on_assign)
        poll_until(consumer, lambda: len(got) > 1)
        return got, places(consumer.assignment())

    same(called)


def test_on_assign_may_unsubscribe(of):
    def called(kafka):
        consumer, got = of(kafka), []
        consumer.subscribe(["four"], on_assign=lambda _, partitions: got.append((
            plain(partitions), outcome(lambda _: consumer.unsubscribe(), kafka))))
        poll_until(consumer, lambda: got and not consumer.assignment())  # librdkafka may assign, and then give it up
        return got, consumer.assignment()

    assert same(called)[1] == []


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@by_name({
    "assign": lambda c, k: c.assign([at(k, topic="four")]), "unassign": lambda c, k: c.unassign(),
    "assign more": lambda c, k: c.incremental_assign([at(k)]),
    "assign less": lambda c, k: c.incremental_unassign([at(k, topic="four")]),
})
def test_a_member_changes_its_assignment_as_its_group_does(case, strategy, of):
    def changed(kafka):
        consumer = of(kafka, partition_assignment_strategy=strategy)
        member(consumer)
        return outcome(lambda _: case(consumer, kafka), kafka), places(consumer.assignment())

    same(changed)


def test_a_member_has_an_id_until_it_unsubscribes(of):
    def ids(kafka):
        consumer = of(kafka)
        before = consumer.memberid()
        member(consumer)
        return before, bool(consumer.memberid())

    assert same(ids)[1]


def test_a_group_may_be_named_by_a_uuid(of):
    group = uuid.uuid4()

    def committed(kafka):
        consumer = of(kafka, group_id=group)
        consumer.commit(offsets=[at(kafka, 7)], asynchronous=False)
        return plain(of(kafka, group_id=str(group)).committed([at(kafka)], 5))

    assert same(committed)[0][2] == 7


@pytest.mark.parametrize("text", ["m", "", "größer", None])
def test_metadata_that_the_peer_committed_is_read_as_it_was_given(text, of):
    group = f"metadata-{time.monotonic_ns()}"
    for kafka in (confluent_kafka, headrace):
        consumer = of(kafka, group_id=group)
        if kafka is confluent_kafka:
            given = [kafka.TopicPartition("one", 0, 3)] if text is None else [kafka.TopicPartition("one", 0, 3, text)]
            consumer.commit(offsets=given, asynchronous=False)
        assert consumer.committed([at(kafka)], 5)[0].metadata == text


@by_name({"on_lost": True, "on_revoke": False})
def test_a_member_that_polled_too_late_has_lost_its_partitions_and_gets_them_again(case, of):
    def told(kafka):
        consumer, log = of(kafka, max_poll_interval_ms=3000, session_timeout_ms=3000, heartbeat_interval_ms=100,
                           enable_auto_commit=False), []

        def tells(name):
            return lambda given, partitions: log.append((name, places(partitions), len(given.assignment())))

        given = {"on_lost": tells("lost")} if case else {}
        consumer.subscribe(["four"], on_assign=tells("assign"), on_revoke=tells("revoke"), **given)
        poll_until(consumer, lambda: log)
        time.sleep(3.5)
        end = time.monotonic() + WAIT_S
        while len(log) < 4 and time.monotonic() < end:
            log += [("event", event.error().code(), event.topic()) for event in consumer.consume(1, 0.1)
                    if event.error()]
        consumer.close()
        return log

    log = same(told, side_by_side=True)
    assert [name for name, *_ in log] == ["assign", "event", "lost" if case else "revoke", "assign", "revoke"]
    assert log[1][1:] == (headrace.KafkaError._MAX_POLL_EXCEEDED, None)


QUICKLY = {"session_timeout_ms": 30_000, "heartbeat_interval_ms": 100}  # a machine may stop for a moment


def two_members(of, kafka, **properties):
    group = f"{kafka.__name__}-{time.monotonic_ns()}"
    return [of(kafka, group_id=group, **QUICKLY, **properties) for _ in range(2)]


def poll_both(first, second, happened):
    """Poll until something has happened; returns what was raised meanwhile."""
    end, raised = time.monotonic() + WAIT_S, []
    while not happened() and time.monotonic() < end:
        for consumer in (first, second):
            try:
                consumer.poll(0.02)
            except ZeroDivisionError:
                raised.append(consumer is first)
    return raised


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_partitions_move_to_another_member_and_back_with_the_same_calls(strategy, of):
    def moved(kafka):
        first, second = two_members(of, kafka, partition_assignment_strategy=strategy)
        logs = {first: [], second: []}

        def tells(name):
            return lambda given, partitions: logs[given].append((name, len(partitions), len(given.assignment())))

        for consumer in (first, second):
            consumer.subscribe(["four"], on_assign=tells("assign"), on_revoke=tells("revoke"), on_lost=tells("lost"))
            if consumer is first:
                poll_until(first, lambda: len(first.assignment()) == 4)
        poll_both(first, second, lambda: [len(one.assignment()) for one in (first, second)] == [2, 2])
        first.close()
        poll_until(second, lambda: len(second.assignment()) == 4)
        second.close()
        # How many rounds it takes, and so how often nothing is assigned, is not fixed.
        return [[call for call in logs[one] if call[:2] != ("assign", 0)] for one in (first, second)]

    same(moved, side_by_side=True)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_what_on_revoke_raises_comes_out_of_poll_and_the_partitions_move(strategy, of):
    def moved(kafka):
        first, second = two_members(of, kafka, partition_assignment_strategy=strategy)
        first.subscribe(["four"], on_revoke=boom)
        poll_until(first, lambda: len(first.assignment()) == 4)
        second.subscribe(["four"])
        return poll_both(first, second, lambda: [len(one.assignment()) for one in (first, second)] == [2, 2]), outcome(
            lambda _: first.close(), kafka)

    assert same(moved, side_by_side=True) == ([True], "ZeroDivisionError")


# Where headrace does otherwise


INVALID, TIMED_OUT = ("KafkaException", -186, False, False), ("KafkaException", -185, False, False)
DOWN, STATE = ("KafkaException", -187, False, False), ("KafkaException", -172, False, False)
UNKNOWN = ("KafkaException", -190, False, False)
OTHERWISE = {
    # Reading without a group needs no "group.id", as in Java.
    "no group": (lambda c, k: bool(k.Consumer({"logger": QUIET})), "ValueError", True),
    # None is a property that was not given, here as everywhere else.
    "on_commit None": (lambda c, k: bool(k.Consumer({"group.id": "x", "on_commit": None, "logger": QUIET})),
                       INVALID, True),
    # The same error as of other callbacks: a KafkaException that is a TypeError too.
    "an on_commit that is none": (lambda c, k: k.Consumer({"group.id": "x", "on_commit": 1}), INVALID, "TypeError"),
    "callbacks None": (lambda c, k: c.subscribe(["one"], on_assign=None), "TypeError", None),
    "no end of time": (lambda c, k: c.consume(0, None), "TypeError", []),
    # A group moves from one kind of assignor to the other by members that name both (Java, KIP-429).
    "both kinds of assignors": (
        lambda c, k: bool(k.Consumer({"group.id": "x", "logger": QUIET,
                                      "partition.assignment.strategy": "range,cooperative-sticky"})), INVALID, True),
    # A session may be longer than the time between two polls: the application's thread is watched by itself.
    "a session that outlives polls": (
        lambda c, k: bool(k.Consumer({"group.id": "x", "logger": QUIET, "session.timeout.ms": 9000,
                                      "max.poll.interval.ms": 5000})), INVALID, True),
    # These have names in the documentation, and subclasses of a partition are partitions.
    "assign by name": (lambda c, k: c.assign(partitions=[at(k)]), "TypeError", None),
    "assign more by name": (lambda c, k: c.incremental_assign(partitions=[at(k)]), "TypeError", None),
    "assign less by name": (lambda c, k: c.incremental_unassign(partitions=[]), "TypeError", None),
    "a subclass of a partition": (
        lambda c, k: c.assign([type("Mine", (k.TopicPartition,), {})("one", 0)]), "TypeError", None),
    # Arguments that nobody takes, and numbers that do not fit, are errors.
    "assignment(1)": (lambda c, k: c.assignment(1), [], "TypeError"),
    "consume far too many": (lambda c, k: c.consume(2**40, 0), [], "ValueError"),
    # "async" is a word of Python since 3.7: nobody can write this call but with a dict.
    "commit(async=)": (lambda c, k: c.commit(**{"async": True}), None, "TypeError"),
    # A message that is nowhere: the peer fails inside.
    "commit of no place": (lambda c, k: c.commit(message=k.Message()), "SystemError", INVALID),
    # What cannot be done is said: the peer drops the error.
    "seek to nothing": (lambda c, k: started(c, k).seek(at(k, -7)), None, INVALID),
    # The group's offset is a place to go to, as in assign().
    "seek to what is committed": (lambda c, k: started(c, k).seek(at(k, -1000)), INVALID, None),
    # A position is known as soon as there is one, as in Java: not only when something was read from there.
    "position before reading": (lambda c, k: (c.assign([at(k, 7)]), plain(c.position([at(k)])))[1],
                                [("one", 0, -1001, None, None, None)], [("one", 0, 7, None, None, None)]),
    "assignment with positions": (lambda c, k: (c.assign([at(k)]), plain(c.assignment()))[1],
                                  [("one", 0, -1000, None, None, None)], [("one", 0, -1001, None, None, None)]),
    # KIP-1106 is newer than the peer's library.
    "a reset by duration": (lambda c, k: bool(k.Consumer(
        {"group.id": "x", "logger": QUIET, "auto.offset.reset": "by_duration:PT1H"})), INVALID, True),
    # The same error as of other callbacks: it is a ValueError too.
    "a throttle_cb that is none": (
        lambda c, k: k.Consumer({"group.id": "x", "throttle_cb": 1}), "ValueError", "TypeError"),
}


@pytest.mark.parametrize("name", OTHERWISE)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_where_headrace_does_otherwise(name, nowhere):
    call, theirs, ours = OTHERWISE[name]
    assert outcome(lambda kafka: call(nowhere(kafka), kafka), confluent_kafka) == theirs
    assert outcome(lambda kafka: call(nowhere(kafka), kafka), headrace) == ours


@by_name({"close": (lambda c: c.close(), None), "close twice": (lambda c: (c.close(), c.close()), (None, None)),
          "poll": (lambda c: (c.close(), c.poll(0)), "RuntimeError"),
          "commit": (lambda c: (c.close(), c.commit()), "RuntimeError")})
def test_on_commit_may_close_the_consumer(case, of):
    """confluent_kafka hangs for ever."""
    call, ours = case
    said = []
    consumer = assigned(of(headrace, enable_auto_commit=False, on_commit=lambda error, partitions: said.append(
        outcome(lambda _: call(consumer), headrace))), headrace, 5)
    consumer.commit(offsets=[at(headrace, 3)])
    poll_until(consumer, lambda: said)
    assert said == [ours]
    assert text_of(lambda: consumer.poll(0)) == ("RuntimeError", "Consumer closed")


@by_name({
    "several": lambda c, k: c.store_offsets(offsets=[at(k, 2), at(k, 3, 9), at(k, 3, topic="zzz")]),
    "the first one": lambda c, k: c.store_offsets(offsets=[at(k, 2), at(k, 3, 9)]),
    "the last one": lambda c, k: c.store_offsets(offsets=[at(k, 2, 9), at(k, 3)]),
    "none": lambda c, k: c.store_offsets(offsets=[at(k, 3, topic="zzz"), at(k, 2, 9)]),
    "none, in another order": lambda c, k: c.store_offsets(offsets=[at(k, 2, 9), at(k, 3, topic="zzz")]),
})
def test_offsets_are_stored_of_partitions_that_are_assigned(case, of):
    def stored(kafka):
        consumer = assigned(of(kafka, enable_auto_offset_store=False), kafka)
        said = outcome(lambda _: case(consumer, kafka), kafka)
        return said, outcome(lambda _: plain(consumer.commit(asynchronous=False)), kafka)

    assert stored(headrace) == stored(confluent_kafka)


def test_which_offsets_were_not_stored_is_said(of):
    consumer = assigned(of(headrace, enable_auto_offset_store=False), headrace)
    given = [at(headrace, 2), at(headrace, 3, 9)]
    consumer.store_offsets(offsets=given)
    assert [tp.error for tp in given] == [None, headrace.KafkaError._STATE]


def test_names_that_cannot_be_sent_are_refused(nowhere):
    # confluent_kafka ends the whole process where it is subscribed to such a name.
    with pytest.raises(UnicodeEncodeError):
        nowhere(headrace).subscribe(["\ud800"])
    assert outcome(lambda kafka: kafka.TopicPartition("\ud800"), headrace) == "ValueError"
    assert outcome(lambda kafka: kafka.TopicPartition("\ud800"), confluent_kafka) == "ValueError"


def test_which_partitions_were_not_committed_is_said(of):
    with pytest.raises(headrace.KafkaException) as refused:
        of(headrace).commit(offsets=[at(headrace, 3), at(headrace, 3, 9)], asynchronous=False)
    assert [(tp.partition, tp.error) for tp in refused.value.partitions] == [
        (0, None), (9, headrace.KafkaError.UNKNOWN_TOPIC_OR_PART)]
    assert "one[9]" in refused.value.error.str()
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.error, again.partitions) == (refused.value.error, refused.value.partitions)


@by_name({"watermarks": lambda c, k: c.get_watermark_offsets(at(k), timeout=0.2),
          "times": lambda c, k: c.offsets_for_times([at(k, 100)], timeout=0.2)})
def test_without_a_broker_the_time_is_up_or_all_brokers_are_down(case, nowhere):
    assert outcome(lambda kafka: case(nowhere(kafka), kafka), confluent_kafka) in (TIMED_OUT, DOWN)
    assert outcome(lambda kafka: case(nowhere(kafka), kafka), headrace) == TIMED_OUT


def test_headrace_can_be_iterated_over(of):
    assert outcome(lambda kafka: iter(of(kafka)), confluent_kafka) == "TypeError"
    assert next(iter(assigned(of(headrace), headrace))).offset() == 0


def test_a_failed_on_revoke_comes_out_of_unsubscribe_itself(of):
    def raised(kafka):
        consumer = of(kafka)
        member(consumer, on_revoke=boom)
        return outcome(lambda _: consumer.unsubscribe(), kafka), outcome(lambda _: consumer.close(), kafka)

    assert raised(confluent_kafka) == (None, "ZeroDivisionError")  # its unsubscribe() only asks for it
    assert raised(headrace)[0] == "ZeroDivisionError"
