"""What producers and readers of records ask, in all versions: for `test_broker_answers_as_kafka_does`."""


from headrace.records import GZIP, LZ4, NONE, SNAPPY, ZSTD, BatchBuilder
from headrace.records.legacy.conversion import downgrade
from headrace.wire.messages.admin.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from headrace.wire.messages.consumer.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.wire.messages.consumer.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.messages.producer.transactions import DescribeProducersRequest, ProducersTopicRequest
from headrace.wire.schema import ZERO_UUID, Request
from tests.support.raw_client import batch_of
from tests.support.talk import Conversation, Talk, only

START_MS = 1_700_000_000_000


def records_for(version: int, batch: bytes) -> bytes:
    """A batch as a producer of that version of Produce sends it."""
    return batch if version >= 3 else downgrade(batch, 0 if version < 2 else 1)


def produce(talk: Talk, records: bytes | None, topic: str = "", partition: int = 0, acks: int = -1) -> ProduceRequest:
    name = topic or talk.name
    known = name == talk.name
    return ProduceRequest(acks=acks, timeout_ms=3000, topic_data=[TopicProduceData(
        name=name, topic_id=talk.id_of(name) if known else ZERO_UUID,
        partition_data=[PartitionProduceData(index=partition, records=records)])])


def store(talk: Talk, *batches: bytes) -> None:
    """Put batches into the conversation's topic."""
    for batch in batches:
        reply = talk.call(produce(talk, batch), 9)
        assert reply.responses[0].partition_responses[0].error_code == 0, reply


def produce_stores_and_says_where(talk: Talk) -> None:
    talk.topic()
    for codec in (0, GZIP, SNAPPY, LZ4):
        talk.ask(produce(talk, records_for(talk.version, batch_of([b"a", b"b"], codec=codec))))
        talk.ask(produce(talk, records_for(talk.version, batch_of([b"c"])), acks=1))
    if talk.version >= 3:
        talk.ask(produce(talk, batch_of([b"z"], codec=ZSTD)))
    for magic in (0, 1):
        read_back(talk, 0 if magic == 0 else 2)
    read_back(talk, 11)


def read_back(talk: Talk, version: int) -> None:
    """Note what the conversation's topic holds now, when both brokers can tell in this version of Fetch."""
    if version >= 4:
        reply = talk.call(fetch(talk), version)
        talk.said.append(talk._plain(reply, version))


def produce_in_a_topic_of_broker_time(talk: Talk) -> None:
    talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    talk.ask(produce(talk, records_for(talk.version, batch_of([b"a", b"b"]))))


def produce_to_what_is_not_there(talk: Talk) -> None:
    talk.topic()
    batch = records_for(talk.version, batch_of([b"a"]))
    talk.ask(produce(talk, batch, topic="nowhere"))
    talk.ask(produce(talk, batch, partition=7))
    talk.ask(produce(talk, batch, partition=-1))
    talk.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]))


def produce_with_other_acks(talk: Talk) -> None:
    talk.topic()
    batch = records_for(talk.version, batch_of([b"a"]))
    for acks in (2, -2, 3):
        talk.ask(produce(talk, batch, acks=acks))
    talk.ask(produce(talk, batch, topic="nowhere", acks=2))


def produce_what_is_damaged(talk: Talk) -> None:
    talk.topic()
    good = records_for(talk.version, batch_of([b"hello", b"world"]))
    talk.ask(produce(talk, good[:-1] + bytes([good[-1] ^ 1])))
    talk.ask(produce(talk, b""))
    if talk.version >= 3:
        talk.ask(produce(talk, good + good))
        talk.ask(produce(talk, downgrade(batch_of([b"old"]), 1)))
        talk.ask(produce(talk, good[:17] + b"\x00\x00\x00\x00" + good[21:]))  # a wrong checksum
    packed = records_for(talk.version, batch_of([b"hello" * 50], codec=GZIP))
    at = len(packed) - 12
    talk.ask(produce(talk, packed[:at] + b"\xff\xff" + packed[at + 2:]))


def produce_what_is_too_large(talk: Talk) -> None:
    talk.topic(configs={"max.message.bytes": "200"})
    talk.ask(produce(talk, records_for(talk.version, batch_of([b"x" * 300]))))
    talk.ask(produce(talk, records_for(talk.version, batch_of([b"x" * 30]))))


def keyed(keys: list[bytes | None], codec: int = NONE, producer_id: int = -1) -> bytes:
    builder = BatchBuilder(1 << 20, len(keys))
    for key in keys:
        assert builder.append(START_MS, key, b"value", [])
    batch = builder.seal(codec)
    batch.stamp(producer_id, 0 if producer_id >= 0 else -1, 0 if producer_id >= 0 else -1, False)
    return bytes(batch.data)


