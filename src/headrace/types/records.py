"""Plain values of the public API: where a record lives and what is reported of it. No behaviour, no I/O.

`Message`, the record itself, lives in `headrace.records`, because it points into a batch's bytes.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, ClassVar, Final

from headrace.errors import KafkaError
from headrace.slotted import slotted

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "PARTITION_UA",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "ConsumerGroupMetadata",
    "Headers",
    "NodeAddress",
    "ProducerRecord",
    "RecordMetadata",
    "ThrottleEvent",
    "TopicPartition",
    "Uuid",
    "metadata_of",
]

OFFSET_BEGINNING: Final = -2
OFFSET_END: Final = -1
OFFSET_STORED: Final = -1000
OFFSET_INVALID: Final = -1001
PARTITION_UA: Final = -1
"""Partition unassigned: the partitioner chooses."""

TIMESTAMP_NOT_AVAILABLE: Final = 0
TIMESTAMP_CREATE_TIME: Final = 1
TIMESTAMP_LOG_APPEND_TIME: Final = 2

_2_31, _2_63 = 2**31, 2**63
_LIMITS = {"partition": _2_31, "leader_epoch": _2_31, "offset": _2_63}
_set = object.__setattr__

Headers = Mapping[str, Any] | Sequence[tuple[str, Any]]
"""Record headers as users give them: a mapping, or pairs (names may repeat); values are bytes, str or None."""


class TopicPartition:
    """A topic, a partition of it, and an offset there.

    Two are equal, and sort, by topic and partition alone, as in confluent_kafka.

    Args:
        topic: topic name.
        partition: partition number; -1 for unassigned.
        offset: absolute offset, or one of the logical `OFFSET_` constants.
        metadata: text stored with a committed offset.
        leader_epoch: epoch of the leader that the offset was read from (KIP-320), None when unknown.
    """

    __slots__ = ("error", "leader_epoch", "metadata", "offset", "partition", "topic")

    topic: str
    partition: int
    offset: int
    metadata: str | None
    leader_epoch: int | None
    error: KafkaError | None

    def __init__(
        self,
        topic: str,
        partition: int = PARTITION_UA,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        if (topic.__class__ is str and topic.isascii() and "\0" not in topic and partition.__class__ is int
                and -_2_31 <= partition < _2_31 and offset.__class__ is int and -_2_63 <= offset < _2_63
                and (metadata is None or metadata.__class__ is str)
                and (leader_epoch is None or (leader_epoch.__class__ is int and -_2_31 <= leader_epoch < _2_31))):
            place = _set  # nothing is left to check: thousands are made for one call
            if leader_epoch is not None and leader_epoch < 0:
                leader_epoch = None
        else:
            place = setattr
        place(self, "topic", topic)
        place(self, "partition", partition)
        place(self, "offset", offset)
        place(self, "metadata", metadata)
        place(self, "leader_epoch", leader_epoch)
        place(self, "error", None)

    def __setattr__(self, name: str, value: Any) -> None:
        """Check what is set as the constructor does: a wrong value would else be found when it is sent."""
        if name in _LIMITS and (value is not None or name != "leader_epoch"):
            value = _integer(name, value)
            if name == "leader_epoch" and value < 0:
                value = None
        elif not isinstance(value, _KINDS.get(name, object)):
            expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in _KINDS[name])
            raise TypeError(f"{name} must be {expected}, not {type(value).__name__}")
        elif name == "topic" and b"\0" in str(value).encode():  # surrogates could not be sent either
            raise ValueError("topic must not have a NUL character")
        _set(self, name, value)

    def _key(self) -> tuple[str, int]:
        return (self.topic, self.partition)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, TopicPartition) else NotImplemented

    def __lt__(self, other: TopicPartition) -> bool:
        return self._key() < other._key() if isinstance(other, TopicPartition) else NotImplemented

    def __le__(self, other: TopicPartition) -> bool:
        return self._key() <= other._key() if isinstance(other, TopicPartition) else NotImplemented

    def __gt__(self, other: TopicPartition) -> bool:
        return self._key() > other._key() if isinstance(other, TopicPartition) else NotImplemented

    def __ge__(self, other: TopicPartition) -> bool:
        return self._key() >= other._key() if isinstance(other, TopicPartition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},offset={self.offset},"
            f"leader_epoch={self.leader_epoch},error={self.error}}}"
        )


@slotted(frozen=True)
class ConsumerGroupMetadata:
    """A consumer's place in its group: offsets of a member that was replaced are refused (KIP-447)."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


