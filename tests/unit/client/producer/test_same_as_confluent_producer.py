"""`Producer`: the same functions over confluent_kafka and headrace, against one broker and against none."""

import json
import threading
import time
import types
from collections.abc import Iterator

import confluent_kafka
import pytest

import headrace
from headrace.broker.settings import BrokerSettings
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.transactions import EndTxnRequest
from tests.support.same_as_confluent import QUIET, by_name, same

STAMP = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def of(broker):
    """Makes producers; they are closed in the end."""
    made = []

    def producer(kafka, **given):
        properties = {name.replace("_", "."): value for name, value in given.items() if not callable(value)}
        callbacks = {name: value for name, value in given.items() if callable(value)}
        made.append(kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET, **properties,
                                    **callbacks}))
        return made[-1]

    yield producer
    for one in made:
        try:
            one.purge()
        except RuntimeError:
            continue
        one.flush(5)
        one.close()


@pytest.fixture
def nowhere(of):
    """The same for producers whose broker is not there."""
    return lambda kafka, **given: of(kafka, **{"bootstrap_servers": "127.0.0.1:1", "error_cb": ignored, **given})


def ignored(*arguments):
    pass


@by_name({
    "nothing": lambda k, s: k.Producer(), "None": lambda k, s: k.Producer(None), "a number": lambda k, s: k.Producer(5),
    "a mapping": lambda k, s: bool(k.Producer({"bootstrap.servers": s})),
    "an empty one": lambda k, s: bool(k.Producer({"logger": QUIET})),
    "keywords": lambda k, s: bool(k.Producer(**{"bootstrap.servers": s})),
    "both": lambda k, s: bool(k.Producer({"bootstrap.servers": s}, **{"client.id": "x"})),
    "a logger beside it": lambda k, s: bool(k.Producer({"bootstrap.servers": s}, logger=QUIET)),
    "no port": lambda k, s: bool(k.Producer({"bootstrap.servers": "127.0.0.1", "logger": QUIET})),
    "an unknown property": lambda k, s: k.Producer({"bootstrap.servers": s, "should.fail": 1}),
    "a wrong value": lambda k, s: k.Producer({"bootstrap.servers": s, "linger.ms": "x"}),
    **{f"debug {value!r}": lambda k, s, value=value: bool(k.Producer(
        {"bootstrap.servers": s, "logger": QUIET, "debug": value}))
       for value in ("foo", "cgrp,foo", "cgrp;topic", 5, True, "all", "cgrp, Topic", ",telemetry")},
    "an unknown partitioner": lambda k, s: k.Producer({"bootstrap.servers": s, "partitioner": "murmur"}),
    "a value out of range": lambda k, s: k.Producer({"bootstrap.servers": s, "transaction.timeout.ms": 0}),
    "a contradiction": lambda k, s: k.Producer({"bootstrap.servers": s, "enable.idempotence": True, "acks": 1}),
    "values of Python's types": lambda k, s: bool(k.Producer(
        {"bootstrap.servers": s, "enable.idempotence": True, "linger.ms": 0.5, "client.id": None})),
    "topic properties": lambda k, s: bool(k.Producer({"bootstrap.servers": s, "default.topic.config": {"acks": 1}})),
    "topic properties that say otherwise": lambda k, s: bool(k.Producer(
        {"bootstrap.servers": s, "message.timeout.ms": 5, "linger.ms": 10,
         "default.topic.config": {"message.timeout.ms": 1000}})),
    "topic properties that contradict": lambda k, s: k.Producer(
        {"bootstrap.servers": s, "linger.ms": 10, "default.topic.config": {"message.timeout.ms": 5}}),
    "a server as brokers write it": lambda k, s: len(k.Producer(
        {"bootstrap.servers": f"PLAINTEXT://{s}/"}).list_topics(timeout=5).brokers),
    "unknown topic properties": lambda k, s: k.Producer({"bootstrap.servers": s, "default.topic.config": {"no": 1}}),
    "a property of consumers": lambda k, s: bool(k.Producer(
        {"bootstrap.servers": s, "group.id": "x", "logger": QUIET})),
    "an error_cb that is none": lambda k, s: k.Producer({"bootstrap.servers": s, "error_cb": 1}),
    "a stats_cb that is none": lambda k, s: k.Producer({"bootstrap.servers": s, "stats_cb": 1}),
    "an oauth_cb that is none": lambda k, s: k.Producer({"bootstrap.servers": s, "oauth_cb": 1}),
    "a subclass": lambda k, s: type("Mine", (k.Producer,), {})({"bootstrap.servers": s}).__class__.__name__,
})
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_producer_is_made_of(case, broker):
    same(lambda kafka: case(kafka, broker.bootstrap_servers))