def produce_without_keys_into_a_compacted_topic(talk: Talk) -> None:
    talk.topic(configs={"cleanup.policy": "delete,compact"})
    for keys in ([b"a", b""], [None], [b"a", None, b"b", None, None, None, b"c"], [b"d"]):
        for codec in (NONE, GZIP):
            talk.ask(produce(talk, records_for(talk.version, keyed(keys, codec))))
    if talk.version < 3:
        return
    pid = talk.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4).producer_id
    for keys in ([b"a", None], [b"a", b"b"], [b"a", b"b"], [b"a", None]):
        talk.ask(produce(talk, keyed(keys, producer_id=pid)))  # what is refused has used no sequence number


def produce_twice_and_out_of_order(talk: Talk) -> None:
    talk.topic()
    if talk.version < 3:
        return
    pid = talk.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4).producer_id
    first = batch_of([b"a", b"b"], pid, 0, 0)
    talk.ask(produce(talk, first))
    talk.ask(produce(talk, batch_of([b"c"], pid, 0, 2)))
    talk.ask(produce(talk, first))  # again
    talk.ask(produce(talk, batch_of([b"e"], pid, 0, 9)))  # a gap
    talk.ask(produce(talk, batch_of([b"f"], pid, 1, 3)))  # a new epoch begins with 0
    talk.ask(produce(talk, batch_of([b"g"], pid, 1, 0)))
    talk.ask(produce(talk, batch_of([b"h"], pid, 0, 3)))  # fenced
    for number in range(5):
        talk.ask(produce(talk, batch_of([b"i"], pid, 1, 1 + number)))
    talk.ask(produce(talk, batch_of([b"g"], pid, 1, 0)))  # known no longer
    talk.ask(produce(talk, batch_of([b"k"], pid + 1000, 0, 5)))  # a stranger that begins in the middle


def fetch(talk: Talk, offset: int = 0, *, topic: str = "", partition: int = 0, room: int = 1 << 20,
          max_bytes: int = 1 << 20, wait_ms: int = 0, min_bytes: int = 0, epoch: int = -1) -> FetchRequest:
    name = topic or talk.name
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=[FetchTopic(
        topic=name, topic_id=talk.id_of(name) if name == talk.name else ZERO_UUID, partitions=[FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=room, current_leader_epoch=epoch)])])


def fetch_reads_batches(talk: Talk) -> None:
    talk.topic()
    store(talk, batch_of([b"a", b"b", b"c"]), batch_of([b"d"] * 5, codec=GZIP), batch_of([b"e"], codec=SNAPPY),
          batch_of([b"f"], codec=LZ4), batch_of([b"g", b"h"]))
    for offset in (0, 1, 3, 5, 8, 9, 11, 12):
        talk.ask(fetch(talk, offset))


def fetch_within_limits(talk: Talk) -> None:
    talk.topic()
    batch = batch_of([b"x" * 100])
    store(talk, *[batch] * 4)
    if talk.version >= 3:  # before that a reply ends in the middle of a message, each broker at a place of its own
        for room in (1, len(batch), len(batch) * 2 + 5):
            talk.ask(fetch(talk, 1, room=room))
    if talk.version >= 4:
        for max_bytes in (1, len(batch) * 2 + 5):
            talk.ask(fetch(talk, 1, max_bytes=max_bytes))
        talk.ask(fetch(talk, 1, room=0))
        talk.ask(fetch(talk, 1, max_bytes=0))


def fetch_where_nothing_is(talk: Talk) -> None:
    talk.topic()
    store(talk, batch_of([b"a", b"b"]))
    for offset in (2, 3, -1, 1 << 40):
        talk.ask(fetch(talk, offset))
    talk.ask(fetch(talk, topic="nowhere"))
    talk.ask(fetch(talk, partition=5))
    talk.ask(fetch(talk, wait_ms=20, min_bytes=1, offset=2))
    talk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]))
    if talk.version >= 9:
        talk.ask(fetch(talk, epoch=0))
        talk.ask(fetch(talk, epoch=7))


def fetch_of_sessions_that_are_not_there(talk: Talk) -> None:
    talk.topic()
    store(talk, batch_of([b"a"]))
    if talk.version >= 7:
        for session, epoch in ((0, -1), (77, -1), (77, 0), (77, 5), (0, 5)):
            request = fetch(talk)
            request.session_id, request.session_epoch = session, epoch
            talk.ask(request)


