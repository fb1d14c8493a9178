"""Errors, topic partitions, messages, ids, constants and functions: the same as confluent_kafka's, value by value."""

import copy
import inspect
import pickle

import confluent_kafka
import pytest

import headrace
from headrace.testing import EmbeddedBroker
from tests.support.same_as_confluent import QUIET, by_name, outcome, same


@by_name({
    "code name text": lambda k: (lambda e: (e.code(), e.name(), e.str()))(k.KafkaError(-185, "why")),
    "flags": lambda k: (lambda e: (e.fatal(), e.retriable(), e.txn_requires_abort()))(
        k.KafkaError(79, "x", True, True, True)),
    "flags by name": lambda k: (lambda e: (e.fatal(), e.retriable(), e.txn_requires_abort()))(
        k.KafkaError(error=79, reason="x", fatal=False, retriable=True, txn_requires_abort=False)),
    "flags that were not given": lambda k: [
        (lambda e: (e.fatal(), e.retriable(), e.txn_requires_abort()))(k.KafkaError(79, **given))
        for given in ({}, {"fatal": True}, {"txn_requires_abort": True})],
    "text": lambda k: str(k.KafkaError(3, "why")), "repr": lambda k: repr(k.KafkaError(3, "why")),
    "text of a fatal error": lambda k: str(k.KafkaError(3, "why", True)),
    "an unknown code": lambda k: (k.KafkaError(12345).name(), "Err-12345?" in k.KafkaError(12345).str()),
    "an empty reason": lambda k: k.KafkaError(3, "").str(),
    "equal": lambda k: (k.KafkaError(3) == 3, 3 == k.KafkaError(3), k.KafkaError(3) != 4,  # noqa: SIM300
                        k.KafkaError(3) == k.KafkaError(3, "x"), k.KafkaError(3) != k.KafkaError(3)),
    "ordered by code": lambda k: [(a < b, a <= b, a > b, a >= b) for a in (k.KafkaError(3),)
                                  for b in (2, 3, 4, k.KafkaError(2), k.KafkaError(3), k.KafkaError(4))],
    "hash": lambda k: hash(k.KafkaError(3)) == hash(k.KafkaError(3, "x")),
    "true although it is no error": lambda k: bool(k.KafkaError(0)),
    "pickled": lambda k: (lambda e: (e.code(), e.str(), e.fatal(), e.retriable(), e.txn_requires_abort()))(
        pickle.loads(pickle.dumps(k.KafkaError(3, "x", True, True, True)))),
    "without a code": lambda k: k.KafkaError(), "a code that is text": lambda k: k.KafkaError("3"),
    **{f"{flag} that is {value!r}": lambda k, flag=flag, value=value: getattr(k.KafkaError(3, **{flag: value}), flag)()
       for flag in ("fatal", "retriable", "txn_requires_abort") for value in ([], "x", 1.5, 0, 2)},
    "exception": lambda k: (k.KafkaException(k.KafkaError(3, "x")).args[0].code(), str(k.KafkaException("a")),
                            k.KafkaException("a", "b").args, k.KafkaException().args),
    "text of an exception": lambda k: (str(k.KafkaException(k.KafkaError(3, "x"))),
                                       repr(k.KafkaException(k.KafkaError(3, "x")))),
    "exception with keywords": lambda k: k.KafkaException(a=1),
    "subclass of exception": lambda k: type("Mine", (k.KafkaException,), {})(1).args,
})
def test_errors(case):
    same(case)


def test_every_code_has_its_name_as_an_attribute():
    codes = {name: value for name in dir(confluent_kafka.KafkaError)
             if isinstance(value := getattr(confluent_kafka.KafkaError, name), int)}
    assert len(codes) > 180
    assert {name: getattr(headrace.KafkaError, name, None) for name in codes} == codes
    assert {code: headrace.KafkaError(code).name() for code in codes.values()} == {
        code: confluent_kafka.KafkaError(code).name() for code in codes.values()}


def test_an_error_may_be_raised_and_caught():
    with pytest.raises(headrace.KafkaException) as caught:  # documented; confluent_kafka 2.16 cannot be caught
        raise headrace.KafkaError(12345)
    assert caught.value.args[0].code() == 12345


ATTRIBUTES = ("topic", "partition", "offset", "metadata", "leader_epoch", "error")


def after_setting(k, name, value):
    partition = k.TopicPartition("a", 1, 2)
    setattr(partition, name, value)
    return [getattr(partition, each) for each in ATTRIBUTES]