def test_a_mapping_that_was_given_stays_as_it_is(broker):
    def made(kafka):
        given = {"bootstrap.servers": broker.bootstrap_servers, "default.topic.config": {"acks": 1},
                 "on_delivery": ignored}
        kafka.Producer(given).close()
        return sorted(given), given["default.topic.config"]

    same(made)


def delivered(producer, *arguments, topic="one", **keywords):
    """What the report says of one record."""
    got = []
    producer.produce(topic, *arguments, **keywords, on_delivery=lambda error, message: got.append((
        error and error.code(), message.error() and message.error().code(), message.topic(), message.partition(),
        message.offset() is not None, message.key(), message.value(), message.timestamp()[0] if error is None else None,
        message.latency() is not None, len(message), message.leader_epoch())))
    return producer.flush(10), got


@by_name({
    "bytes": {"value": b"v", "key": b"k"}, "text": {"value": "värld", "key": "ключ"}, "nothing": {},
    "empty": {"value": b"", "key": b""}, "empty text": {"value": "", "key": ""},
    "zeros": {"value": "a\0b", "key": "\0"},
    "a key alone": {"key": "k"}, "a number": {"value": 5}, "a number as key": {"value": b"v", "key": 5},
    "a float": {"value": 1.5}, "a bool": {"value": True}, "a dict": {"value": {}},
    "half a surrogate": {"value": "\ud800"},
    "a subclass of str": {"value": type("S", (str,), {})("x")}, "of bytes": {"value": type("B", (bytes,), {})(b"x")},
    "topic int": {"topic": 5}, "topic None": {"topic": None}, "topic bytes": {"topic": b"one"},
    "half a surrogate as topic": {"topic": "\ud800"},
    "partition 0": {"partition": 0}, "partition -1": {"partition": -1}, "partition 9": {"partition": 9},
    "partition text": {"partition": "0"}, "partition None": {"partition": None}, "partition float": {"partition": 1.0},
    "partition beyond": {"partition": 2**31}, "timestamp": {"timestamp": STAMP}, "timestamp 0": {"timestamp": 0},
    "timestamp text": {"timestamp": "x"}, "timestamp None": {"timestamp": None},
    "headers dict": {"headers": {"a": "b", "c": None, "d": b"e", "é": "ü", "f": ""}},
    "headers list": {"headers": [("a", "1"), ("a", b"2"), ("b", None)]}, "headers none": {"headers": None},
    "headers []": {"headers": []}, "headers {}": {"headers": {}}, "headers number": {"headers": 5},
    "headers text": {"headers": "ab"}, "headers of text": {"headers": ["malformed"]},
    "a tuple of text": {"headers": ("a", "b")}, "header number": {"headers": {"a": 5}},
    "header of three": {"headers": [("a", b"1", 3)]}, "header of one": {"headers": [("a",)]},
    "headers of two letters": {"headers": ["ab"]}, "headers of two bytes": {"headers": [b"ab"]},
    "an unknown argument": {"bogus": 5},
})
def test_a_record_is_delivered_or_refused(case, of):
    given = {"topic": "one", "value": b"v", **case} if case and "value" not in case and "key" not in case else case
    same(lambda kafka: delivered(of(kafka), **given))


@pytest.mark.parametrize("partition", [-1, -2, -5, -2**31, 1, 2**31 - 1, 2**31, -2**31 - 1, 2**63])
def test_a_partition_that_is_none_is_refused_once_the_topic_is_known(partition, of):
    def refused(kafka, call):
        producer = of(kafka)
        producer.produce("one", b"v")
        producer.flush(10)
        batch = [{"value": b"v"}]
        given = call(producer, batch)
        producer.flush(10)
        return given, [message["_error"].code() for message in batch if "_error" in message]

    same(lambda kafka: refused(kafka, lambda producer, _: producer.produce("one", b"v", partition=partition)))
    same(lambda kafka: refused(kafka, lambda producer, batch: producer.produce_batch("one", batch, partition)))


