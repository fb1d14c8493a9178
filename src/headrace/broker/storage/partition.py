"""One partition: its log, who leads it, and the rules for what may be appended.

Validation is one pass over batch headers and one checksum per batch, in native code; records are not looked into but in
compacted topics, where each must have a key. So a broker in Python keeps up with producers in C. The price: a batch
whose header is sound and whose records are not is stored, and readers find out.

It knows no sockets and no requests. Read next: `broker.apis.produce`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from headrace.broker.purgatory import Purgatory
from headrace.broker.storage.log import Log
from headrace.broker.storage.producer_state import Marker, ProducerStates
from headrace.errors import CorruptRecordError, KafkaError
from headrace.records import BatchInfo, Cursor, scan, set_base_offset, set_log_append_time, verify
from headrace.records.batch_writer import write_end_marker
from headrace.records.control import ABORT, COMMIT, control_records

__all__ = ["MAX_CONVERTED_BYTES", "NO_LEADER", "ApiError", "Appended", "EpochStart", "Partition",
           "RecordsRefusedError", "TransactionGate"]

NO_LEADER = -1
MAX_CONVERTED_BYTES = 64 << 20
"""Most bytes that a message set or batch may have, uncompressed, that is converted to another format."""


class ApiError(Exception):
    """A request, or a part of it, fails: the code and the line that go into the reply."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason or KafkaError(code).str()


class RecordsRefusedError(ApiError):
    """A batch is refused because of records in it: `indexes` are their positions, from 0 on (KIP-467)."""

    def __init__(self, code: int, reason: str, indexes: list[int]) -> None:
        super().__init__(code, reason)
        self.indexes = indexes


class Appended(NamedTuple):
    """Where a batch was stored."""

    base_offset: int
    log_append_time_ms: int


class EpochStart(NamedTuple):
    """A leader epoch and the offset of the first record that was written in it."""

    epoch: int
    offset: int


class TransactionGate(Protocol):
    """The coordinator as a partition sees it: asked before the first batch of a transaction is stored.

    Attributes:
        own_epochs: every transaction has an epoch of its own (KIP-890).
    """

    own_epochs: bool

    def admit(self, producer_id: int, epoch: int) -> None:
        """Let a transaction in.

        Raises:
            ApiError: the producer has none open, or not with this partition in it.
        """


