"""Rules by which a group fences who is not the member that it was, and a member obeys: each broken.

Both kinds of groups, both sides: the embedded broker's coordinators, and the members' machines.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, cast

import pytest

from headrace.broker.cluster import ApiCall
from headrace.broker.coordinators import classic_groups
from headrace.broker.coordinators.classic_groups import Group, GroupState, Member
from headrace.broker.coordinators.planned_groups import PlannedGroup, PlannedMember
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError as K
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.classic_error_actions import GROUP_ERROR_ACTIONS, GroupErrorAction
from headrace.machines.groups.consumer_group import ConsumerGroup
from headrace.machines.groups.consumer_group_error_actions import MEMBER_ERROR_ACTIONS, MemberErrorAction
from headrace.wire.messages.groups.classic_groups import HeartbeatResponse

from . import whole_groups, whole_planned_groups
from .mutation import Rules

GROUP_RULES = Rules()
broken = GROUP_RULES.broken
_classic, _planned = whole_groups.run_schedule, whole_planned_groups.run_schedule


# The coordinator of a classic group

def _somebody(patch: pytest.MonkeyPatch, refusal: int) -> None:
    """Take who is refused with this for a member: for who has its instance id, or for any."""
    find = Group.member

    def lenient(self: Group, member_id: str, instance_id: str | None) -> Member:
        try:
            return find(self, member_id, instance_id)
        except ApiError as error:
            members = [each for each in self.members.values() if each.instance_id == instance_id]
            if error.code != refusal or not members:
                raise
            return members[0]

    patch.setattr(Group, "member", lenient)


@broken("Embedded group: who is no member is refused", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _somebody(patch, K.UNKNOWN_MEMBER_ID)


@broken("Embedded group: whose instance id is another's is refused", _classic, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _somebody(patch, K.FENCED_INSTANCE_ID)


@broken("Embedded group: a heartbeat of a generation before is refused", _classic, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    heartbeat = Group.heartbeat
    patch.setattr(Group, "heartbeat", lambda self, member_id, instance_id, generation, now: heartbeat(
        self, member_id, instance_id, self.generation, now))


@broken("Embedded group: who asks for the plan of a generation before is refused", _classic, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    sync = Group.sync

    def lenient(self: Group, request: Any, now: Any) -> Any:
        request.generation_id = self.generation
        return sync(self, request, now)

    patch.setattr(Group, "sync", lenient)


def _accept(patch: pytest.MonkeyPatch, method: str, refusal: int) -> None:
    """Do nothing where a request would be refused with this."""
    original = getattr(Group, method)

    def lenient(self: Group, *arguments: Any) -> None:
        try:
            original(self, *arguments)
        except ApiError as error:
            if error.code != refusal:
                raise

    patch.setattr(Group, method, lenient)


@broken("Embedded group: members learn from their heartbeats that others join", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _accept(patch, "heartbeat", K.REBALANCE_IN_PROGRESS)


@broken("Embedded group: there is no plan while members join", _classic, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    sync = Group.sync

    def hasty(self: Group, request: Any, now: Any) -> Any:
        if self.state is GroupState.PREPARING and request.generation_id == self.generation:
            return self._assigned(self.member(request.member_id, request.group_instance_id))
        return sync(self, request, now)

    patch.setattr(Group, "sync", hasty)


@broken("Embedded group: nothing is committed before there is a plan", _classic, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _accept(patch, "check_commit", K.REBALANCE_IN_PROGRESS)


@broken("Embedded group: who joins first gets an id (KIP-394)", _classic, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_groups, "_MEMBER_ID_FROM", 1000)


@broken("Embedded group: who shares by a strategy that the others cannot is refused", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "_check_protocols", lambda self, request, protocols: None)


@broken("Embedded group: who asks another node is sent to the coordinator", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ApiCall, "check_coordinator", lambda self, key: None)


# A member of a classic group

def _means(patch: pytest.MonkeyPatch, code: int, action: GroupErrorAction | MemberErrorAction) -> None:
    """Take an error code for another."""
    table = GROUP_ERROR_ACTIONS if isinstance(action, GroupErrorAction) else MEMBER_ERROR_ACTIONS
    patch.setitem(cast("MutableMapping[int, Any]", table), code, action)


@broken("Member: who is unknown joins anew", _classic, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.UNKNOWN_MEMBER_ID, GroupErrorAction.RETRY)


@broken("Member: whose instance id is another's ends", _classic, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.FENCED_INSTANCE_ID, GroupErrorAction.DROPPED)


@broken("Member: who asked another node looks for the coordinator", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.NOT_COORDINATOR, GroupErrorAction.RETRY)


@broken("Member: a coordinator that moves takes nothing away", _classic, 600, "nobody has refused it")
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.NOT_COORDINATOR, GroupErrorAction.DROPPED)


@broken("Member: a coordinator that loads takes nothing away", _classic, 300, "nobody has refused it")
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.COORDINATOR_LOAD_IN_PROGRESS, GroupErrorAction.DROPPED)


@broken("Member: a coordinator that is not there ends nothing", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.COORDINATOR_NOT_AVAILABLE, GroupErrorAction.FENCED)


@broken("Member: it joins under the id that it was given (KIP-394)", _classic, 100, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    on_join = ClassicGroup._on_join

    def forgetful(self: ClassicGroup, reply: Any, now: float) -> None:
        on_join(self, reply, now)
        if reply.error_code == K.MEMBER_ID_REQUIRED:
            self.member_id = ""

    patch.setattr(ClassicGroup, "_on_join", forgetful)


def _for_ever(patch: pytest.MonkeyPatch, limit: str) -> None:
    check = ClassicGroup._check_application

    def patient(self: ClassicGroup, now: float) -> None:
        before = getattr(self, limit)
        setattr(self, limit, float("inf"))
        check(self, now)
        setattr(self, limit, before)

    patch.setattr(ClassicGroup, "_check_application", patient)


@broken("Member: who hears nothing for as long as its session has nothing more", _classic, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    _for_ever(patch, "_session_timeout_s")


@broken("Member: whose application stays away leaves", _classic, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _for_ever(patch, "_max_poll_s")


@broken("Member: answers to a round that was given up are not taken", _classic, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    on_reply = ClassicGroup.on_reply

    def credulous(self: ClassicGroup, send: Any, reply: Any, now: float) -> None:
        if not isinstance(reply, HeartbeatResponse):
            send.context = self._round
        on_reply(self, send, reply, now)

    patch.setattr(ClassicGroup, "on_reply", credulous)


# The coordinator that plans

@broken("Planned group: who is no member is refused", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    member_of = PlannedGroup._member_of

    def welcoming(self: PlannedGroup, request: Any, owned: Any, client: Any) -> PlannedMember:
        if request.member_id not in self.members and request.instance_id is None:
            return self._joining(request, client)
        return member_of(self, request, owned, client)

    patch.setattr(PlannedGroup, "_member_of", welcoming)


@broken("Planned group: who follows no plan of the group is refused", _planned, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlannedGroup, "_check_epoch", lambda self, member, epoch, owned: None)


@broken("Planned group: an instance id is released by who has it", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    joining = PlannedGroup._joining

    def pushing(self: PlannedGroup, request: Any, client: Any) -> PlannedMember:
        holder = self.members.get(self._instances.get(request.instance_id or "", ""))
        if holder is not None:
            return self._take_place(holder, request.member_id, client)
        return joining(self, request, client)

    patch.setattr(PlannedGroup, "_joining", pushing)


@broken("Planned group: whose instance id is another's is refused", _planned, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    find = PlannedGroup.member

    def lenient(self: PlannedGroup, member_id: str, instance_id: str | None) -> PlannedMember:
        try:
            return find(self, member_id, instance_id)
        except ApiError as error:
            if error.code != K.FENCED_INSTANCE_ID or instance_id is None:
                raise
            return self.members[self._instances[instance_id]]

    patch.setattr(PlannedGroup, "member", lenient)
    patch.setattr(PlannedGroup, "_check_epoch", lambda self, member, epoch, owned: None)


@broken("Planned group: who asks for offsets as a member is one, at its epoch", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlannedGroup, "check_fetch", lambda self, member_id, epoch: None)


@broken("Planned group: a pattern is matched anew when topics come", _planned, 600, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    topic_ids = PlannedGroup._topic_ids
    seen: dict[int, tuple[PlannedMember, Any]] = {}
    patch.setattr(PlannedGroup, "_topic_ids", lambda self, member: seen.setdefault(
        id(member), (member, topic_ids(self, member)))[1])


@broken("Planned group: who asks another node is sent to the coordinator", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ApiCall, "check_coordinator", lambda self, key: None)


# A member for which the coordinator plans

@broken("Led member: who is unknown joins anew", _planned, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.UNKNOWN_MEMBER_ID, MemberErrorAction.RETRY)


@broken("Led member: it waits for an instance id that is not released", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.UNRELEASED_INSTANCE_ID, MemberErrorAction.FATAL)


@broken("Led member: who asked another node looks for the coordinator", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.NOT_COORDINATOR, MemberErrorAction.RETRY)


@broken("Led member: a coordinator that moves takes nothing away", _planned, 600, "nobody has refused it")
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.NOT_COORDINATOR, MemberErrorAction.LOST)


@broken("Led member: a coordinator that loads takes nothing away", _planned, 300, "nobody has refused it")
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.COORDINATOR_LOAD_IN_PROGRESS, MemberErrorAction.LOST)


@broken("Led member: a coordinator that is not there ends nothing", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    _means(patch, K.COORDINATOR_NOT_AVAILABLE, MemberErrorAction.FATAL)


@broken("Led member: whose application stays away leaves", _planned, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_check_application", lambda self, now: None)


@broken("Led member: answers to a membership that was given up are not taken", _planned, 2000)
def _(patch: pytest.MonkeyPatch) -> None:
    on_reply = ConsumerGroup.on_reply

    def credulous(self: ConsumerGroup, send: Any, reply: Any, now: float) -> None:
        send.context = self._round
        on_reply(self, send, reply, now)

    patch.setattr(ConsumerGroup, "on_reply", credulous)
