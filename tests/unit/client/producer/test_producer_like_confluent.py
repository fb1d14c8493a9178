"""The corners of `Producer`, side by side with confluent_kafka's: what both are given, raise and return."""

import inspect
import logging
from collections.abc import Iterator

import confluent_kafka
import pytest

import headrace
from headrace.broker.settings import BrokerSettings
from headrace.testing import EmbeddedBroker

BOTH = pytest.mark.parametrize("kafka", [confluent_kafka, headrace], ids=["confluent_kafka", "headrace"])
QUIET = logging.Logger("quiet", logging.CRITICAL)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def make(kafka, broker):
    """Make a producer of either package, purged and closed in the end."""
    made = []

    def start(**properties):
        conf = {"bootstrap.servers": broker.bootstrap_servers, "logger": QUIET,
                **{name.replace("_", "."): value for name, value in properties.items() if name != "on_delivery"}}
        if "on_delivery" in properties:
            conf["on_delivery"] = properties["on_delivery"]
        made.append(kafka.Producer(conf))
        return made[-1]

    yield start
    for producer in made:
        try:
            producer.purge()
        except RuntimeError:
            continue  # closed already
        producer.flush(5)
        producer.close()


def warm(producer, topic="one"):
    """Deliver a record, so that the topic is known."""
    producer.produce(topic, b"-")
    assert producer.flush(10) == 0


@BOTH
@pytest.mark.parametrize(("arguments", "keywords"), [
    ((), {}), ((None,), {}), ((5,), {}), (("one", 5), {}), (("one", b"", 5), {}), (("one",), {"headers": 5}),
    (("one",), {"headers": 0}), (("one",), {"headers": ""}), (("one",), {"headers": b""}),
    (("one",), {"headers": {"a": 5}}), (("one",), {"headers": [("a",)]}), (("one",), {"timestamp": "a"}),
    (("one",), {"partition": "1"}), (("one",), {"partition": None}), (("one",), {"bogus": 5}),
    (("one", b"", None, -1, None, None, 0, None, 4), {}), (("one",), {"value": 1.5}), (("one",), {"key": ["a"]}),
])
def test_wrong_arguments_of_produce_are_type_errors_and_nothing_is_queued(make, arguments, keywords):
    producer = make()
    with pytest.raises(TypeError):
        producer.produce(*arguments, **keywords)
    assert len(producer) == 0


@BOTH
def test_produce_takes_eight_arguments_by_place_or_name_and_returns_none(make):
    reports = []
    producer = make()
    warm(producer)
    stamp = 1_700_000_000_000
    assert producer.produce("one", b"v", b"k", 0, lambda e, m: reports.append(m), None, stamp, {"h": b"1"}) is None
    assert producer.produce(headers=[("h", b"1")], timestamp=stamp, on_delivery=lambda e, m: reports.append(m),
                            partition=0, key=b"k", value=b"v", topic="one") is None
    producer.flush(10)
    first, second = [(m.topic(), m.partition(), m.key(), m.value(), m.timestamp(), len(m), m.error()) for m in reports]
    assert first == second == ("one", 0, b"k", b"v", (1, stamp), 1, None)
    assert reports[1].offset() == reports[0].offset() + 1
    assert reports[0].latency() > 0


@BOTH
def test_text_is_sent_as_utf_8_and_nothing_at_all_is_a_tombstone(make):
    reports = []
    producer = make()
    producer.produce("one", "värld", "ключ", callback=lambda e, m: reports.append((m.value(), m.key())))
    producer.produce("one", callback=lambda e, m: reports.append((m.value(), m.key())))
    producer.produce("one", b"", "", callback=lambda e, m: reports.append((m.value() or b"", m.key() or b"")))
    producer.flush(10)
    assert reports == [("värld".encode(), "ключ".encode()), (None, None), (b"", b"")]


@BOTH
def test_callback_goes_before_on_delivery_and_both_before_the_default(make):
    got = []
    producer = make(on_delivery=lambda e, m: got.append("default"))
    producer.produce("one", b"v", callback=lambda e, m: got.append("callback"),
                     on_delivery=lambda e, m: got.append("on_delivery"))
    producer.produce("one", b"v", on_delivery=lambda e, m: got.append("on_delivery"))
    producer.produce("one", b"v", callback=None, on_delivery=None)
    producer.flush(10)
    assert got == ["callback", "on_delivery", "default"]


@BOTH
def test_poll_returns_how_many_were_served_and_flush_and_len_what_is_left(make):
    got = []
    producer = make(linger_ms=1)
    warm(producer)
    for _ in range(3):
        producer.produce("one", b"v", callback=lambda e, m: got.append(m))
    assert len(producer) == 3
    served = 0
    while len(got) < 3:
        served += producer.poll(5)
    assert 1 <= served <= 3  # confluent_kafka counts some callbacks of one batch as one
    assert (len(producer), producer.poll(0), producer.flush(0), producer.flush()) == (0, 0, 0, 0)
    assert producer  # although its length is 0


