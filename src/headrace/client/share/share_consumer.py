"""`ShareConsumer`: reads records as a member of a share group, under confluent_kafka's names (KIP-932).

The machines run on the process's loop thread. Records are decoded in the caller's thread, and callbacks run there,
inside of the calls. It signs what `client.share.share_engine` does, and must not know how that waits.
Read next: `client.share.share_engine`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.arguments import given_properties
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.core import LiveClient
from headrace.client.share.polled_messages import Messages
from headrace.client.share.share_engine import AcknowledgementCallback, ShareEngine
from headrace.client.waits import ThreadWaits
from headrace.errors import IllegalStateException, KafkaException
from headrace.net.thread import loop_thread
from headrace.records import Message
from headrace.types.metrics import Metrics
from headrace.types.records import TopicPartition
from headrace.types.share import AcknowledgeType

__all__ = ["ShareConsumer"]


class ShareConsumer(LiveClient):
    """A member of a share group: each record goes to one member, and is acknowledged by itself.

    What `poll()` returns is held for this member until it is acknowledged, or its lock is over (30 seconds, unless the
    group's share.record.lock.duration.ms says otherwise); then others get it. With "share.acknowledgement.mode"
    "implicit", as by default, all records of a `poll()` are accepted by the next one, or by a commit; with "explicit"
    each needs an `acknowledge()` before the next `poll()`. `for` over it gives one record after the other, for ever; it
    may be left at any, and what it has not given comes next.

    One call at a time: a call from another thread while one goes on raises `ConcurrentModificationException`. Close
    it, or use it in a `with` statement: what is held and not acknowledged then comes to others at once. After `close()`
    every method but `close()` raises `IllegalStateException`, a `RuntimeError`, as do calls from its own callbacks.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.
        logger: `logging.Logger` to use, as the property "logger".
        properties: more properties, by keyword.

    Raises:
        ConfigError: an unknown property, a bad value, one that share groups do not have, or no "group.id".
        RuntimeError: it was made already.
        TypeError: no properties were given.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, logger: Any = None, **properties: Any) -> None:
        if "_engine" in self.__dict__:
            raise RuntimeError("ShareConsumer already initialized")
        given = given_properties(config, logger, properties)
        self._waits = ThreadWaits(loop_thread())
        self._given = ApplicationCallbacks(self)
        self._engine = self._waits.call(self._make(given))

    if not TYPE_CHECKING:  # a type checker would take every name for one of a consumer's

        def __getattr__(self, name: str) -> Any:
            if name in ("_engine", "_waits"):  # as in `Consumer`
                raise IllegalStateException("Share consumer closed: its __init__() was not called, or failed")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def _make(self, config: Mapping[str, Any]) -> ShareEngine:
        return await ShareEngine(config, self._given, self._waits.notify).log_in()

    # Choosing what to read

    def subscribe(self, topics: list[str]) -> None:
        """Join the group to read these topics. Replaces an earlier subscription; an empty list is `unsubscribe()`.

        Raises:
            TypeError: not a list of str.
            ValueError: a name is empty, given twice, or a pattern.
        """
        self._waits.run(self._engine.subscribe(topics))

    def unsubscribe(self) -> None:
        """Send what is acknowledged, release all other records that are held, and leave the group."""
        self._waits.run(self._engine.unsubscribe())

    def subscription(self) -> list[str]:
        """The topics subscribed to."""
        return self._engine.subscription()

    # Reading

    def poll(self, timeout: float | None = -1) -> Messages:
        """Up to "max.poll.records" messages, as soon as there are some; none when time is up. Runs callbacks.

        Sends what was acknowledged. With "implicit" acknowledgement it accepts what the last call returned.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Returns:
            Records, and what went wrong with a topic or a partition: messages whose `error()` is not None, which are
            not acknowledged.

        Raises:
            IllegalStateException: nothing is subscribed to; with "explicit" acknowledgement, records of the last call
                were not acknowledged.
            KafkaException: the group refuses this member, brokers let it not in or have no share groups, or
                `_MAX_POLL_EXCEEDED`: it came too late, and what it held went to others. It may be called again.
        """
        self._waits.wakeup.heed()
        return self._waits.run(self._engine.poll(timeout))

    def __iter__(self) -> Iterator[Message]:
        while True:
            self._engine.want_one()  # who leaves the loop has seen no other
            yield from self.poll()

    # Acknowledging

    def acknowledge(self, message: Message, ack_type: int = AcknowledgeType.ACCEPT) -> None:
        """Say what became of a record; it is sent by the next `poll()` or commit, and the last word until then counts.

        Args:
            message: a record that `poll()` has returned.
            ack_type: `AcknowledgeType`: ACCEPT, RELEASE, REJECT, or RENEW to hold it for longer; it is acknowledged
                again, then.

        Raises:
            IllegalStateException: the record is not held, or the mode is not "explicit".
            TypeError: not a `Message`.
            ValueError: no such type; the message is an event.
        """
        self._engine.acknowledge(message, ack_type)

    def acknowledge_offset(
        self, topic: str, partition: int, offset: int, ack_type: int = AcknowledgeType.ACCEPT
    ) -> None:
        """As `acknowledge`, by topic, partition and offset."""
        self._engine.acknowledge_offset(topic, partition, offset, ack_type)

    def commit_sync(self, timeout: float | None = 60) -> dict[TopicPartition, KafkaException | None]:
        """Send what is acknowledged, and wait for the answers. Runs callbacks.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Returns:
            None for each partition whose acknowledgements hold, else why they do not: `INVALID_RECORD_STATE` after the
            end of the lock, `SHARE_SESSION_NOT_FOUND` after that of the connection, `_TIMED_OUT` and others. Those
            records come again, to this member or another one.
        """
        return self._waits.run(self._engine.commit_sync(timeout))

    def commit_async(self) -> None:
        """Send what is acknowledged, and do not wait; the callback gets the answers."""
        self._waits.run(self._engine.commit_async())

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Have brokers' answers to acknowledgements handed to a function, from within the calls of this consumer.

        Args:
            callback: called as callback(offsets, exception): a dict of `TopicPartition` to the set of offsets, and
                None when the acknowledgements hold; None for no callback.

        Raises:
            TypeError: not callable.
        """
        self._engine.set_callback(callback)

    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record may be held (Java's name), in milliseconds; None before a broker has said it."""
        return self._engine.lock_timeout_ms()

    # The client

    def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `types.metrics`."""
        return self._waits.do(self._engine.metrics)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password of PLAIN or SCRAM, for connections and authentications that come after this.

        Raises:
            ConfigError: one is empty, or has a NUL character.
            TypeError: one is not str.
        """
        self._engine.set_sasl_credentials(username, password)

    def wakeup(self) -> None:
        """End a `poll()` or `commit_sync()` that waits, or the next, with `headrace.errors.WakeupError`.

        From any thread, and from signal handlers. What is held stays held. A `close()` that waits already is ended too.
        """
        self._waits.wake()

    def close(self) -> None:
        """Send what is acknowledged, release all other records, leave the group, close all connections.

        What the last `poll()` returned is not accepted by this, in no mode: a program that fails must not lose
        records. Closing twice does no harm.
        """
        if "_engine" in self.__dict__ and not sys.is_finalizing():
            self._waits.wakeup.forget()
            self._given.renew(self)
            self._waits.run(self._engine.close(), gives_up=True)

    def __enter__(self) -> ShareConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
