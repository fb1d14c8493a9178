"""What `sequences` keeps for one partition: the next sequence, and what its leader knows of this producer.

Only `machines.producer.sequences` and `machines.producer.transactional_sequences` read and write it; other modules
ask these. It must not know batches. Read next: `machines.producer.sequences`.
"""

from __future__ import annotations

import math
from uuid import UUID

__all__ = ["PartitionSequence"]


class PartitionSequence:
    """The sequences of one partition (KIP-98).

    Attributes:
        producer_id, epoch: under which its batches have their sequences; -1 before the first.
        next_sequence: that of the next record that has none yet.
        confirmed: the leader has stored a batch under these, so it refuses one that does not follow.
        needs_epoch_bump: sequences cannot go on (a batch was given up): batches that have one are resolved first, then
            they begin at zero in the next epoch (KIP-360); in a transaction in the same one.
        topic_id: of the topic whose leader is meant; zero while it is not known.
        looked_at: monotonic seconds; when a batch was last about to be sent.
    """

    __slots__ = ("confirmed", "epoch", "looked_at", "needs_epoch_bump", "next_sequence", "producer_id", "topic_id")

    def __init__(self) -> None:
        self.producer_id = self.epoch = -1
        self.next_sequence = 0
        self.confirmed = self.needs_epoch_bump = False
        self.topic_id = UUID(int=0)
        self.looked_at = -math.inf