def fetch_in_a_session(talk: Talk) -> None:
    if talk.version < 7:
        return
    talk.topic(partitions=3)
    session, epoch = 0, 0

    def ask(offsets: dict[int, int], forgotten: tuple[int, ...] = (), *, number: int | None = None,
            wait_ms: int = 0) -> None:
        nonlocal session, epoch
        request = fetch(talk, wait_ms=wait_ms, min_bytes=1)
        request.topics[0].partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in offsets.items()]
        if not offsets:
            request.topics = []
        if forgotten:
            request.forgotten_topics_data = [ForgottenTopic(
                topic=talk.name, topic_id=talk.id_of(talk.name), partitions=list(forgotten))]
        request.session_id, request.session_epoch = session, epoch if number is None else number
        reply = talk.ask(request)
        if not reply.error_code and number is None:
            session, epoch = reply.session_id, epoch + 1

    def write(partition: int) -> None:
        talk.call(produce(talk, batch_of([b"a"]), partition=partition), 9)

    write(0)
    ask({0: 0, 1: 0, 2: 0})
    ask({})  # records again, for the offset is the same
    ask({0: 1})
    ask({}, wait_ms=20)
    write(1)
    ask({})
    ask({1: 1}, (2,))
    write(2)
    ask({})
    write(0)
    ask({0: 2, 2: 0})
    ask({}, number=epoch + 5)
    ask({}, number=epoch - 1)
    ask({1: 7})
    ask({})
    ask({1: 0})
    ask({5: 0})
    ask({}, (5, 1))
    ask({}, (0, 2))
    ask({})
    epoch = 0
    ask({0: 0})
    ask({0: 0}, number=0)  # another one in its place
    ask({})
    session, epoch = 0, 0
    ask({0: 2})
    ask({}, number=-1)
    ask({})


def fetch_of_zstd(talk: Talk) -> None:
    talk.topic()
    store(talk, batch_of([b"a"] * 20, codec=ZSTD))
    talk.ask(fetch(talk))


@only("3.9")  # later releases give zstd to readers that do not know it
def fetch_of_a_zstd_topic(talk: Talk) -> None:
    talk.topic(configs={"compression.type": "zstd"})
    talk.ask(fetch(talk))


def fetch_of_a_topic_of_broker_time(talk: Talk) -> None:
    talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    store(talk, batch_of([b"a", b"b"]), batch_of([b"c", b"d"], codec=GZIP))
    reply = talk.call(fetch(talk), talk.version)
    shown = talk._plain(reply, talk.version)
    for part in shown["responses"][0]["partitions"]:
        part["records"] = [each if each[0] == "format" else (*each[:4], each[4][0]) for each in part["records"]]
    talk.said.append(shown)


def fetch_several(talk: Talk) -> None:
    talk.topic(partitions=3)
    batch = batch_of([b"a" * 50])
    for partition in range(3):
        talk.call(produce(talk, batch, partition=partition), 9)
    for room in (1 << 20, len(batch)):
        request = fetch(talk, max_bytes=1 << 20 if talk.version < 3 else room)
        request.topics[0].partitions = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
                                        for index in (2, 0, 9, 1)]
        talk.ask(request)


def list_offsets(talk: Talk, *times: int, partition: int = 0, topic: str = "", epoch: int = -1, most: int = 1,
                 isolation: int = 0) -> ListOffsetsRequest:
    most = most if talk.version == 0 else 1
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(
        name=topic or talk.name, partitions=[ListOffsetsPartition(
            partition_index=partition, timestamp=each, current_leader_epoch=epoch, max_num_offsets=most)
            for each in times])])


def list_offsets_by_name_and_time(talk: Talk) -> None:
    talk.topic()
    times = (-1, -2, -3, -4, -5, -6, -7, 0, START_MS, START_MS + 5, START_MS + 10, START_MS + 11, 1 << 60)
    if talk.version == 0:
        times = (-1, -2, 0, START_MS, 1 << 60)
    for each in times:
        talk.ask(list_offsets(talk, each))
    store(talk, batch_of([b"a", b"b"], timestamp_ms=START_MS), batch_of([b"c"], timestamp_ms=START_MS + 10),
          batch_of([b"d"] * 9, timestamp_ms=START_MS + 5, codec=GZIP))
    for each in times:
        talk.ask(list_offsets(talk, each))
        talk.ask(list_offsets(talk, each, most=10))
    talk.call(DeleteRecordsRequest(timeout_ms=3000, topics=[DeleteRecordsTopic(name=talk.name, partitions=[
        DeleteRecordsPartition(partition_index=0, offset=1)])]), 2)
    for each in times:
        talk.ask(list_offsets(talk, each, most=0 if talk.version == 0 else 1))
        talk.ask(list_offsets(talk, each, most=2))


