"""The simulation of share groups (KIP-932): members' machines and the embedded broker, without asyncio.

It is `whole_groups` with the machines of a share consumer (`ShareGroup`, `ShareFetcher`, `HeldRecords`), whose
application accepts, releases, rejects and renews records, at once, late or never. Leaders of partitions move as well.

Checked are safety, at the leaders of the partitions (no record is held by two members at once within its lock; what was
accepted or rejected is never handed out again; a delivery count grows by one, and not beyond the limit; who holds a
record may say what became of it, and nobody else; what a session held is free when it ends) and at the members (what
they are told is accepted is; each acknowledgement is answered once; they get the records that lie at their offsets),
and progress: in the healed cluster all records are accepted, rejected or were handed out as often as allowed.

    python -m tests.campaigns.sim.whole --of share-groups --schedules 20000 --jobs 2
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from typing import Any
from uuid import UUID

from headrace.broker.settings import BrokerSettings
from headrace.broker.shares.share_partition import SharePartition, ShareRules
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import Partition
from headrace.config import SHARE, Config
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetcher import RecordsReady
from headrace.machines.consumer.subscription import Key
from headrace.machines.groups.share_group import ShareGroup, ShareMemberState
from headrace.machines.machine import Event
from headrace.machines.share.acknowledgements import Acknowledged
from headrace.machines.share.held_records import HeldRecords
from headrace.machines.share.share_fetcher import AcquiredBatch, Demand, SessionsClosed, ShareFetcher
from headrace.records import Cursor, acquired
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.messages.groups.share_groups import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from headrace.wire.schema import Request

from .pure_brokers import PureBrokers, sealed
from .shared_records import ACCEPT, REJECT, RELEASE, RENEW, SharedRecords
from .whole_groups import NAME, TOPIC, Link, Member, WholeGroups

_LOCK_S, _SESSION_S, _MAX_POLL_S = 1.5, 2.0, 3.0
_BATCH = 4
"""Most records of a batch."""
_WORDS = (ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, RENEW)
_CONFIGS = [Config(SHARE, {
    "bootstrap.servers": "h:1", "group.id": NAME, "max.poll.records": records, "share.acquire.mode": mode,
    "max.poll.interval.ms": int(_MAX_POLL_S * 1000), "fetch.wait.max.ms": 300, "socket.timeout.ms": 1000,
    "retry.backoff.ms": 20, "retry.backoff.max.ms": 200})
    for records, mode in ((1, "batch_optimized"), (5, "batch_optimized"), (100, "batch_optimized"), (5, "record_limit"),
                          (100, "record_limit"))]


class Worker(Member):
    """A member of a share group, and its application."""

    def __init__(self, sim: WholeShareGroups, number: int, instance_id: str | None = None) -> None:
        self.sim, self.number = sim, number
        self.shares = sim.records
        rng = sim.random
        config = rng.choice(_CONFIGS)
        retries = RetryPolicy(0.02, 0.2, rng.random)
        self.metadata = Metadata(sim.brokers.bootstrap, refresh_s=1.0, retries=retries)
        self.metadata.want_only([TOPIC], every=False)
        self.finder = CoordinatorFinder(GROUP, NAME, retries=retries)
        self.group: Any = ShareGroup(config, self.metadata, self.finder, f"m{number}-{UUID(int=rng.getrandbits(128))}")
        self.group.subscribe([TOPIC], sim.clock.now)
        self.fetcher = ShareFetcher(self.group, self.metadata, config, self.finder.retries)
        self.machines = (self.metadata, self.finder, self.group, self.fetcher)
        self.gone = self.frozen = self.ends = False
        self.is_outlived = self.is_stranger = self.was_refused = self.is_fenced = False  # as it stays
        self.awake, self.due = True, math.inf
        self.held = HeldRecords()
        self._said: dict[tuple[Key, int], list[int]] = defaultdict(list)
        """Words about a record that were sent and not answered yet, in order."""
        self._renewed: set[tuple[Key, int]] = set()
        self._works_until = 0.0
        self._poll()

    @property
    def is_at_work(self) -> bool:
        """Whether it is a member that may read."""
        return not self.gone and self.group.state is ShareMemberState.STABLE

    @property
    def is_refused(self) -> bool:
        """Such a member is never refused for good."""
        return False

    def note_refusal(self, request: Request, code: int) -> None:
        """Who is refused is so for a while: nobody takes its place."""

    def settle(self) -> None:
        """What it owns is not its alone, and is looked at where records are taken."""

    def on_event(self, event: Event) -> None:
        """Records are there, acknowledgements were answered, or it may leave."""
        if isinstance(event, RecordsReady):
            self.sim.clock.after(0.0, self._take)
        elif isinstance(event, SessionsClosed):
            self.group.leave()
            self.awake = True
        elif isinstance(event, Acknowledged):
            self.sim.counts["acknowledgements answered"] += 1
            for offset in event.offsets:
                self._on_answer(event.key, offset, held=event.error is None)

    def _on_answer(self, key: Key, offset: int, *, held: bool) -> None:
        words, done = self._said[key, offset], self.shares.is_over((key[1], offset))
        self.sim.hold(bool(words), f"{self.number} is answered about {key[1]}@{offset} once too often")
        self.sim.hold(not held or done or not set(words) <= {ACCEPT, REJECT},
                      f"{self.number} was told that {key[1]}@{offset} is done, and it is not")
        words.pop(0)

    # The application

    def _poll(self) -> None:
        """Wait for records."""
        if self.gone or self.ends or self.sim.is_over:
            return
        if self.frozen:
            self.sim.clock.after(0.05, self._poll)
            return
        self.group.application_at = math.inf
        self.fetcher.demand = Demand.WAITING
        self.awake = True
        self._take()

    def _take(self) -> None:
        """Take what is there, if the application waits for it, and work on it for a while."""
        if self.gone or self.frozen or self.ends or self.group.application_at != math.inf or not self.fetcher.queue:
            return
        found = self.fetcher.queue.popleft()
        if not isinstance(found, AcquiredBatch) or found.session.lost or self.sim.clock.now >= found.until:
            self.sim.clock.after(0.0, self._take)
            return
        self.fetcher.demand = Demand.NONE
        self.group.application_at = self.sim.clock.now
        self._check(found)
        self.held.add(found, _offsets(found))
        self.awake = True
        takes_s = self.sim.random.choice([0.0, 0.01, 0.3, _LOCK_S + 0.2 if self.sim.faulty else 0.0])
        self.sim.clock.after(takes_s, lambda: self._say(found))

    def _check(self, found: AcquiredBatch) -> None:
        """It gets the records that lie there."""
        messages = acquired(Cursor(found.data, TOPIC, found.key[1], 0).take(1 << 20), found.ranges)
        numbers = [int(message.value()) for message in messages]
        offsets = _offsets(found)
        self.sim.hold(numbers == offsets, f"{self.number} holds {offsets} of {found.key}, and gets {numbers}")

    def _say(self, found: AcquiredBatch) -> None:
        """Say what became of the records, and come back for more."""
        rng = self.sim.random
        if self.gone or self.sim.is_over:
            return
        if self.frozen or self.sim.clock.now < self._works_until:
            self.sim.clock.after(0.1, lambda: self._say(found))
            return
        for offset in _offsets(found):
            is_healed = self.sim.clock.now >= self.sim.heal_at
            self._acknowledge(found.key, offset, ACCEPT if is_healed else rng.choice(_WORDS))
        self._send()
        if self._renewed:
            self.sim.clock.after(_LOCK_S / 3, self._say_again)
        else:
            self._poll()

    def _acknowledge(self, key: Key, offset: int, kind: int) -> None:
        if self.held.acknowledge(key, offset, kind):
            self._said[key, offset].append(kind)
            (self._renewed.add if kind == RENEW else self._renewed.discard)((key, offset))

    def _send(self) -> None:
        self.fetcher.acknowledge(self.held.take())
        self.awake = True

    def _say_again(self) -> None:
        """What was renewed is accepted in the end."""
        if self.gone or self.sim.is_over:
            return
        if self.frozen:
            self.sim.clock.after(0.1, self._say_again)
            return
        for key, offset in list(self._renewed):
            self._acknowledge(key, offset, ACCEPT)
        self._renewed.clear()
        self._send()
        self._poll()

    def work_too_long(self) -> None:
        """The application does not come back from its work in time."""
        self.group.application_at = self.sim.clock.now
        self.fetcher.demand = Demand.NONE
        self.awake = True
        self._works_until = self.sim.clock.now + _MAX_POLL_S + 1.0
        self.sim.clock.after(_MAX_POLL_S + 1.0, self._poll)

    def end(self) -> None:
        """Send what is acknowledged, give back the rest, and leave."""
        self.ends = True
        self.held.forget()
        self.fetcher.close()
        self.awake = True


def _offsets(found: AcquiredBatch) -> list[int]:
    return [offset for first, last, _ in found.ranges for offset in range(first, last + 1)]


class WholeShareGroups(WholeGroups):
    """One schedule. `run` raises `Violation` if a property does not hold."""

    member = Worker
    lanes = {ShareFetchRequest: 1, ShareAcknowledgeRequest: 1}
    of_group: tuple[type[Request], ...] = (FindCoordinatorRequest, ShareGroupHeartbeatRequest)

    def __init__(self, seed: int) -> None:
        self._written = itertools.count()
        super().__init__(seed)
        self.session_s, self.wanted = _SESSION_S, TOPIC
        self.clock.after(0.0, self._write)

    def make_brokers(self) -> PureBrokers:
        """A cluster with share groups, whose records are watched."""
        rng = self.random
        rules = ShareRules(_LOCK_S, rng.choice([2, 3, 5]), rng.choice([8, 2000]))
        brokers = PureBrokers(self.clock, rng, rng.choice([1, 2, 3]), BrokerSettings(
            auto_create_topics=False, share_heartbeat_interval_ms=500,
            share_session_timeout_ms=int(_SESSION_S * 1000), share_record_lock_duration_ms=int(_LOCK_S * 1000),
            share_delivery_count_limit=rules.deliveries, share_partition_max_record_locks=rules.records))
        brokers.cluster.group_configs.configure(NAME, {"share.auto.offset.reset": "earliest"})
        self.records = SharedRecords(rules, _BATCH, self.hold, self.counts)
        use = brokers.cluster.shares.use

        def watched(key: Any, partition: Partition, start: int) -> SharePartition:
            share = use(key, partition, start)
            self.records.watch(share, partition)
            return share

        brokers.cluster.shares.use = watched
        return brokers

    @property
    def troubles(self) -> list[Any]:
        """What may happen to the group."""
        return [self._kill, self._end, self._join, self._join, self._freeze, self._cut_all, self._restart,
                self._overwork, self._grow, self._move, self._move_and_back, self._move_and_back]

    @property
    def _topic(self) -> Topic:
        return self.brokers.cluster.catalog.topics[TOPIC]

    def _partitions(self) -> list[Partition]:
        return self._topic.partitions

    def _write(self) -> None:
        """Records come while there is trouble."""
        for partition in self._partitions():
            first = partition.log.end_offset
            batch = sealed(range(first, first + self.random.choice([1, 2, _BATCH])), self.clock.wall_ms)
            partition.append(memoryview(bytearray(batch.data)), self._topic.configs, self.clock.wall_ms)
        self.brokers.settle()
        if self.clock.now < self.heal_at:
            self.clock.after(self.random.choice([0.05, 0.3, 1.0]), self._write)

    def _move(self) -> None:
        self.counts["leaders moved"] += 1
        self.brokers.lead(self.random.choice(self._partitions()))

    def _move_and_back(self) -> None:
        """A leader is not, for a moment: the sessions with it outlive that, what they held does not."""
        partition = self.random.choice(self._partitions())
        first = partition.leader_id
        others = [node for node in self.brokers.nodes if node != first and node not in self.brokers.down]
        if first in self.brokers.down or first not in self.brokers.nodes or not others:
            return
        self.counts["leaders moved and back"] += 1
        partition.lead(self.random.choice(others))
        self.brokers.settle()
        self.clock.after(self.random.choice([0.0, 0.05, 0.3]), lambda: self._lead(partition, first))

    def _lead(self, partition: Partition, node: int) -> None:
        if node not in self.brokers.down:
            partition.lead(node)
            self.brokers.settle()

    def _end(self) -> None:
        victim = self._victim()
        if isinstance(victim, Worker) and not victim.frozen:
            self.counts["members that left"] += 1
            victim.end()
            self.clock.after(0.5, lambda: victim in self.members and self._remove(victim))

    @property
    def generation(self) -> int:
        """The epoch of the newest plan; -1 for none, and while there is none for what has changed."""
        group = self.brokers.cluster.share_groups.get(NAME)
        return -1 if group is None or group.epoch != group.planned_epoch else group.planned_epoch

    @property
    def is_settled(self) -> bool:
        """Whether all members read what the newest plan says, nothing waits for an answer, and no record is left."""
        group = self.brokers.cluster.share_groups.get(NAME)
        read = {key[1] for each in self.members for key in each.group.assignment}
        return (group is not None and read == set(range(self.topics[TOPIC]))
                and all(each.is_at_work and each.group.epoch == self.generation
                        and not each.fetcher.unanswered for each in self.members if isinstance(each, Worker))
                and not self.records.left(self._partitions()))

    def urge(self) -> None:
        """Such a group needs nobody to help it."""

    def stuck(self) -> str:
        """What is not as it should be, in words."""
        members = [(each.number, each.group.state.name, each.group.epoch, sorted(each.group.assignment))
                   for each in self.members]
        return f"epoch {self.generation}, {members}, left {self.records.left(self._partitions())[:10]}"

    # The network

    def _arrive(self, link: Link, send: Any, frame: bytearray) -> None:
        if link.lost:
            self.counts["requests lost"] += 1
        else:
            super()._arrive(link, send, frame)

    def _lose(self, link: Link) -> None:
        sessions = self.brokers.cluster.share_sessions.of_connection(link)
        super()._lose(link)
        for session in sessions:
            for partition in self._partitions():
                # What a session covers no more is held until its lock is over, with Kafka, too.
                if partition.leader_id == link.node and (self._topic.id, partition.index) in session.partitions:
                    held = self.records.held_by(session.key.member_id, partition)
                    self.hold(not held, f"{partition.index}@{held} is held after {session.key} has ended")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return WholeShareGroups(seed).run()
