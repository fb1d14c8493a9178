"""The offsets that groups have committed, one after the other, as the brokers wrote them down.

They lie in the topic `__consumer_offsets`, whose records are Kafka's: the key is a version, the group, the topic and
the partition, the value begins with a version and the offset. It is read by confluent_kafka; what a transaction has
committed counts when the transaction has ended so.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import Any, Final

from tests.campaigns.chaos.reader import messages_of

OFFSETS_TOPIC: Final = "__consumer_offsets"
_PARTITIONS: Final = 4  # as `tools.kafka` asks for
_OFFSET_KEYS: Final = (0, 1)

Commits = dict[int, list[int]]
"""By partition, the offsets in the order in which they were committed."""


def commits_of(servers: str, sources: dict[str, str]) -> dict[str, Commits]:
    """What groups have committed.

    Args:
        servers: the brokers.
        sources: by group, the topic that it reads.

    Returns:
        By group. What was taken back, as the end of the group does, is left out.

    Raises:
        TimeoutError: a transaction stays open, or a partition cannot be read.
    """
    found: dict[str, Commits] = {group: defaultdict(list) for group in sources}
    for message in messages_of(servers, OFFSETS_TOPIC, _PARTITIONS):
        commit = read_commit(message.key(), message.value())
        if commit is not None:
            group, topic, partition, offset = commit
            if sources.get(group) == topic:
                found[group][partition].append(offset)
    return found


def read_commit(key: bytes | None, value: bytes | None) -> tuple[str, str, int, int] | None:
    """Group, topic, partition and offset of a commit; None for all else that lies in the topic."""
    if key is None or value is None or struct.unpack_from(">h", key)[0] not in _OFFSET_KEYS:
        return None
    group, at = _text(key, 2)
    topic, at = _text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    (offset,) = struct.unpack_from(">q", value, 2)
    return group, topic, partition, offset


def _text(data: Any, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2:at + 2 + size].decode(), at + 2 + size
