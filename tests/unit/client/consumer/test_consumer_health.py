"""`lag()` and `health()`: what they say in each situation, from any thread and without asking anybody."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import Consumer, KafkaException, Producer, TopicPartition
from headrace.aio import AIOConsumer
from headrace.client.consumer.consumer_health import ConsumerHealth, PartitionLags
from headrace.errors import ClientClosedError
from headrace.net.thread import LoopCall
from headrace.testing import EmbeddedBroker

READ = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2, "read_committed": 1, "read_uncommitted": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for i in range(10):
                producer.produce("t", value=b"%d" % i, partition=0)
            assert producer.flush(10) == 0
        yield broker


def properties(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
            **{name.replace("_", "."): value for name, value in more.items()}}


def told(consumer: Consumer, beginning: str) -> ConsumerHealth:
    """The health, once what it waits for begins like this."""
    give_up_at = time.monotonic() + 15
    while not (found := consumer.health()).waits_for.startswith(beginning):
        assert time.monotonic() < give_up_at, found
        time.sleep(0.01)
    return found


def until(happened: Callable[[], Any]) -> None:
    give_up_at = time.monotonic() + 15
    while not happened():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_lag_is_what_lies_between_the_position_and_the_end_and_none_before_it_is_known(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        assert reader.lag() == {}
        reader.assign([TopicPartition("t", 0, 3), TopicPartition("t", 1, 0)])
        until(lambda: None not in reader.lag().values())
        assert reader.lag() == {READ: 7, TopicPartition("t", 1): 0}
        assert [tp.offset for tp in reader.lag()] == [3, 0]
        reader.consume(2, 10)
        assert reader.lag()[READ] == 5
        assert len(reader.consume_arrow(2, 10)) == 2
        assert reader.lag()[READ] == 3
        reader.consume(3, 10)
        assert reader.lag()[READ] == 0
        reader.seek(TopicPartition("t", 0, 9))
        assert reader.lag()[READ] == 1
    with Consumer({"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}) as reader:
        reader.assign([TopicPartition("t", 0, 3)])
        assert reader.lag() == {READ: None}


@pytest.mark.parametrize(("level", "behind"), [("read_committed", 0), ("read_uncommitted", 4)])
def test_records_of_an_open_transaction_count_for_those_who_read_them(
    broker: EmbeddedBroker, level: str, behind: int
) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": level}) as producer:
        producer.init_transactions(10)
        producer.begin_transaction()
        for _ in range(4):
            producer.produce(level, b"not yet")
        producer.flush(10)
        with Consumer(properties(broker, isolation_level=level)) as reader:
            reader.assign([TopicPartition(level, 0, 0)])
            until(lambda: list(reader.lag().values()) != [None])
            assert reader.lag() == {TopicPartition(level, 0): behind}
        producer.abort_transaction(10)


def test_a_consumer_without_a_broker_waits_for_one() -> None:
    with Consumer({"bootstrap.servers": "127.0.0.1:1"}) as reader:
        found = told(reader, "a broker: ")
        assert (found.fetch_s, found.heartbeat_s, found.rebalance_s, found.group_state) == (None, None, None, None)
        until(lambda: "127.0.0.1:1" in reader.health().waits_for)


def test_each_state_of_reading_is_told(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker, auto_offset_reset="error")) as reader:
        told(reader, "subscribe() or assign()")
        reader.assign([TopicPartition("t", 0, 8)])
        found = told(reader, "poll(): there are records")
        assert found.fetch_s is not None
        assert found.fetch_s < 10
        assert [(tp, tp.offset) for tp in found.assignment] == [(READ, 8)]
        reader.pause([READ])
        told(reader, "resume()")
        reader.resume([READ])
        reader.consume(2, 10)
        told(reader, "new records")
        reader.seek(TopicPartition("t", 0, 99))
        until(lambda: reader.poll(0.1) is not None)
        told(reader, "seek()")
        assert reader.lag() == {READ: None}


def test_all_is_read_when_it_is_known_of_each_partition() -> None:
    with EmbeddedBroker(nodes=2) as broker:
        broker.create_topic("t", 2, replication_factor=1)
        stopped = broker.leader("t", 1)
        assert stopped != broker.leader("t", 0)
        broker.stop_node(stopped)
        with Consumer(properties(broker)) as reader:
            reader.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
            until(lambda: reader.lag() == {READ: 0, TopicPartition("t", 1): None})
            told(reader, "the answer to the first fetch")
            assert not reader.health().waits_for.startswith("new records")
            broker.start_node(stopped)
            told(reader, "new records")


def test_what_a_paused_partition_is_behind_is_waited_for_by_nobody(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
        until(lambda: None not in reader.lag().values())
        reader.pause([READ])
        told(reader, "new records")
        assert reader.lag()[READ] == 10


def test_a_member_tells_of_its_group(broker: EmbeddedBroker) -> None:
    seen: list[ConsumerHealth] = []
    with Consumer(properties(broker, group_id="told", heartbeat_interval_ms=50)) as member:
        assert (member.health().group_state, member.health().member_id) == ("outside", None)
        member.subscribe(["t"], on_assign=lambda consumer, _: seen.append(consumer.health()))
        found = told(member, "poll(): a rebalance waits")
        assert found.group_state == "assigning"
        assert found.rebalance_s is None
        assert member.poll(10) is not None
        assert seen[0].waits_for.startswith("the application: its callback")
        until(lambda: member.health().group_state == "stable")
        found = member.health()
        assert found.member_id == member.memberid()
        assert len(found.assignment) == 2
        assert found.rebalance_s is not None
        time.sleep(0.3)
        until(lambda: (member.health().heartbeat_s or 1.0) < 0.3)
        later = member.health()
        assert later.rebalance_s is not None
        assert later.rebalance_s >= found.rebalance_s + 0.3


def test_a_member_whose_application_is_late_waits_for_it(broker: EmbeddedBroker) -> None:
    config = properties(broker, group_id="late", session_timeout_ms=500, max_poll_interval_ms=500,
                        heartbeat_interval_ms=100)
    with Consumer(config) as member:
        member.subscribe(["t"])
        assert member.poll(10) is not None
        until(lambda: member.health().group_state in ("losing", "stalled"))
        told(member, "poll(): ")


def test_a_member_without_partitions_says_so(broker: EmbeddedBroker) -> None:
    with Consumer(properties(broker, group_id="idle")) as member:
        member.subscribe(["nowhere"])
        told(member, "poll(): a rebalance waits")
        member.poll(0.5)
        found = told(member, "partitions of group 'idle', of which it is stable")
        assert found.assignment == []


def test_both_are_asked_from_any_thread_while_another_waits_and_ask_nobody(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("end")
    with Consumer(properties(broker)) as reader:
        reader.assign([TopicPartition("t", 0, 10), TopicPartition("end", 0, 0)])
        waiting = threading.Thread(target=reader.poll, args=(20,))
        waiting.start()
        told(reader, "new records")

        def refused(*_: object) -> None:
            raise AssertionError("went to the loop")

        with monkeypatch.context() as patch:
            patch.setattr(LoopCall, "start", refused)
            for _ in range(1000):
                assert (reader.lag()[READ], reader.health().waits_for[:11]) == (0, "new records")
        assert waiting.is_alive()
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.produce("end", b"of the wait")
        waiting.join()


def test_the_asyncio_consumer_tells_the_same(broker: EmbeddedBroker) -> None:
    async def main() -> tuple[int | None, str]:
        async with AIOConsumer(properties(broker)) as reader:
            await reader.assign([TopicPartition("t", 0, 4)])
            await reader.consume(6, 10)
            return (await reader.lag())[READ], (await reader.health()).waits_for

    assert asyncio.run(main()) == (0, "new records: all that were written are read")


def test_a_closed_consumer_tells_nothing(broker: EmbeddedBroker) -> None:
    reader = Consumer(properties(broker))
    reader.close()
    for ask in (reader.lag, reader.health):
        with pytest.raises(ClientClosedError):
            ask()
    assert issubclass(ClientClosedError, (KafkaException, RuntimeError))


def test_a_notebook_shows_the_largest_lag_first_and_those_that_are_not_known() -> None:
    lags = PartitionLags({TopicPartition("t", 0, 5): 2, TopicPartition("t", 1, -1001): None,
                          TopicPartition("t", 2, 7): 3000})
    made = lags._repr_html_()
    assert "<caption>3,002 records behind</caption>" in made
    assert made.index("<td>3000</td></tr>") < made.index("<td>2</td></tr>") < made.index("<td>not known</td></tr>")
    assert lags == {TopicPartition("t", 0): 2, TopicPartition("t", 1): None, TopicPartition("t", 2): 3000}
