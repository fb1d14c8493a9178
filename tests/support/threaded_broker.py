"""One broker with one topic on threads of its own, for tests of slow and dead peers, TLS included.

It stores nothing: it counts the records of the batches that it reads, as slowly as it was told.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from types import TracebackType
from typing import Self
from uuid import UUID

from headrace.wire.api import API
from headrace.wire.frame import RequestFrame, decode_request, encode_response
from headrace.wire.frame_reader import FrameReader
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.cluster.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.schema import Response

TOPIC, TOPIC_ID = "t", UUID(int=7)
_RECORD_COUNT = slice(57, 61)


class ThreadedBroker:
    """A broker for `TOPIC`.

    Args:
        partitions: how many the topic has.
        tls: speak TLS with this context.
        chunk_bytes, pause_s: read no more at a time, and rest so long after so many bytes.
        reads_bytes: stop reading for good after so many bytes on a connection.
        answers: answer produce requests; without, they are read and no more is heard of them.

    Attributes:
        records: those that have come.
        ends: how connections ended: "" for a clean end, else the error.
    """

    def __init__(
        self,
        *,
        partitions: int = 1,
        tls: ssl.SSLContext | None = None,
        chunk_bytes: int = 1 << 18,
        pause_s: float = 0.0,
        reads_bytes: int | None = None,
        answers: bool = True,
    ) -> None:
        self._partitions, self._tls, self._answers = partitions, tls, answers
        self._chunk_bytes, self._pause_s, self._reads_bytes = chunk_bytes, pause_s, reads_bytes
        self.records = 0
        self.ends: list[str] = []
        self._closed = threading.Event()
        self._streams: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def close(self) -> None:
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for stream in self._streams:
            stream.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        error = ""
        try:
            if self._tls is not None:
                stream = self._tls.wrap_socket(stream, server_side=True)
            self._streams.append(stream)
            self._converse(stream)
        except OSError as failed:
            error = repr(failed)
        finally:
            self.ends.append(error)
            stream.close()

    def _converse(self, stream: socket.socket) -> None:
        splitter, read_bytes = FrameReader(200_000_000), 0
        while data := stream.recv(self._chunk_bytes):
            for raw in splitter.feed(data):
                frame = decode_request(raw)
                reply = self._answer(frame)
                if reply is not None:
                    stream.sendall(b"".join(encode_response(reply, frame.version, frame.correlation_id)))
            if read_bytes // self._chunk_bytes < (read_bytes + len(data)) // self._chunk_bytes:
                time.sleep(self._pause_s)
            read_bytes += len(data)
            if self._reads_bytes is not None and read_bytes > self._reads_bytes:
                self._closed.wait()

    def _answer(self, frame: RequestFrame) -> Response | None:
        request = frame.request
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(api_keys=[
                ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
                for api in API.values()])
        if isinstance(request, MetadataRequest):
            return self._metadata()
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=1, producer_epoch=0)
        assert isinstance(request, ProduceRequest)
        for topic in request.topic_data:
            for partition in topic.partition_data:
                assert partition.records is not None
                self.records += int.from_bytes(partition.records[_RECORD_COUNT], "big")
        return self._stored(request) if self._answers and request.acks else None

    def _metadata(self) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(error_code=0, partition_index=index, leader_id=1, replica_nodes=[1],
                                      isr_nodes=[1], offline_replicas=[]) for index in range(self._partitions)]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self._port)], controller_id=1,
            topics=[MetadataResponseTopic(error_code=0, name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)])

    def _stored(self, request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(responses=[
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[
                PartitionProduceResponse(index=partition.index, base_offset=-1)
                for partition in topic.partition_data]) for topic in request.topic_data])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
