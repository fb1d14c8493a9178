"""A sender driven by hand, for tests of what lies below it: real records of one partition, and a leader that answers as
told.
"""

import math
from uuid import UUID

from headrace.buffers import BufferPool, RecordAccumulator
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.sender import BatchDone, Limits, Sender
from headrace.machines.producer.sequences import Sequences
from headrace.machines.producer.transactional_sequences import TransactionalSequences
from headrace.records import Cursor, scan
from headrace.wire.messages.producer.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC_ID = UUID(int=5)


class Leader:
    """The only leader of one partition, and a sender with real records for it."""

    updates = 0

    def __init__(self, idempotent=True, transactions=None, **limits):
        self.now = 1e9  # every record has lingered
        self.buffer_pool = BufferPool(1000, 1 << 20)
        self.buffer = RecordAccumulator("t", 1, self.buffer_pool)
        self.batch_queues = BatchQueues(self.buffer.open_batches, 0.0, math.inf)
        sequences = Sequences(idempotent, 30.0, lambda attempt: 0.1) if transactions is None else \
            TransactionalSequences(transactions)
        self.sender = Sender(self.batch_queues, sequences, self, Limits(**limits), lambda n: 0.1, transactions)

    def leader(self, topic, partition):
        return 1, 0

    def topic_id(self, topic):
        return TOPIC_ID

    def refresh(self, now):
        pass

    last_error = None

    def add(self, *values):
        for value in values:
            self.buffer.append(value, callback=print)

    def poll(self):
        sends = list(self.sender.poll(self.now))
        for send in [send for send in sends if isinstance(send.request, InitProducerIdRequest)]:
            sends.remove(send)
            self.sender.on_reply(send, InitProducerIdResponse(producer_id=9, producer_epoch=0), self.now)
            sends += self.sender.poll(self.now)
        return sends

    def answer(self, send, code=0, named=None, **fields):
        errors = [BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text)
                  for place, text in (named or {}).items()]
        part = PartitionProduceResponse(index=0, error_code=code, record_errors=errors, **fields)
        topics = [TopicProduceResponse(name="t", topic_id=TOPIC_ID, partition_responses=[part])]
        self.sender.on_reply(send, ProduceResponse(responses=topics), self.now)

    def store_all(self):
        """Store whatever comes; returns what came."""
        stored = []
        while sends := self.poll():
            for send in sends:
                stored.append(content(send))
                self.answer(send, base_offset=100 + len(stored))
        return stored

    def reports(self):
        """Values and error of each report."""
        return [(values(event), event.error) for event in self.sender.events() if isinstance(event, BatchDone)]


def content(send):
    """Epoch, first number and values of the batch in a request."""
    data = send.request.topic_data[0].partition_data[0].records
    info = scan(bytes(data))[0]
    return info.epoch, info.base_sequence, [m.value() for m in Cursor(bytes(data), "t", 0, 0).take(1000)]


def values(done):
    return [message.value() for _, message in done.batch.open.messages(-1, 0, -1, done.error, 0.0)]


def first_of(leader, *records):
    leader.add(*records)
    (send,) = leader.poll()
    return send
