"""What a topic's settings refuse, as in Kafka: `conversations_records` has the same words with Kafka itself."""

import time

import pytest

from headrace import Consumer, KafkaError, Message, Producer, TopicPartition
from headrace.records import GZIP, NONE
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.admin.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.support.conversations_records import keyed
from tests.support.raw_client import RawClient, batch_of, produce_request


def make_topic(client: RawClient, replicas: int = 1, **configs: str) -> None:
    entries = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    reply = client.call(CreateTopicsRequest(timeout_ms=0, topics=[CreatableTopic(
        name="t", num_partitions=1, replication_factor=replicas, assignments=[], configs=entries)]))
    assert reply.topics[0].error_code == 0


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_compacted_topic_refuses_batches_that_have_records_without_a_key_and_names_these(codec: int) -> None:
    with EmbeddedBroker() as broker, RawClient(broker) as client:
        make_topic(client, cleanup_policy="compact,delete")
        refused = client.produce("t", 0, keyed([b"a", None, b"b", None], codec))
        assert refused.error_code == KafkaError.INVALID_RECORD
        assert [each.batch_index for each in refused.record_errors] == [1, 3]
        assert client.produce("t", 0, keyed([b"a", b""], codec)).error_code == 0
        assert broker.end_offsets("t") == [2]


def test_a_producer_hears_which_of_its_records_has_no_key() -> None:
    heard: dict[bytes | None, int | None] = {}

    def note(error: KafkaError | None, message: Message) -> None:
        heard[message.key()] = None if error is None else error.code()

    with EmbeddedBroker() as broker, RawClient(broker) as client:
        make_topic(client, cleanup_policy="compact")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50})
        for key in (b"a", None, b"b"):
            producer.produce("t", b"value", key, on_delivery=note)
        assert producer.flush(10) == 0
        assert heard == {b"a": None, None: KafkaError.INVALID_RECORD, b"b": None}
        assert broker.end_offsets("t") == [2]


@pytest.mark.parametrize(("replicas", "needed", "down", "code"), [
    (3, "2", [3], 0),
    (3, "2", [2, 3], KafkaError.NOT_ENOUGH_REPLICAS),
    (1, "2", [], 0),  # no more than all replicas can be asked for
])
def test_acks_all_asks_for_as_many_replicas_as_a_topic_sets(replicas: int, needed: str, down: list[int],
                                                            code: int) -> None:
    with EmbeddedBroker(nodes=3) as broker, RawClient(broker) as client:
        make_topic(client, replicas, min_insync_replicas=needed)
        for node in down:
            broker.stop_node(node)
        assert client.produce("t", 0, batch_of([b"value"])).error_code == code
        request = produce_request("t", 0, batch_of([b"value"]))
        request.acks = 1  # asks for the leader alone
        assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0
        for node in down:
            broker.start_node(node)
        assert client.produce("t", 0, batch_of([b"value"])).error_code == 0


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_records_have_the_brokers_time_where_a_topic_sets_it(codec: int) -> None:
    with EmbeddedBroker(topics={"u": 1}) as broker, RawClient(broker) as client:
        make_topic(client, message_timestamp_type="LogAppendTime")
        told = []
        for topic in "tu":
            before = time.time_ns() // 1_000_000
            stored = client.produce(topic, 0, batch_of([b"a", b"b"], codec=codec, timestamp_ms=5))
            assert stored.error_code == 0
            told.append(stored.log_append_time_ms)
        assert before - 10_000 <= told[0] <= before
        assert told[1] == -1
        with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
            consumer.assign([TopicPartition("t", 0, 0), TopicPartition("u", 0, 0)])
            found = {(message.topic(), message.timestamp()) for message in consumer.consume(4, 20)}
        assert found == {("t", (2, told[0])), ("u", (1, 5))}


def test_a_producers_batch_without_an_epoch_or_a_sequence_number_is_refused(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        for epoch, sequence in ((-1, 0), (0, -1), (-1, -1)):
            refused = client.produce("t", 0, batch_of([b"a"], 7, epoch, sequence))
            assert refused.error_code == KafkaError.INVALID_RECORD
        assert client.produce("t", 0, batch_of([b"a"], 7, 0, 0)).error_code == 0