@by_name({
    "topic alone": lambda k: (lambda t: (t.topic, t.partition, t.offset, t.error, t.metadata, t.leader_epoch))(
        k.TopicPartition("a")),
    "all by place": lambda k: (lambda t: (t.topic, t.partition, t.offset, t.error, t.metadata, t.leader_epoch))(
        k.TopicPartition("a", 1, 2, "m", 4)),
    "all by name": lambda k: (lambda t: (t.topic, t.partition, t.offset, t.metadata, t.leader_epoch))(
        k.TopicPartition(topic="a", partition=1, offset=2, metadata="m", leader_epoch=4)),
    "logical offset": lambda k: k.TopicPartition("a", 0, k.OFFSET_STORED).offset,
    "text": lambda k: (str(k.TopicPartition("a", 1, 2)), repr(k.TopicPartition("a"))),
    "equal by topic and partition": lambda k: (
        k.TopicPartition("a", 1, 2) == k.TopicPartition("a", 1, 3), k.TopicPartition("a", 1) != k.TopicPartition("a"),
        k.TopicPartition("a", 1) == k.TopicPartition("b", 1)),
    "ordered": lambda k: [(a < b, a <= b, a > b, a >= b) for a in (k.TopicPartition("b", 1),)
                          for b in (k.TopicPartition("b", 0), k.TopicPartition("b", 1), k.TopicPartition("c", 0))],
    "sorted": lambda k: [(t.topic, t.partition) for t in sorted(
        [k.TopicPartition("b", 0), k.TopicPartition("a", 2), k.TopicPartition("a", 1)])],
    "hash": lambda k: len({k.TopicPartition("a", 1, 2), k.TopicPartition("a", 1, 3), k.TopicPartition("a", 2)}),
    "leader epoch text": lambda k: k.TopicPartition("a", 1, 2, "m", "4"),
    "leader epoch float": lambda k: k.TopicPartition("a", 1, 2, "m", 4.5),
    "leader epoch too large": lambda k: k.TopicPartition("a", 1, 2, "m", 2**31),
    "leader epoch -1 is none": lambda k: k.TopicPartition("a", 1, 2, "m", -1).leader_epoch,
    "partition may be set": lambda k: after_setting(k, "partition", 7),
    "partition may be set to none": lambda k: after_setting(k, "partition", -1),
    "offset may be set": lambda k: after_setting(k, "offset", 7),
    "offset may be set to a logical one": lambda k: after_setting(k, "offset", k.OFFSET_END),
    "partition set to text": lambda k: after_setting(k, "partition", "1"),
    "partition set to None": lambda k: after_setting(k, "partition", None),
    "partition set to a float": lambda k: after_setting(k, "partition", 1.5),
    "offset set to text": lambda k: after_setting(k, "offset", "1"),
    "offset set to a float": lambda k: after_setting(k, "offset", 1.5),
    "offset set too large": lambda k: after_setting(k, "offset", 2**63),
    "no such attribute": lambda k: after_setting(k, "bogus", 1),
    "subclass": lambda k: type("Mine", (k.TopicPartition,), {})("a").topic,
    "topic with a zero": lambda k: k.TopicPartition("a\0b"),
    "no topic": lambda k: k.TopicPartition(), "topic None": lambda k: k.TopicPartition(None),
    "topic int": lambda k: k.TopicPartition(3), "partition text": lambda k: k.TopicPartition("a", "1"),
    "partition float": lambda k: k.TopicPartition("a", 1.5), "partition None": lambda k: k.TopicPartition("a", None),
    "offset text": lambda k: k.TopicPartition("a", 1, "2"),
    "partition too large": lambda k: k.TopicPartition("a", 2**31),
    "offset too large": lambda k: k.TopicPartition("a", 1, 2**63),
    "metadata int": lambda k: k.TopicPartition("a", 1, 2, 5),
})
def test_topic_partitions(case):
    same(case)


@pytest.mark.parametrize(("name", "value"), [
    ("topic", "b"), ("partition", 0), ("offset", 2**63 - 1), ("metadata", ""), ("metadata", None), ("leader_epoch", 0),
    ("leader_epoch", None), ("error", headrace.KafkaError(3)), ("error", None),
])
def test_every_attribute_of_a_topic_partition_may_be_set(name, value):
    made = headrace.TopicPartition("a", 1, 2, "m", 4)
    made.error = headrace.KafkaError(7)
    before = {each: getattr(made, each) for each in ATTRIBUTES}
    setattr(made, name, value)
    assert {each: getattr(made, each) for each in ATTRIBUTES} == {**before, name: value}
    changed = name in ("topic", "partition")
    assert (made == headrace.TopicPartition("a", 1)) is not changed
    assert (hash(made) == hash(headrace.TopicPartition("a", 1))) is not changed
    if name not in ("partition", "offset"):
        with pytest.raises(AttributeError):
            setattr(confluent_kafka.TopicPartition("a", 1, 2, "m", 4), name, value)