@pytest.mark.parametrize("topic", ["", "a b", "a" * 300])
def test_a_topic_that_cannot_be_is_reported(topic, of):
    same(lambda kafka: delivered(of(kafka, message_timeout_ms=5000), b"v", topic=topic))


def test_headers_reach_the_broker_whatever_their_form(of, broker):
    def headers(kafka):
        at, producer = broker.end_offsets("one")[0], of(kafka)
        for given in ({"a": "1", "n": None}, [("a", "1"), ("a", b"\xff"), ("é", "")], {}, None):
            producer.produce("one", b"v", headers=given)
        producer.flush(10)
        reader = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
        reader.assign([confluent_kafka.TopicPartition("one", 0, at)])
        read = [message.headers() for message in reader.consume(4, 10)]
        reader.close()
        return read

    assert same(headers) == [
        [("a", b"1"), ("n", None)], [("a", b"1"), ("a", b"\xff"), ("é", b"")], None, None]


@by_name({
    "poll": lambda p: (p.produce("one", b"v", on_delivery=ignored), p.poll())[1],
    "poll(0)": lambda p: p.poll(0), "poll by name": lambda p: p.poll(timeout=0.0),
    "poll of text": lambda p: p.poll("x"),
    "flush": lambda p: (p.produce("one", b"v"), p.flush(), len(p)), "flush(-1)": lambda p: p.flush(-1),
    "flush of nothing": lambda p: p.flush(0), "flush by name": lambda p: p.flush(timeout=1),
    "flush of text": lambda p: p.flush("x"), "purge": lambda p: p.purge(False, False, False),
    "purge by name": lambda p: p.purge(in_queue=True, in_flight=False, blocking=True),
    "purge of what": lambda p: p.purge(bogus=1), "credentials": lambda p: p.set_sasl_credentials("u", "p"),
    "credentials by name": lambda p: p.set_sasl_credentials(username="u", password="p"),
    "half of them": lambda p: p.set_sasl_credentials("u"), "none": lambda p: p.set_sasl_credentials(None, "p"),
    "numbers": lambda p: p.set_sasl_credentials(1, 2), "len": lambda p: len(p), "bool": lambda p: bool(p),
    "topics of a number": lambda p: p.list_topics(5), "topics until text": lambda p: p.list_topics("one", "x"),
    "cluster id": lambda p: type(p.cluster_id(5)).__name__, "close twice": lambda p: (p.close(), p.close(), len(p)),
    "with": lambda p: p.__enter__() is p, "end of with": lambda p: p.__exit__(None, None, None),
    "batch": lambda p: p.produce_batch("one", [{"value": "v"}, {}]),
    "empty batch": lambda p: p.produce_batch("one", []),
})
def test_calls(case, of):
    same(lambda kafka: case(of(kafka)))


CLOSED = {
    "produce": lambda p: p.produce("one", b"v"), "poll": lambda p: p.poll(0), "flush": lambda p: p.flush(0),
    "list_topics": lambda p: p.list_topics(timeout=1), "purge": lambda p: p.purge(), "len": len, "bool": bool,
    "batch": lambda p: p.produce_batch("one", [{}]), "init": lambda p: p.init_transactions(1),
    "begin": lambda p: p.begin_transaction(), "commit": lambda p: p.commit_transaction(1),
    "abort": lambda p: p.abort_transaction(1), "credentials": lambda p: p.set_sasl_credentials("u", "p"),
    "offsets": lambda p: p.send_offsets_to_transaction([], None), "cluster_id": lambda p: p.cluster_id(1),
    "close": lambda p: p.close(), "with": lambda p: p.__enter__() is p,
    "end of with": lambda p: p.__exit__(None, None, None), "attribute": lambda p: p.no_such,
}


def said_by(call, producer):
    """What a call of a closed producer returns; or the first words of what it raises."""
    try:
        return call(producer)
    except RuntimeError as error:
        return str(error).partition(":")[0]


@by_name(CLOSED)
def test_a_closed_producer(case, of):
    def closed(kafka):
        producer = of(kafka)
        producer.close()
        return said_by(case, producer)

    same(closed)


@by_name(CLOSED)
def test_a_subclass_that_does_not_make_it_is_a_closed_producer(case):
    same(lambda kafka: said_by(case, type("Mine", (kafka.Producer,), {"__init__": lambda self: None})()))


