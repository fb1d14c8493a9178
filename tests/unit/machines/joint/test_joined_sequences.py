"""Each partition of a joined transaction begins at zero, and what is in it is known at the end."""

import pytest

from headrace.errors import KafkaError
from headrace.machines.joint.joined_sequences import JoinedSequences
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.sender import Sender
from tests.support.driven_conversation import NEW
from tests.support.driven_sender import Leader, content, first_of


class Joined:
    """A transaction whose partitions are all claimed."""

    last_error = lost = None
    max_produce_version = 12
    transactional_id = "x"
    joined = 1

    def __init__(self):
        self.producer_id, self.epoch = NEW.producer_id, NEW.epoch
        self.others = 0

    def before(self, topic, partition):
        return self.others

    def admits(self, topic, partition):
        return True

    def on_batch_stored(self):
        pass

    def on_batch_failed(self, error, *, sent, uncertain):
        pass


class Writer(Leader):
    """A sender whose batches belong to a joined transaction."""

    def __init__(self):
        self.joined = Joined()
        super().__init__(transactions=self.joined, max_in_flight=5)
        self.sequences = JoinedSequences(self.joined)
        queues: BatchQueues = self.batch_queues
        self.sender = Sender(queues, self.sequences, self, self.sender._limits, lambda n: 0.1, self.joined)


@pytest.fixture
def writer():
    return Writer()


def test_nothing_is_written_at_first(writer):
    assert writer.sequences.written() == {}


def test_sequences_begin_at_zero_and_go_on(writer):
    send = first_of(writer, b"1", b"2")
    assert content(send) == (3, 0, [b"1", b"2"])
    writer.answer(send)
    send = first_of(writer, b"3")
    assert content(send) == (3, 2, [b"3"])
    writer.answer(send)
    assert writer.sequences.written() == {("t", 0): 3}


def test_they_begin_again_in_the_next_transaction(writer):
    writer.answer(first_of(writer, b"1", b"2"))
    writer.joined.joined, writer.joined.epoch = 2, 5
    assert writer.sequences.written() == {}
    assert content(first_of(writer, b"3")) == (5, 0, [b"3"])
    assert writer.sequences.written() == {("t", 0): 1}


def test_they_begin_again_for_another_task_in_the_same_transaction(writer):
    """Its leader then refuses what the claim did not."""
    writer.answer(first_of(writer, b"1", b"2"))
    writer.joined.joined = 2
    assert content(first_of(writer, b"3")) == (3, 0, [b"3"])


def test_whoever_is_refused_because_another_one_wrote_first_hears_what_to_do(writer):
    writer.answer(first_of(writer, b"1"), KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, error_message="missing")
    [(_, error)] = writer.reports()
    assert error == KafkaError._CONFLICT
    assert error.str().startswith("t[0]: missing. The partition has records of this transaction already")


def test_another_refusal_keeps_its_own_words(writer):
    writer.answer(first_of(writer, b"1"), KafkaError.INVALID_PRODUCER_EPOCH, error_message="over")
    [(_, error)] = writer.reports()
    assert (error.code(), error.str()) == (KafkaError.INVALID_PRODUCER_EPOCH, "t[0]: over")


def test_they_go_on_where_others_have_ended_and_only_own_records_are_counted(writer):
    writer.joined.others = 7
    send = first_of(writer, b"1", b"2")
    assert content(send) == (3, 7, [b"1", b"2"])
    writer.answer(send)
    assert writer.sequences.written() == {("t", 0): 2}
