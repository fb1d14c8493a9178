"""Requests about transactions with names and numbers that no client would send: each gets an answer, nothing breaks."""

import random
from typing import Any

import pytest

from headrace.testing import EmbeddedBroker
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
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.wire.schema import Request
from tests.support.raw_client import RawClient, batch_of
from tests.support.transactional_client import Transactional

IDS = (-(1 << 63), -2, -1, 0, 1, 2, (1 << 63) - 1)
EPOCHS = (-(1 << 15), -2, -1, 0, 1, 32766, 32767)
INTS = (-(1 << 31), -2, -1, 0, 1, 2, (1 << 31) - 1)
NAMES = ("", "t", "tx", "other", "x" * 30_000, "\0", "\U0001f600", "__consumer_offsets")


Made = tuple[Request, range]
"""A request, and the versions that it can have."""


class Chance(random.Random):
    """Arguments out of what is thinkable."""

    def who(self) -> dict[str, Any]:
        return {"producer_id": self.choice(IDS), "producer_epoch": self.choice(EPOCHS)}

    def topics(self) -> list[AddPartitionsToTxnTopic]:
        return [AddPartitionsToTxnTopic(name=self.choice(NAMES), partitions=self.sample(INTS, self.randint(0, 3)))
                for _ in range(self.randint(0, 2))]

    def request(self) -> tuple[Request, int]:
        """A request and a version of it."""
        made: list[Any] = [self.init, self.add, self.old_add, self.add_offsets, self.commit, self.end, self.markers,
                           self.describe, self.list, self.produce]
        request, versions = self.choice(made)()
        return request, self.choice(versions)

    def init(self) -> Made:
        return InitProducerIdRequest(transactional_id=self.choice((None, *NAMES)), **self.who(),
                                     transaction_timeout_ms=self.choice((*INTS, 60_000, 60_000))), range(3, 6)

    def add(self) -> Made:
        transactions = [AddPartitionsToTxnTransaction(
            transactional_id=self.choice(NAMES), verify_only=self.random() < 0.5, topics=self.topics(), **self.who())
            for _ in range(self.randint(0, 2))]
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id="", v3_and_below_topics=[],
                                         transactions=transactions), range(4, 6)

    def old_add(self) -> Made:
        who = {f"v3_and_below_{name}": value for name, value in self.who().items()}
        return AddPartitionsToTxnRequest(transactions=[], v3_and_below_transactional_id=self.choice(NAMES),
                                         v3_and_below_topics=self.topics(), **who), range(4)

    def add_offsets(self) -> Made:
        return AddOffsetsToTxnRequest(transactional_id=self.choice(NAMES), group_id=self.choice(NAMES),
                                      **self.who()), range(5)

    def commit(self) -> Made:
        part = TxnOffsetCommitRequestPartition(partition_index=self.choice(INTS), committed_offset=self.choice(IDS),
                                               committed_metadata=self.choice((None, *NAMES)))
        return TxnOffsetCommitRequest(
            transactional_id=self.choice(NAMES), group_id=self.choice(NAMES), member_id=self.choice(NAMES),
            generation_id_or_member_epoch=self.choice(INTS), group_instance_id=self.choice((None, *NAMES)),
            topics=[TxnOffsetCommitRequestTopic(name=self.choice(NAMES), partitions=[part])], **self.who()), range(3, 7)

    def end(self) -> Made:
        return EndTxnRequest(transactional_id=self.choice(NAMES), committed=self.random() < 0.5, **self.who()), range(6)

    def markers(self) -> Made:
        topics = [WritableTxnMarkerTopic(name=self.choice(NAMES), partition_indexes=[self.choice(INTS)])]
        return WriteTxnMarkersRequest(markers=[WritableTxnMarker(
            transaction_result=self.random() < 0.5, coordinator_epoch=self.choice(INTS), topics=topics,
            transaction_version=self.choice((-128, 0, 1, 2, 127)), **self.who())]), range(2, 3)

    def describe(self) -> Made:
        return DescribeTransactionsRequest(transactional_ids=[self.choice(NAMES) for _ in range(3)]), range(1)

    def list(self) -> Made:
        return ListTransactionsRequest(
            state_filters=[self.choice(NAMES)], producer_id_filters=[self.choice(IDS)],
            duration_filter=self.choice(IDS),
            transactional_id_pattern=self.choice((None, *NAMES, "(a*)*b", "[", "x{1000}"))), range(2, 3)

    def produce(self) -> Made:
        who = self.who()
        batch = batch_of([b"x"], who["producer_id"], who["producer_epoch"], self.choice(INTS), transactional=True)
        return ProduceRequest(transactional_id=self.choice((None, *NAMES)), acks=-1, timeout_ms=0, topic_data=[
            TopicProduceData(name=self.choice(NAMES), partition_data=[
                PartitionProduceData(index=self.choice(INTS), records=batch)])]), range(3, 13)


@pytest.mark.parametrize("seed", range(3))
def test_every_request_is_answered(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = Chance(seed)
    with EmbeddedBroker(topics={"t": 2}) as broker:
        with RawClient(broker) as client:
            for _ in range(400):
                request, version = chance.request()
                client.call(request, version)
        with Transactional(broker, "sound") as client:
            while client.init():
                pass
            assert client.store(b"a") == 0
            assert client.end(True) == 0
    assert not caplog.records


@pytest.mark.parametrize("seed", range(3))
def test_a_broker_begins_again_with_what_such_requests_have_left(seed: int, tmp_path: object) -> None:
    chance = Chance(seed)
    with EmbeddedBroker(topics={"t": 2}, data_dir=str(tmp_path)) as broker, RawClient(broker) as client:
        for _ in range(200):
            client.call(*chance.request())
    with EmbeddedBroker(data_dir=str(tmp_path)) as broker, Transactional(broker, "sound") as client:
        assert client.init() == 0
        assert client.store(b"a") == 0
        assert client.end(True) == 0
