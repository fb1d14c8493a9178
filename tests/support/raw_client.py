"""A blocking client that sends one request at a time in any version, for what real clients would not send."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from headrace.records import NONE, BatchBuilder
from headrace.testing import EmbeddedBroker
from headrace.wire.frame import decode_response, encode_request
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.schema import Request

ASK_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")


class RawClient:
    def __init__(self, broker: EmbeddedBroker | str, node: int = 1) -> None:
        servers = broker if isinstance(broker, str) else broker.bootstrap_servers
        host, _, port = servers.split(",")[node - 1].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self._correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.socket.close()

    def send(self, request: Request, version: int | None = None) -> int:
        version = request.max_version if version is None else version
        self._correlation += 1
        self.socket.sendall(b"".join(encode_request(request, version, self._correlation, "raw")))
        return version

    def call(self, request: Request, version: int | None = None) -> Any:
        version = self.send(request, version)
        correlation, reply = decode_response(type(request), version, self.read_frame())
        assert correlation == self._correlation
        return reply

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def is_closed(self) -> bool:
        """Whether the broker hung up; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the broker hung up")
            data += more
        return data

    def produce(self, topic: str, partition: int, batch: bytes, version: int = 9) -> PartitionProduceResponse:
        reply = self.call(produce_request(topic, partition, batch), version)
        part = reply.responses[0].partition_responses[0]
        assert isinstance(part, PartitionProduceResponse)
        return part

    def producer_id(self) -> int:
        reply = self.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
        assert reply.error_code == 0
        return int(reply.producer_id)


def produce_request(topic: str, partition: int, batch: bytes, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[
        TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])])


def batch_of(values: list[bytes], producer_id: int = -1, epoch: int = -1, sequence: int = -1,
             codec: int = NONE, timestamp_ms: int = 1_700_000_000_000, *, transactional: bool = False) -> bytes:
    builder = BatchBuilder(1 << 20, len(values))
    for value in values:
        assert builder.append(timestamp_ms, None, value, [])
    batch = builder.seal(codec)
    batch.stamp(producer_id, epoch, sequence, transactional)
    return bytes(batch.data)