@BOTH
def test_a_full_queue_is_a_buffer_error_and_a_record_too_large_a_kafka_exception(kafka, make):
    producer = make(queue_buffering_max_messages=2, linger_ms=60_000)
    for _ in range(2):
        producer.produce("nope", b"v")
    with pytest.raises(BufferError, match="Local: Queue full"):
        producer.produce("nope", b"v")
    producer.purge()
    producer.flush(5)
    with pytest.raises(kafka.KafkaException) as caught:
        producer.produce("nope", b"x" * 2_000_000)
    assert caught.value.args[0].code() == kafka.KafkaError.MSG_SIZE_TOO_LARGE
    assert len(producer) == 0


@BOTH
def test_a_partition_that_does_not_exist_is_refused_once_the_topic_is_known_and_reported_before(kafka, make):
    got = []
    producer = make()
    producer.produce("one", b"v", partition=7, callback=lambda e, m: got.append(e.code()))
    producer.flush(10)
    assert got == [kafka.KafkaError._UNKNOWN_PARTITION]
    with pytest.raises(kafka.KafkaException) as caught:
        producer.produce("one", b"v", partition=7)
    assert caught.value.args[0].code() == kafka.KafkaError._UNKNOWN_PARTITION


@BOTH
def test_purged_records_are_reported_by_the_next_poll_or_flush(kafka, make):
    got = []
    producer = make(linger_ms=60_000)
    producer.produce("one", b"v", callback=lambda e, m: got.append((e.code(), m.value())))
    assert producer.purge() is None
    assert got == []
    assert producer.flush(5) == 0
    assert got == [(kafka.KafkaError._PURGE_QUEUE, b"v")]
    producer.produce("one", b"v")
    assert producer.purge(True, True, False) is None
    assert producer.purge(in_queue=True, in_flight=True, blocking=True) is None
    assert producer.flush(5) == 0
    with pytest.raises(TypeError):
        producer.purge(1, 2, 3, 4)


@BOTH
def test_a_closed_producer_raises_runtime_errors_and_closes_again(make):
    producer = make()
    assert producer.close() is True
    for call in (lambda: producer.produce("one", b"v"), lambda: producer.poll(0), lambda: producer.flush(0),
                 lambda: producer.list_topics(timeout=1), producer.purge):
        with pytest.raises(RuntimeError):
            call()
    assert producer.close() is True
    assert len(producer) == 0


@BOTH
def test_close_delivers_and_so_does_the_with_block(kafka, make, broker):
    before = broker.end_offsets("one")[0]
    producer = make(linger_ms=60_000)
    producer.produce("one", b"v")
    producer.close()
    with make(linger_ms=60_000) as producer:
        producer.produce("one", b"v")
    assert broker.end_offsets("one")[0] == before + 2


@BOTH
def test_the_cluster_has_an_id_and_topics(make):
    producer = make()
    listed = producer.list_topics(timeout=10)
    assert producer.cluster_id(10) == producer.cluster_id(timeout=10) == listed.cluster_id
    assert isinstance(listed.cluster_id, str)
    assert len(producer.list_topics("four", 10).topics["four"].partitions) == 4


@BOTH
def test_credentials_are_text(make):
    producer = make()
    assert producer.set_sasl_credentials("user", "secret") is None
    with pytest.raises(TypeError):
        producer.set_sasl_credentials("user", None)


# Batches (2.12)


@BOTH
@pytest.mark.parametrize(("messages", "text"), [
    ((), "messages must be a list"), ([1], "Message at index 0 must be a dict"),
    ([{}, {"value": 5}], "Message value at index 1 must be bytes or str"),
    ([{"key": 4}], "Message key at index 0 must be bytes or str"),
    ([{"partition": "a"}], "Message partition at index 0 must be int"),
])
def test_wrong_batches_are_type_errors_and_nothing_is_queued(make, messages, text):
    producer = make()
    with pytest.raises(TypeError, match=text):
        producer.produce_batch("one", messages)
    assert len(producer) == 0


@BOTH
def test_wrong_arguments_of_a_batch_are_type_errors(make):
    producer = make()
    for arguments, keywords in (((None, []), {}), (("one", []), {"partition": "a"}), (("one", []), {"bogus": 1}),
                                (("one",), {})):
        with pytest.raises(TypeError):
            producer.produce_batch(*arguments, **keywords)


@BOTH
def test_a_batch_says_how_many_were_accepted_and_each_has_its_callback(make):
    got = []
    producer = make()
    warm(producer)
    batch = [{"value": "1", "key": b"k"}, {"value": b"2", "callback": lambda e, m: got.append("own")},
             {"value": b"3", "callback": lambda e, m: got.append("own"), "on_delivery": lambda e, m: got.append("no")},
             {"bogus": 1}]
    assert producer.produce_batch("one", batch, 0, lambda e, m: got.append((m.key(), m.value()))) == 4
    assert producer.produce_batch("one", []) == 0
    producer.flush(10)
    assert got == [(b"k", b"1"), "own", "own", (None, None)]
    assert not any("_error" in each for each in batch)


