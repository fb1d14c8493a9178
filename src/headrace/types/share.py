"""What became of a record that a share group handed out. No behaviour, no I/O."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["AcknowledgeType"]


class AcknowledgeType(IntEnum):
    """What the broker shall do with a record (KIP-932), as confluent_kafka names it; `RENEW` as Java does."""

    ACCEPT = 1
    """It is done with: nobody gets it again."""
    RELEASE = 2
    """Somebody may try again, until the group's limit of attempts is reached."""
    REJECT = 3
    """It cannot be processed: nobody gets it again."""
    RENEW = 4
    """It takes longer: the lock begins anew, and the record is to be acknowledged later (KIP-1222, Kafka 4.2)."""
