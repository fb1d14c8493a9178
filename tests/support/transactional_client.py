"""A raw client that goes through transactions step by step, each in the version that is asked for."""

from typing import Any, NamedTuple

from headrace.testing import EmbeddedBroker
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.messages.producer.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribedTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.raw_client import RawClient, batch_of


class Who(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class Transactional(RawClient):
    """The transactional producer `name`, and whatever else the tests ask.

    Args:
        broker: where it connects.
        name: transactional id.
        node: number of the node.
    """

    def __init__(self, broker: EmbeddedBroker | str, name: str = "tx", node: int = 1) -> None:
        super().__init__(broker, node)
        self.name = name
        self.who = Who(-1, -1)

    def init(self, timeout_ms: int = 60_000, *, had: Who | None = None, version: int = 5) -> int:
        """Ask for an identity; the error code."""
        had = had or Who(-1, -1)
        reply = self.call(InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms,
                                                producer_id=had.producer_id, producer_epoch=had.epoch), version)
        if not reply.error_code:
            self.who = Who(reply.producer_id, reply.producer_epoch)
        return int(reply.error_code)

    def add(self, *partitions: int, topic: str = "t", who: Who | None = None, version: int = 3) -> set[int]:
        """Add partitions; the error codes."""
        who = who or self.who
        reply = self.call(AddPartitionsToTxnRequest(
            transactions=[], v3_and_below_transactional_id=self.name, v3_and_below_producer_id=who.producer_id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]), version)
        return {part.partition_error_code for each in reply.results_by_topic_v3_and_below
                for part in each.results_by_partition}

    def store(self, *values: bytes, sequence: int = 0, partition: int = 0, who: Who | None = None, version: int = 12,
             topic: str = "t") -> int:
        """Write records of the transaction; the error code."""
        batch = batch_of(list(values), *(who or self.who), sequence, transactional=True)
        reply = self.call(ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=1000, topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]),
            version)
        return int(reply.responses[0].partition_responses[0].error_code)

    def add_group(self, group: str, who: Who | None = None) -> int:
        """Add a group; the error code."""
        who = who or self.who
        return int(self.call(AddOffsetsToTxnRequest(transactional_id=self.name, producer_id=who.producer_id,
                                                    producer_epoch=who.epoch, group_id=group)).error_code)

    def commit_offset(self, group: str, offset: int, *, who: Who | None = None, version: int = 5, topic: str = "t",
                      member: str = "", generation: int = -1) -> int:
        """Commit an offset of partition 0 in the transaction; the error code."""
        who = who or self.who
        reply = self.call(TxnOffsetCommitRequest(
            transactional_id=self.name, group_id=group, producer_id=who.producer_id, producer_epoch=who.epoch,
            member_id=member, generation_id_or_member_epoch=generation, topics=[TxnOffsetCommitRequestTopic(
                name=topic, partitions=[TxnOffsetCommitRequestPartition(
                    partition_index=0, committed_offset=offset, committed_metadata="")])]), version)
        return int(reply.topics[0].partitions[0].error_code)

    def end(self, commit: bool, *, who: Who | None = None, version: int = 5) -> int:
        """End the transaction; the error code."""
        who = who or self.who
        reply = self.call(EndTxnRequest(transactional_id=self.name, producer_id=who.producer_id,
                                        producer_epoch=who.epoch, committed=commit), version)
        if version >= 5 and not reply.error_code:
            self.who = Who(reply.producer_id, reply.producer_epoch)
        return int(reply.error_code)

    def state(self) -> DescribedTransaction:
        """The coordinator's view."""
        reply = self.call(DescribeTransactionsRequest(transactional_ids=[self.name]))
        found = reply.transaction_states[0]
        assert isinstance(found, DescribedTransaction)
        return found

    def offset(self, group: str, *, stable: bool = False, topic: str = "t") -> tuple[int, int]:
        """A group's offset of partition 0, and the error code."""
        reply = self.call(OffsetFetchRequest(require_stable=stable, groups=[OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])])]), 9)
        part = reply.groups[0].topics[0].partitions[0]
        return part.committed_offset, part.error_code

    def fetch(self, offset: int = 0, *, committed: bool = True, topic: str = "t", partition: int = 0,
              wait_ms: int = 0) -> Any:
        """What a reader is given of a partition."""
        reply = self.call(FetchRequest(max_wait_ms=wait_ms, min_bytes=1, isolation_level=int(committed), topics=[
            FetchTopic(topic=topic, partitions=[FetchPartition(partition=partition, fetch_offset=offset,
                                                               partition_max_bytes=1 << 20)])]), 12)
        return reply.responses[0].partitions[0]

    def latest(self, *, committed: bool) -> int:
        """The end of partition 0 for a reader."""
        reply = self.call(ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=[ListOffsetsTopic(
            name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])]), 7)
        return int(reply.topics[0].partitions[0].offset)
