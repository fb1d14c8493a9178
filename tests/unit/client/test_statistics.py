"""What a client says about itself: `metrics()`, `stats_cb`, `throttle_cb`."""

import asyncio
import json
import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from headrace import Consumer, Producer, ThrottleEvent, TopicPartition
from headrace.aio import AIOConsumer, AIOProducer
from headrace.broker.settings import BrokerSettings
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "two": 2}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def props(broker: EmbeddedBroker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "client.id": "counted", "linger.ms": 1}


def poll_until(client, happened, timeout_s=20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        client.poll(0.05)


def test_a_producer_counts_its_records_batches_requests_and_bytes(props) -> None:
    with Producer(props) as producer:
        for number in range(100):
            producer.produce("two", b"x" * 100, partition=number % 2)
        assert producer.flush(20) == 0
        metrics = producer.metrics()
    assert (metrics["client_id"], metrics["type"]) == ("counted", "producer")
    assert (metrics["msg_cnt"], metrics["msg_size"], metrics["msg_max"]) == (0, 0, 100_000)
    assert metrics["msg_size_max"] == 1 << 30
    assert metrics["txmsgs"] == 100
    partitions = metrics["topics"]["two"]["partitions"]
    assert [partitions[number]["txmsgs"] for number in ("0", "1")] == [50, 50]
    assert metrics["txmsg_bytes"] == sum(each["txbytes"] for each in partitions.values()) > 100 * 100
    assert partitions["0"]["leader"] >= 0
    assert metrics["topics"]["two"]["batchcnt"]["sum"] == 100
    assert metrics["topics"]["two"]["batchsize"]["sum"] == metrics["txmsg_bytes"]
    assert metrics["eos"]["idemp_state"] == "Assigned"
    assert metrics["eos"]["producer_id"] >= 0
    up = [each for each in metrics["brokers"].values() if each["nodeid"] >= 0]
    assert [each["state"] for each in up] == ["UP"]
    assert up[0]["name"] == f"{up[0]['nodename']}/{up[0]['nodeid']}"
    assert sum(each["req"].get("Produce", 0) for each in up) >= 1
    assert all(sum(each["req"].values()) == each["tx"] == each["rx"] for each in metrics["brokers"].values())
    assert up[0]["rtt"]["cnt"] == up[0]["tx"] - up[0]["req"]["ApiVersion"]
    assert 0 < up[0]["rtt"]["min"] <= up[0]["rtt"]["p50"] <= up[0]["rtt"]["max"] < 20_000_000
    assert metrics["tx_bytes"] > metrics["txmsg_bytes"]
    assert metrics["rx_bytes"] > 0


def test_records_that_wait_are_seen_where_they_wait(broker, props) -> None:
    with Producer({**props, "linger.ms": 60_000}) as producer:
        producer.produce("one", b"first")
        producer.flush(20)
        producer.produce("one", b"second")
        metrics = producer.metrics()
        assert metrics["msg_cnt"] == 1
        assert metrics["msg_size"] > len(b"second")
        assert metrics["topics"]["one"]["partitions"]["0"]["txmsgs"] == 1


def test_reports_that_nobody_has_polled_for_count_as_waiting(props) -> None:
    with Producer(props) as producer:
        for _ in range(7):
            producer.produce("one", b"", callback=lambda error, message: None)
        deadline = time.monotonic() + 20
        while producer.metrics()["replyq"] < 7:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert producer.poll(0) == 7
        assert producer.metrics()["replyq"] == 0


def names(value, path=()):
    """The path of every field; what is named after brokers, topics, partitions and requests counts as one."""
    found = set()
    for name, below in value.items() if isinstance(value, dict) else ():
        here = (*path, "*" if path[-1:] in [("brokers",), ("topics",), ("partitions",), ("req",)] else name)
        found |= {here} | names(below, here)
    return found


def test_every_name_is_one_of_librdkafkas(props) -> None:
    texts: list[str] = []
    sums: dict[type, set[tuple[str, ...]]] = {}
    for make, extra in ((confluent_kafka.Producer, {"enable.idempotence": True}), (Producer, {})):
        producer = make({**props, **extra, "statistics.interval.ms": 50, "stats_cb": texts.append})
        producer.produce("one", b"x")
        assert producer.flush(20) == 0
        texts.clear()
        poll_until(producer, lambda: texts)
        sums[make] = names(json.loads(texts[-1]))
    theirs, ours = sums[confluent_kafka.Producer], sums[Producer]
    assert ("topics", "*", "partitions", "*", "txmsgs") in ours
    assert ours <= theirs, ours - theirs
    assert theirs - ours == {("eos", name) for name in ("txn_state", "txn_stateage", "txn_may_enq")}


def test_every_name_of_a_consumer_is_one_of_librdkafkas(props) -> None:
    texts: list[str] = []
    sums = []
    for make in (confluent_kafka.Consumer, Consumer):
        consumer = make({**props, "group.id": "g", "statistics.interval.ms": 50, "stats_cb": texts.append})
        consumer.assign([TopicPartition("one", 0, 0) if make is Consumer else
                         confluent_kafka.TopicPartition("one", 0, 0)])
        texts.clear()
        poll_until(consumer, lambda: texts and '"partitions":{"0"' in texts[-1].replace(" ", ""))
        sums.append(names(json.loads(texts[-1])))
        consumer.close()
    theirs, ours = sums
    for wanted in ("consumer_lag", "consumer_lag_stored", "ls_offset", "eof_offset", "leader_epoch", "fetch_state"):
        assert ("topics", "*", "partitions", "*", wanted) in ours
    assert ours <= theirs, ours - theirs
    assert theirs == ours


def test_stats_cb_gets_json_from_poll_every_interval(props) -> None:
    texts: list[str] = []
    with Producer({**props, "statistics.interval.ms": 20, "stats_cb": texts.append}) as producer:
        producer.produce("one", b"")
        poll_until(producer, lambda: len(texts) >= 3)
        assert isinstance(texts[0], str)
        read = [json.loads(text) for text in texts]
        assert [each["ts"] for each in read] == sorted(each["ts"] for each in read)
        assert read[-1].keys() == producer.metrics().keys()


def test_stats_that_nobody_polls_for_do_not_pile_up_and_the_newest_is_told(props) -> None:
    texts: list[str] = []
    with Producer({**props, "statistics.interval.ms": 10, "stats_cb": texts.append}) as producer:
        time.sleep(0.3)
        before_us = time.monotonic_ns() // 1000
        assert producer.poll(0) <= 1
        assert len(texts) <= 1
        poll_until(producer, lambda: texts)
        assert json.loads(texts[0])["ts"] > before_us - 5_000_000
        assert producer.metrics()["replyq"] <= 1


def test_without_an_interval_stats_cb_is_never_called(props) -> None:
    texts: list[str] = []
    with Producer({**props, "stats_cb": texts.append}) as producer:
        producer.produce("one", b"")
        producer.flush(20)
        assert not texts


def test_a_consumer_shows_its_partitions_and_calls_back_from_poll(props) -> None:
    with Producer(props) as producer:
        for _ in range(3):
            producer.produce("two", b"x", partition=1)
        producer.flush(20)
    texts: list[str] = []
    with Consumer({**props, "statistics.interval.ms": 20, "stats_cb": texts.append}) as consumer:
        consumer.assign([TopicPartition("two", 1, 0)])
        assert consumer.poll(20) is not None
        metrics = consumer.metrics()
        assert metrics["type"] == "consumer"
        partition = metrics["topics"]["two"]["partitions"]["1"]
        assert partition["app_offset"] == 1
        assert partition["hi_offset"] >= 3
        assert partition["consumer_lag"] == partition["consumer_lag_stored"] == partition["ls_offset"] - 1
        assert partition["fetch_state"] == "active"
        assert 0 < metrics["age"] < 60_000_000
        assert metrics["cgrp"] == {"state": "init", "join_state": "init", "rebalance_age": 0, "rebalance_cnt": 0,
                                   "assignment_size": 1}
        poll_until(consumer, lambda: texts)
        assert json.loads(texts[0])["type"] == "consumer"


def test_what_a_consumer_has_fetched_only_grows(props) -> None:
    offsets: list[int] = []
    with Producer(props) as producer:
        for _ in range(4):
            producer.produce("two", b"x" * 100, partition=0,
                             on_delivery=lambda _, message: offsets.append(message.offset()))
        producer.flush(20)
    with Consumer(props) as consumer:
        consumer.assign([TopicPartition("two", 0, offsets[0])])
        assert consumer.poll(20).error() is None
        metrics = consumer.metrics()
        partition = metrics["topics"]["two"]["partitions"]["0"]
        assert partition["rxmsgs"] == partition["fetchq_cnt"] == metrics["rxmsgs"] > 0
        assert partition["rxbytes"] == partition["fetchq_size"] == metrics["rxmsg_bytes"] >= 100
        consumer.seek(TopicPartition("two", 0, offsets[3]))
        assert consumer.poll(20).error() is None
        before = consumer.metrics()
        assert before["topics"]["two"]["partitions"]["0"]["fetchq_cnt"] == 0
        assert before["rxmsgs"] > metrics["rxmsgs"]
        consumer.unassign()
        after = consumer.metrics()
        assert after["topics"] == {}
        assert (after["rxmsgs"], after["rxmsg_bytes"]) == (before["rxmsgs"], before["rxmsg_bytes"])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_shows_how_it_stands_in_its_group(props, protocol: str) -> None:
    with Consumer({**props, "group.id": f"shown-{protocol}", "group.protocol": protocol,
                   "auto.offset.reset": "earliest"}) as consumer:
        outside = consumer.metrics()["cgrp"]
        assert (outside["join_state"], outside["rebalance_cnt"]) == ("init", 0)
        consumer.subscribe(["one"])
        poll_until(consumer, lambda: consumer.metrics()["cgrp"]["join_state"] == "steady" and consumer.assignment())
        group = consumer.metrics()["cgrp"]
        assert (group["state"], group["rebalance_cnt"]) == ("up", 1)
        assert group["assignment_size"] == len(consumer.assignment()) > 0
        assert group["rebalance_age"] >= 0


def test_the_asyncio_clients_have_the_same(props) -> None:
    async def work() -> None:
        texts: list[str] = []
        async with AIOProducer({**props, "statistics.interval.ms": 20, "stats_cb": texts.append}) as producer:
            await (await producer.produce("one", b"x"))
            assert (await producer.metrics())["txmsgs"] == 1
            async with asyncio.timeout(20):
                while not texts:
                    await asyncio.sleep(0.01)
        assert json.loads(texts[0])["type"] == "producer"
        consumer = AIOConsumer(props)
        assert (await consumer.metrics())["type"] == "consumer"
        await consumer.close()

    asyncio.run(work())


def test_a_broker_that_cannot_be_reached_is_down_and_its_dials_are_counted() -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.ms": 1, "error_cb": lambda error: None}
    with Producer(nobody) as producer:
        poll_until(producer, lambda: producer.metrics()["brokers"]["127.0.0.1:1/bootstrap"]["connects"] >= 2)
        metrics = producer.metrics()
        counts = metrics["brokers"]["127.0.0.1:1/bootstrap"]
        assert counts["state"] in ("DOWN", "CONNECT", "INIT")
        assert (counts["nodeid"], counts["source"], counts["rx"]) == (-1, "configured", 0)
        assert metrics["eos"] == {"idemp_state": "Init", "producer_id": -1, "producer_epoch": -1}


def test_throttling_is_told_in_seconds_from_poll(props, monkeypatch) -> None:
    from headrace.wire.messages.producer.produce import ProduceResponse

    ProduceResponse()  # the first one compiles __init__ and puts it in its place
    plain = ProduceResponse.__init__
    events: list[ThrottleEvent] = []
    with Producer({**props, "throttle_cb": events.append}) as producer:
        producer.produce("one", b"x")
        producer.flush(20)
        assert not events

        def slowed(self, *arguments, **fields):
            plain(self, *arguments, **{**fields, "throttle_time_ms": 250})

        monkeypatch.setattr(ProduceResponse, "__init__", slowed)
        producer.produce("one", b"x")
        poll_until(producer, lambda: events)
        monkeypatch.undo()
        broker = next(each for each in producer.metrics()["brokers"].values() if each["nodeid"] >= 0)
        assert events == [ThrottleEvent(broker["nodename"], broker["nodeid"], 0.25)]
        assert broker["throttle"]["max"] == 250