@pytest.mark.parametrize(("name", "value", "kind"), [
    ("topic", None, TypeError), ("topic", b"b", TypeError), ("partition", 2**31, OverflowError),
    ("partition", -2**31 - 1, OverflowError), ("offset", -2**63 - 1, OverflowError), ("metadata", b"m", TypeError),
    ("leader_epoch", "4", TypeError), ("leader_epoch", 2**31, OverflowError), ("error", 3, TypeError),
    ("error", ValueError("x"), TypeError),
])
def test_an_attribute_of_a_topic_partition_cannot_be_set_to_what_it_is_not(name, value, kind):
    made = headrace.TopicPartition("a", 1, 2, "m", 4)
    with pytest.raises(kind, match=f"^{name} "):
        setattr(made, name, value)
    assert getattr(made, name) == getattr(headrace.TopicPartition("a", 1, 2, "m", 4), name)


def test_a_topic_partition_is_copied_and_pickled_with_all_that_was_set():
    made = headrace.TopicPartition("a", 1, 2, "m", 4)
    made.error = headrace.KafkaError(3)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert [getattr(other, each) for each in ATTRIBUTES[:-1]] == ["a", 1, 2, "m", 4]
        assert other.error == 3


def test_a_topic_partition_does_not_compare_with_other_things():
    assert headrace.TopicPartition("a") != "a"
    with pytest.raises(TypeError):
        headrace.TopicPartition("a") < 3  # noqa: B015


def fields(message):
    error = message.error()
    return (message.topic(), message.partition(), message.offset(), message.key(), message.value(), message.headers(),
            error and error.code(), message.timestamp(), message.latency(), message.leader_epoch(), len(message))


def full(k):
    return k.Message("t", 1, 2, b"k", b"v", [("a", b"b")], k.KafkaError(3), (1, 5), 1.5, 7)


def replaced(k):
    message = full(k)
    returned = [message.set_key("x"), message.set_value("y"), message.set_headers([("c", "d")]), message.set_topic("u"),
                message.set_error(None)]
    return returned, fields(message)


def one_by_one(k, make):
    """Each setter on a message of its own: what it returns, and all fields after it, also of a copy."""
    shown = []
    for part, values in {"topic": ("u", None), "key": ("x", b"y", None, ["any"]), "value": (b"y", "xyz", None, {1: 2}),
                         "headers": ([("c", "d"), ("c", None)], None, {"c": b"d"}),
                         "error": (k.KafkaError(7, "w"), None)}.items():
        for value in values:
            message = make(k)
            returned = getattr(message, f"set_{part}")(value)
            shown += [(returned, fields(message)), fields(pickle.loads(pickle.dumps(message)))]
    return shown


def consumed(k):
    """A message that came from a broker is replaced in the same way."""
    with EmbeddedBroker(topics={"t": 1}) as broker:
        producer = headrace.Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", b"v", b"k", headers=[("a", b"b")], timestamp=5)
        producer.flush()
        consumer = k.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "logger": QUIET})
        consumer.assign([k.TopicPartition("t", 0, 0)])
        messages = []
        while len(messages) < 1:
            messages = consumer.consume(1, 10)
        consumer.close()
    message = messages[0]
    return [fields(message), message.set_value("y"), message.set_key(None), message.set_headers([("c", b"d")]),
            message.set_topic("u"), message.set_error(k.KafkaError(7)), fields(message)]


