"""Topics that are deleted, or made anew, while they are read: the new one has nothing but its name in common with it.

An offset of the old one would skip records of the new one, or be out of its range. Brokers tell topics apart by their
ids (KIP-516), so each assigned partition notes the id under which its position holds. When another one comes, the
position is given up and "auto.offset.reset" decides, as for every position that is no more. Java and librdkafka keep
the position. This module must not know how an error reaches the application.

Read next: `client.consumer.consumer_engine`, which reports it.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from headrace.error_codes import ErrorCodes
from headrace.errors import KafkaError
from headrace.machines.cluster.metadata import Cluster, TopicInfo
from headrace.machines.consumer.subscription import PartitionState, Subscription
from headrace.slotted import field, slotted

__all__ = ["Recreations", "follow"]

_NO_ID = UUID(int=0)
_GONE = (ErrorCodes.UNKNOWN_TOPIC_OR_PART, ErrorCodes.UNKNOWN_TOPIC_ID)


@slotted()
class Recreations:
    """What became of the topics of the assigned partitions since the last look.

    Attributes:
        lost: topics that are gone, or were made anew: offsets of theirs that are not committed yet must not be.
        errors: one error for each topic that was made anew, and one, with the partition, for each of its partitions
            that is read no more because "auto.offset.reset" is "error".
    """

    lost: set[str] = field(default_factory=set)
    errors: list[tuple[PartitionState | None, KafkaError]] = field(default_factory=list)


def follow(
    subscription: Subscription, cluster: Cluster, states: Iterable[PartitionState] | None = None
) -> Recreations:
    """Look at the topics of the assigned partitions in new metadata, and start again in those that were made anew.

    Args:
        subscription: has the partitions.
        cluster: the metadata.
        states: of the partitions to look at, where the others have been seen with it; None for all.
    """
    found = Recreations()
    for state in subscription if states is None else states:
        info = cluster.topics.get(state.topic)
        if info is None:
            continue  # not asked for yet
        state.gone = state.topic_id is not None and info.error is not None and info.error.code() in _GONE
        if state.gone:
            found.lost.add(state.topic)
        elif info.topic_id is not state.topic_id and info.topic_id not in (_NO_ID, state.topic_id):
            before, state.topic_id = state.topic_id, info.topic_id
            if before is not None:
                _start_again(subscription, state, info, before, found)
    return found


def _start_again(
    subscription: Subscription, state: PartitionState, info: TopicInfo, before: UUID, found: Recreations
) -> None:
    goes_on = subscription.start_again(state)
    if state.topic not in found.lost:
        found.lost.add(state.topic)
        found.errors.append((None, KafkaError(
            ErrorCodes.UNKNOWN_TOPIC_ID, f'topic "{state.topic}" was deleted and made anew, with id {info.topic_id} '
            f'instead of {before}: its positions are void, "auto.offset.reset" decides where it is read from')))
    if not goes_on:
        found.errors.append((state, KafkaError(
            ErrorCodes._AUTO_OFFSET_RESET, f"{state.topic}[{state.partition}]: the topic was deleted and made anew, "
            'and "auto.offset.reset" is "error": seek() to an offset of the new one')))
