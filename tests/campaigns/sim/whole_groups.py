"""The simulation of classic groups: the members' machines and the embedded broker, without asyncio.

One seed is one schedule. Each member has the machines of a consumer that decide about membership (`Metadata`,
`CoordinatorFinder`, `ClassicGroup`), and an application that takes its time with rebalances and commits. Members come,
go, are killed and started again, have twins of the same instance id, stand still and work for too long; strangers with
another strategy come along; requests and replies are late and lost; brokers stop, so that coordinators move; topics
grow, and others come that a pattern matches. In the end all is healed.

Checked are safety (no partition is two members' in one generation; the group takes no commit of a generation before),
fencing (nothing is taken of whom the group must refuse; who was not refused, and came in time, loses nothing) and
progress (in the healed cluster all members are in one generation, which stays, and every partition is one's).

    python -m tests.campaigns.sim.whole --of groups --schedules 100000 --jobs 2
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headrace.broker.coordinators.classic_groups import GroupState
from headrace.broker.purgatory import DelayedReply
from headrace.broker.settings import BrokerSettings
from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError as K
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import GROUP, CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata, MetadataChanged
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.groups.classic import Change, ClassicGroup, JoinState, Rebalance
from headrace.machines.machine import Event, Machine, Send
from headrace.testing.simulated_clock import SimulatedClock
from headrace.types.records import ConsumerGroupMetadata
from headrace.wire.frame import RequestFrame
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from headrace.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from headrace.wire.schema import Request, Response

from .campaign import Violation
from .pure_brokers import PureBrokers, arrived, refused, told

TOPIC, NAME = "t", "g"
_PATTERN = "^t.*"
STRATEGIES = ("range", "roundrobin", "cooperative-sticky")
_SESSIONS_S, _MAX_POLL_S, _HEARTBEAT_S = (2.0, 4.5), 3.0, 0.5
_PATIENCE = 30
"""Turns until a static group is rebalanced from outside."""
_LANES: dict[type[Request], int] = {JoinGroupRequest: 1, SyncGroupRequest: 1}
_NEWEST: dict[type[Request], int] = {OffsetCommitRequest: 9, OffsetFetchRequest: 9}
"""Versions in which topics are named."""
_REFUSALS = (K.UNKNOWN_MEMBER_ID, K.ILLEGAL_GENERATION, K.FENCED_INSTANCE_ID, K.FENCED_MEMBER_EPOCH)
"""For them a member loses what it has."""
_REFUSED = (FindCoordinatorRequest, JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest)
_PASSING = (K.COORDINATOR_LOAD_IN_PROGRESS, K.NOT_COORDINATOR, K.COORDINATOR_NOT_AVAILABLE)
_CONFIGS = {(strategy, session_s): Config(CONSUMER, {
    "bootstrap.servers": "h:1", "group.id": NAME, "partition.assignment.strategy": strategy,
    "session.timeout.ms": int(session_s * 1000), "heartbeat.interval.ms": int(_HEARTBEAT_S * 1000),
    "max.poll.interval.ms": int(_MAX_POLL_S * 1000), "socket.timeout.ms": 1000})
    for strategy in STRATEGIES for session_s in _SESSIONS_S}


class Commits:
    """Stands for the machine that commits: what comes of a commit is seen at the broker."""

    def on_reply(self, send: Send, reply: Any, now: float) -> None:
        pass

    def on_error(self, send: Send, error: K, now: float) -> None:
        pass


class Member:
    """A member's machines, and its application.

    Attributes:
        gone: its process has ended.
        frozen: neither it nor its connections move.
        awake: something has happened to it, so its machines are asked; else they are at `due`.
        due: the deadline of its machines.
        is_outlived: another process was started in its place, and it is not started again.
        is_stranger: its strategy is not the others'.
        was_refused: the group has refused it since it lost something last.
        is_fenced: it was told that another has its place.
        had: what it had when it was at work last.
        last_join: what it asked last when it joined.
    """

    def __init__(self, sim: WholeGroups, number: int, instance_id: str | None = None, *,
                 is_stranger: bool = False) -> None:
        self.sim, self.number, self.is_stranger = sim, number, is_stranger
        self.is_outlived = self.was_refused = self.is_fenced = False
        self.had: frozenset[Key] = frozenset()
        self.last_join: Request | None = None
        rng = sim.random
        retries = RetryPolicy(0.02, 0.2, rng.random)
        self.metadata = Metadata(sim.brokers.bootstrap, refresh_s=1.0, retries=retries)
        self.finder = CoordinatorFinder(GROUP, NAME, retries=retries)
        subscription = Subscription(NAME, "earliest")
        subscription.subscribe([sim.wanted])
        self.group: Any = self.membership(subscription)
        self.group.instance_id = instance_id or (f"instance-{number}" if rng.random() < sim.static else None)
        self.machines: tuple[Machine, ...] = (self.metadata, self.finder, self.group)
        self.gone = self.frozen = False
        self.awake, self.due = True, math.inf
        self.worked_since = math.inf
        self._commits = Commits()
        self._commit_later()

    def membership(self, subscription: Subscription) -> Any:
        """The machine that is a member."""
        strategy = self.sim.strategy
        if self.is_stranger:
            strategy = self.sim.random.choice([each for each in STRATEGIES if each != strategy])
        return ClassicGroup(_CONFIGS[strategy, self.sim.session_s], subscription, self.metadata, self.finder)

    @property
    def is_at_work(self) -> bool:
        """Whether it has what the group gave it."""
        return not self.gone and self.group.state is JoinState.STABLE

    @property
    def is_refused(self) -> bool:
        """Whether the group takes it no more."""
        return bool(self.group.state is JoinState.FENCED)

    def step(self) -> None:
        """Let the machines decide, and the application learn of it; again while that concerns the machines."""
        self.awake = True
        while self.awake:
            self.awake = False
            for machine in self.machines:
                for send in list(machine.poll(self.sim.clock.now)):
                    self.sim.transmit(self, machine, send)
            self.awake = self.metadata.stirred
            for machine in self.machines:
                for event in machine.events():
                    self.on_event(event)
        self.due = min([moment for machine in self.machines if (moment := machine.deadline()) is not None],
                       default=math.inf)
        self.settle()

    def on_event(self, event: Event) -> None:
        """A machine has something to say."""
        self.awake |= isinstance(event, (Rebalance, MetadataChanged))
        if isinstance(event, Rebalance):
            self._rebalance(event)

    def settle(self) -> None:
        """Nothing more is to be done for now: look at how it stands."""
        if self.is_at_work:
            self.had = self.group.owned
            self._check_in_time()
            self.sim.note_owned(self)
        elif self.is_refused:
            self.sim.replace(self)

    def _check_in_time(self) -> None:
        self.sim.hold(self.sim.clock.now - self.group.application_at < _MAX_POLL_S,
                      f"{self.number} is at work, and its application was away for too long")
        self.sim.hold(not self.is_fenced, f"{self.number} is at work, and another has its place")
        self.sim.hold(not self.is_silent, f"{self.number} is at work, and the group may have dropped it")

    @property
    def is_silent(self) -> bool:
        """Whether the coordinator has said nothing for as long as a session."""
        return bool(self.sim.clock.now - (self.group.answered_at or math.inf) >= self.sim.session_s)

    def note_refusal(self, request: Request, code: int) -> None:
        """Its group has answered; what it says of an earlier membership does not concern this one."""
        if code in _REFUSALS and not self.is_late(request):
            self.was_refused = True
            self.is_fenced |= code == K.FENCED_INSTANCE_ID

    def is_late(self, request: Any) -> bool:
        """Whether a request is of an earlier membership than the present one."""
        if isinstance(request, JoinGroupRequest):
            return request is not self.last_join
        return isinstance(request, (HeartbeatRequest, SyncGroupRequest)) and (
            request.generation_id != self.group.generation  # who takes the place of a static member keeps that
            or request.member_id != self.group.member_id)

    def _rebalance(self, event: Rebalance) -> None:
        rng, sim = self.sim.random, self.sim
        sim.counts[f"partitions {event.change.value}"] += 1
        takes_s = rng.choice([0.0, 0.0, 0.01, 0.3, _MAX_POLL_S + 0.5 if sim.faulty else 0.0])
        if event.change is Change.LOSE:
            takes_s = 0.0
            sim.hold(self.was_refused or self.is_silent or sim.clock.now - self.worked_since >= _MAX_POLL_S,
                     f"{self.number} lost {event.partitions}, and nobody has refused it")
            self.was_refused = False
        self.group.application_at = self.worked_since = sim.clock.now
        sim.clock.after(takes_s, self._called_back)

    def _called_back(self) -> None:
        if not self.gone:
            self.group.application_at = math.inf
            self.group.callback_done(self.sim.clock.now)
            self.awake = True

    def work_too_long(self) -> None:
        """The application does not come back from its work in time."""
        self.group.application_at = self.worked_since = self.sim.clock.now
        self.awake = True
        self.sim.clock.after(_MAX_POLL_S + 1.0, self._called_back_from_work)

    def _called_back_from_work(self) -> None:
        self.group.application_at = math.inf
        self.awake = True

    def _commit_later(self) -> None:
        self.sim.clock.after(self.sim.random.uniform(0.2, 1.0), self._commit)

    def _commit(self) -> None:
        """Commit for what one has, as a member of the generation in which one got it; some do so at other times."""
        if self.gone or self.sim.is_over:
            return
        node, who = self.finder.node_id, self.group.identity
        if not self.frozen and node is not None and who.generation >= 0 and (self.is_at_work or self.sim.is_rude):
            for request in self.questions(who, self.group.owned if self.is_at_work else self.had):
                self.sim.transmit(self, self._commits, Send(node, request, 1.0))
        self._commit_later()

    def questions(self, who: ConsumerGroupMetadata, keys: Iterable[Key]) -> Iterator[Request]:
        """What it asks its group about offsets."""
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=who.generation,
                                         committed_metadata="") for _, partition in found])
            for topic, found in itertools.groupby(sorted(keys), lambda key: key[0])]
        if topics:
            yield OffsetCommitRequest(
                group_id=NAME, generation_id_or_member_epoch=who.generation, member_id=who.member_id,
                group_instance_id=who.instance_id, topics=topics)


class Link:
    """A member's requests to one broker, in order; the broker carries out one at a time.

    Attributes:
        cut: the member has it no more.
        lost: the broker knows that.
    """

    def __init__(self, member: Member, node: int) -> None:
        self.member, self.node = member, node
        self.cut = self.lost = False
        self.outstanding: dict[Send, Any] = {}
        self.arrived: deque[tuple[Send, RequestFrame]] = deque()
        self.waiting: DelayedReply | None = None
        self.arrives_at = self.answers_at = 0.0


class WholeGroups:
    """One schedule. `run` raises `Violation` if a property does not hold.

    Attributes:
        counts: how often what happened.
        is_over: nothing more is done.
        session_s: a member of which nothing is heard for so long is dropped.
        wanted: what is subscribed to.
        topics: how many partitions each of them has.
        is_rude: applications commit whenever they like.
        member: makes a member and its application.
        lanes: requests that go over a connection of their own, by its number.
        of_group: the requests of a member that are refused for a while.
        refusable: those that the group may have to refuse.
        carries_out_late: requests of a connection that was cut may be carried out behind those of the next one.
    """

    member: type[Member] = Member
    lanes: Mapping[type[Request], int] = _LANES
    of_group: tuple[type[Request], ...] = _REFUSED
    refusable: tuple[type[Request], ...] = (HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, OffsetCommitRequest)
    carries_out_late = True

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        rng = self.random
        self.counts: Counter[str] = Counter()
        self.clock = SimulatedClock()
        self.heal_at = self.clock.now + rng.choice([1.0, 4.0, 8.0])
        self.faults = rng.choice([0.0, 0.02, 0.1, 0.2])
        self.strategy, self.session_s = rng.choice(STRATEGIES), rng.choice(_SESSIONS_S)
        self.static = rng.choice([0.0, 0.0, 0.5, 1.0])
        if self.strategy == "cooperative-sticky":
            # With Kafka, too, a static member that was lost and comes back gets its place without a rebalance: what the
            # plan took from it was given up by nobody, so nobody gets it before the next rebalance.
            self.static = 0.0
        self.topics = {TOPIC: rng.choice([1, 3, 4])}
        self.wanted = rng.choice([TOPIC, TOPIC, _PATTERN])
        self.is_rude = rng.random() < 0.3
        self.is_over = False
        self.brokers = self.make_brokers()
        self.brokers.cluster.catalog.create(TOPIC, self.topics[TOPIC], 1)
        self._owners: dict[tuple[int, tuple[str, int]], int] = {}
        self._committed: dict[Key, int] = {}
        self._links: dict[tuple[Member, int, int], Link] = {}
        self._numbers = itertools.count(1)
        self.members = [self.member(self, next(self._numbers)) for _ in range(rng.choice([1, 2, 3, 4]))]

    def make_brokers(self) -> PureBrokers:
        """The cluster of this schedule."""
        rng = self.random
        return PureBrokers(self.clock, rng, rng.choice([1, 2, 3]), BrokerSettings(
            auto_create_topics=False, initial_rebalance_delay_ms=rng.choice([0, 0, 300]),
            consumer_heartbeat_interval_ms=int(_HEARTBEAT_S * 1000),
            consumer_session_timeout_ms=int(self.session_s * 1000)))

    @property
    def faulty(self) -> bool:
        return self.clock.now < self.heal_at and self.random.random() < self.faults

    def hold(self, holds: bool, text: str) -> None:
        if not holds:
            raise Violation(f"seed {self.seed} ({self.strategy}) at {self.clock.now - 100:.3f} s: {text}")

    def run(self) -> Counter[str]:
        """Run the schedule; returns how often what happened."""
        rng, span = self.random, self.heal_at - self.clock.now
        for _ in range(rng.choice([0, 2, 5, 8])):
            self.clock.after(rng.uniform(0, span), rng.choice(self.troubles))
        self._run_until(self.heal_at + 0.5)
        self._settle()
        self.is_over = True
        self.counts["events"] += self.clock.happened
        return self.counts

    @property
    def troubles(self) -> list[Callable[[], None]]:
        """What may happen to the group."""
        return [self._kill, self._end, self._join, self._join, self._freeze, self._cut_all, self._restart,
                self._overwork, self._grow, self._come_back, self._put_a_twin, self._visit]

    def _settle(self) -> None:
        """The healed group comes to rest, and stays there."""
        for turn in range(60):
            if not self.members:
                self._join()
            if turn == _PATIENCE:
                self.urge()
            self._run_until(self.clock.now + 0.5)
            if self.is_settled:
                before = self.generation
                self._run_until(self.clock.now + self.session_s + _HEARTBEAT_S)
                if self.is_settled and self.generation == before:
                    return
        self.hold(False, f"no progress to {self.generation}: {self.stuck()}")

    def stuck(self) -> str:
        """What is not as it should be, in words."""
        return str([(each.number, each.group.state.name, each.group.identity.generation, sorted(each.group.owned))
                    for each in self.members])

    def urge(self) -> None:
        """The group has had its time."""
        if self.static:
            # With Kafka, too, a static leader that comes back to its place (KIP-814) cannot tell that the topic has
            # grown since the plan that is in force.
            self.counts["plans that a static leader did not renew"] += 1
            self._kill()
            self._join()

    @property
    def generation(self) -> int:
        """The group's generation, as its coordinator knows it; -1 for none."""
        group = self.brokers.cluster.groups.get(NAME)
        return group.generation if group is not None else -1

    @property
    def is_settled(self) -> bool:
        """Whether all are of the newest generation, and have all partitions between them."""
        owned = sorted(key for each in self.members for key in each.group.owned)
        return (all(each.is_at_work and each.group.application_at == math.inf
                    and each.group.identity.generation == self.generation for each in self.members)
                and owned == [(topic, each) for topic in sorted(self.topics) for each in range(self.topics[topic])])

    def _run_until(self, end: float) -> None:
        polled_for = -1.0
        for _ in range(50_000):
            deadline = self._step()
            self.hold(deadline > self.clock.now or polled_for != self.clock.now,
                      "a deadline stays in the past: a loop would spin")
            polled_for = self.clock.now
            moment = min(deadline, self.clock.next())
            if moment > end:
                self.clock.go_to(end)
                return
            self.clock.go_to(moment)
        self.hold(False, "no progress: the same again and again")

    def _step(self) -> float:
        """Let those members decide to whom something has happened, or whose time has come; as their drivers do."""
        now = self.clock.now
        for member in list(self.members):
            if not member.frozen and (member.awake or member.due <= now):
                member.step()
        return min([member.due for member in self.members if not member.frozen], default=math.inf)

    # What is checked

    def note_owned(self, member: Member) -> None:
        """A member is at work."""
        for key in member.group.owned:
            owner = self._owners.setdefault((member.group.generation, key), member.number)
            self.hold(owner == member.number,
                      f"{key} is of {owner} and of {member.number} in generation {member.group.generation}")

    def note_commit(self, request: OffsetCommitRequest, reply: Any) -> None:
        """The broker has taken or refused a commit."""
        for key in self.taken(reply):
            generation, before = request.generation_id_or_member_epoch, self._committed.get(key, 0)
            self.hold(generation >= before, f"{key} was committed in generation {before}, and after that in "
                      f"{generation}")
            self._committed[key] = generation

    def taken(self, reply: Any) -> list[Key]:
        """The partitions of a commit that were committed."""
        parts = [(topic.name, part) for topic in reply.topics for part in topic.partitions]
        for _, part in parts:
            self.counts["commits refused" if part.error_code else "commits"] += 1
        return [(name, part.partition_index) for name, part in parts if not part.error_code]

    def objection(self, node: int, request: Any) -> str:
        """Why the group has to refuse a request; "" for no reason. Asked before it is carried out."""
        coordinator = self.brokers.cluster.coordinator(NAME)
        if coordinator is not None and coordinator.id != node:
            return "who does not coordinate the group"
        return self.objection_to_member(request)

    def objection_to_member(self, request: Any) -> str:
        """Why the group has to refuse a member."""
        if isinstance(request, JoinGroupRequest):
            return "" if request.member_id or request.group_instance_id is not None else "without a member id"
        group = self.brokers.cluster.groups.get(NAME)
        state, members = (GroupState.EMPTY, {}) if group is None else (group.state, group.members)
        generation = request.generation_id_or_member_epoch if isinstance(request, OffsetCommitRequest) \
            else request.generation_id
        objections = (
            (request.member_id not in members, "of whom the group does not know"),
            (generation != self.generation, "of another generation"),
            (state is GroupState.PREPARING and not isinstance(request, OffsetCommitRequest), "while members join"),
            (state is GroupState.COMPLETING and isinstance(request, OffsetCommitRequest), "before there is a plan"),
        )
        return next((text for is_so, text in objections if is_so), "")

    # Trouble

    def _victim(self) -> Member | None:
        return self.random.choice(self.members) if self.members else None

    def _remove(self, member: Member) -> None:
        member.gone = True
        self.members.remove(member)
        for link in [link for link in self._links.values() if link.member is member]:
            self._cut(link)

    def replace(self, member: Member) -> None:
        """A static member has another in its place.

        Either that was meant; or a request of its own came late (as with Kafka): then it starts again.
        """
        self.hold(member.is_fenced, f"{member.number} is at its end, and nobody has its place")
        self._remove(member)
        if member.is_outlived:
            self.counts["members fenced by twins"] += 1
            return
        self.counts["members fenced by themselves"] += 1
        self.members.append(self.member(self, member.number, member.group.instance_id))

    def _kill(self) -> None:
        if (victim := self._victim()) is not None:
            self.counts["members killed"] += 1
            self._remove(victim)

    def _come_back(self) -> None:
        """A process dies and is started again, soon or late for its session."""
        if (victim := self._victim()) is not None and not victim.is_outlived:
            self.counts["members that came back"] += 1
            self._remove(victim)
            self.clock.after(self.random.choice([0.1, self.session_s + 0.5]), lambda: self.members.append(
                self.member(self, victim.number, victim.group.instance_id)))

    def _put_a_twin(self) -> None:
        """Another process is started under the same instance id, and the first goes on for a while."""
        static = [each for each in self.members if each.group.instance_id is not None and not each.is_outlived]
        if static:
            elder = self.random.choice(static)
            self.counts["twins"] += 1
            elder.is_outlived = True
            self.members.append(self.member(self, elder.number, elder.group.instance_id))
            ends_s = self.random.choice([0.5, 2.0, 8.0])
            if ends_s == 8.0:
                elder.frozen = True
                self.clock.after(6.0, lambda: self._thaw(elder))
            self.clock.after(ends_s, lambda: elder in self.members and self._remove(elder))

    def _visit(self) -> None:
        """Somebody comes along who shares by another strategy, and goes."""
        stranger = self.member(self, next(self._numbers), is_stranger=True)
        self.counts["strangers"] += 1
        self.members.append(stranger)
        self.clock.after(self.random.uniform(0.5, 2.0), lambda: stranger in self.members and self._remove(stranger))

    def _end(self) -> None:
        victim = self._victim()
        if victim is not None and not victim.frozen:
            self.counts["members that left"] += 1
            victim.group.leave()
            victim.group.application_at = math.inf  # who leaves is not away, and comes back before it is taken out
            victim.awake = True
            self.clock.after(0.3, lambda: victim in self.members and self._remove(victim))

    def _join(self) -> None:
        if len(self.members) < 5:
            self.counts["members that joined"] += 1
            self.members.append(self.member(self, next(self._numbers)))

    def _freeze(self) -> None:
        if (victim := self._victim()) is not None:
            self.counts["members frozen"] += 1
            victim.frozen = True
            lasts_s = self.random.choice([0.3, _MAX_POLL_S + 0.5, self.session_s + 0.5])
            self.clock.after(lasts_s, lambda: self._thaw(victim))

    def _thaw(self, member: Member) -> None:
        member.frozen, member.awake = False, True

    def _overwork(self) -> None:
        if (victim := self._victim()) is not None and victim.group.application_at == math.inf:
            self.counts["members that worked too long"] += 1
            victim.work_too_long()

    def _grow(self) -> None:
        catalog = self.brokers.cluster.catalog
        if self.wanted == _PATTERN and self.random.random() < 0.6:
            self.counts["topics that came"] += 1
            name = f"{TOPIC}{len(self.topics)}"
            self.topics[name] = 1
            catalog.create(name, 1, 1)
            return
        self.counts["topics that grew"] += 1
        self.topics[TOPIC] += 1
        catalog.grow(catalog.topics[TOPIC], self.topics[TOPIC])

    def _cut_all(self) -> None:
        for link in list(self._links.values()):
            self._cut(link)

    def _restart(self) -> None:
        self.counts["brokers restarted"] += 1
        node = self.random.choice(self.brokers.nodes)
        if node in self.brokers.down:
            return
        self.brokers.stop(node)
        for link in [link for link in self._links.values() if link.node == node]:
            self._cut(link)
        self.clock.after(self.random.uniform(0.01, 1.0), lambda: self.brokers.start(node))

    # The network

    def transmit(self, member: Member, machine: Any, send: Send) -> None:
        """A request leaves a member."""
        if isinstance(send.request, JoinGroupRequest):
            member.last_join = send.request
        node = send.destination if send.destination >= 0 else self.random.choice(self.brokers.nodes)
        if node in self.brokers.down:
            self.clock.after(0.005, lambda: self._fail(member, machine, send, K(K._TRANSPORT, "refused")))
            return
        key = (member, node, self.lanes.get(type(send.request), 0))
        link = self._links.get(key)
        if link is None or link.cut:
            link = self._links[key] = Link(member, node)
        link.outstanding[send] = machine
        link.arrives_at = max(self.clock.now + self._delay_s("requests late"), link.arrives_at)
        frame = self.brokers.written(send, f"member-{member.number}", _NEWEST.get(type(send.request)))
        self.clock.after(link.arrives_at - self.clock.now, lambda: self._arrive(link, send, frame))
        self.clock.after(send.timeout_s, lambda: self._time_out(link, send))
        if self.faulty:
            self.clock.after(self.random.uniform(0, 0.05), lambda: self._cut(link))

    def _fail(self, member: Member, machine: Any, send: Send, error: K) -> None:
        machine.on_error(send, error, self.clock.now)
        member.awake = True

    def _delay_s(self, what: str) -> float:
        if not self.faulty:
            return 0.0005
        self.counts[what] += 1
        return self.random.choice([0.02, 0.3, 1.5])

    def _arrive(self, link: Link, send: Send, frame: bytearray) -> None:
        if link.node in self.brokers.down or (
                link.cut and (not self.carries_out_late or self.random.random() < 0.5)):
            self.counts["requests lost"] += 1
            return
        self.counts["requests behind a cut connection"] += link.cut
        link.arrived.append((send, arrived(frame)))
        self._serve(link)

    def _serve(self, link: Link) -> None:
        while link.arrived and link.waiting is None:
            send, received = link.arrived.popleft()
            if self.faulty and isinstance(received.request, self.of_group):
                self.counts["requests refused for a while"] += 1
                self._reply(link, send, told(received, refused(received, self.random.choice(_PASSING))))
                continue
            waiting = self.brokers.ask(link.node, received, self._answering(link, send, received), link)
            if waiting is not None and link.cut:
                self.brokers.cluster.purgatory.remove(waiting)  # whose connection is gone
            else:
                link.waiting = waiting

    def _answering(self, link: Link, send: Send, received: RequestFrame) -> Callable[[Response | None], None]:
        objection = self.objection(link.node, received.request) if type(received.request) in self.refusable else ""

        def answer(reply: Response | None) -> None:
            if objection and reply is not None:
                self.hold(bool(_code(reply)), f"{type(received.request).__name__} was taken {objection}")
                self.counts[f"refused: {objection}"] += 1
            if isinstance(received.request, OffsetCommitRequest):
                self.note_commit(received.request, reply)
            if link.waiting is not None:
                link.waiting = None
                self.clock.after(0.0, lambda: self._serve(link))
            if reply is not None:
                self._reply(link, send, told(received, reply))

        return answer

    def _reply(self, link: Link, send: Send, reply: Response) -> None:
        if link.cut:
            self.counts["replies lost"] += 1
            return
        link.answers_at = max(self.clock.now + self._delay_s("replies late"), link.answers_at)
        self.clock.after(link.answers_at - self.clock.now, lambda: self._deliver(link, send, reply))

    def _deliver(self, link: Link, send: Send, reply: Response) -> None:
        if not link.cut and send in link.outstanding:
            if link.member.frozen:
                self.clock.after(0.05, lambda: self._deliver(link, send, reply))
                return
            machine = link.outstanding.pop(send)
            if machine is link.member.group:
                link.member.note_refusal(send.request, _code(reply))
            machine.on_reply(send, reply, self.clock.now)
            link.member.awake = True

    def _time_out(self, link: Link, send: Send) -> None:
        if not link.cut and send in link.outstanding:
            self.counts["requests timed out"] += 1
            self._cut(link, K(K._TIMED_OUT, "no answer", maybe_applied=True))

    def _cut(self, link: Link, error: K | None = None) -> None:
        if link.cut:
            return
        self.counts["connections cut"] += 1
        link.cut = True
        self.clock.after(self.random.choice([0.0, 0.1]), lambda: self._lose(link))
        lost, link.outstanding = link.outstanding, {}
        if not link.member.gone:
            for send, machine in lost.items():
                self._fail(link.member, machine, send, error or K(K._TRANSPORT, "cut", maybe_applied=True))

    def _lose(self, link: Link) -> None:
        """The broker learns that the connection is gone."""
        link.arrived.clear()
        if link.waiting is not None:
            self.brokers.cluster.purgatory.remove(link.waiting)
            link.waiting = None
        link.lost = True
        self.brokers.connection_lost(link)


def _code(reply: Any) -> int:
    """The error of a reply; of its first group or partition, where these have errors."""
    if isinstance(reply, OffsetCommitResponse):
        return reply.topics[0].partitions[0].error_code
    if isinstance(reply, OffsetFetchResponse):
        return reply.groups[0].error_code or next(
            (part.error_code for topic in reply.groups[0].topics for part in topic.partitions), 0)
    return int(getattr(reply, "error_code", 0))


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return WholeGroups(seed).run()
