"""The smallest membership: a member that is alone, and has all partitions of the topics that it asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from headrace.config import Config
from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.groups.membership import Change, Left, Rebalance
from headrace.machines.machine import Event, Send
from headrace.machines.producer.transaction_requests import ConsumerGroupMetadata
from headrace.types.records import TopicPartition
from headrace.wire.schema import Struct


class Standing(Enum):
    """Where the member stands."""

    ALONE = "a member without others"


class StaticMembership:
    """Asks nobody: partitions are known from the metadata, and a broker takes commits of a group without members.

    Attributes:
        called: what the client has called, in order.
    """

    alone = idle = False

    def __init__(
        self, config: Config, subscription: Subscription, metadata: Metadata, finder: CoordinatorFinder
    ) -> None:
        self.identity = ConsumerGroupMetadata(config["group.id"])
        self.member_id = ""
        self.application_at = float("inf")
        self.stalled = self.resolves_patterns = False
        self.state, self.answered_at = Standing.ALONE, None
        self.is_outside = True
        self.owned: frozenset[Key] = frozenset()
        self.planned_topics: frozenset[str] = frozenset()
        self.called: list[str] = []
        self._subscription, self._metadata = subscription, metadata
        self._promised: frozenset[Key] = frozenset()
        self._waiting = False
        self._events: list[Event] = []

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        self.called.append("subscribe")
        begins = not self._subscription.is_subscribed
        self._subscription.subscribe(topics)
        self.is_outside = False
        if begins:
            self.application_at = now

    def callback_done(self, now: float) -> None:
        self.called.append("callback_done")
        self.owned, self._waiting = self._promised, False

    def enforce_rebalance(self, reason: str) -> None:
        self.called.append("enforce_rebalance")

    def doubt(self, member: ConsumerGroupMetadata) -> None:
        self.called.append("doubt")

    def leave(self) -> None:
        self.called.append("leave")
        self.owned = self._promised = frozenset()
        self.is_outside, self._waiting = True, False
        self._events.append(Left())

    def poll(self, now: float) -> Iterator[Send]:
        topics = self._metadata.cluster.topics
        wanted = frozenset((name, number) for name in self._subscription.names if name in topics
                           for number in topics[name].partitions)
        if wanted - self.owned and not self._waiting:
            self._waiting, self._promised = True, wanted
            new = [TopicPartition(*key) for key in sorted(wanted - self.owned)]
            self._events.append(Rebalance(Change.ASSIGN, new, True, -1, ""))
        return iter(())

    def deadline(self) -> float | None:
        return None

    def events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        raise AssertionError("it sends nothing")

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        raise AssertionError("it sends nothing")
