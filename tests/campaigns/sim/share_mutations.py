"""Rules of share groups, in the embedded broker and in the members' machines, each broken: a simulation notices."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.broker.cluster import BrokerCluster
from headrace.broker.coordinators.sharing_groups import SharingGroup, SharingGroups
from headrace.broker.shares.in_flight import AVAILABLE, InFlightRecords, RecordRun
from headrace.broker.shares.share_partition import SharePartition
from headrace.machines.groups.share_group import ShareGroup
from headrace.machines.share.share_fetcher import ShareFetcher

from . import whole_share_groups
from .mutation import Rules

SHARE_RULES = Rules()
broken = SHARE_RULES.broken


@broken("Share partition: what is held is given to nobody else", whole_share_groups.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    hold = SharePartition._hold

    def open_handed(self: SharePartition, run: RecordRun, *who: Any) -> Any:
        acquired = hold(self, run, *who)
        run.state = AVAILABLE
        return acquired

    patch.setattr(SharePartition, "_hold", open_handed)


@broken("Share partition: a lock ends", whole_share_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_expire", lambda self, lock: None)


@broken("Share partition: each delivery is counted", whole_share_groups.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    hold = SharePartition._hold

    def uncounted(self: SharePartition, run: RecordRun, *who: Any) -> Any:
        acquired = hold(self, run, *who)
        run.deliveries -= 1
        return acquired

    patch.setattr(SharePartition, "_hold", uncounted)


@broken("Share partition: a record is given up after its last delivery", whole_share_groups.run_schedule, 200)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_end", lambda self, run, trigger: run.go(trigger))


@broken("Share partition: what was accepted is done", whole_share_groups.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    end = SharePartition._end
    patch.setattr(SharePartition, "_end", lambda self, run, trigger: end(
        self, run, "release" if trigger == "accept" else trigger))


@broken("Share partition: what was rejected is done", whole_share_groups.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    end = SharePartition._end
    patch.setattr(SharePartition, "_end", lambda self, run, trigger: end(
        self, run, "release" if trigger == "reject" else trigger))


@broken("Share partition: a renewed record has a new lock", whole_share_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    go = RecordRun.go
    patch.setattr(RecordRun, "go", lambda self, trigger, lock=None: (
        None if trigger == "renew" else go(self, trigger, lock)))


@broken("Share partition: only who holds a record says what became of it", whole_share_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_held", lambda self, member_id, said: [
        (run, said.type_of(run.first)) for offset in range(said.first, said.last + 1)
        for run in self.records.within(offset, offset) if run.lock is not None])


@broken("Share partition: a new leader knows no holders", whole_share_groups.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "forget_holders", lambda self: None)


@broken("Share partition: what came back is handed out before new records", whole_share_groups.run_schedule, 100,
        "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlightRecords, "first_available", property(lambda self: self.end_offset))


@broken("Share session: what a member holds is free when its session ends", whole_share_groups.run_schedule, 200)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "release", lambda self, member_id: None)


@broken("Share session: it ends with the connection", whole_share_groups.run_schedule, 200)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerCluster, "connection_lost", lambda self, connection: None)


@broken("Sharing group: a silent member is dropped", whole_share_groups.run_schedule, 200, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharingGroup, "_touch", lambda self, member, now: None)


@broken("Sharing group: a topic that grows is planned for anew", whole_share_groups.run_schedule, 100, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    known = SharingGroup._known_parts
    patch.setattr(SharingGroup, "_known_parts", lambda self: self._parts or known(self))


@broken("Sharing group: the leaders are told which partitions are read", whole_share_groups.run_schedule, 100,
        "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharingGroups, "prepare", lambda self, group: None)


@broken("Sharing member: behind an answer that was lost it asks for its partitions again",
        whole_share_groups.run_schedule, 300, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    retry = ShareGroup._retry

    def forgetful(self: ShareGroup, now: float) -> None:
        told = self._told
        retry(self, now)
        self._told = told

    patch.setattr(ShareGroup, "_retry", forgetful)


@broken("Sharing member: a refused acknowledgement is told as such", whole_share_groups.run_schedule, 200)
def _(patch: pytest.MonkeyPatch) -> None:
    report = ShareFetcher._report
    patch.setattr(ShareFetcher, "_report", lambda self, each, error: report(self, each, None))


@broken("Sharing member: each acknowledgement is answered once", whole_share_groups.run_schedule, 200)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ShareFetcher, "_end_session", lambda self, broker, sent, error: broker.session.end())
