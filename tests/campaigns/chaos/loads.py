"""Who writes: idempotent producers, and transactional ones. Each writer is a thread with a name in the ledger."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from headrace import KafkaError, KafkaException, Message, Producer, TopicPartition
from headrace.machines.producer.transactions import ConsumerGroupMetadata

from .ledger import Fate, Ledger, Outcome, Stream, Transaction, value_of
from .progress import Backpressure, Progress
from .site import PARTITIONS

IDEMPOTENT: Final[dict[str, dict[str, Any]]] = {
    "plain": {"linger.ms": 0, "max.in.flight.requests.per.connection": 5},
    "packed": {"linger.ms": 20, "compression.type": "lz4", "request.timeout.ms": 4000},
    "small": {"linger.ms": 5, "batch.num.messages": 3, "compression.type": "zstd"},  # many batches in flight
    "hasty": {"linger.ms": 5, "message.timeout.ms": 4000, "request.timeout.ms": 1500},  # gives some up
    "lonely": {"linger.ms": 5},
    "lonely, packed": {"linger.ms": 5, "compression.type": "lz4"},
    "flushed": {"linger.ms": 0},
    "flushed, packed": {"compression.type": "gzip"},
}
TRANSACTIONAL: Final[dict[str, dict[str, Any]]] = {
    "patient": {"linger.ms": 5},
    "nervous": {"linger.ms": 0, "compression.type": "lz4", "request.timeout.ms": 3000, "socket.timeout.ms": 4000},
}
FLUSH_S: Final = 120.0
_CALL_S: Final = 5.0  # then the call is made again
_TICK_S: Final = 0.02
_PAUSE_S: Final = 0.02


class Writer(threading.Thread):
    """One writer. It ends what it has begun after `end` is set.

    Args:
        servers: the brokers.
        topic: written to.
        name: in the ledger.
        config: properties of its producers.
        rate: records per second.
        ledger: takes all that is sent and said.
        end: set when it shall come to an end.
        seed: of what is left to chance.

    Attributes:
        counts: what happened to it, by name.
        failure: why it could not go on.
        producer: the one that it uses now.
    """

    def __init__(
        self, servers: str, topic: str, name: str, config: dict[str, Any], rate: float, ledger: Ledger,
        end: threading.Event, seed: object,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.counts: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self.producer: Producer | None = None
        self.progress = Progress()
        self._config = {"bootstrap.servers": servers, "error_cb": self._on_error, **config}
        self._topic, self._rate, self._ledger, self._end = topic, rate, ledger, end
        self._streams = [ledger.stream(name, partition) for partition in range(PARTITIONS)]
        self._random = random.Random(f"{name} {seed}")

    def run(self) -> None:
        try:
            self._write()
        except BaseException as failure:
            self.failure = failure

    def _on_error(self, error: KafkaError) -> None:
        self.counts["defects"] += error.code() == KafkaError._FAIL

    def _write(self) -> None:
        raise NotImplementedError

    def _produce(self, producer: Producer, stream: Stream) -> int:
        number = stream.add()
        try:
            producer.produce(
                self._topic, value_of(self.name, number), key=self.name, partition=stream.partition,
                on_delivery=partial(self._on_delivery, stream, number))
        except BaseException:
            stream.take_back()
            raise
        return number

    def _on_delivery(self, stream: Stream, number: int, error: KafkaError | None, message: Message) -> None:
        if error is None:
            stream.report(number, Fate.STORED, -1 if (offset := message.offset()) is None else offset)
            self._on_stored()
        else:
            stream.report(number, Fate.UNKNOWN if error.maybe_applied else Fate.DENIED, -1)


    def _on_stored(self) -> None:
        pass


class IdempotentWriter(Writer):
    """Sends to all partitions, at its pace."""

    def _on_stored(self) -> None:
        self.progress.moved()

    def _write(self) -> None:
        pace = Backpressure(self._rate)
        with Producer(self._config) as producer:
            self.producer = producer
            while not self._end.is_set():
                for _ in range(pace.due()):
                    try:
                        self._produce(producer, self._streams[self._random.randrange(PARTITIONS)])
                        self._behind_each(producer)
                    except BufferError:
                        break
                producer.poll(_TICK_S)
                self._end.wait(_TICK_S)
            if producer.flush(FLUSH_S):
                raise TimeoutError(f"{len(producer)} records are not delivered after {FLUSH_S:.0f} s")

    def _behind_each(self, producer: Producer) -> None:
        """What is done behind each record."""


class LonelyWriter(IdempotentWriter):
    """Pauses behind each record: most leave alone."""

    def _behind_each(self, producer: Producer) -> None:
        producer.poll(0)
        self._end.wait(self._random.random() * _PAUSE_S)


class FlushingWriter(IdempotentWriter):
    """Flushes behind each record, and waits for its report or not."""

    def _behind_each(self, producer: Producer) -> None:
        producer.flush(self._random.choice((0.0, _PAUSE_S, FLUSH_S)))


class TransactionalWriter(Writer):
    """Commits some transactions and aborts others; now and then another producer takes over its transactional id."""

    _consumed = 0

    def _write(self) -> None:
        pace, wanted = Backpressure(self._rate), 0
        self.producer = self._make()
        while not self._end.is_set():
            wanted += pace.due()
            size = self._random.randrange(5, 60)
            if wanted < size:
                self._end.wait(_TICK_S)
                continue
            wanted -= size
            self._transact(size)
        self.producer.close()
        self._make().close()  # whatever was left open is ended now

    def _make(self) -> Producer:
        producer = Producer({**self._config, "transactional.id": self.name})
        self._again(producer.init_transactions)
        return producer

    def _again(self, call: Any) -> None:
        """Make a call until it is done, as its errors ask for."""
        while True:
            try:
                call(_CALL_S)
                return
            except KafkaException as failed:
                if not failed.error.retriable():
                    raise
                self.counts["calls made again"] += 1

    def _transact(self, size: int) -> None:
        assert self.producer is not None
        transaction, dice = self._ledger.begin(self.name), self._random.random()
        try:
            self.producer.begin_transaction()
            self._fill(self.producer, transaction, size)
            if self._random.random() < 0.3:
                self._add_offset(self.producer, transaction)
            if dice < 0.04:
                self._replace(transaction)
            elif dice < 0.15:
                if dice < 0.1:
                    self.producer.flush(_CALL_S)
                self._abort(transaction)
            else:
                self._again(self.producer.commit_transaction)
                transaction.outcome = Outcome.COMMITTED
                self.progress.moved()
        except KafkaException as failed:
            self._on_failure(transaction, failed.error)

    def _fill(self, producer: Producer, transaction: Transaction, size: int) -> None:
        streams = self._random.sample(self._streams, self._random.randrange(2, 5))
        for index in range(size):
            stream = streams[index % len(streams)]
            transaction.add(stream, self._produce(producer, stream))

    def _add_offset(self, producer: Producer, transaction: Transaction) -> None:
        """As if it had consumed the topic's first partition that far."""
        self._consumed += 1
        transaction.offset = self._consumed
        place, member = TopicPartition(self._topic, 0, self._consumed), ConsumerGroupMetadata(group_of(self.name))
        self._again(lambda timeout: producer.send_offsets_to_transaction([place], member, timeout))

    def _abort(self, transaction: Transaction) -> None:
        assert self.producer is not None
        transaction.outcome = Outcome.ABORTED  # its commit was not asked for, or was refused
        self._again(self.producer.abort_transaction)

    def _on_failure(self, transaction: Transaction, error: KafkaError) -> None:
        if transaction.outcome is Outcome.OPEN:
            transaction.outcome = Outcome.UNKNOWN if error.maybe_applied and error.fatal() else Outcome.ABORTED
        self.counts[f"{'fatal' if error.fatal() else 'failed'}: {error.name()}"] += 1
        if not error.fatal():
            try:
                self._abort(transaction)
                return
            except KafkaException as failed:
                self.counts[f"abort failed: {failed.error.name()}"] += 1
        assert self.producer is not None
        self.producer.close()
        self.producer = self._make()

    def _replace(self, transaction: Transaction) -> None:
        """Another producer takes over while a transaction is open: the first one cannot commit it any more."""
        old = self.producer
        assert old is not None
        transaction.outcome = Outcome.ABORTED
        if self._random.random() < 0.3:
            old.close()
            self.producer = self._make()
            return
        self.counts["taken over"] += 1
        if self._random.random() < 0.5:
            old.flush(_CALL_S)
        self.producer = self._make()
        try:
            self._again(old.commit_transaction)
        except KafkaException:
            pass
        else:
            transaction.outcome = Outcome.COMMITTED
            self.counts["unfenced"] += 1
        old.close()


def group_of(name: str) -> str:
    """The group whose offsets a writer commits with some of its transactions."""
    return f"group of {name}"


def writer_of(name: str, transactional: bool) -> Callable[..., Writer]:
    """Who writes with the properties of this name."""
    if transactional:
        return TransactionalWriter
    kinds = {"lonely": LonelyWriter, "flushed": FlushingWriter}
    return kinds.get(name.partition(",")[0], IdempotentWriter)
