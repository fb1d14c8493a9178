"""Clients that `__del__` methods, generators and `with` blocks use when the interpreter ends: it ends all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.testing import EmbeddedBroker

SOON_S = 20

PROGRAM = """
import atexit, sys
from headrace import Consumer, KafkaAsyncProducer, KafkaSyncProducer, Producer, ProducerRecord, ShareConsumer
from headrace.admin import AdminClient
from headrace.schema_registry import SchemaRegistryClient
conf, topic = {{"bootstrap.servers": {servers!r}}}, {topic!r}
group = {{**conf, "group.id": topic, "auto.offset.reset": "earliest"}}

class AtTheEnd:
    def __init__(self, action):
        self.action = action
    def __del__(self):
        try:
            print("returned", self.action())
        except BaseException as error:
            print("raised", type(error).__name__, error)

{program}
print("END", flush=True)
"""

ENDS = ("ClientClosedError the interpreter ends, and no thread but this one runs any more: flush and close clients "
        "before, in a with block or in a function that is registered with atexit\n")
LOST = ("a producer ends, and records were not delivered or not confirmed yet (1): call flush() or close() before "
        "it is let go and before the program ends\n")
PROGRAMS: dict[str, tuple[str, str, int] | tuple[str, str, int, str]] = {
    "close a producer": ("""
producer = Producer(conf)
producer.produce(topic, b"value")
producer.flush()
owner = AtTheEnd(producer.close)
""", "END\nreturned True\n", 1),
    "close a producer too late": ("""
producer = Producer({**conf, "linger.ms": 10_000})
producer.produce(topic, b"value")
owner = AtTheEnd(producer.close)
""", f"END\nraised {ENDS}", 0, LOST),
    "flush a producer too late": ("""
producer = Producer({**conf, "linger.ms": 10_000})
producer.produce(topic, b"value")
owner = AtTheEnd(producer.flush)
""", f"END\nraised {ENDS}", 0, LOST),
    "wait for a future too late": ("""
producer = Producer({**conf, "linger.ms": 10_000})
future = producer.send(ProducerRecord(topic, b"value"))
owner = AtTheEnd(future.result)
""", f"END\nraised {ENDS}", 0, LOST),
    "leave a producer alone": ("""
producer = Producer({**conf, "linger.ms": 10_000})
producer.produce(topic, b"value")
""", "END\n", 0, LOST),
    "poll a producer too late": ("""
producer = Producer({**conf, "linger.ms": 10_000})
producer.produce(topic, b"value")
owner = AtTheEnd(lambda: (producer.poll(0), producer.poll()))
""", f"END\nraised {ENDS}", 0, LOST),
    "close a consumer": ("""
consumer = Consumer(group)
consumer.subscribe([topic])
consumer.poll(0.2)
owner = AtTheEnd(consumer.close)
""", "END\nreturned None\n", 0),
    "poll a consumer too late": ("""
consumer = Consumer(group)
consumer.subscribe([topic])
consumer.poll(0.2)
owner = AtTheEnd(consumer.poll)
""", f"END\nraised {ENDS}", 0),
    "a generator in a with block": ("""
def numbers():
    with Consumer(group) as consumer:
        consumer.subscribe([topic])
        while True:
            yield consumer.poll(0.1)
rest = numbers()
next(rest)
""", "END\n", 0),
    "ask an admin client too late": ("""
admin = AdminClient(conf)
owner = AtTheEnd(lambda: admin.list_topics(timeout=5))
""", f"END\nraised {ENDS}", 0),
    "close an admin client": ("admin = AdminClient(conf)\nowner = AtTheEnd(admin.close)", "END\nreturned None\n", 0),
    "close a share consumer": ("""
consumer = ShareConsumer({**conf, "group.id": topic})
consumer.subscribe([topic])
consumer.poll(0.5)
owner = AtTheEnd(consumer.close)
""", "END\nreturned None\n", 0),
    "close a registry client": ("""
registry = SchemaRegistryClient({"url": "mock://"})
registry.get_subjects()
owner = AtTheEnd(registry.close)
""", "END\nreturned None\n", 0),
    "producers of kafka": ("""
first, second = KafkaSyncProducer(conf), KafkaAsyncProducer({**conf, "linger.ms": 100})
owner = AtTheEnd(lambda: first.close())
second.send(ProducerRecord(topic, b"value"), lambda metadata, error: print("told", error))
""", "END\ntold None\nreturned None\n", 1),
    "what is registered for the end": ("""
producer = Producer({**conf, "compression.type": "gzip", "linger.ms": 10_000})
def last():
    producer.produce(topic, b"value" * 100)
    print("left", producer.flush())
atexit.register(last)
""", "END\nleft 0\n", 1),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"unused": 1}) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_ends_and_what_comes_too_late_is_an_error(name: str, servers: str) -> None:
    program, output, records, *log = PROGRAMS[name]
    topic = "".join(letter for letter in name if letter.isalpha())
    with Producer({"bootstrap.servers": servers}) as producer:
        assert producer.list_topics(topic, SOON_S)  # it is made now
        text = PROGRAM.format(servers=servers, topic=topic, program=program)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=SOON_S, check=False,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        assert (done.stdout, done.stderr, done.returncode) == (output, "".join(log), 0)
    with Consumer({"bootstrap.servers": servers, "group.id": "count"}) as reader:
        assert reader.get_watermark_offsets(TopicPartition(topic, 0), SOON_S) == (0, records)