def list_offsets_of_what_is_not_there(talk: Talk) -> None:
    talk.topic()
    talk.ask(list_offsets(talk, -1, topic="nowhere"))
    talk.ask(list_offsets(talk, -1, partition=5))
    talk.ask(ListOffsetsRequest(replica_id=-1, topics=[]))
    if talk.version >= 2:
        talk.ask(list_offsets(talk, -1, isolation=1))
    if talk.version >= 4:
        talk.ask(list_offsets(talk, -1, epoch=0))
        talk.ask(list_offsets(talk, -1, epoch=3))


@only("4.4")  # earlier ones say it twice
def list_offsets_of_a_partition_twice(talk: Talk) -> None:
    talk.topic()
    talk.ask(list_offsets(talk, -1, -2))


def epochs(talk: Talk, epoch: int, *, current: int = -1, partition: int = 0,
           topic: str = "") -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(
        topic=topic or talk.name, partitions=[OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch)])])


def epochs_end_where_the_log_ends(talk: Talk) -> None:
    talk.topic()
    for epoch in (0, 1, -1):
        talk.ask(epochs(talk, epoch))
    store(talk, batch_of([b"a", b"b"]))
    for epoch in (0, 1, 5, -1):
        talk.ask(epochs(talk, epoch))
    if talk.version >= 2:
        talk.ask(epochs(talk, 0, current=0))
        talk.ask(epochs(talk, 0, current=4))
    talk.ask(epochs(talk, 0, topic="nowhere"))
    talk.ask(epochs(talk, 0, partition=9))


def producer_ids_are_given_out(talk: Talk) -> None:
    talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
    talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1))
    if talk.version >= 3:
        talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, producer_id=5,
                                       producer_epoch=2))


def delete_records(talk: Talk, offset: int, *, topic: str = "", partition: int = 0) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(timeout_ms=3000, topics=[DeleteRecordsTopic(
        name=topic or talk.name, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)])])


def records_are_deleted_up_to_an_offset(talk: Talk) -> None:
    talk.topic()
    store(talk, batch_of([b"a", b"b", b"c"]), batch_of([b"d"]))
    for offset in (1, 0, 2, 9, -2, -1, 4):
        talk.ask(delete_records(talk, offset))
    talk.ask(delete_records(talk, 0, topic="nowhere"))
    talk.ask(delete_records(talk, 0, partition=3))
    talk.ask(DeleteRecordsRequest(timeout_ms=1000, topics=[]))


def records_of_a_compacted_topic_are_not_deleted(talk: Talk) -> None:
    talk.topic(configs={"cleanup.policy": "compact"})
    talk.ask(delete_records(talk, -1))


def producers_are_described(talk: Talk) -> None:
    talk.topic(partitions=2)
    pid = talk.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4).producer_id
    store(talk, batch_of([b"a", b"b"], pid, 0, 0), batch_of([b"c"], pid, 0, 2), batch_of([b"d"]))
    for name, partitions in ((talk.name, [0, 1, 7]), ("nowhere", [0])):
        talk.ask(DescribeProducersRequest(topics=[ProducersTopicRequest(name=name, partition_indexes=partitions)]))
    talk.ask(DescribeProducersRequest(topics=[]))


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    ProduceRequest: [produce_stores_and_says_where, produce_in_a_topic_of_broker_time, produce_to_what_is_not_there,
                     produce_with_other_acks, produce_what_is_damaged, produce_what_is_too_large,
                     produce_without_keys_into_a_compacted_topic, produce_twice_and_out_of_order],
    FetchRequest: [fetch_reads_batches, fetch_within_limits, fetch_where_nothing_is,
                   fetch_of_sessions_that_are_not_there, fetch_in_a_session, fetch_of_zstd, fetch_of_a_zstd_topic,
                   fetch_of_a_topic_of_broker_time, fetch_several],
    ListOffsetsRequest: [list_offsets_by_name_and_time, list_offsets_of_what_is_not_there,
                         list_offsets_of_a_partition_twice],
    OffsetForLeaderEpochRequest: [epochs_end_where_the_log_ends],
    InitProducerIdRequest: [producer_ids_are_given_out],
    DeleteRecordsRequest: [records_are_deleted_up_to_an_offset, records_of_a_compacted_topic_are_not_deleted],
    DescribeProducersRequest: [producers_are_described],
}