@BOTH
def test_messages_of_a_batch_go_to_its_partition(make):
    got = []
    producer = make()
    warm(producer, "four")
    producer.produce_batch("four", [{"value": b"a"}, {"value": b"b"}], partition=1,
                           on_delivery=lambda e, m: got.append((m.value(), m.partition())))
    producer.flush(10)
    assert sorted(got) == [(b"a", 1), (b"b", 1)]


@BOTH
def test_messages_beyond_the_queue_have_their_error_and_the_rest_is_accepted(kafka, make):
    producer = make(queue_buffering_max_messages=3, linger_ms=60_000)
    batch = [{"value": str(number)} for number in range(6)]
    assert producer.produce_batch("nope", batch) == 3
    assert ["_error" in each for each in batch] == [False] * 3 + [True] * 3
    assert {each["_error"].code() for each in batch[3:]} == {kafka.KafkaError._QUEUE_FULL}


def only_headrace(**properties):
    return {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None, **properties}


def test_messages_of_a_batch_go_to_their_own_partition_first(broker):
    got = []  # as confluent_kafka documents it; 2.16 does not do so
    with headrace.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce_batch("four", [{"value": b"a"}, {"value": b"b", "partition": 3}], partition=1,
                               on_delivery=lambda e, m: got.append((m.value(), m.partition())))
    assert sorted(got) == [(b"a", 1), (b"b", 3)]


def test_batches_carry_headers_and_timestamps(broker):
    got = []
    with headrace.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        batch = [{"value": b"v", "headers": {"a": "1"}, "timestamp": 1_700_000_000_000},
                 {"value": b"w", "headers": [("b", None)], "on_delivery": lambda e, m: got.append(m)}]
        assert producer.produce_batch("one", batch, on_delivery=lambda e, m: got.append(m)) == 2
    assert [m.headers() for m in got] == [[("a", b"1")], [("b", None)]]
    assert got[0].timestamp() == (1, 1_700_000_000_000)


@pytest.mark.parametrize(("message", "error", "text"), [
    ({"headers": 5}, TypeError, "Message headers at index 0"),
    ({"timestamp": "a"}, TypeError, "Message timestamp at index 0 must be int"),
    ({"timestamp": -1}, ValueError, "Message timestamp at index 0 must not be negative"),
    ({"partition": 1 << 31}, OverflowError, "Message partition at index 0 is out of range: 2147483648"),
    ({"partition": (-1 << 31) - 1}, OverflowError, "Message partition at index 0 is out of range"),
])
def test_wrong_headers_and_timestamps_are_refused_with_their_place(message, error, text):
    producer = headrace.Producer(only_headrace())
    with pytest.raises(error, match=text):
        producer.produce_batch("one", [message])
    producer.close()


def test_a_message_that_fails_alone_has_its_error_and_may_be_tried_again(broker):
    with headrace.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        warm(producer)
        batch = [{"value": b"x" * 1_000_001}, {"value": b"v", "partition": 7}, {"value": b"w"}]
        assert producer.produce_batch("one", batch) == 1
        assert [each.get("_error") for each in batch] == [
            headrace.KafkaError.MSG_SIZE_TOO_LARGE, headrace.KafkaError._UNKNOWN_PARTITION, None]
        batch[1]["partition"] = 0
        assert producer.produce_batch("one", batch[1:2]) == 1
        assert "_error" not in batch[1]


def test_a_closed_producer_takes_no_batch(broker):
    producer = headrace.Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.close()
    with pytest.raises(RuntimeError, match="closed"):
        producer.produce_batch("one", [{"value": b"v"}])


def test_credentials_must_be_usable():
    producer = headrace.Producer(only_headrace())
    for username, password in (("", "x"), ("u", ""), ("u\0", "x")):
        with pytest.raises(headrace.KafkaException, match="must not be empty"):
            producer.set_sasl_credentials(username, password)
    producer.close()


def test_the_arguments_that_confluent_kafka_documents_are_there_under_their_names():
    expected = {
        "produce": ["topic", "value", "key", "partition", "callback", "on_delivery", "timestamp", "headers"],
        "produce_batch": ["topic", "messages", "partition", "callback", "on_delivery"],
        "poll": ["timeout"], "flush": ["timeout"], "purge": ["in_queue", "in_flight", "blocking"],
        "list_topics": ["topic", "timeout"], "cluster_id": ["timeout"], "close": ["timeout"],
        "set_sasl_credentials": ["username", "password"],
    }
    for name, arguments in expected.items():
        assert list(inspect.signature(getattr(headrace.Producer, name)).parameters)[1:] == arguments
        assert hasattr(confluent_kafka.Producer, name)
