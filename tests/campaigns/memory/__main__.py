"""Memory of a producer behind a broker that takes records and never answers, and of a consumer that cannot keep up.

    python -m tests.campaigns.memory --records 10000000

Each case is an application in a process of its own that tries to hand over so many records to a broker in another
process. Records time out, so that new ones find room: all of them pass through the producer. What the process takes at
its peak beyond what it had with an idle producer must be no more than `buffer.memory` and `CONSTANT_BYTES`. The broker
is the embedded one with a fault: it reads every produce request and says nothing. Without acknowledgements that would
be no stall; there it is one that reads no more.

A consumer fetches ahead from a topic that holds more than it may: it takes no more than
`queued.max.messages.kbytes` and the same constant, whether its application reads all the time or does not poll.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.campaigns.memory.application import FULL, FULL_PARTITIONS, TABLE_ROWS, TOPIC

KIB, MIB = 1 << 10, 1 << 20
CONSTANT_BYTES = 32 * MIB
"""What a producer may take beyond `buffer.memory`, as `docs/how-to/producer.md` tells, a consumer beyond its queue."""
_TIMEOUTS = {"message.timeout.ms": 500, "queue.buffering.max.messages": 10_000_000}

CASES: dict[str, dict[str, Any]] = {
    "values of 100 bytes": {"way": "produce", "value_bytes": 100, "properties": {"buffer.memory": 64 * MIB}},
    "values of 10 bytes": {"way": "produce", "value_bytes": 10, "properties": {"buffer.memory": 64 * MIB}},
    "values of 1 KB": {"way": "produce", "value_bytes": 1000, "properties": {"buffer.memory": 128 * MIB}},
    "a callback for each record": {
        "way": "closures", "value_bytes": 100, "properties": {"buffer.memory": 64 * MIB}},
    "a callback for each tiny record": {
        "way": "closures", "value_bytes": 1, "properties": {"buffer.memory": 64 * MIB}},
    "1,000 partitions": {"way": "produce", "value_bytes": 100, "keys": 100_000, "topic": "many",
                         "properties": {"buffer.memory": 64 * MIB, "partitioner": "murmur2"}},
    "lz4": {"way": "produce", "value_bytes": 100,
            "properties": {"buffer.memory": 64 * MIB, "compression.type": "lz4"}},
    "lz4 of what it cannot compress": {
        "way": "produce", "value_bytes": 10_000, "random": True,
        "properties": {"buffer.memory": 64 * MIB, "compression.type": "lz4"}},
    "no acknowledgements": {"way": "produce", "value_bytes": 100, "deaf": True,
                            "properties": {"buffer.memory": 64 * MIB, "acks": 0}},
    "a topic that is not there": {
        "way": "closures", "value_bytes": 100, "topic": "missing", "properties": {"buffer.memory": 64 * MIB}},
    "send()": {"way": "send", "value_bytes": 100, "properties": {"buffer.memory": 64 * MIB}},
    "produce_arrow()": {"way": "arrow", "value_bytes": 100, "properties": {"buffer.memory": 64 * MIB}},
    "asyncio": {"way": "asyncio", "value_bytes": 100, "properties": {"buffer.memory": 64 * MIB}},
    "the defaults": {"way": "closures", "value_bytes": 1000,
                     "properties": {"queue.buffering.max.messages": 100_000}},
    "a consumer that reads": {
        "way": "consume", "value_bytes": 0, "topic": FULL, "properties": {"queued.max.messages.kbytes": 2 * KIB}},
    "a consumer that does not poll": {
        "way": "stand still", "value_bytes": 0, "topic": FULL, "properties": {"queued.max.messages.kbytes": 2 * KIB}},
    "a consumer with a paused partition": {
        "way": "consume", "value_bytes": 0, "topic": FULL, "paused": True,
        "properties": {"queued.max.messages.kbytes": 2 * KIB}},
    "a consumer under asyncio": {
        "way": "consume asyncio", "value_bytes": 0, "topic": FULL,
        "properties": {"queued.max.messages.kbytes": 2 * KIB}},
}
_READING = ("consume", "stand still", "consume asyncio")

_FULL_RECORDS = 80_000
_BROKER = f"""
import sys
from headrace import Producer
from headrace.testing import Action, BrokerSettings, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.threaded_broker import ThreadedBroker
settings = BrokerSettings(auto_create_topics=False)
topics = {{{TOPIC!r}: 4, "many": 1000, {FULL!r}: {FULL_PARTITIONS}}}
with EmbeddedBroker(topics=topics, settings=settings) as broker:
    with Producer({{"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5}}) as producer:
        for number in range({_FULL_RECORDS}):
            producer.produce({FULL!r}, bytes(1000), partition=number % {FULL_PARTITIONS})
    broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest, times=None))
    with ThreadedBroker(reads_bytes=1_000_000) as deaf:
        print(broker.bootstrap_servers, deaf.bootstrap_servers, flush=True)
        sys.stdin.read()
"""


@contextmanager
def stalled_brokers() -> Iterator[list[str]]:
    """Two brokers in another process: one that does not answer, one that does not read. Gives their addresses."""
    with subprocess.Popen([sys.executable, "-c", _BROKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()
        finally:
            process.kill()


def measure(name: str, addresses: list[str], records: int, **more: Any) -> dict[str, Any]:
    """Run one case, with more properties.

    Returns:
        What the application tells; `taken`: bytes at the peak; `beyond`: those of them beyond `buffer.memory`, or
        beyond `queued.max.messages.kbytes`.
    """
    case = CASES[name]
    reads = case["way"] in _READING
    properties = {"bootstrap.servers": addresses["deaf" in case], **({} if reads else _TIMEOUTS), **case["properties"],
                  **more}
    told = subprocess.run(
        [sys.executable, "-m", "tests.campaigns.memory.application", json.dumps({**case, "properties": properties,
                                                                      "records": records})],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    figures: dict[str, Any] = json.loads(told.stdout)
    taken = figures["peak"] - figures["baseline"]
    limit = (properties["queued.max.messages.kbytes"] * KIB if reads
             else properties.get("buffer.memory", 1024 * MIB))
    return {**figures, "taken": taken, "beyond": taken - limit}


def main() -> int:
    """Measure all cases; 1 when one takes too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.memory", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000, help="for each case (default: %(default)s)")
    parser.add_argument("--only", choices=CASES, action="append", help="this case, may be repeated")
    arguments = parser.parse_args()
    assert arguments.records % TABLE_ROWS == 0, f"--records must be a multiple of {TABLE_ROWS}"
    above = []
    with stalled_brokers() as addresses:
        for name in arguments.only or CASES:
            figures = measure(name, addresses, arguments.records)
            print(f"{name:36} {figures['taken'] / MIB:8.1f} MiB, {figures['beyond'] / MIB:+8.1f} to the limit, "
                  f"{(figures['left'] - figures['baseline']) / MIB:6.1f} left, {figures['seconds']:6.1f} s, "
                  f"full {figures['full']}, {figures['told']}", flush=True)
            if figures["beyond"] > CONSTANT_BYTES:
                above.append(name)
    print(f"{arguments.records:,} records in each of {len(arguments.only or CASES)} cases; "
          f"at most {CONSTANT_BYTES // MIB} MiB beyond the limit are allowed: "
          + (f"MORE IN {', '.join(above)}" if above else "kept"))
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