def test_what_headrace_adds_is_closed_in_a_producer_that_was_not_made():
    producer = type("Mine", (headrace.Producer,), {"__init__": lambda self: None})()
    for call in (lambda: producer.send(headrace.ProducerRecord("one", b"v")), producer.metrics,
                 lambda: producer.produce_arrow("one", []), producer.transaction().__enter__):
        with pytest.raises(headrace.errors.ClientClosedError, match="Producer has been closed: its __init__"):
            call()
    assert type("Mine", (headrace.SerializingProducer,), {"__init__": lambda self: None})().close()


def test_one_that_is_made_again_is_refused_and_goes_on(of):
    def made_again(kafka):
        producer, got, said = of(kafka), [], []
        producer.produce("one", b"v", on_delivery=lambda error, message: got.append(error))
        for given in ((), ({},), ({"bootstrap.servers": "127.0.0.1:1"},)):
            try:
                said.append(producer.__init__(*given))
            except RuntimeError as error:
                said.append(str(error))
        return said, producer.flush(10), got

    assert same(made_again) == (["Producer already __init__:ialized"] * 3, 0, [None])


@by_name({"a number": lambda p: p.close(1), "by name": lambda p: p.close(timeout=1.0), "text": lambda p: p.close("x")})
def test_a_time_that_close_is_given_is_ignored(case, of):
    def closed(kafka):
        producer, got = of(kafka), []
        producer.produce("one", b"v", on_delivery=lambda error, message: got.append(error))
        return case(producer), got

    assert same(closed) == (True, [None])


def test_the_cluster_as_list_topics_shows_it(of, broker):
    def listed(kafka):
        found = of(kafka).list_topics("four", timeout=10)
        topic = found.topics["four"]
        parts = [(number, p.id, p.leader, p.replicas, p.isrs, p.error, str(p))
                 for number, p in topic.partitions.items()]
        return (list(found.topics), str(topic), topic.error, found.controller_id, str(found) == found.cluster_id, parts,
                [(b.id, f"{b.host}:{b.port}" == broker.bootstrap_servers) for b in found.brokers.values()],
                [str(b) for b in found.brokers.values()], len(topic.partitions))

    same(listed)


def test_the_broker_that_answered_is_named(of, broker):
    def origin(kafka):
        producer = of(kafka)
        first = producer.list_topics("one", timeout=10)
        producer.produce("one", b"v")
        producer.flush(10)
        known = producer.list_topics("one", timeout=10)
        place = {-1: f"{broker.bootstrap_servers}/bootstrap", 1: f"{broker.bootstrap_servers}/1"}
        return [place[found.orig_broker_id] == found.orig_broker_name for found in (first, known)]

    assert same(origin) == [True, True]


def test_a_topic_that_is_not_there_has_its_error_and_one_that_may_be_made_is_made(of):
    assert same(lambda kafka: of(kafka).list_topics("nope", 10).topics["nope"].error.code()) == 3
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=True)) as generous:
        def made(kafka):
            producer = of(kafka, bootstrap_servers=generous.bootstrap_servers)
            producer.list_topics(f"made-by-{kafka.__name__}", timeout=10)
            return f"made-by-{kafka.__name__}" in producer.list_topics(timeout=10).topics

        assert same(made)


@by_name({
    "listed": lambda p, topic: topic in p.list_topics(topic, 10).topics,
    "produced to": lambda p, topic: delivered(p, b"v", topic=topic)[0],
})
def test_a_producer_that_is_told_so_has_no_topics_made(case, of):
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=True)) as generous:
        def made(kafka):
            producer = of(kafka, bootstrap_servers=generous.bootstrap_servers, allow_auto_create_topics=False,
                          topic_metadata_propagation_max_ms=300)
            case(producer, "nobody-made-it")
            return list(producer.list_topics(timeout=10).topics)

        assert same(made) == []


def test_brokers_that_cannot_be_reached_have_no_topics(nowhere):
    assert same(lambda kafka: nowhere(kafka).list_topics(timeout=0.4))[:2] == ("KafkaException", -195)


# Callbacks


def boom(*arguments):
    raise ZeroDivisionError


@by_name({"flush": lambda p: p.flush(10), "poll": lambda p: [p.poll(1) for _ in range(10)],
          "close": lambda p: p.close()})
def test_what_a_delivery_callback_raises_comes_out_of_whoever_calls_it(case, of):
    def raised(kafka):
        producer = of(kafka)
        producer.produce("one", b"v", on_delivery=boom)
        return case(producer)

    assert same(raised) == "ZeroDivisionError"


