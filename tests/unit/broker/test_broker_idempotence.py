"""Sequences of idempotent producers: repeated batches are answered and not stored, early ones are refused."""

from pathlib import Path

import pytest

from headrace.errors import KafkaError
from headrace.testing import EmbeddedBroker
from tests.support.raw_client import RawClient, batch_of


def test_a_batch_sent_twice_is_stored_once_and_answered_alike(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        producer_id = client.producer_id()
        first = client.produce("t", 0, batch_of([b"a", b"b"], producer_id, 0, 0))
        again = client.produce("t", 0, batch_of([b"a", b"b"], producer_id, 0, 0))
    assert (first.error_code, first.base_offset) == (again.error_code, again.base_offset) == (0, 0)
    assert broker.end_offsets("t") == [2]


def test_the_last_five_batches_are_remembered(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        producer_id = client.producer_id()
        for sequence in range(7):
            assert client.produce("t", 0, batch_of([b"x"], producer_id, 0, sequence)).error_code == 0
        offsets = [client.produce("t", 0, batch_of([b"x"], producer_id, 0, each)).base_offset for each in range(2, 7)]
        forgotten = client.produce("t", 0, batch_of([b"x"], producer_id, 0, 1))
    assert offsets == [2, 3, 4, 5, 6]
    assert forgotten.error_code == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        producer_id = client.producer_id()
        client.produce("t", 0, batch_of([b"a"], producer_id, 0, 0))
        early = client.produce("t", 0, batch_of([b"c"], producer_id, 0, 2))
        assert early.error_code == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert client.produce("t", 0, batch_of([b"b"], producer_id, 0, 1)).error_code == 0


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        producer_id = client.producer_id()
        client.produce("t", 0, batch_of([b"a"], producer_id, 0, 0))
        not_zero = client.produce("t", 0, batch_of([b"b"], producer_id, 1, 1))
        bumped = client.produce("t", 0, batch_of([b"b"], producer_id, 1, 0))
        old = client.produce("t", 0, batch_of([b"c"], producer_id, 0, 1))
    assert not_zero.error_code == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert bumped.error_code == 0
    assert old.error_code == KafkaError.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_around(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        producer_id = client.producer_id()
        last = client.produce("t", 0, batch_of([b"a", b"b"], producer_id, 0, 2**31 - 2))
        wrapped = client.produce("t", 0, batch_of([b"c"], producer_id, 0, 0))
    assert (last.error_code, wrapped.error_code) == (0, 0)


def test_partitions_count_sequences_for_themselves(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 2)
    with RawClient(broker) as client:
        producer_id = client.producer_id()
        assert [client.produce("t", each, batch_of([b"a"], producer_id, 0, 0)).error_code for each in (0, 1)] == [0, 0]


def test_producer_ids_and_sequences_outlive_a_restart(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 1}) as broker, RawClient(broker) as client:
        producer_id = client.producer_id()
        for sequence in range(3):
            client.produce("t", 0, batch_of([b"x"], producer_id, 0, sequence))
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        assert client.producer_id() > producer_id
        assert client.produce("t", 0, batch_of([b"x"], producer_id, 0, 2)).base_offset == 2
        gap = client.produce("t", 0, batch_of([b"x"], producer_id, 0, 4))
        assert gap.error_code == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert client.produce("t", 0, batch_of([b"x"], producer_id, 0, 3)).base_offset == 3
        assert broker.end_offsets("t") == [4]


@pytest.mark.parametrize("position", [17, 23, 30, 43, 60, 70])
def test_a_damaged_batch_is_refused_and_nothing_is_stored(broker: EmbeddedBroker, position: int) -> None:
    broker.create_topic("t")
    batch = bytearray(batch_of([b"some value"] * 3))
    batch[position] ^= 0x40
    with RawClient(broker) as client:
        refused = client.produce("t", 0, bytes(batch))
        assert refused.error_code in (KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD)
        assert client.produce("t", 0, batch_of([b"fine"])).base_offset == 0


def test_a_batch_above_max_message_bytes_is_refused(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", configs={"max.message.bytes": "1000"})
    with RawClient(broker) as client:
        refused = client.produce("t", 0, batch_of([b"x" * 2000]))
    assert refused.error_code == KafkaError.MSG_SIZE_TOO_LARGE
    assert "1000" in str(refused.error_message)