@dataclass(slots=True, eq=False)
class Partition:
    """A partition of a topic.

    Attributes:
        index: its number.
        replicas: node ids, the preferred leader first. They share one log.
        leader_id: the node that serves it, or `NO_LEADER`.
        leader_epoch: grows by one whenever the leader changes (KIP-320).
        epochs: the epochs in which something was written, oldest first.
        purgatory: where fetches wait for more; they look again at the next append.
    """

    index: int
    log: Log
    replicas: list[int]
    leader_id: int
    purgatory: Purgatory
    leader_epoch: int = 0
    epochs: list[EpochStart] = field(default_factory=list)
    producers: ProducerStates = field(default_factory=ProducerStates)

    def append(self, batch: memoryview, configs: Mapping[str, str], now_ms: int,
               gate: TransactionGate | None = None) -> Appended:
        """Check one batch of a producer and store it; a repeated one is answered and not stored again.

        Args:
            batch: writable bytes of exactly one batch; base offset and epoch are written into it.
            configs: the topic's configuration.
            now_ms: wall clock, milliseconds.
            gate: lets transactions in that are not open here yet.

        Raises:
            ApiError: the batch is damaged, too large, out of order, or not of a kind that clients may send.
        """
        info = check_batch(batch, int(configs["max.message.bytes"]))
        own_epochs = info.producer_id >= 0 and self._enter(info, gate)
        if "compact" in configs["cleanup.policy"]:
            check_keys(batch)
        if info.producer_id >= 0:
            repeated = self.producers.duplicate(info)
            if repeated is not None:
                return Appended(repeated.base_offset, repeated.timestamp_ms)  # the time, too, as Kafka does
            if code := self.producers.check(info, own_epochs=own_epochs):
                raise ApiError(code)
        by_broker = configs["message.timestamp.type"] == "LogAppendTime"
        if by_broker:
            set_log_append_time(batch, now_ms)
            info = info._replace(max_timestamp=now_ms)
        return Appended(self._store(batch, info, now_ms), now_ms if by_broker else -1)

    def _enter(self, info: BatchInfo, gate: TransactionGate | None) -> bool:
        """Let the first batch of a transaction in; whether it has an epoch of its own."""
        if not info.is_transactional or self.producers.is_open(info.producer_id, info.epoch):
            return False
        if gate is None:
            raise ApiError(KafkaError.INVALID_TXN_STATE, "The transaction is not known")
        gate.admit(info.producer_id, info.epoch)
        return gate.own_epochs

    def end_transaction(self, marker: Marker, now_ms: int) -> None:
        """Write the marker that ends a producer's transaction, whether or not one is open here.

        Raises:
            ApiError: the marker comes too late, or the log cannot be written.
        """
        if code := self.producers.check_marker(marker):
            raise ApiError(code)
        batch = memoryview(write_end_marker(marker.commit, marker.producer_id, marker.epoch, marker.coordinator_epoch,
                                            now_ms))
        self._store(batch, scan(batch)[0], now_ms)

    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed records stop: the first record of the oldest open transaction, or the end."""
        return max(self.producers.first_unstable(self.log.end_offset), self.log.start_offset)

    def advance_start(self, offset: int) -> None:
        """Drop what lies before `offset`."""
        self.log.advance_start(offset)
        self.producers.forget_aborted(self.log.start_offset)

    def recover(self, start_offset: int) -> None:
        """Rebuild what is known of the log from its batches on disk."""
        for info in self.log.recover(start_offset):
            batch = self.log.read(info.base_offset, 1).data if info.is_control else b""
            self._note(info, info.base_offset, info.leader_epoch, batch)

    def lead(self, node_id: int) -> None:
        """Make a node the leader, or `NO_LEADER` none; a new epoch begins, and waiting fetches look again."""
        if node_id != self.leader_id:
            self.leader_id = node_id
            self.leader_epoch += 1
            self.wake()

    def epoch_end(self, epoch: int) -> EpochStart:
        """The largest epoch written that is not above `epoch`, and the offset where it ends; (-1, -1) when unknown.

        Source: `LeaderEpochFileCache.endOffsetFor`.
        """
        if epoch == self.leader_epoch:
            return EpochStart(epoch, self.log.end_offset)
        after = bisect_right(self.epochs, epoch, key=lambda start: start.epoch)
        if after == 0 or epoch > self.leader_epoch:
            return EpochStart(-1, -1)
        end = self.epochs[after].offset if after < len(self.epochs) else self.log.end_offset
        return EpochStart(self.epochs[after - 1].epoch, end)

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at an offset was written; at the log's end the present one."""
        if offset >= self.log.end_offset:
            return self.leader_epoch
        return self.epochs[bisect_right(self.epochs, offset, key=lambda start: start.offset) - 1].epoch

    def wake(self) -> None:
        """Let every waiting fetch look again."""
        self.purgatory.wake(self)

    def _store(self, batch: memoryview, info: BatchInfo, now_ms: int) -> int:
        base_offset = self.log.end_offset
        set_base_offset(batch, base_offset, self.leader_epoch)
        try:
            self.log.append(batch, base_offset + info.last_offset - info.base_offset, info.max_timestamp, now_ms)
        except OSError as error:
            raise ApiError(KafkaError.KAFKA_STORAGE_ERROR, f"The log cannot be written: {error}") from error
        self._note(info, base_offset, self.leader_epoch, batch)
        self.wake()
        return base_offset

    def _note(self, info: BatchInfo, base_offset: int, epoch: int, batch: bytes | memoryview) -> None:
        """Remember a batch that is stored; `batch` is looked into where it is a marker."""
        if not self.epochs or self.epochs[-1].epoch < epoch:
            self.epochs.append(EpochStart(epoch, base_offset))
        if info.is_control:
            for each in control_records(batch):
                if each.type in (ABORT, COMMIT):
                    marker = Marker(each.producer_id, each.epoch, each.type == COMMIT, each.coordinator_epoch)
                    self.producers.end(marker, base_offset, each.timestamp_ms)
        elif info.producer_id >= 0:
            self.producers.record(info, base_offset)


def check_batch(batch: memoryview, max_bytes: int) -> BatchInfo:
    """The header of a producer's batch, once it is known to be sound.

    Raises:
        ApiError: it is not one whole batch of format 2 with a true checksum, or is not for clients to send.
    """
    if len(batch) > max_bytes:
        raise ApiError(KafkaError.MSG_SIZE_TOO_LARGE, f"The batch has {len(batch)} bytes; max.message.bytes allows "
                      f"{max_bytes}")
    try:
        infos = scan(batch)
        if len(infos) != 1 or infos[0].size != len(batch) or infos[0].magic != 2:
            raise ApiError(KafkaError.INVALID_RECORD, "Exactly one record batch of format 2 is expected per partition")
        verify(batch)
    except CorruptRecordError as error:
        raise ApiError(KafkaError.INVALID_MSG, str(error)) from None
    info = infos[0]
    if info.count < 1 or info.count != info.last_offset - info.base_offset + 1 or info.codec > 4 or info.is_control:
        raise ApiError(KafkaError.INVALID_RECORD, "The batch's count, codec or kind is not one a client may send")
    if info.producer_id >= 0 and (info.epoch < 0 or info.base_sequence < 0):
        raise ApiError(KafkaError.INVALID_RECORD, "An idempotent batch needs an epoch and a sequence number")
    return info


def check_keys(batch: memoryview) -> None:
    """Refuse a batch for a compacted topic with records that have no key.

    Raises:
        ApiError: there are such records, or those of the batch are damaged.
    """
    try:
        messages = Cursor(batch, "", -1, 0, check_crcs=False).take(1 << 31)
    except CorruptRecordError as error:
        raise ApiError(KafkaError.INVALID_MSG, str(error)) from None
    if keyless := [index for index, message in enumerate(messages) if message.key() is None]:
        raise RecordsRefusedError(KafkaError.INVALID_RECORD, "A compacted topic takes no records without a key; "
                                  f"{len(keyless)} of the batch have none", keyless)
