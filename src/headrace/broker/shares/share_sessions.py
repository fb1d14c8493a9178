"""Share sessions: which partitions a member reads at one node, and the number of its next request (KIP-932).

A session ends by its last request, or with the connection that it was begun on. It knows no partitions' states and no
requests. Read next: `broker.apis.share_records`, which releases what its member holds.
Source: Java's `ShareSessionCache` and `SharePartitionManager`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple
from uuid import UUID

from headrace.broker.coordinators.target_assignors import TopicIndex
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError

__all__ = ["SessionKey", "SharingSession", "SharingSessions"]

_LAST = -1
_MAX_EPOCH = 2**31 - 1


class SessionKey(NamedTuple):
    """A member of a group at a node."""

    node_id: int
    group_id: str
    member_id: str


class SharingSession:
    """One session.

    Attributes:
        key: whose it is.
        epoch: number of the next request.
        partitions: what the member reads, longest not served first; True once a reply has named it.
        known_topics: ids of topics that were there at one of its requests.
    """

    def __init__(self, key: SessionKey, connection: Hashable) -> None:
        self.key, self.connection, self.epoch = key, connection, 1
        self.partitions: dict[TopicIndex, bool] = {}
        self.known_topics: set[UUID] = set()

    def change(self, added: Iterable[TopicIndex], forgotten: Iterable[TopicIndex]) -> None:
        """Read other partitions from now on."""
        for each in added:
            self.partitions.setdefault(each, False)
        for each in forgotten:
            self.partitions.pop(each, None)

    def served(self, partition: TopicIndex, *, with_records: bool) -> None:
        """A reply names a partition; one with records stands behind the others in the next one."""
        if partition in self.partitions:
            if with_records:
                del self.partitions[partition]
            self.partitions[partition] = True


class SharingSessions:
    """The sessions of all nodes.

    Args:
        limit: most sessions of a node.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[SessionKey, SharingSession] = {}

    def get(self, key: SessionKey) -> SharingSession | None:
        """The session that is open."""
        return self._open.get(key)

    def begin(self, key: SessionKey, connection: Hashable) -> SharingSession:
        """Open a session, in the place of one that is open; what the member holds it holds on.

        Raises:
            ApiError: the node has too many.
        """
        if key not in self._open and sum(each.node_id == key.node_id for each in self._open) >= self._limit:
            raise ApiError(KafkaError.SHARE_SESSION_LIMIT_REACHED)
        session = self._open[key] = SharingSession(key, connection)
        return session

    def enter(self, key: SessionKey, epoch: int) -> SharingSession:
        """The session of a request that is not the first; the next one must have the next number.

        Raises:
            ApiError: there is no session, or it is at another number.
        """
        session = self._open.get(key)
        if session is None:
            raise ApiError(KafkaError.SHARE_SESSION_NOT_FOUND)
        if epoch != _LAST:
            if epoch != session.epoch:
                raise ApiError(KafkaError.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        return session

    def end(self, session: SharingSession) -> None:
        """Close a session."""
        if self._open.get(session.key) is session:
            del self._open[session.key]

    def of_connection(self, connection: Hashable) -> list[SharingSession]:
        """Those that were begun on a connection."""
        return [each for each in self._open.values() if each.connection is connection]

    def of_node(self, node_id: int) -> list[SharingSession]:
        """Those of a node."""
        return [each for each in self._open.values() if each.key.node_id == node_id]
