"""What a record costs in Python calls where each is a request of its own. Exact on any machine, as CPU time is not."""

import subprocess
import sys
import time

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.buffers import implementation
from headrace.testing import EmbeddedBroker
from tests.support.calls import counted

RECORDS, WARM_UP, ATTEMPTS = 200, 50, 3
PRODUCE = {"loop": 8, "here": 9}
PRODUCE_BY_THE_LOOP = {"loop": 38, "here": 9}
LINGERING = {"loop": 125}
CONSUME = {"loop": 1, "here": 32}
CONSUME_BY_THE_LOOP = {"loop": 59, "here": 28}
"""At most so many calls for each record. `here` is the application's thread, its own loop left out."""
FEEDER = """
import sys, time
from headrace import Producer
with Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 0}) as producer:
    for _ in range(int(sys.argv[2])):
        producer.produce("t", b"x" * 100, partition=0)
        producer.flush()
        time.sleep(0.004)
"""

pytestmark = pytest.mark.skipif(implementation == "plain", reason="the plain twin is not what is counted")


@pytest.fixture
def servers():
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


def within(count, budget):
    """The best of a few counts keeps to the budget: other clients of this process may be at work on the same loop."""
    for _ in range(ATTEMPTS):
        calls = count()
        found = {"loop": sum(calls.loop.values()) / RECORDS, "here": sum(calls.here.values()) / RECORDS}
        if all(found[where] <= budget[where] for where in budget):
            return
    raise AssertionError(f"{found}\n{calls.shown(RECORDS)}")


@pytest.mark.parametrize(("linger_ms", "directly", "budget"), [
    (0, True, PRODUCE), (0, False, PRODUCE_BY_THE_LOOP), (1, True, LINGERING)])
def test_a_record_that_is_produced_alone_costs_few_calls(servers, linger_ms, directly, budget):
    with Producer({"bootstrap.servers": servers, "linger.ms": linger_ms}) as producer:
        told = []
        if not directly:  # as without the native module
            producer._engine._polling = None

        def send(count):
            for _ in range(count):
                producer.produce("t", b"x" * 100, partition=0, callback=lambda error, _message: told.append(error))
                before = len(told)
                while len(told) == before:
                    time.sleep(0.0005)  # another thread's turn, and no call that is counted
                    producer.poll(0)

        def count():
            with counted() as calls:
                send(RECORDS)
            in_vain = ("poll", "happened", "wait")  # how often one asks in vain is a matter of time
            for name in list(calls.here):
                if any(word in name for word in in_vain) or name.endswith(".send"):
                    del calls.here[name]
            return calls

        send(WARM_UP)
        within(count, budget)
    assert not any(told)


@pytest.mark.parametrize(("directly", "budget"), [(True, CONSUME), (False, CONSUME_BY_THE_LOOP)])
def test_a_record_that_is_read_alone_costs_few_calls(servers, directly, budget):
    with Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False,
                   "auto.offset.reset": "earliest", "allow.auto.create.topics": True}) as consumer:
        with Producer({"bootstrap.servers": servers}) as producer:
            producer.produce("t", b"first", partition=0)
        if not directly:  # as where several things happen at once
            consumer._engine.machines.fetcher.lending.lends = False
        consumer.assign([TopicPartition("t", 0, 1)])

        def count():
            feeder = subprocess.Popen([sys.executable, "-c", FEEDER, servers, str(WARM_UP + RECORDS)])
            try:
                for _ in range(WARM_UP):
                    assert consumer.poll(30) is not None
                with counted() as calls:
                    for _ in range(RECORDS):
                        assert consumer.poll(30) is not None
            finally:
                assert feeder.wait(30) == 0
            return calls

        within(count, budget)