@pytest.mark.parametrize("name", ["error_cb", "stats_cb"])
def test_what_other_callbacks_raise_comes_out_of_poll(name, nowhere):
    armed = [True]

    def callback(*arguments):
        if armed:
            raise ZeroDivisionError

    def raised(kafka):
        producer = nowhere(kafka, **{"statistics_interval_ms": 50, name: callback})
        return [producer.poll(0.2) for _ in range(25)] and None

    assert same(raised) == "ZeroDivisionError"
    armed.clear()


def test_callbacks_may_produce_and_are_called_for_what_they_produced(of):
    def again(kafka):
        producer, got = of(kafka), []

        def report(error, message):
            got.append(message.value())
            if len(got) < 3:
                producer.produce("one", b"again", on_delivery=report)

        producer.produce("one", b"first", on_delivery=report)
        return producer.flush(10), got

    assert same(again) == (0, [b"first", b"again", b"again"])


def test_only_errors_are_reported_if_so_configured(of):
    def reported(kafka):
        producer, got = of(kafka, delivery_report_only_error=True), []
        # The bad one first: a topic that is known refuses it in the call.
        producer.produce("one", b"v", partition=9, on_delivery=lambda error, message: got.append(error.code()))
        producer.produce("one", b"v", on_delivery=lambda error, message: got.append("delivered"))
        return producer.flush(10), got

    assert same(reported) == (0, [-190])


def test_a_record_that_no_broker_takes_is_reported_when_its_time_is_over(nowhere):
    def late(kafka):
        got, producer = [], nowhere(kafka, message_timeout_ms=1500)
        producer.produce("t", b"v", b"k", on_delivery=lambda error, message: got.append((
            error.code(), error.name(), "timed out" in error.str(), error.fatal(), error.txn_requires_abort(),
            message.error() == error, message.topic(), message.partition(), message.offset(), message.key(),
            message.value(), message.headers())))
        return len(producer) > 0, producer.flush(0), producer.flush(10), got

    assert same(late)[3][0][:2] == (-192, "_MSG_TIMED_OUT")


def test_a_producer_without_servers_waits_and_reports(of):
    def late(kafka):
        got = []
        producer = kafka.Producer({"message.timeout.ms": 200, "logger": QUIET})
        producer.produce("t", b"v", on_delivery=lambda error, message: got.append(error.code()))
        return producer.flush(10), got, producer.close()

    assert same(late) == (0, [-192], True)


def test_errors_of_connections_are_told_and_not_fatal(nowhere):
    def told(kafka):
        got = {}
        producer = nowhere(kafka, error_cb=lambda error: got.update({error.name(): error.fatal()}))
        end = time.monotonic() + 10
        while len(got) < 2 and time.monotonic() < end:
            producer.poll(0.1)
        return got

    assert same(told) == {"_TRANSPORT": False, "_ALL_BROKERS_DOWN": False}


def test_statistics_are_text_and_counted_by_poll(of):
    def told(kafka):
        got = []
        served = of(kafka, stats_cb=got.append, statistics_interval_ms=100).poll(5)
        return served, type(got[0]).__name__, json.loads(got[0])["type"]

    assert same(told) == (1, "str", "producer")


def test_statistics_name_each_broker_of_the_cluster_once(of):
    with EmbeddedBroker(nodes=3, topics={"one": 1}) as cluster:
        def brokers(kafka):
            got = []
            producer = kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "logger": QUIET,
                                       "stats_cb": got.append, "statistics.interval.ms": 100})
            producer.produce("one", b"v")
            producer.flush(10)
            for _ in range(20):
                producer.poll(0.1)
            told = json.loads(got[-1])["brokers"]
            return sorted((name, broker["nodeid"], broker["source"]) for name, broker in told.items())

        assert {number for _, number, _ in same(brokers)} == {1, 2, 3}


def test_a_thread_may_serve_what_another_produces(of):
    def shared(kafka):
        producer, got, done = of(kafka), [], threading.Event()
        server = threading.Thread(target=lambda: [producer.poll(0.02) for _ in iter(done.is_set, True)])
        server.start()
        for number in range(200):
            producer.produce("one", str(number), on_delivery=lambda error, message: got.append(error))
        producer.flush(10)
        done.set()
        server.join()
        return got, len(producer)

    assert same(shared) == ([None] * 200, 0)


