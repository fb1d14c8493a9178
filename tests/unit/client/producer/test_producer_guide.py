"""What a general guide to producing messages says: bootstrap, partitions, order, acknowledgements, batches."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from headrace import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaAsyncProducer,
    KafkaSyncProducer,
    Message,
    Producer,
    ProducerRecord,
    TopicPartition,
)
from headrace.config import PRODUCER, PROPERTIES, Config
from headrace.errors import BufferFullError, ConfigError, KafkaError
from headrace.records import scan
from headrace.testing import Action, BrokerSettings, EmbeddedBroker, Fault
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.producer.produce import ProduceRequest


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=3, topics={"orders": 1, "six": 6},
                        settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def servers(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


def read(broker, topic, partition=0):
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        return [message.value() for message in consumer.consume(broker.end_offsets(topic)[partition], 10)]


def watch(broker, request, **where):
    """A list that grows with each request of a type."""
    seen = []
    broker.add_fault(Fault(action=Action.DROP, request=request, times=None,
                           when=lambda found: seen.append(found) or False, **where))
    return seen


def batches(requests):
    return [part.records for request in requests for topic in request.topic_data for part in topic.partition_data]


# Connecting


@pytest.mark.parametrize("server", range(3))
def test_any_server_will_do_to_begin_with_and_records_go_to_the_leaders(broker, server):
    asked = watch(broker, MetadataRequest)
    produced = {node: watch(broker, ProduceRequest, node_id=node) for node in (1, 2, 3)}
    one = broker.bootstrap_servers.split(",")[server]
    with Producer({"bootstrap.servers": one}) as producer:
        futures = [producer.send(ProducerRecord("six", b"v", partition=partition)) for partition in range(6)]
        assert {future.result(10).partition for future in futures} == set(range(6))
    assert {topic.name for request in asked for topic in request.topics or []} == {"six"}
    leaders = [broker.leader("six", partition) for partition in range(6)]
    assert set(leaders) == {1, 2, 3}
    for node, requests in produced.items():
        indexes = {part.index for request in requests for topic in request.topic_data for part in topic.partition_data}
        assert indexes == {partition for partition in range(6) if leaders[partition] == node}


def test_the_leader_gives_each_record_the_next_offset(servers):
    with Producer(servers) as producer:
        futures = [producer.send(ProducerRecord("orders", str(number))) for number in range(50)]
        assert [future.result(10).offset for future in futures] == list(range(50))


def test_a_record_goes_in_as_producer_record_and_comes_out_as_message(servers):
    with KafkaSyncProducer(servers) as producer:
        for key in (None, "key"):
            producer.send(ProducerRecord("orders", "all that matters", key))
    with Consumer({**servers, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
        found = consumer.consume(2, 10)
    assert {type(message) for message in found} == {Message}
    assert [(message.key(), message.value()) for message in found] == [
        (None, b"all that matters"), (b"key", b"all that matters")]  # readers may ignore the key


# Settings


@pytest.mark.parametrize(("name", "default", "low"), [
    ("acks", -1, None), ("retries", 2**31 - 1, 0), ("max.block.ms", 60_000, 0),
    ("max.in.flight.requests.per.connection", 5, 1), ("request.timeout.ms", 30_000, 1),
])
def test_defaults_and_lowest_values(name, default, low):
    row = PROPERTIES[name]
    assert (row.default, row.low) == (default, low)
    assert Config(PRODUCER, {"bootstrap.servers": "a:1"})[name] == default


def test_acks_are_0_1_or_all(servers):
    assert [Config(PRODUCER, {**servers, "acks": given})["acks"] for given in (0, "1", "all", -1)] == [0, 1, -1, -1]
    for wrong in (2, "some"):
        with pytest.raises(ConfigError, match=r"acks.*expected one of all, -1, 0, 1"):
            Producer({**servers, "acks": wrong})


def test_no_retries_means_that_the_first_answer_counts(broker, servers):
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.NOT_ENOUGH_REPLICAS))
    with Producer({**servers, "retries": 0, "enable.idempotence": False}) as producer:
        failed = producer.send(ProducerRecord("orders", b"v")).exception(10)
        assert failed.error == KafkaError.NOT_ENOUGH_REPLICAS
        assert producer.send(ProducerRecord("orders", b"v")).result(10).offset == 0


def test_an_answer_that_does_not_come_in_request_timeout_is_asked_for_again_until_retries_are_used_up(broker, servers):
    conf = {**servers, "request.timeout.ms": 300, "enable.idempotence": False, "error_cb": lambda error: None}
    for retries, offset in ((0, None), (1, 0)):
        silence = Fault(action=Action.SILENCE, request=ProduceRequest)
        broker.add_fault(silence)
        with Producer({**conf, "retries": retries}) as producer:
            sent = producer.send(ProducerRecord("orders", b"v"))
            if offset is None:
                assert sent.exception(10).error == KafkaError._TIMED_OUT
            else:
                assert sent.result(10).offset == offset


@pytest.mark.parametrize("allowed", [1, 2, 5])
def test_no_more_requests_than_allowed_wait_for_an_answer(broker, servers, allowed):
    with Producer({**servers, "max.in.flight": allowed, "batch.num.messages": 1}) as producer:
        producer.send(ProducerRecord("orders", b"first")).result(10)
        broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=60))
        for number in range(10):
            producer.send(ProducerRecord("orders", str(number)))

        def waiting() -> int:
            return max(each["waitresp_cnt"] for each in producer.metrics()["brokers"].values())

        give_up_at = time.monotonic() + 15
        while waiting() < allowed and time.monotonic() < give_up_at:
            time.sleep(0.01)
        time.sleep(0.2)
        assert waiting() == allowed
        broker.clear_faults()


GUIDE = {
    "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";',
    "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.protocol": "TLSv1.3",
    "ssl.enabled.protocols": "TLSv1.3", "ssl.endpoint.identification.algorithm": "HTTPS",
}


def test_the_properties_of_a_secured_service_are_taken_as_java_writes_them(servers):
    config = Config(PRODUCER, {**servers, **GUIDE})
    assert (config["security.protocol"], config["sasl.mechanism"]) == ("sasl_ssl", "PLAIN")
    assert (config["sasl.username"], config["sasl.password"]) == ("u", "p")
    assert (tuple(config["ssl.enabled.protocols"]), config["ssl.protocol"]) == (("TLSv1.3",), "tlsv1.3")
    assert config["ssl.endpoint.identification.algorithm"] == "https"


@pytest.mark.parametrize("name", ["key.serializer", "value.serializer"])
def test_serializers_are_refused_because_bytes_and_text_are_what_is_sent(servers, name):
    with pytest.raises(ConfigError, match=f'"{name}" is not supported: .*bytes and str'):
        Producer({**servers, name: "org.apache.kafka.common.serialization.StringSerializer"})
    with Producer(servers) as producer:
        assert producer.send(ProducerRecord("orders", "välue", "kéy")).result(10).value_size == 6


# Partitions


def test_a_producer_can_list_the_partitions_of_a_topic_and_choose_one(servers):
    with Producer(servers) as producer:
        partitions = producer.list_topics("six", 10).topics["six"].partitions
        assert sorted(partitions) == list(range(6))
        for partition in partitions:
            assert producer.send(ProducerRecord("six", b"v", b"key", partition)).result(10).partition == partition


def test_without_a_key_all_partitions_are_used_batch_by_batch(servers):
    used = Counter()
    with KafkaAsyncProducer({**servers, "batch.num.messages": 5, "linger.ms": 50}) as producer:
        for _ in range(3000):
            producer.send(ProducerRecord("six", b"v"), lambda metadata, error: used.update([metadata.partition]))
    assert sorted(used) == list(range(6))


def test_one_key_is_one_partition_and_one_order_many_keys_use_all(broker, servers):
    places = {}
    with KafkaAsyncProducer(servers) as producer:
        for number in range(1000):
            key = f"key{number % 50}"
            producer.send(ProducerRecord("six", f"{key}:{number}", key), lambda metadata, error, key=key:
                          places.setdefault(key, set()).add(metadata.partition))
    assert {len(partitions) for partitions in places.values()} == {1}
    assert set.union(*places.values()) == set(range(6))
    for partition in range(6):
        numbers = {}
        for value in read(broker, "six", partition):
            key, _, number = value.decode().partition(":")
            numbers.setdefault(key, []).append(int(number))
        assert all(found == sorted(found) for found in numbers.values())


def test_a_partitioner_of_ones_own_may_look_at_a_part_of_the_key(servers):
    def by_customer(topic, key, value, partition_count):
        return int(key.split(b"-")[0]) % partition_count

    with KafkaSyncProducer({**servers, "partitioner": by_customer}) as producer:
        for key, partition in (("7-basket", 1), ("7-order", 1), ("8-basket", 2)):
            assert producer.send(ProducerRecord("six", b"v", key)).partition == partition


# Order


@pytest.mark.parametrize(("in_flight", "idempotent", "stored"), [
    (5, False, [b"0", b"M2", b"M3", b"M1"]),
    (1, False, [b"0", b"M1", b"M2", b"M3"]),
    (5, True, [b"0", b"M1", b"M2", b"M3"]),
])
def test_a_retry_may_change_the_order_unless_one_request_is_in_flight_or_numbers_are_checked(
    broker, servers, in_flight, idempotent, stored
):
    conf = {**servers, "max.in.flight": in_flight, "enable.idempotence": idempotent, "batch.num.messages": 1,
            "retry.backoff.ms": 400}
    with Producer(conf) as producer:
        producer.send(ProducerRecord("orders", b"0")).result(10)
        broker.add_fault(Fault(
            action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.NOT_ENOUGH_REPLICAS,
            effect=lambda _: time.sleep(0.1)))  # the others are on their way before the answer
        for value in (b"M1", b"M2", b"M3"):
            producer.send(ProducerRecord("orders", value))
    assert read(broker, "orders") == stored


@pytest.mark.parametrize(("idempotent", "stored"), [
    (False, [b"M1", b"M2", b"M3", b"M1", b"M2", b"M3"]), (True, [b"M1", b"M2", b"M3"])])
def test_a_retry_of_what_was_stored_is_a_duplicate_unless_numbers_are_checked(broker, servers, idempotent, stored):
    broker.add_fault(Fault(action=Action.LOSE_REPLY, request=ProduceRequest))
    conf = {**servers, "enable.idempotence": idempotent, "linger.ms": 50, "retry.backoff.ms": 10}
    with Producer({**conf, "error_cb": lambda error: None}) as producer:
        for value in (b"M1", b"M2", b"M3"):
            producer.send(ProducerRecord("orders", value))
    assert read(broker, "orders") == stored  # a batch is stored whole or not at all


def test_with_one_request_in_flight_records_may_come_twice_but_not_out_of_order(broker, servers):
    conf = {**servers, "enable.idempotence": False, "max.in.flight": 1, "batch.num.messages": 1,
            "retry.backoff.ms": 10, "error_cb": lambda error: None}
    broker.add_fault(Fault(action=Action.LOSE_REPLY, request=ProduceRequest, after=1))
    with Producer(conf) as producer:
        for value in (b"M1", b"M2", b"M3"):
            producer.send(ProducerRecord("orders", value))
    assert read(broker, "orders") == [b"M1", b"M2", b"M2", b"M3"]


def test_numbers_are_checked_unless_somebody_switches_that_off(servers):
    assert Config(PRODUCER, servers)["enable.idempotence"] is True
    assert Config(PRODUCER, servers)["max.in.flight.requests.per.connection"] == 5


# Acknowledgements


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_the_level_is_what_the_request_says(broker, servers, acks):
    requests = watch(broker, ProduceRequest)
    with Producer({**servers, "acks": acks, "request.timeout.ms": 12_345}) as producer:
        producer.send(ProducerRecord("orders", b"v")).result(10)
    end = time.monotonic() + 10
    while not requests and time.monotonic() < end:
        time.sleep(0.005)  # with acks=0 nobody waits until the broker has it
    assert [(request.acks, request.timeout_ms) for request in requests] == [(-1 if acks == "all" else acks, 12_345)]


def test_with_acks_0_a_record_counts_as_sent_although_the_broker_never_took_it(broker, servers):
    with Producer({**servers, "acks": 0, "error_cb": lambda error: None}) as producer:
        producer.list_topics("orders", 10)
        broker.add_fault(Fault(action=Action.DROP, request=ProduceRequest))
        assert not producer.send(ProducerRecord("orders", b"lost")).result(10).has_offset()
    assert broker.end_offsets("orders") == [0]


@pytest.mark.parametrize("acks", [1, "all"])
def test_when_the_leader_changes_the_old_one_says_so_and_the_record_goes_to_the_new_one(broker, servers, acks):
    with Producer({**servers, "acks": acks, "retry.backoff.ms": 10}) as producer:
        producer.send(ProducerRecord("orders", b"1")).result(10)
        old = broker.leader("orders", 0)
        new = old % 3 + 1
        at_old, at_new = (watch(broker, ProduceRequest, node_id=node) for node in (old, new))
        broker.move_leader("orders", 0, new)
        assert producer.send(ProducerRecord("orders", b"2")).result(10).offset == 1
    assert (len(at_old), len(at_new)) == (1, 1)


# Batches


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_a_whole_and_travel_smaller(broker, servers, codec):
    sizes = {}
    for compression in ("none", codec):
        requests = watch(broker, ProduceRequest)
        with Producer({**servers, "compression.type": compression, "linger.ms": 200}) as producer:
            for number in range(200):
                producer.produce("orders", f'{{"customer": {number}, "state": "new", "country": "de"}}')
        made = batches(requests)
        assert len(made) == 1
        assert scan(bytes(made[0]))[0].count == 200
        sizes[compression] = len(made[0])
        broker.clear_faults()
    assert sizes[codec] < sizes["none"] / 2


def test_records_that_come_faster_than_they_can_be_sent_share_batches(broker, servers):
    with Producer({**servers, "linger.ms": 0, "max.in.flight": 1}) as producer:
        producer.send(ProducerRecord("orders", b"v")).result(10)
        requests = watch(broker, ProduceRequest)
        broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.3))
        for _ in range(1000):
            producer.produce("orders", b"v")
        producer.flush(10)
    assert sum(scan(bytes(batch))[0].count for batch in batches(requests)) == 1000
    assert len(requests) <= 20


def test_partitions_are_buffered_apart_so_a_slow_leader_holds_up_its_own_records_only(broker, servers):
    slow = broker.leader("six", 0)
    other = next(partition for partition in range(6) if broker.leader("six", partition) != slow)
    with Producer(servers) as producer:
        producer.send(ProducerRecord("six", b"v", partition=0)).result(10)
        broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, node_id=slow, delay_s=1.0))
        held = producer.send(ProducerRecord("six", b"v", partition=0))
        for _ in range(5):
            producer.send(ProducerRecord("six", b"v", partition=other)).result(10)
        assert not held.done()
        assert held.result(10).has_offset()


def test_a_send_into_a_full_buffer_is_delayed_and_fails_in_the_end(broker, servers):
    conf = {**servers, "queue.buffering.max.messages": 1, "max.block.ms": 400}
    with Producer(conf) as producer:
        producer.send(ProducerRecord("orders", b"v")).result(10)
        for delay_s, refused in ((0.2, False), (1.5, True)):
            broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=delay_s))
            first = producer.send(ProducerRecord("orders", b"v"))
            began_at = time.monotonic()
            if refused:
                with pytest.raises(BufferFullError, match=r"max\.block\.ms"):
                    producer.send(ProducerRecord("orders", b"v"))
            else:
                producer.send(ProducerRecord("orders", b"v")).result(10)
            assert time.monotonic() - began_at > 0.1
            first.result(10)


# Programs


def test_the_programs(broker, servers):
    told = []
    producer = Producer(servers)
    producer.send(ProducerRecord("orders", "value", "key"))  # nobody looks at what becomes of it
    producer.close()
    with Producer(servers) as producer:
        future = producer.send(ProducerRecord("orders", "value", "key"))
        assert future.result(10).offset == 1
        producer.send(ProducerRecord("orders", "value", "key"), lambda metadata, error: told.append(
            (metadata.offset, error)))
        broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.POLICY_VIOLATION))
        producer.flush(10)
        producer.send(ProducerRecord("orders", "value", "key"), lambda metadata, error: told.append(
            (metadata.offset, error)))
    assert read(broker, "orders") == [b"value"] * len(read(broker, "orders"))
    assert sorted(told, key=str) == [(-1, KafkaError.POLICY_VIOLATION), (2, None)]
