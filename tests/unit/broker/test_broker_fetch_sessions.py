"""What a reader is told within a fetch session, as Kafka tells it."""

from uuid import UUID

from headrace.errors import KafkaError
from headrace.records import scan
from headrace.testing import EmbeddedBroker
from headrace.wire.frame import decode_response
from headrace.wire.messages.admin.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.support.raw_client import RawClient, batch_of

_LATEST = 16


def _made(client: RawClient, name: str) -> UUID:
    request = CreateTopicsRequest(topics=[CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])])
    (made,) = client.call(request).topics
    topic_id: UUID = made.topic_id
    return topic_id


def _delete(client: RawClient, name: str) -> None:
    client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=0))


def _fetch(topic_id: UUID, partitions: list[int], session_id: int = 0, epoch: int = 0, wait_ms: int = 0
           ) -> FetchRequest:
    asked = [FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1000) for each in partitions]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, session_id=session_id, session_epoch=epoch,
                        topics=[FetchTopic(topic_id=topic_id, partitions=asked)] if asked else [])


def _errors(reply: FetchResponse) -> list[int]:
    return [part.error_code for topic in reply.responses for part in topic.partitions]


def test_a_session_learns_that_its_topic_is_gone_and_then_that_it_is_another_one() -> None:
    with EmbeddedBroker() as broker, RawClient(broker) as client:
        first = _made(client, "t")
        session = client.call(_fetch(first, [0]), _LATEST).session_id
        _delete(client, "t")
        assert _errors(client.call(_fetch(first, [], session, 1), _LATEST)) == [KafkaError.UNKNOWN_TOPIC_OR_PART]
        assert _errors(client.call(_fetch(first, [0], session, 2), _LATEST)) == [KafkaError.UNKNOWN_TOPIC_OR_PART]
        assert _made(client, "t") != first
        reply = client.call(_fetch(first, [], session, 3), _LATEST)
        assert _errors(reply) == [KafkaError.INCONSISTENT_TOPIC_ID]
        assert reply.responses[0].partitions[0].aborted_transactions is None


def test_an_id_that_the_session_never_knew_a_topic_of_is_unknown() -> None:
    with EmbeddedBroker() as broker, RawClient(broker) as client:
        first = _made(client, "t")
        session = client.call(_fetch(first, [0]), _LATEST).session_id
        _delete(client, "t")
        _made(client, "t")
        with_another = client.call(_fetch(first, [0, 1], session, 1), _LATEST)
        assert _errors(with_another) == [KafkaError.INCONSISTENT_TOPIC_ID, KafkaError.UNKNOWN_TOPIC_ID]
        assert _errors(client.call(_fetch(first, [0]), _LATEST)) == [KafkaError.UNKNOWN_TOPIC_ID]


def test_a_fetch_that_waits_learns_that_its_topic_is_gone() -> None:
    with EmbeddedBroker() as broker, RawClient(broker) as client, RawClient(broker) as waiting:
        topic_id = _made(client, "t")
        session = waiting.call(_fetch(topic_id, [0]), _LATEST).session_id
        waiting.send(_fetch(topic_id, [], session, 1, wait_ms=60_000), _LATEST)
        assert client.call(_fetch(topic_id, [0]), _LATEST).error_code == 0
        _delete(client, "t")
        _, reply = decode_response(FetchRequest, _LATEST, waiting.read_frame())
        assert _errors(reply) == [KafkaError.UNKNOWN_TOPIC_OR_PART]


def test_a_session_gives_what_is_left_of_a_log_that_has_not_grown() -> None:
    with EmbeddedBroker() as broker, RawClient(broker) as client:
        topic_id = _made(client, "t")
        for value in b"a", b"b", b"c":
            assert client.produce("t", 0, batch_of([value])).error_code == 0
        session, found = 0, []
        for offset in range(4):
            request = _fetch(topic_id, [0], session, offset)
            request.topics[0].partitions[0].fetch_offset, request.max_bytes = offset, 1
            reply = client.call(request, _LATEST)
            session = reply.session_id
            found.append([len(scan(bytes(part.records or b""))) for topic in reply.responses
                          for part in topic.partitions])
        assert found == [[1], [1], [1], []]