@by_name({
    "nothing": lambda k: fields(k.Message()), "everything": lambda k: fields(full(k)),
    "by name": lambda k: fields(k.Message(topic="t", partition=1, offset=2, key=b"k", value=b"v", headers=None,
                                          error=None, timestamp=(2, 5), latency=0.5, leader_epoch=3)),
    "numbers that are not known": lambda k: fields(k.Message("t", -1, -1, leader_epoch=-1)),
    "length": lambda k: [len(k.Message(value=v)) for v in (None, b"", b"abc")],
    "setters": replaced, "setters one by one": lambda k: one_by_one(k, full),
    "setters of an empty message": lambda k: one_by_one(k, lambda k: k.Message()), "setters after consuming": consumed,
    "a setter without a value": lambda k: full(k).set_value(), "no other setters": lambda k: full(k).set_offset(1),
    "pickled": lambda k: fields(pickle.loads(pickle.dumps(full(k)))),
    "equal": lambda k: (full(k) == full(k), full(k) != full(k), full(k) == k.Message("t"),
                        k.Message("t", 1, 2, b"k") == k.Message("t", 1, 2, b"z")),
    **{f"{name} that is {value!r}": lambda k, name=name, value=value: fields(k.Message(**{name: value}))
       for name in ("partition", "offset", "leader_epoch", "latency", "timestamp")
       for value in ("x", b"x", [], 1.5, 1, True, 2**63, float("nan"), (1, 2, 3), (1,), (1, 5), [1, 5])
       if name not in ("latency", "timestamp") or (value != 2**63 and value == value)},
    "latency that is whole": lambda k: type(k.Message(latency=1).latency()).__name__,
    "unknown argument": lambda k: k.Message(bogus=1), "hash": lambda k: hash(k.Message()) and None,
    "types of timestamps": lambda k: (k.TIMESTAMP_NOT_AVAILABLE, k.TIMESTAMP_CREATE_TIME, k.TIMESTAMP_LOG_APPEND_TIME),
    "offsets": lambda k: (k.OFFSET_BEGINNING, k.OFFSET_END, k.OFFSET_STORED, k.OFFSET_INVALID),
})
def test_messages_and_constants(case):
    same(case)


def test_a_subclass_that_gives_nothing_is_a_message_of_nothing():
    def shown(kafka):
        class StandIn(kafka.Message):
            def __init__(self, offset):
                self.at = offset

            def offset(self):
                return self.at

        message = StandIn(7)
        before = fields(message)[:-3]
        message.set_value(b"v")
        return before, fields(message)[:-3], len(message)

    assert same(shown) == ((None, 0, 7, None, None, None, None, (0, 0)), (None, 0, 7, None, b"v", None, None, (0, 0)),
                           1)


@by_name({
    "throttling": lambda k: (lambda t: (t.broker_name, t.broker_id, t.throttle_time, str(t)))(
        k.ThrottleEvent("broker", 1, 10.0)),
    "throttling without arguments": lambda k: k.ThrottleEvent(),
    "uuid": lambda k: [(str(u), u.get_most_significant_bits(), u.get_least_significant_bits()) for u in (
        k.Uuid(1, 2), k.Uuid(-1, -2), k.Uuid(-9160505685479963139, 5470143421541107301))],
    "uuid repr": lambda k: repr(k.Uuid(1, 2)),
    "uuid by name": lambda k: str(k.Uuid(most_significant_bits=1, least_significant_bits=2)),
    "uuid without bits": lambda k: k.Uuid(), "uuid of text": lambda k: k.Uuid("1", 2),
    "uuid out of range": lambda k: k.Uuid(2**63, 1), "uuid hash": lambda k: hash(k.Uuid(1, 2)) == hash(k.Uuid(1, 2)),
    "hashes": lambda k: [(k.murmur2(key, n), k.consistent(key, n), k.fnv1a(key, n))
                         for key in (b"", b"a", b"abc", bytes(range(256))) for n in (1, 3, 10, 1000)],
    "hash of text": lambda k: k.murmur2("a", 1), "hash of nothing": lambda k: k.consistent(None, 1),
    "no partitions": lambda k: k.fnv1a(b"a", 0), "fewer than none": lambda k: k.murmur2(b"a", -1),
    "version": lambda k: (k.version() == k.__version__, [type(part).__name__ for part in k.libversion()]),
})
def test_events_ids_and_functions(case):
    same(case)


@by_name({
    "node": lambda k: (lambda n: (n.id, n.id_string, n.host, n.port, n.rack, str(n)))(k.Node(1, "h", 9092, "a")),
    "node without a rack": lambda k: (lambda n: (n.rack, str(n)))(k.Node(id=1, host="h", port=9092)),
    "node without a port": lambda k: k.Node(1, "h"), "node as a key": lambda k: len({k.Node(1, "h", 1): "x"}),
    "partition of a topic": lambda k: (lambda p: (p.id, p.leader.id, [node.host for node in p.replicas], p.isr))(
        k.TopicPartitionInfo(3, k.Node(1, "a", 1), [k.Node(2, "b", 1)], [])),
    "topics": lambda k: k.TopicCollection(topic_names=["a", "b"]).topic_names,
    "no topics": lambda k: k.TopicCollection(),
    "offsets of a group": lambda k: (lambda g: (g.group_id, g.topic_partitions[0].partition))(
        k.ConsumerGroupTopicPartitions("g", [k.TopicPartition("t", 2)])),
    "all offsets of a group": lambda k: k.ConsumerGroupTopicPartitions("g").topic_partitions,
    "a state by number": lambda k: [k.ConsumerGroupState(number).name for number in range(6)],
    "a state that there is not": lambda k: k.ConsumerGroupState(6),
})
def test_what_describes_clusters_and_groups(case):
    same(case)


