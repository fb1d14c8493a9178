"""What the client knows of the cluster: brokers, topics, partitions and their leaders; when to ask again.

A caller that needs a topic asks for it with `want_topics()`; one that finds the picture wrong calls `refresh()`, or
passes on the leader that a broker named in its error (`update_leader()`, KIP-951). Readers take the snapshot `cluster`,
which is never changed, only replaced. Topics that are new, or not usable yet, are asked for by themselves (KIP-526):
among thousands of others, one more costs little.

This module knows no sockets: the driver dials the brokers in `cluster.nodes`. Read next: `net.driver`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, Final
from uuid import UUID

from headrace.errors import KafkaError, KafkaException
from headrace.machines.backoff import RetryPolicy
from headrace.machines.machine import ANY_NODE, REFUSALS, Event, Send
from headrace.slotted import Late, field, late, replace, slotted, source_of
from headrace.types.records import NodeAddress
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from headrace.wire.schema import Request, Struct
from headrace.wire.topic_rows import same_row

__all__ = ["LAGGING_S", "UNKNOWN_HOSTS_S", "Cluster", "HostsUnknown", "Metadata", "MetadataChanged", "MetadataFailed",
           "PartitionInfo", "TopicInfo"]

_NO_UUID = UUID(int=0)
_AT_ONCE: Final = -math.inf
_FIRST_BOOTSTRAP_ID = -1000
_REQUEST_TIMEOUT_S = 30.0
_SILENT_S = 3.0
_FAILED_ROUNDS_BEFORE_REBOOTSTRAP = 2
_CREATES_NOTHING_FROM = 4
LAGGING_S: Final = 5.0
"""So long a topic stays in the picture that a broker does not know: it may lag behind others, or have just started."""
UNKNOWN_HOSTS_S: Final = 5.0
"""How long names of hosts are looked up that nobody knows, before that is said."""


@slotted(frozen=True)
class PartitionInfo:
    """One partition. `leader_id` is None while it has no leader; `leader_epoch` is -1 when the broker is too old."""

    leader_id: int | None
    leader_epoch: int = -1
    replicas: Sequence[int] = ()
    isr: Sequence[int] = ()
    offline: Sequence[int] = ()
    error: KafkaError | None = None


@slotted(frozen=True)
class TopicInfo(Late):
    """One topic. `error` says why it cannot be used: unknown, not authorised, no leader yet."""

    name: str
    topic_id: UUID = _NO_UUID
    error: KafkaError | None = None
    partitions: Mapping[int, PartitionInfo] = field(default_factory=dict)
    is_internal: bool = False


@slotted(frozen=True)
class Cluster:
    """A picture of the cluster. Bootstrap servers have ids from -1000 downwards until the real ones are known.

    `doubted` are topics that are kept although the broker that answered last did not know them: it may lag behind.
    """

    nodes: Mapping[int, NodeAddress]
    controller_id: int | None = None
    cluster_id: str | None = None
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    names: Mapping[UUID, str] = field(default_factory=dict)
    doubted: Set[str] = frozenset()

    def topic_by_id(self, topic_id: UUID) -> TopicInfo | None:
        """The topic with this id, None when it is not known."""
        name = self.names.get(topic_id)
        return None if name is None else self.topics.get(name)


@slotted()
class MetadataChanged(Event):
    """A new picture of the cluster has come."""

    cluster: Cluster


@slotted()
class MetadataFailed(Event):
    """A broker does not speak to this client: it cannot authenticate, TLS fails, or it is too old. It is asked again.

    A call that waits for metadata should wait no longer.
    """

    error: KafkaError


@slotted()
class HostsUnknown(Event):
    """None of the bootstrap servers has a name that can be resolved, and no broker has ever answered.

    It is a mistake then, most likely; once one has answered, it is the name service that is in trouble. They are looked
    up again: this is said with each failure.
    """

    error: KafkaError


class Metadata:
    """The machine that keeps the picture fresh.

    Args:
        bootstrap: host and port of the brokers to begin with.
        refresh_s: seconds after which the picture is too old; None never.
        retries: how long it waits before it asks again.
        allow_auto_create: let the broker create topics that are wanted and do not exist.
        rebootstrap: when no known broker answers, try the bootstrap servers again (KIP-899).
        rebootstrap_after_s: seconds without metadata, from the first request on, after which the known brokers are
            forgotten for the bootstrap servers, whether they failed or are silent (KIP-1102).

    Attributes:
        cluster: the newest picture.
        updates: how often it was replaced; cheap to compare.
        last_error: why the last request for it failed; None once one was answered.
        stirred: something was asked of it since the last `poll`, or it has events.
        alone: False: all machines read the picture.
    """

    alone = idle = False

    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        *,
        refresh_s: float | None = 300.0,
        retries: RetryPolicy = RetryPolicy(),  # noqa: B008 - it is frozen
        allow_auto_create: bool = False,
        rebootstrap: bool = True,
        rebootstrap_after_s: float = 300.0,
    ) -> None:
        self._bootstrap = {
            _FIRST_BOOTSTRAP_ID - i: NodeAddress(_FIRST_BOOTSTRAP_ID - i, host, port)
            for i, (host, port) in enumerate(bootstrap)
        }
        self.cluster = Cluster(nodes=dict(self._bootstrap))
        self.updates = 0
        self.last_error: KafkaError | None = None
        self._refresh_s = refresh_s
        self._retries = retries
        self._allow_auto_create = allow_auto_create
        self._rebootstrap = rebootstrap
        self._rebootstrap_after_s = max(rebootstrap_after_s, retries.first_s)
        self._topics: set[str] = set()
        self._all = False
        self._due: float | None = _AT_ONCE  # of the whole picture: the first is wanted at once
        self._asked_at = -math.inf
        self._new: set[str] = set()  # wanted topics that are not in the picture as they are to be
        self._new_due: float | None = None
        self._in_flight: Send | None = None  # its context is the names that it asks for, None for the whole picture
        self._failures = 0
        self._unresolved = 0  # failures in a row for names that cannot be resolved
        self._seeking_since: float | None = None  # the first request without a good answer since
        self._unsettled = 0  # replies in a row after which a wanted topic was not usable yet
        self._forgotten: set[str] = set()  # topics of which no answer is believed that was asked for before
        self._missed: dict[str, float] = {}  # topics that brokers do not know any more, and since when
        self._events: list[Event] = []
        self.stirred = True

    def want_topics(self, names: Iterable[str]) -> None:
        """Keep these topics in the picture, from now on. Ask at once for those that are new."""
        new = set(names) - self._topics
        self._topics |= new
        self._ask_for(new)

    def want_all(self, wanted: bool = True) -> None:
        """Keep all topics in the picture (subscription by pattern), or stop to."""
        if wanted and not self._all:
            self._ask_at_once()
        self._all = wanted

    def want_only(self, names: Collection[str], *, every: bool) -> None:
        """Keep these topics in the picture, or every topic (subscription by pattern), and forget all others.

        Ask at once for what is new.
        """
        new = set(names) - (self.cluster.topics.keys() if every and self._all else self._topics)
        if every and not self._all:
            self._ask_at_once()
        self._topics, self._all = set(names), every
        self._keep_wanted()
        self._ask_for(new)

    def unwant(self, names: Iterable[str]) -> None:
        """Forget topics that are not needed any more."""
        self._topics.difference_update(names)
        self._keep_wanted()

    def _keep_wanted(self) -> None:
        self._new &= self._topics
        if not self._new:
            self._new_due = None

    def forget(self, names: Collection[str]) -> None:
        """What is known of these topics may be out of date: know nothing until a broker that is asked now answers."""
        self._forgotten.update(names)
        left = {name: info for name, info in self.cluster.topics.items() if name not in names}
        self._replace(replace(self.cluster, topics=left))
        self._ask_at_once()

    def refresh(self, now: float) -> None:
        """The picture is wrong: ask again as soon as the retry backoff allows."""
        if self._in_flight is None or self._in_flight.context is not None:
            self._ask_by(max(now, self._asked_at + self._retries.first_s))

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        """Broker id and epoch of a partition's leader; (None, -1) when it is not known."""
        info = self.cluster.topics.get(topic)
        found = None if info is None else info.partitions.get(partition)
        return (None, -1) if found is None else (found.leader_id, found.leader_epoch)

    def missing(self, topic: str, partition: int) -> KafkaError | None:
        """Why a partition cannot be had: there is none, or it is not for this client. None when that is not known."""
        info = self.cluster.topics.get(topic)
        if info is None or partition in info.partitions:
            return None
        if info.error is not None and info.error != KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None if info.error.retriable() else info.error
        text = f"{topic}[{partition}] does not exist: " + (
            "there is no such topic" if info.error else f"the topic has {len(info.partitions)} partition(s)")
        return KafkaError(KafkaError._UNKNOWN_PARTITION, text)

    def topic_id(self, topic: str) -> UUID:
        """A topic's id (KIP-516); zero while it is not known."""
        info = self.cluster.topics.get(topic)
        return _NO_UUID if info is None else info.topic_id

    def update_leader(
        self, topic: str, partition: int, leader_id: int, leader_epoch: int, endpoints: Iterable[NodeAddress] = ()
    ) -> bool:
        """Take over the new leader that a broker named in its error (KIP-951).

        Returns:
            True when it was not known; False when an epoch at least as new was.
        """
        info = self.cluster.topics.get(topic)
        known = None if info is None else info.partitions.get(partition)
        nodes = {**self.cluster.nodes, **{node.id: node for node in endpoints}}
        if info is None or known is None or leader_epoch <= known.leader_epoch or leader_id not in nodes:
            return False
        moved = replace(known, leader_id=leader_id, leader_epoch=leader_epoch, error=None)
        topics = {**self.cluster.topics, topic: replace(info, partitions={**info.partitions, partition: moved})}
        self._replace(replace(self.cluster, nodes=nodes, topics=topics))
        return True

    def is_silent(self, now: float) -> bool:
        """The brokers have been asked for a while and do not answer: the picture may be out of date."""
        return self._seeking_since is not None and now - self._seeking_since > _SILENT_S

    def poll(self, now: float) -> Iterable[Send]:
        """Ask when it is time, one request at once."""
        self.stirred = False
        again_at = self._starts_again_at()
        if again_at is not None and again_at <= now:
            self._start_again(now)
        due = self._earliest()
        if self._in_flight is not None or due is None or due > now:
            return ()
        send = self._in_flight = Send(ANY_NODE, MetadataRequest(), _REQUEST_TIMEOUT_S, for_version=self._as_written)
        send.request = self._request(send, whole=self._due is not None and self._due <= now)
        if send.context is None:
            self._asked_at = now
        self._seeking_since = now if self._seeking_since is None else self._seeking_since
        return (send,)

    def _earliest(self) -> float | None:
        due, new_due = self._due, self._new_due
        return new_due if due is None else due if new_due is None else min(due, new_due)

    def _request(self, send: Send, whole: bool) -> MetadataRequest:
        """What is wanted by now: the whole picture, or what is new in it."""
        self._new_due = None
        if whole or self._all or len(self._new) == len(self._topics):
            self._due = send.context = None
            self._forgotten.clear()
            names = None if self._all else self._topics
        else:
            names = send.context = set(self._new)
            self._forgotten -= names
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in sorted(names)]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=self._allow_auto_create)

    def _as_written(self, request: Request, version: int) -> Request:
        """What was wanted until the connection was open is asked for with the same request."""
        if not self._allow_auto_create:
            _check_creates_nothing(version)
        send = self._in_flight
        if send is None or self._earliest() != _AT_ONCE:
            return request
        return self._request(send, whole=send.context is None or self._due == _AT_ONCE)

    def deadline(self) -> float | None:
        """When to ask again."""
        due, again_at = None if self._in_flight is not None else self._earliest(), self._starts_again_at()
        return due if again_at is None else again_at if due is None else min(due, again_at)

    def events(self) -> list[Event]:
        """Take the changes."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """A broker answered: replace the picture."""
        assert isinstance(reply, MetadataResponse)
        if send is self._in_flight:
            self._in_flight = None
        self.last_error = KafkaError(reply.error_code) if reply.error_code else None
        if reply.error_code or not reply.brokers:
            self._on_failure(now, at_bootstrap=reply.error_code == KafkaError.REBOOTSTRAP_REQUIRED)
            return
        self._failures, self._seeking_since = 0, None
        asked: set[str] | None = send.context
        if asked is None and self._due is None and self._refresh_s is not None:
            self._due = now + self._refresh_s
        self._replace(self._picture(reply, asked, now))
        self._new = {name for name in (self._topics if asked is None else self._new) if self._unusable(name)}
        if not self._all:
            self._new |= self._missed.keys() & self._topics
        self._look_again(now)

    def _look_again(self, now: float) -> None:
        """Ask again for what was not as it is to be, after a while; what was wanted meanwhile is asked for at once."""
        if self._earliest() == _AT_ONCE:
            return
        if not (self._new or (self._all and self._missed)):
            self._unsettled = 0
            return
        self._unsettled += 1
        again_at = now + self._retries.wait_s(self._unsettled)
        if self._all:
            self._ask_by(again_at)
        else:
            self._new_due, self.stirred = again_at, True

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No answer: try another broker after the backoff, and in the end the bootstrap servers."""
        self.last_error = error
        if error.code() in REFUSALS or error.code() == KafkaError._UNSUPPORTED_FEATURE:
            self._events.append(MetadataFailed(error))
        self._unresolved = self._unresolved + 1 if error == KafkaError._RESOLVE else 0
        if self._knows_no_host(now):
            self._events.append(HostsUnknown(error))
        if send is self._in_flight:
            self._in_flight = None
            self._on_failure(now)

    def _knows_no_host(self, now: float) -> bool:
        if self.updates or self._unresolved < len(self.cluster.nodes) or self._seeking_since is None:
            return False
        return now - self._seeking_since >= UNKNOWN_HOSTS_S

    def _on_failure(self, now: float, at_bootstrap: bool = False) -> None:
        self._failures += 1
        self._due, self._new_due = now + self._retries.wait_s(self._failures), None  # the whole has what is new
        exhausted = self._failures >= _FAILED_ROUNDS_BEFORE_REBOOTSTRAP * len(self.cluster.nodes)
        if at_bootstrap or (exhausted and self._rebootstrap):
            nodes = {**self.cluster.nodes, **self._bootstrap}
            if len(nodes) != len(self.cluster.nodes):
                self._replace(replace(self.cluster, nodes=nodes))

    def _starts_again_at(self) -> float | None:
        """When the known brokers have had their time; None while nothing is missed, or there are no others to ask."""
        if self._seeking_since is None or not self._rebootstrap or self.cluster.nodes == self._bootstrap:
            return None
        return self._seeking_since + self._rebootstrap_after_s

    def _start_again(self, now: float) -> None:
        """Know only the bootstrap servers, and wait no longer for an answer that is under way."""
        self._replace(replace(self.cluster, nodes=dict(self._bootstrap)))
        self._in_flight, self._due, self._seeking_since = None, now, None

    def _ask_at_once(self) -> None:
        self.stirred = True
        self._due = _AT_ONCE
        self._unsettled = 0

    def _ask_for(self, new: set[str]) -> None:
        """Ask at once for topics that became wanted. Where all are in the picture, one by one would create them."""
        if not new:
            return
        if self._all:
            self._ask_at_once()
            return
        self._new |= new
        self._new_due, self.stirred = _AT_ONCE, True
        self._unsettled = 0

    def _ask_by(self, when: float) -> None:
        self.stirred = True
        self._due = when if self._due is None else min(self._due, when)

    def _replace(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.updates += 1
        self._events.append(MetadataChanged(cluster))
        self.stirred = True

    def _unusable(self, name: str) -> bool:
        """Whether a topic may soon be what it is not yet: it is made, or its leader is chosen, or a right is given."""
        info = self.cluster.topics.get(name)
        if info is None:
            return True
        if info.error is not None and (info.error.retriable() or info.error == KafkaError.TOPIC_AUTHORIZATION_FAILED):
            return True
        return any(partition.leader_id is None for partition in info.partitions.values())

    def _picture(self, reply: MetadataResponse, asked: set[str] | None, now: float) -> Cluster:
        topics = {topic.name: self._topic(topic.name, topic) for topic in reply.topics
                  if topic.name is not None and topic.name not in self._forgotten}
        self._keep_missed(topics, asked, now)
        names = {info.topic_id: name for name, info in topics.items() if info.topic_id != _NO_UUID}
        if asked is not None:
            topics, names = self._with_others(topics, names, asked)
        return Cluster(
            nodes={b.node_id: NodeAddress(b.node_id, b.host, b.port, b.rack) for b in reply.brokers},
            controller_id=reply.controller_id if reply.controller_id >= 0 else None,
            cluster_id=reply.cluster_id,
            topics=topics,
            names=names,
            doubted=self._missed.keys(),
        )

    def _with_others(
        self, topics: dict[str, TopicInfo], names: dict[UUID, str], asked: set[str]
    ) -> tuple[dict[str, TopicInfo], dict[UUID, str]]:
        """What was not asked for stays as it was, if it is wanted still."""
        all_topics, all_names = dict(self.cluster.topics), dict(self.cluster.names)
        gone = asked if self._all else asked | (all_topics.keys() - self._topics)
        for name in gone:
            if (known := all_topics.pop(name, None)) is not None:
                all_names.pop(known.topic_id, None)
        all_topics.update(topics)
        all_names.update(names)
        return all_topics, all_names

    def _keep_missed(self, topics: dict[str, TopicInfo], asked: set[str] | None, now: float) -> None:
        """Keep topics for a while that were there and that this broker does not know: others may know them still.

        Without that one broker that lags behind takes the partitions from a whole group.
        """
        before, known_topics = self._missed, self.cluster.topics
        self._missed = {} if asked is None else {
            name: since for name, since in before.items() if name not in asked and name in self._topics}
        for name in known_topics if asked is None else asked & known_topics.keys():
            known, info = known_topics[name], topics.get(name)
            if info is known or known.error is not None:
                continue
            if self._all if info is None else info.error == KafkaError.UNKNOWN_TOPIC_OR_PART:
                since = before.get(name, now)
                if now - since < LAGGING_S:
                    topics[name], self._missed[name] = known, since

    def _topic(self, name: str, topic: MetadataResponseTopic) -> TopicInfo:
        known = self.cluster.topics.get(name)
        if known is not None and same_row(source_of(known), topic):
            return known
        error = KafkaError(topic.error_code, f'topic "{name}": {_about(topic.error_code)}') if topic.error_code \
            else None
        if known is None or known.topic_id != topic.topic_id:
            return late(TopicInfo, _MAKERS, topic, name=name, topic_id=topic.topic_id, error=error,
                        is_internal=topic.is_internal)
        # Not late: pictures would hang on those before them, and all on the first. A topic does not lose partitions:
        # a broker that names fewer lags behind.
        partitions = dict(known.partitions) if known.topic_id != _NO_UUID and error is None else {}
        for p in topic.partitions:
            before = known.partitions.get(p.partition_index)
            stale = before is not None and p.leader_epoch < before.leader_epoch
            partitions[p.partition_index] = before if before is not None and stale else _partition(p)
        return late(TopicInfo, {}, topic, name=name, topic_id=topic.topic_id, error=error, partitions=partitions,
                    is_internal=topic.is_internal)


def _partitions(topic: MetadataResponseTopic) -> dict[int, PartitionInfo]:
    return {p.partition_index: _partition(p) for p in topic.partitions}


_MAKERS: Final = {"partitions": _partitions}


def _partition(p: Any) -> PartitionInfo:
    return PartitionInfo(
        leader_id=p.leader_id if p.leader_id >= 0 else None,
        leader_epoch=p.leader_epoch,
        replicas=p.replica_nodes,
        isr=p.isr_nodes,
        offline=p.offline_replicas,
        error=KafkaError(p.error_code) if p.error_code else None,
    )


def _check_creates_nothing(version: int) -> None:
    """Refuse brokers that cannot be told not to create topics: a look at one that is missing creates it there."""
    if version < _CREATES_NOTHING_FROM:
        raise KafkaException(KafkaError(
            KafkaError._UNSUPPORTED_FEATURE, "the broker is older than Apache Kafka 0.11, with which this client does "
            f"not work: it offers Metadata up to version {version}, and {_CREATES_NOTHING_FROM} is needed"))


def _about(code: int) -> str:
    return KafkaError(code).str()