_KINDS: dict[str, tuple[type, ...]] = {
    "topic": (str,), "metadata": (str, type(None)), "error": (KafkaError, type(None)),
}


def metadata_of(stored: str | None) -> str | None:
    """The text that was committed with an offset, of what a broker has stored; None for none.

    confluent_kafka sends a NUL byte behind the text, and takes it off again when it reads.
    """
    return stored.removesuffix("\0") if stored else None


def _integer(name: str, value: Any) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be int, not {type(value).__name__}") from None
    if not -_LIMITS[name] <= number < _LIMITS[name]:
        raise OverflowError(f"{name} {number} is out of range")
    return number


@slotted()
class ProducerRecord:
    """A record to send (Java: `ProducerRecord`).

    Args:
        topic: topic name.
        value: payload: bytes, str or None; None is a tombstone.
        key: key for partitioning and compaction: bytes, str or None.
        partition: partition number; None or -1 lets the partitioner choose.
        headers: names and values.
        timestamp_ms: milliseconds since the epoch; None takes the time of `send()`.
        record_id: the caller's own mark, handed back in the record's `RecordMetadata`.
    """

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    headers: Headers | None = None
    timestamp_ms: int | None = None
    record_id: int | None = None


@slotted(frozen=True)
class RecordMetadata:
    """Where a record was stored (Java: `RecordMetadata`), or, beside an error, what is known of it.

    Attributes:
        topic: topic name.
        partition: partition number, `NO_PARTITION` when none was chosen.
        offset: offset in the partition, -1 when it is not known (acks=0, errors).
        timestamp_ms: milliseconds since the epoch, -1 when it is not known.
        timestamp_type: one of the `TIMESTAMP_` constants.
        key_size, value_size: bytes, -1 for none.
        record_id: the mark of its `ProducerRecord`.
        headers: names and values as they were written, None without headers.
        latency_s: seconds from `send()` to the answer, None when the record was not accepted.
    """

    NO_PARTITION: ClassVar[int] = PARTITION_UA

    topic: str
    partition: int = NO_PARTITION
    offset: int = -1
    timestamp_ms: int = -1
    timestamp_type: int = TIMESTAMP_NOT_AVAILABLE
    key_size: int = -1
    value_size: int = -1
    record_id: int | None = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    latency_s: float | None = None

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset, self.timestamp_ms, self.record_id))

    def has_offset(self) -> bool:
        """True when the offset is known."""
        return self.offset >= 0

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset if self.offset >= 0 else '?'}"


@slotted(frozen=True)
class ThrottleEvent:
    """A broker asked the client to slow down. `throttle_time` is in seconds, as in confluent_kafka.

    Attributes:
        broker_name: its address.
        broker_id: its number, -1 for a bootstrap server.
        throttle_time: how long to wait, in seconds; 0 when that is over, once.
    """

    broker_name: str
    broker_id: int
    throttle_time: float

    def __str__(self) -> str:
        return f"{self.broker_name}/{self.broker_id} throttled for {self.throttle_time * 1000:.0f} ms"


@slotted(frozen=True)
class Uuid:
    """The id of a topic, of a cluster's member or the like: 128 bits (Java: `Uuid`). As text it is base64.

    Args:
        most_significant_bits: the first 64 bits as a signed number.
        least_significant_bits: the others.
    """

    most_significant_bits: int
    least_significant_bits: int

    def __post_init__(self) -> None:
        if not (-_2_63 <= index(self.most_significant_bits) < _2_63 > index(self.least_significant_bits) >= -_2_63):
            raise OverflowError(f"{self.most_significant_bits} or {self.least_significant_bits} is not a signed number "
                                "of 64 bits")

    def get_most_significant_bits(self) -> int:
        """The first 64 bits, signed."""
        return self.most_significant_bits

    def get_least_significant_bits(self) -> int:
        """The last 64 bits, signed."""
        return self.least_significant_bits

    def __int__(self) -> int:
        return (self.most_significant_bits % 2**64) << 64 | self.least_significant_bits % 2**64

    def __str__(self) -> str:
        return b2a_base64(int(self).to_bytes(16), newline=False).decode().rstrip("=")

    __repr__ = __str__


@slotted()
class NodeAddress:
    """A broker's id and where it listens."""

    id: int
    host: str
    port: int
    rack: str | None = None