def test_a_text_is_no_collection_of_topics():
    with pytest.raises(TypeError, match="topic_names: expected list of str, not str"):
        headrace.TopicCollection("orders")
    with pytest.raises(TypeError, match=r"topic_partitions\[0\] is str"):
        headrace.ConsumerGroupTopicPartitions("g", ["orders"])


def test_equal_ids_are_equal():
    assert headrace.Uuid(1, 2) == headrace.Uuid(1, 2) != headrace.Uuid(1, 3)  # confluent_kafka 2.16: never equal


@pytest.mark.parametrize("name", ["Producer", "SerializingProducer"])
def test_every_method_of_the_producers_is_there(name):
    theirs = {method for method in dir(getattr(confluent_kafka, name)) if not method.startswith("_")}
    assert theirs <= set(dir(getattr(headrace, name)))


def test_the_serializing_producer_takes_the_same_arguments():
    """`close()` takes a `timeout` besides, as `Producer.close()` does, which there takes anything."""
    for method, besides in (("produce", []), ("close", [("timeout", None, inspect.Parameter.POSITIONAL_OR_KEYWORD)])):
        ours, theirs = ([(p.name, p.default, p.kind) for p in inspect.signature(
            getattr(k.SerializingProducer, method)).parameters.values()] for k in (headrace, confluent_kafka))
        assert ours == theirs + besides


def test_an_outcome_tells_errors_apart():
    def fail(kafka):
        raise kafka.KafkaException(kafka.KafkaError(3, fatal=True))

    assert outcome(fail, headrace) == ("KafkaException", 3, True, False) != outcome(lambda k: k.Producer(5), headrace)


@by_name({
    "consume": lambda k: k.error.ConsumeError(k.KafkaError(3, "y"), ValueError("x"), k.Message("t", value=b"v")),
    "produce": lambda k: k.error.ProduceError(k.KafkaError(3)),
    "key out": lambda k: k.error.KeySerializationError(ValueError("x")),
    "value out": lambda k: k.error.ValueSerializationError(ValueError("x")),
    "key in": lambda k: k.error.KeyDeserializationError(ValueError("x"), k.Message("t", value=b"v")),
    "value in": lambda k: k.error.ValueDeserializationError(exception=ValueError("x"),
                                                         kafka_message=k.Message("t", value=b"v")),
    "nothing": lambda k: k.error.KeySerializationError(),
})
def test_errors_with_a_cause(case):
    def made(kafka):
        error = case(kafka)
        return (error.code, error.name, error.args[0].str() if error.exception else "", str(error.exception),
                error.kafka_message and error.kafka_message.topic(), isinstance(error, kafka.KafkaException),
                isinstance(error, kafka.serialization.SerializationError), isinstance(error, kafka.error.ProduceError),
                isinstance(error, kafka.error.ConsumeError))

    same(made)


@by_name({
    "the cluster": lambda k, a: [a.list_topics(timeout=10)],
    "topics": lambda k, a: [a.list_topics(timeout=10).topics["one"]],
    "brokers": lambda k, a: list(a.list_topics(timeout=10).brokers.values()),
    "partitions": lambda k, a: list(a.list_topics(timeout=10).topics["one"].partitions.values()),
    "groups": lambda k, a: [k.admin.GroupMetadata(), k.admin.GroupMember()],
    "throttling": lambda k, a: [k.ThrottleEvent("b", 1, 0.5)],
    "a described partition": lambda k, a: a.describe_topics(k.TopicCollection(["one"]))["one"].result(10).partitions,
})
def test_who_looks_into_the_dict_of_what_a_cluster_says_finds_the_same_names(case):
    with EmbeddedBroker(topics={"one": 1}) as broker:
        def names(kafka):
            admin = kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET})
            return [sorted(vars(value)) for value in case(kafka, admin)]

        assert same(names)[0]
