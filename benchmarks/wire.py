"""Cost of the codecs: microseconds of CPU for messages as they pass in practice. Run: python benchmarks/wire.py"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from uuid import UUID

from headrace.wire.codec import encode
from headrace.wire.frame import decode_response, encode_request, encode_response
from headrace.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.wire.schema import Response

_TOPIC_ID = UUID(int=7)
_RECORDS = bytes(1_000_000)
_ROUNDS = 5


def main() -> None:
    """Print a table."""
    for name, action in _cases():
        print(f"{name:62} {_cost_us(action):10.1f} us")
    print(f"{'import of every message':62} {_import_us():10.1f} us")


def _cases() -> list[tuple[str, Callable[[], object]]]:
    produce = _produce_request()
    parts = encode_request(produce, 13, 1, "bench")
    assert sum(isinstance(part, memoryview) and part.obj is _RECORDS for part in parts) == 4
    partitions = [PartitionProduceResponse(index=i, base_offset=i) for i in range(4)]
    produced = ProduceResponse(responses=[TopicProduceResponse(topic_id=_TOPIC_ID, partition_responses=partitions)])
    fetched = FetchResponse(responses=[FetchableTopicResponse(
        topic_id=_TOPIC_ID, partitions=[PartitionData(partition_index=i, records=_RECORDS) for i in range(4)])])
    metadata = _metadata_response(100, 10)
    return [
        ("make and write ProduceRequest, 4 partitions of 1 MB", lambda: encode_request(_produce_request(), 13, 1, "b")),
        ("write ProduceRequest, 4 partitions of 1 MB", lambda: encode_request(produce, 13, 1, "bench")),
        ("read ProduceResponse, 4 partitions", _reading(ProduceRequest, produced, 13)),
        ("read FetchResponse, 4 partitions of 1 MB", _reading(FetchRequest, fetched, 17)),
        ("read MetadataResponse, 100 topics of 10 partitions", _reading(MetadataRequest, metadata, 12)),
        ("write MetadataResponse, 100 topics of 10 partitions", lambda: encode(metadata, 12)),
    ]


def _reading(request_type: type, response: Response, version: int) -> Callable[[], object]:
    frame = b"".join(encode_response(response, version, 1))[4:]
    return lambda: decode_response(request_type, version, frame)


def _produce_request() -> ProduceRequest:
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(
        name="events", topic_id=_TOPIC_ID,
        partition_data=[PartitionProduceData(index=i, records=_RECORDS) for i in range(4)])])


def _metadata_response(topic_count: int, partition_count: int) -> MetadataResponse:
    def partition(index: int) -> MetadataResponsePartition:
        return MetadataResponsePartition(partition_index=index, leader_id=1, leader_epoch=3, replica_nodes=[1, 2, 3],
                                         isr_nodes=[1, 2, 3])

    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=i, host=f"broker-{i}", port=9092) for i in range(3)],
        topics=[MetadataResponseTopic(name=f"topic-{i}", topic_id=UUID(int=i),
                                      partitions=[partition(p) for p in range(partition_count)])
                for i in range(topic_count)])


def _cost_us(action: Callable[[], object]) -> float:
    """The least CPU of some rounds of about 50 ms."""
    action()
    start = time.process_time()
    action()
    count = max(1, int(0.05 / max(time.process_time() - start, 1e-6)))
    return min(_round(action, count) for _ in range(_ROUNDS)) * 1e6


def _round(action: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        action()
    return (time.process_time() - start) / count


def _import_us() -> float:
    code = ("import time, uuid, dataclasses, functools, headrace.errors; t = time.process_time();"
            "from headrace.wire.api import API; len(API); print(time.process_time() - t)")
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(_ROUNDS)]
    return min(float(run.stdout) for run in runs) * 1e6


if __name__ == "__main__":
    main()