# Transactions


def states(kafka, producer):
    """What each call does, in a row that goes through all states."""
    calls = {
        "I": lambda: producer.init_transactions(10), "B": producer.begin_transaction,
        "C": lambda: producer.commit_transaction(10), "A": lambda: producer.abort_transaction(10),
        "P": lambda: producer.produce("one", b"v"),
    }
    said = []
    for name in "BCAPIIPCABBICBPCBACBAA":
        try:
            said.append((name, calls[name]()))
        except kafka.KafkaException as error:
            first = error.args[0]
            said.append((name, first.code(), first.fatal(), first.retriable(), first.txn_requires_abort()))
    return said


def test_each_call_of_a_transactional_producer_in_each_state(of):
    same(lambda kafka: states(kafka, of(kafka, transactional_id=f"states-{kafka.__name__}")))


@pytest.mark.filterwarnings("ignore:Producer abort_transaction failed:RuntimeWarning")
def test_calls_before_the_first_is_done_are_worth_trying_again(nowhere, broker):
    def early(kafka):
        consumer = kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "logger": QUIET})
        group = consumer.consumer_group_metadata()
        consumer.close()
        producer, said = nowhere(kafka, transactional_id="early"), []
        for call in (lambda: producer.init_transactions(0.3), producer.begin_transaction,
                     lambda: producer.send_offsets_to_transaction([kafka.TopicPartition("one", 0, 1)], group, 0.3),
                     lambda: producer.commit_transaction(0.3), lambda: producer.abort_transaction(0.3)):
            try:
                said.append(call())
            except kafka.KafkaException as error:
                said.append((error.args[0].code(), error.args[0].retriable(), error.args[0].fatal()))
        return said

    assert same(early) == [(-185, True, False)] + [(-173, True, False)] * 4


@pytest.mark.parametrize("name", ["commit_transaction", "abort_transaction"])
def test_a_call_that_ended_after_it_ran_out_of_time_is_to_be_made_again_before_any_other(of, broker, name):
    def resumed(kafka):
        producer, said = of(kafka, transactional_id=f"resumed-{kafka.__name__}-{name}"), []
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("one", b"v")
        producer.flush(10)
        broker.add_fault(Fault(action=Action.DELAY, delay_s=0.4, request=EndTxnRequest))
        other = {"commit_transaction": producer.abort_transaction, "abort_transaction": producer.commit_transaction}
        for call, timeout, wait in ((getattr(producer, name), 0.1, 0.6), (other[name], 10, 0),
                                    (getattr(producer, name), 10, 0), (getattr(producer, name), 10, 0)):
            try:
                said.append(call(timeout))
            except kafka.KafkaException as error:
                said.append((error.args[0].code(), error.args[0].retriable(), error.args[0].fatal()))
            time.sleep(wait)
        producer.begin_transaction()
        producer.abort_transaction(10)
        return said

    assert same(resumed) == [(-185, True, False), (-173, True, False), None, (-172, False, False)]


def test_a_commit_that_another_thread_waits_for_is_worth_trying_again(of, broker):
    def second(kafka):
        producer, said = of(kafka, transactional_id=f"two-threads-{kafka.__name__}"), []
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("one", b"v")
        producer.flush(10)
        broker.add_fault(Fault(action=Action.DELAY, delay_s=1.0, request=EndTxnRequest))
        first = threading.Thread(target=producer.commit_transaction, args=(10,))
        first.start()
        time.sleep(0.3)
        try:
            producer.commit_transaction(0.1)
        except kafka.KafkaException as error:
            said.append((error.args[0].code(), error.args[0].retriable(), error.args[0].fatal()))
        first.join()
        return said

    assert same(second) == [(headrace.KafkaError._PREV_IN_PROGRESS, True, False)]


@by_name({
    "init": lambda p, k: p.init_transactions(1), "begin": lambda p, k: p.begin_transaction(),
    "commit": lambda p, k: p.commit_transaction(1), "abort": lambda p, k: p.abort_transaction(1),
})
def test_a_producer_without_a_transactional_id(case, of):
    assert same(lambda kafka: case(of(kafka), kafka))[1] == headrace.KafkaError._NOT_CONFIGURED


