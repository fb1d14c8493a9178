"""`Message`: one record as the application sees it, or an event in its place. The plain twin of the native one.

It must not know how records are encoded. Read next: `headrace.records.batch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

from headrace.errors import KafkaError

__all__ = ["Message", "acquired", "encode_headers", "encode_text", "rebuild", "rebuild_as"]

HeaderList = list[tuple[str, bytes | None]]
_NOT_GIVEN: dict[str, Any] = {
    **dict.fromkeys(("_error", "_headers", "_key", "_latency", "_topic", "_value")), "_timestamp": (0, 0),
    **dict.fromkeys(("_delivery_count", "_leader_epoch", "_offset", "_partition"), 0),
}


class Message:
    """A consumed record, a delivery report, or an event when `error()` is not None (confluent_kafka's `Message`).

    The native implementation points into the bytes of the fetched batch and makes key and value when they are asked
    for: a message that is kept alive therefore keeps its whole batch alive (at most the broker's `max.message.bytes`,
    or the whole reply of one partition when batches are not compressed). Keep `message.value()` rather than the
    message where few records of many are kept for long. The garbage collector does not look into such messages: an
    object that is given to `set_value()` and refers back to the message would never be freed.

    Args:
        topic: topic name.
        partition: partition number.
        offset: offset in the partition.
        key: the record's key.
        value: the record's payload; None is a tombstone.
        headers: names and values, in order.
        error: what went wrong, for an event or a failed delivery.
        timestamp: (type, milliseconds since the epoch); the types are the `TIMESTAMP_` constants of `headrace`.
        latency: seconds from `produce()` to the delivery report.
        leader_epoch: epoch of the leader that the record was read from (KIP-320).
        delivery_count: how often a share group has handed the record out, this time included (KIP-932).
    """

    __slots__ = ("_delivery_count", "_error", "_headers", "_key", "_latency", "_leader_epoch", "_offset", "_partition",
                 "_timestamp", "_topic", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: Any = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] | None = None,
        latency: float | None = None,
        leader_epoch: int | None = None,
        delivery_count: int | None = None,
    ) -> None:
        self._topic = topic
        self._partition = -1 if partition is None else index(partition)  # int() would cut a float off
        self._offset = -1001 if offset is None else index(offset)
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        if timestamp is not None and (not isinstance(timestamp, tuple) or len(timestamp) != 2):
            raise TypeError(f"timestamp must be a tuple (type, milliseconds), not {timestamp!r}")
        self._timestamp = (0, 0) if timestamp is None else (index(timestamp[0]), index(timestamp[1]))
        self._latency = None if latency is None else latency + 0.0  # float() would read text
        self._leader_epoch = -1 if leader_epoch is None else index(leader_epoch)
        self._delivery_count = 0 if delivery_count is None else delivery_count

    def __getattr__(self, name: str) -> Any:
        """A subclass with an `__init__` of its own, a test's stand-in say, may have given nothing."""
        if name in _NOT_GIVEN:
            return _NOT_GIVEN[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def topic(self) -> str | None:
        """The topic's name, None when it is not known."""
        return self._topic

    def partition(self) -> int | None:
        """The partition's number, None when it is not known."""
        return self._partition if self._partition >= 0 else None

    def offset(self) -> int | None:
        """The record's offset, None when it is not known."""
        return self._offset if self._offset >= 0 else None

    def key(self) -> Any:
        """The key: bytes or None, or what `set_key()` put there."""
        return self._key

    def value(self) -> Any:
        """The payload: bytes or None, or what `set_value()` put there."""
        return self._value

    def deserialized_key(self) -> Any:
        """As `key()`, in confluent_kafka typed as what a `DeserializingConsumer` has made of it."""
        return self.key()

    def deserialized_value(self) -> Any:
        """As `value()`, in confluent_kafka typed as what a `DeserializingConsumer` has made of it."""
        return self.value()

    def headers(self) -> Any:
        """A list of (name, bytes or None), None when there are no headers."""
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        """A pair (type, milliseconds since the epoch); type 0 stands for none."""
        return self._timestamp

    def latency(self) -> float | None:
        """Seconds from `produce()` to the delivery report; None on consumed records."""
        return None if self._latency is None or self._latency < 0 else self._latency

    def error(self) -> KafkaError | None:
        """What went wrong, None for a proper record."""
        return self._error

    def leader_epoch(self) -> int | None:
        """Epoch of the leader that the record was read from, None when it is not known."""
        return self._leader_epoch if self._leader_epoch >= 0 else None

    def delivery_count(self) -> int | None:
        """How often a share group has handed the record out, this time included; None outside of share groups."""
        return self._delivery_count if self._delivery_count > 0 else None

    def set_topic(self, topic: str | None) -> None:
        """Replace the topic's name."""
        self._topic = topic

    def set_key(self, key: Any) -> None:
        """Replace the key, for example with its deserialised form."""
        self._key = key

    def set_value(self, value: Any) -> None:
        """Replace the value, for example with its deserialised form."""
        self._value = value

    def set_headers(self, headers: Any) -> None:
        """Replace the headers."""
        self._headers = headers

    def set_error(self, error: KafkaError | None) -> None:
        """Replace the error."""
        self._error = error

    def _fields(self) -> tuple[Any, ...]:
        return (self._topic, self._partition, self._offset, self.key(), self.value(), self.headers(), self._error,
                self.timestamp(), self._latency, self._leader_epoch, self._delivery_count)

    def __len__(self) -> int:
        value = self.value()
        return 0 if value is None else len(value)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Message) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        if type(self) is Message:
            return (rebuild, self._fields())
        return (rebuild_as, (type(self), self._fields(), getattr(self, "__dict__", {})))

    def __repr__(self) -> str:
        what = f"error={self._error}" if self._error is not None else f"key={self.key()!r:.60},{len(self)} bytes"
        return f"Message{{{self._topic}[{self.partition()}]@{self.offset()},{what}}}"

    def _repr_html_(self) -> str:
        from headrace.records.message_html import message_html

        return message_html(self)


def acquired(messages: list[Any], ranges: Iterable[tuple[int, int, int]]) -> list[Any]:
    """Those of a partition's messages that a share consumer holds, each with its delivery count.

    Args:
        messages: in the order of their offsets.
        ranges: first offset, last offset and delivery count of what is held, in order; they do not overlap.
    """
    kept, at = [], 0
    for first, last, delivered in ranges:
        while at < len(messages) and (offset := messages[at].offset()) <= last:
            if offset >= first:
                messages[at]._delivery_count = delivered
                kept.append(messages[at])
            at += 1
    return kept


def rebuild(*fields: Any) -> Any:
    """The message that was pickled: of the implementation that is used where it is loaded."""
    from headrace import records

    return records.Message(*fields)


def rebuild_as(cls: Any, fields: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """The message of an application's own class that was pickled; its `__init__` may want something else."""
    from headrace import records

    message = cls.__new__(cls)
    (records.Message if issubclass(cls, records.Message) else Message).__init__(message, *fields)
    for name, value in attributes.items():
        setattr(message, name, value)
    return message


def encode_text(value: Any, role: str) -> bytes | None:
    """The bytes of a key or value as users give it.

    Raises:
        TypeError: neither bytes, str nor None.
    """
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(
            f"{role} must be bytes, str or None, not {type(value).__name__}: serialise it first") from None


_NO_PAIRS = "headers must be a mapping or a list of (name, value) pairs"


def encode_headers(headers: Any) -> list[tuple[bytes, bytes | None]]:
    """The headers of a record as users give them, a mapping or pairs, as bytes.

    Raises:
        TypeError: not a mapping or pairs of str and (bytes, str or None).
    """
    if headers is None:
        return []
    pairs, encoded = headers.items() if hasattr(headers, "items") else headers, []
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise TypeError(f"headers must be a mapping or a list of (name, value) pairs, not {type(headers).__name__}")
    for pair in pairs:
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise TypeError(_NO_PAIRS) from None
        if isinstance(pair, (str, bytes)):  # of two letters, which can be unpacked as well
            raise TypeError(_NO_PAIRS)
        if not isinstance(name, str):
            raise TypeError(f"a header's name must be str, not {type(name).__name__}")
        encoded.append((name.encode(), encode_text(value, f"header {name!r}")))
    return encoded
