"""The sink with interceptors, or a partitioner in Python: rows go through records, one by one."""

import pytest

pyarrow = pytest.importorskip("pyarrow")

from headrace import Consumer, KafkaError, KafkaException, ProducerInterceptor, TopicPartition  # noqa: E402
from headrace.client.producer.kept_producers import KeptProducers  # noqa: E402
from headrace.errors import ConfigError  # noqa: E402
from headrace.spark.column_writer import ColumnWriter  # noqa: E402
from headrace.spark.options import SinkOptions, SourceOptions  # noqa: E402
from headrace.testing import EmbeddedBroker  # noqa: E402


class Marking(ProducerInterceptor):
    """Marks each value; sends those that say so elsewhere."""

    made = []

    def __init__(self):
        self.config, self.acks, self.closed = {}, [], 0
        Marking.made.append(self)

    def configure(self, config):
        self.config = config

    def on_send(self, record):
        if record.value == b"elsewhere":
            record.topic = "other"
        if record.value is not None:
            record.value += b"!"
        record.headers = [*record.headers, ("seen", b"1")]
        return record

    def on_acknowledgement(self, metadata, error):
        self.acks.append((metadata.topic, error))

    def close(self):
        self.closed += 1


@pytest.fixture(autouse=True)
def _own_producers(monkeypatch):
    """What a test leaves open is closed with it."""
    kept = KeptProducers()
    monkeypatch.setattr("headrace.spark.column_writer._PRODUCERS", kept)
    yield
    kept.close()


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"rows": 2, "other": 1}) as made:
        Marking.made = []
        yield made


def read(broker, topic, partition):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = consumer.consume(broker.end_offsets(topic)[partition], 10)
    consumer.close()
    return found


def conf(broker, **properties):
    return {"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": f"{__name__}.Marking", **properties}


def test_every_row_passes_the_interceptors_and_is_acknowledged_to_them(broker):
    headers = pyarrow.array([[{"key": "h", "value": b"x"}], None, [], None],
                            pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])))
    with ColumnWriter(conf(broker, **{"my.interceptor.x": "1"})) as writer:
        writer.append("rows", pyarrow.array(["k", None, "k", None]),
                      pyarrow.array([b"a", b"b", None, b"elsewhere"], pyarrow.binary()),
                      pyarrow.array([0, 1, 1, None], pyarrow.int32()), headers)
        writer.finish()
        (marking,) = Marking.made
        assert sorted(marking.acks) == [("other", None)] + [("rows", None)] * 3
        assert marking.closed == 0
    assert marking.closed == 1
    assert (marking.config["my.interceptor.x"], marking.config["client.id"]) == ("1", "headrace")
    (first,) = read(broker, "rows", 0)
    assert (first.value(), first.key(), first.headers()) == (b"a!", b"k", [("h", b"x"), ("seen", b"1")])
    assert [(m.value(), m.key()) for m in read(broker, "rows", 1)] == [(b"b!", None), (None, b"k")]
    assert [m.value() for m in read(broker, "other", 0)] == [b"elsewhere!"]


def test_rows_wait_while_the_buffer_is_full_and_keep_their_order(broker):
    values = pyarrow.array([str(number).encode() for number in range(1000)])
    with ColumnWriter(conf(broker, **{"queue.buffering.max.messages": "10", "linger.ms": "1"})) as writer:
        writer.append("other", None, values)
        writer.finish()
    assert [m.value() for m in read(broker, "other", 0)] == [f"{number}!".encode() for number in range(1000)]
    assert [error for _, error in Marking.made[0].acks] == [None] * 1000


def test_a_row_that_is_not_stored_fails_the_task_and_is_acknowledged_with_its_error(broker):
    with ColumnWriter(conf(broker)) as writer:
        writer.append("other", None, pyarrow.array(["a"]))
        writer.finish()
        with pytest.raises(KafkaException, match="no partition 5"):
            writer.append("other", None, pyarrow.array(["b"]), pyarrow.array([5], pyarrow.int32()))
    assert Marking.made[0].acks == [("other", None), ("other", KafkaError._UNKNOWN_PARTITION)]


def test_round_robin_places_every_row(broker):
    with ColumnWriter({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "round_robin"}) as writer:
        writer.append("rows", None, pyarrow.array([str(number) for number in range(10)]))
        writer.append("rows", None, pyarrow.array(["10", "11"]))
        writer.finish()
    assert broker.end_offsets("rows") == [6, 6]


def test_a_write_takes_interceptors_by_option_and_a_read_says_why_not():
    options = {"kafka.bootstrap.servers": "x:1", "kafka.interceptor.classes": "a.B"}
    assert SinkOptions.parse(options).client["interceptor.classes"] == "a.B"
    with pytest.raises(ConfigError, match=r"kafka\.interceptor\.classes is not supported: records are read as columns"):
        SourceOptions.parse({**options, "subscribe": "t"}, streaming=False)


def test_an_interceptor_that_the_executor_cannot_import_is_named(broker):
    with pytest.raises(ConfigError, match=r"nowhere\.Audit.*interceptor\.classes"):
        ColumnWriter(conf(broker, **{"interceptor.classes": "nowhere.Audit"}))
