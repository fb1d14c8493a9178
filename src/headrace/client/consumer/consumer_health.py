"""How a consumer is, and how far behind: what it knows without asking anybody, from any thread.

It only reads: the assigned partitions are replaced as a whole when some come or go. It must not know what kind of group
there is. Read next: `client.consumer.consumer_machines`.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.client.consumer.consumer_machines import ConsumerMachines
from headrace.client.consumer.rebalance import Rebalances
from headrace.machines.consumer.subscription import PartitionState, PositionPhase
from headrace.slotted import slotted
from headrace.types.records import TopicPartition

__all__ = ["ConsumerHealth", "PartitionLags", "health", "lag"]


@slotted(frozen=True)
class ConsumerHealth:
    """How a consumer is, as far as it knows.

    Attributes:
        heartbeat_s: seconds since the group's coordinator last answered this member; None before, or without a group.
        fetch_s: seconds since a broker last answered a fetch; None before.
        rebalance_s: seconds since the application has met the last rebalance; None before.
        group_state: where this member stands, for example "stable"; None without a "group.id".
        member_id: this member's id; None while it has none.
        assignment: the assigned partitions, each with the offset of its next record, in order.
        waits_for: what has to happen before the next record comes, in words.
    """

    heartbeat_s: float | None
    fetch_s: float | None
    rebalance_s: float | None
    group_state: str | None
    member_id: str | None
    assignment: list[TopicPartition]
    waits_for: str


def lag(machines: ConsumerMachines) -> dict[TopicPartition, int | None]:
    """Records between the position and the end, as of the last fetch, of each assigned partition; None if not known."""
    committed_only = machines.config["isolation.level"] == 1
    return PartitionLags({TopicPartition(state.topic, state.partition, state.position): _behind(state, committed_only)
                          for state in machines.subscription})


class PartitionLags(dict[TopicPartition, int | None]):
    """Lags by partition; notebooks show a table, the largest first."""

    def _repr_html_(self) -> str:
        from headrace.types.html_table import html_table

        rows = [(tp.topic, tp.partition, tp.offset if tp.offset >= 0 else "", "not known" if behind is None else behind)
                for tp, behind in sorted(self.items(), key=lambda item: -(item[1] or 0))]
        known = sum(behind or 0 for behind in self.values())
        return html_table(f"{known:,} records behind", ("topic", "partition", "position", "lag"), rows)


def _behind(state: PartitionState, committed_only: bool) -> int | None:
    position, end = state.position, state.high_watermark
    if committed_only and state.last_stable >= 0:
        end = min(state.last_stable, end)
    return max(end - position, 0) if position >= 0 and end >= 0 else None


def health(machines: ConsumerMachines, rebalances: Rebalances) -> ConsumerHealth:
    """How a consumer is now."""
    now, group = machines.clock(), machines.group

    def since(then: float | None) -> float | None:
        return None if then is None else max(now - then, 0.0)

    return ConsumerHealth(
        heartbeat_s=None if group is None else since(group.answered_at),
        fetch_s=since(machines.fetcher.answered_at),
        rebalance_s=since(rebalances.met_at),
        group_state=None if group is None else group.state.name.lower(),
        member_id=None if group is None else group.identity.member_id or None,
        assignment=sorted(machines.subscription.positions()),
        waits_for=next(_obstacles(machines, rebalances)),
    )


def _obstacles(machines: ConsumerMachines, rebalances: Rebalances) -> Iterator[str]:
    """What is in the way of the next record, beginning with what must be gone first."""
    metadata = machines.client.metadata
    if metadata.last_error is not None or all(node < 0 for node in metadata.cluster.nodes):
        why = "none has answered yet" if metadata.last_error is None else metadata.last_error.str()
        yield f"a broker: {why}"
    if rebalances.running:
        yield "the application: its callback has not returned"
    if any(callback.rebalance is not None for callback in machines.callbacks.copy()):
        yield "poll(): a rebalance waits for the application"
    if machines.group is not None and machines.subscription.is_subscribed:
        yield from _obstacles_in_group(machines)
    states = list(machines.subscription)
    if not states:
        yield "subscribe() or assign(): nothing is to be read"
    yield from _obstacles_of(machines, states)


def _obstacles_in_group(machines: ConsumerMachines) -> Iterator[str]:
    group, finder = machines.require_group(), machines.finder
    group_id = machines.config["group.id"]
    if group.stalled:
        yield 'poll(): it was not called for "max.poll.interval.ms", and the group goes on without this member'
    if finder.node_id is None:
        why = "it is looked for" if finder.last_error is None else finder.last_error.str()
        yield f"the coordinator of group {group_id!r}: {why}"
    if not machines.subscription.states:
        yield f"partitions of group {group_id!r}, of which it is {group.state.name.lower()}: {group.state.value}"


def _obstacles_of(machines: ConsumerMachines, states: list[PartitionState]) -> Iterator[str]:
    if machines.fetcher.has_waiting:
        yield "poll(): there are records"
    phases = {state.phase for state in states if not state.paused}
    if not phases:
        yield "resume(): all partitions are paused"
    if phases == {PositionPhase.FAILED}:
        yield f"seek(): {PositionPhase.FAILED.value}"
    fetched = [state for state in states if not state.paused and state.phase is PositionPhase.FETCH]
    committed_only = machines.config["isolation.level"] == 1
    behind = [_behind(state, committed_only) for state in fetched]
    if any(behind):
        yield "the answer to a fetch"
    if None in behind:  # of whose partition it is not known whether all is read
        yield "the answer to the first fetch"
    looked_for = phases - {PositionPhase.FETCH, PositionPhase.FAILED}
    if looked_for:
        yield f"the position of {'other partitions' if fetched else 'each partition'}: " + "; ".join(
            sorted(phase.value for phase in looked_for))
    yield "new records: all that were written are read"
