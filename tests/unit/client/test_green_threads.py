"""Blocking clients where gevent has taken the place of threads: others go on while one waits, the clients' loop too."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.interpreter import has_threads
from headrace.testing import EmbeddedBroker

if sys.platform == "win32":
    pytest.skip("one kind of loop is enough", allow_module_level=True)

START = """
from gevent import monkey
monkey.patch_all()
import sys, time
import gevent
from headrace import Consumer, KafkaSyncProducer, Producer, ProducerRecord
from headrace.admin import AdminClient
from headrace.interpreter import has_threads

assert not has_threads()
conf = {"bootstrap.servers": sys.argv[1]}
ticks = 0

def tick():
    global ticks
    while True:
        ticks += 1
        gevent.sleep(0.01)

gevent.spawn(tick)
"""


def run(script: str) -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        done = subprocess.run([sys.executable, "-c", START + script, broker.bootstrap_servers],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


def test_here_threads_are_the_systems() -> None:
    assert has_threads()


def test_others_go_on_while_a_consumer_waits_and_its_heartbeats_do() -> None:
    run("""
consumer = Consumer({**conf, "group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 1000,
                     "heartbeat.interval.ms": 200})
changes = []
consumer.subscribe(["t"], on_assign=lambda *_: changes.append("assigned"), on_lost=lambda *_: changes.append("lost"))
while not changes:
    assert consumer.poll(1) is None
for _ in range(5):  # a machine may stop for as long as a session, now and then
    changes.clear()
    before = ticks
    assert consumer.poll(2.5) is None
    if ticks - before > 50 and not changes:
        break
else:
    raise AssertionError((ticks - before, changes))
try:
    with gevent.Timeout(0.3):
        consumer.poll(60)
    raise AssertionError("it was not interrupted")
except gevent.Timeout:
    pass
consumer.close()
""")


def test_records_that_come_one_by_one_are_read_and_each_is_reported() -> None:
    run("""
consumer = Consumer({**conf, "group.id": "g", "auto.offset.reset": "earliest"})
consumer.subscribe(["t"])
found = []

def read():
    while len(found) < 100:
        message = consumer.poll(30)
        found.append(message.value())

reader, reported, before = gevent.spawn(read), [], ticks
with Producer({**conf, "linger.ms": 0}) as producer:
    for number in range(100):
        producer.produce("t", b"%d" % number, on_delivery=lambda error, message: reported.append(message.value()))
        assert (producer.flush(10) if number % 2 else producer.poll(0)) is not None
        gevent.sleep(0.002)
reader.join(20)
assert found == reported == [b"%d" % number for number in range(100)]
assert ticks > before
consumer.close()
""")


def test_several_call_at_once() -> None:
    run("""
assert "t" in AdminClient(conf).list_topics(timeout=10).topics
with KafkaSyncProducer(conf) as producer:
    calls = [gevent.spawn(producer.send, ProducerRecord("t", b"%d" % number)) for number in range(10)]
    gevent.joinall(calls, timeout=20)
    assert sorted(call.get(block=False).offset for call in calls) == list(range(10))
""")


def test_the_embedded_broker_says_what_it_needs() -> None:
    run("""
from headrace.testing import EmbeddedBroker
try:
    EmbeddedBroker()
    raise AssertionError("it was made")
except RuntimeError as error:
    assert "headrace broker" in str(error)
""")