WRONG_ARGUMENTS_OF_TRANSACTIONS = {
    "init of text": lambda p, k: p.init_transactions("x"), "begin of what": lambda p, k: p.begin_transaction(1),
    "commit of text": lambda p, k: p.commit_transaction("x"), "abort of text": lambda p, k: p.abort_transaction("x"),
    "nothing": lambda p, k: p.send_offsets_to_transaction(),
    "no group": lambda p, k: p.send_offsets_to_transaction([], 0),
    "no list": lambda p, k: p.send_offsets_to_transaction(5, None),
    "a group that is text": lambda p, k: p.send_offsets_to_transaction([k.TopicPartition("one", 0, 1)], "g"),
}


@pytest.mark.parametrize("more", [{"transactional_id": "arguments"}, {}], ids=["transactional", "not transactional"])
@by_name(WRONG_ARGUMENTS_OF_TRANSACTIONS)
def test_wrong_arguments_of_transactional_calls(case, of, more):
    assert same(lambda kafka: case(of(kafka, **more), kafka)) == "TypeError"


def test_offsets_go_with_a_transaction_and_those_that_are_none_are_left_out(of, broker):
    def sent(kafka):
        consumer = kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"g-{kafka.__name__}",
                                   "logger": QUIET})
        producer = of(kafka, transactional_id=f"offsets-{kafka.__name__}")
        producer.init_transactions(10)
        producer.begin_transaction()
        group = consumer.consumer_group_metadata()
        returned = [producer.send_offsets_to_transaction(offsets, group, 10) for offsets in (
            [], [kafka.TopicPartition("one", 0)], [kafka.TopicPartition("one", 0, 7)])]
        producer.commit_transaction(10)
        (committed,) = consumer.committed([kafka.TopicPartition("one", 0)], timeout=10)
        consumer.close()
        return returned, committed.offset

    assert same(sent) == ([None] * 3, 7)


def test_an_abort_purges_what_waits(of):
    def purged(kafka):
        producer, got = of(kafka, transactional_id=f"purged-{kafka.__name__}", linger_ms=5000), []
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("one", b"v", on_delivery=lambda error, message: got.append(error.code()))
        producer.abort_transaction(10)
        producer.flush(1)
        return got

    assert same(purged) == [headrace.KafkaError._PURGE_QUEUE]


# Where headrace does more, or says more


def test_one_that_was_closed_may_be_made_again_and_closed_again(of, broker):
    producer = of(headrace)  # the peer takes it as well, and never comes back from the second close()
    producer.close()
    producer.__init__({"bootstrap.servers": broker.bootstrap_servers})
    assert delivered(producer, b"v")[0] == 0


def test_what_headrace_alone_takes(of):
    report = delivered(of(headrace), bytearray(b"v"), memoryview(b"k"),
                       headers=types.MappingProxyType({"a": bytearray(b"b")}))
    assert report[1][0][5:7] == (b"k", b"v")
    assert of(headrace).flush(None) == 0  # None is no limit, as in older versions
    with pytest.raises(ValueError, match="negative"):
        of(headrace).produce("one", b"v", timestamp=-5)
    with pytest.raises(TypeError, match="header's name"):
        of(headrace).produce("one", b"v", headers=[(b"a", b"1")])


def test_headers_come_back_with_the_report(of):
    got = []
    for kafka in (confluent_kafka, headrace):
        producer = of(kafka)
        producer.produce("one", b"v", headers={"a": "b"}, on_delivery=lambda error, m: got.append(m.headers()))
        producer.flush(10)
    assert got == [None, [("a", b"b")]]


def test_a_report_of_a_failure_knows_the_time_of_the_record(nowhere):
    got = []
    for kafka in (confluent_kafka, headrace):
        producer = nowhere(kafka, message_timeout_ms=100)
        producer.produce("t", b"v", timestamp=STAMP, on_delivery=lambda e, message: got.append(message.timestamp()))
        producer.flush(10)
    assert got == [(0, -1), (1, STAMP)]


def test_errors_say_by_themselves_whether_a_retry_may_help():
    codes = ("_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "TOPIC_AUTHORIZATION_FAILED")
    assert [confluent_kafka.KafkaError(getattr(confluent_kafka.KafkaError, code)).retriable() for code in codes] == [
        False, False, False]
    assert [headrace.KafkaError(getattr(headrace.KafkaError, code)).retriable() for code in codes] == [
        True, True, False]


def test_a_message_without_a_value_is_true():
    assert [bool(kafka.Message("t", 0, 1, b"k", None)) for kafka in (confluent_kafka, headrace)] == [False, True]
