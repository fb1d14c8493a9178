"""The page about reading records: each of its programs runs until Ctrl-C, reads all, and commits what it says."""

from __future__ import annotations

import builtins
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace import Consumer, KafkaException, Producer, TopicPartition
from headrace.broker.dispatch import SERVED
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.groups.share_groups import ShareFetchRequest

PAGE = (Path(__file__).parents[4] / "docs/how-to/consumer.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PATIENCE_S = 30.0
ORDERS = 10


class Expected(NamedTuple):
    """What a program says and leaves: a line for each order, or one that says so much; the group and its offsets."""

    group: str
    says: str
    committed: int = ORDERS
    ends: bool = False
    """It ends by itself: Ctrl-C would come in the middle of that."""


EXPECTED = {
    "for message in consumer:\n        if message.error() is None:\n            print(message.topic()": Expected(
        "shop", "orders 1 4 None b'9'"),
    "consumer.store_offsets(message)": Expected("shop", "done: b'9'"),
    "for message in messages:\n            if message.error()": Expected("shop", "done: b'9'"),
    "transactional.id": Expected("billing", "orders are invoices"),
    "sqlite3": Expected("loader", "10 orders are stored", committed=0),
    "cooperative-sticky": Expected("shop", "b'9'"),
    "ThreadPoolExecutor": Expected("shop", "done: b'9'"),
    "AIOConsumer": Expected("shop", "done: b'9'"),
    "polars": Expected("report", "partition"),
    "ShareConsumer": Expected("jobs", "done: b'9'", committed=0),
    "health.waits_for": Expected("shop", "orders 0 has 0 to 5 and the group goes on at", committed=1, ends=True),
}
"""By words that occur in one program alone."""


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"orders": 2, "invoices": 1}) as broker:
        write_orders(broker)
        yield broker


def write_orders(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(ORDERS):
            producer.produce("orders", b"%d" % number, partition=number % 2)


def committed(consumer: Consumer) -> int:
    found = consumer.committed([TopicPartition("orders", partition) for partition in range(2)], PATIENCE_S)
    return sum(max(each.offset, 0) for each in found)


def run_until(program: str, names: dict[str, Any], done: Callable[[], bool]) -> None:
    """Run a program; when so much is done, press Ctrl-C."""
    running = True

    def on_signal(*_: object) -> None:
        nonlocal running
        if running:
            running = False
            raise KeyboardInterrupt

    def press() -> None:
        end = time.monotonic() + PATIENCE_S
        while running and not done() and time.monotonic() < end:
            time.sleep(0.01)
        if running and (main := threading.main_thread().ident) is not None:
            signal.pthread_kill(main, signal.SIGINT)

    before, presser = signal.signal(signal.SIGINT, on_signal), threading.Thread(target=press)
    try:
        presser.start()
        exec(compile(program, "consumer.md", "exec"), names)
    except KeyboardInterrupt:
        pass
    finally:
        running = False
        presser.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("words", EXPECTED, ids=lambda words: re.sub(r"\W+", " ", words)[-30:])
def test_each_program_of_the_page_runs(
    words: str, broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = (each for each in PROGRAMS if words in each)
    for library in re.findall(r"^import (polars)", program, re.MULTILINE):
        pytest.importorskip(library)
    expected, lines = EXPECTED[words], list[str]()

    def note(*values: object) -> None:
        lines.append(" ".join(map(str, values)))
        builtins.print(*values)

    def done() -> bool:
        if "ShareConsumer" in program:
            write_orders(broker)  # such a group begins behind what is there
        has_committed = "commit(" not in program or committed(reader) == expected.committed
        return not expected.ends and said_all(expected, lines) and has_committed

    names: dict[str, Any] = {"__name__": "__main__", "print": note}
    program = program.replace("localhost:9092", broker.bootstrap_servers).replace("timeout=1.0", "timeout=0.1")
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": expected.group}) as reader:
        if "ShareConsumer" in program and ShareFetchRequest.api_key not in SERVED:
            with pytest.raises(KafkaException, match="the brokers have no share groups"):
                run_until(program, names, done)
            return
        run_until(program, names, done)
        assert said_all(expected, lines)
        assert committed(reader) == expected.committed
    if "database" in names:
        assert isinstance(names["database"], sqlite3.Connection)
        names["database"].close()
    if "invoices" in program:
        assert invoices(broker) == {b"%d" % number for number in range(ORDERS)}


def said_all(expected: Expected, lines: list[str]) -> bool:
    if not any(expected.says in line for line in lines):
        return False
    if "b'9'" not in expected.says:
        return True
    return {f"b'{number}'" for number in range(ORDERS)} <= {line.rpartition(" ")[2] for line in lines}


def invoices(broker: EmbeddedBroker) -> set[bytes | None]:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "auditor"}) as consumer:
        consumer.assign([TopicPartition("invoices", 0, 0)])
        return {message.value() for message in consumer.consume(ORDERS, PATIENCE_S)}


def test_no_program_of_the_page_is_left_out() -> None:
    found = [words for program in PROGRAMS for words in EXPECTED if words in program]
    assert sorted(found) == sorted(EXPECTED)
    assert len(PROGRAMS) == len(EXPECTED)


# My consumer does not read


@pytest.fixture
def servers(broker: EmbeddedBroker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def poll_until(condition: Callable[[], bool], *members: Consumer) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end:
        for member in members:
            assert member.poll(0.02) is None
    assert condition()


def test_a_new_group_waits_for_new_records(servers: dict[str, Any]) -> None:
    with Consumer({**servers, "group.id": "new"}) as member:
        member.subscribe(["orders"])
        poll_until(lambda: member.health().waits_for.startswith("new records"), member)
        assert member.get_watermark_offsets(TopicPartition("orders", 0), PATIENCE_S) == (0, ORDERS // 2)


def test_a_member_too_many_is_stable_and_has_no_partition(servers: dict[str, Any]) -> None:
    members = [Consumer({**servers, "group.id": "crowd"}) for _ in range(3)]
    for member in members:
        member.subscribe(["orders"])
    poll_until(lambda: all(member.health().group_state == "stable" for member in members)
               and sorted(len(member.assignment()) for member in members) == [0, 1, 1], *members)
    (idle,) = (member for member in members if not member.assignment())
    assert idle.health().waits_for.startswith("partitions of group 'crowd', of which it is stable")
    for member in members:
        member.close()


def test_records_behind_an_open_transaction_wait(servers: dict[str, Any]) -> None:
    with Producer({**servers, "transactional.id": "endless"}) as producer, Consumer(servers) as reader:
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("invoices", b"1")
        assert producer.flush(PATIENCE_S) == 0
        reader.assign([TopicPartition("invoices", 0, 0)])
        poll_until(lambda: reader.health().waits_for.startswith("new records"), reader)
        assert reader.get_watermark_offsets(TopicPartition("invoices", 0), cached=True) == (0, 1)
        producer.commit_transaction()
        message = reader.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == b"1"
