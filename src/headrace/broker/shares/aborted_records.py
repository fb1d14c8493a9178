"""Which offsets of what was read are of aborted transactions: a group that reads committed records gets none of them.

Read next: `broker.storage.producer_state`, which knows the aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.broker.shares.in_flight import BatchPlace
from headrace.broker.storage.partition import Partition
from headrace.records import BatchInfo

__all__ = ["aborted_ranges"]


def aborted_ranges(partition: Partition, infos: Iterable[BatchInfo]) -> list[BatchPlace]:
    """First and last offset of each batch of an aborted transaction, in order.

    Args:
        partition: where they lie.
        infos: the headers of what was read.
    """
    return [(info.base_offset, info.last_offset) for info in infos
            if info.is_transactional and not info.is_control and any(
                each.producer_id == info.producer_id and each.first_offset <= info.base_offset <= each.last_offset
                for each in partition.producers.aborted(info.base_offset, info.last_offset + 1))]
