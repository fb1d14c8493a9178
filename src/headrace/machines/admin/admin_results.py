"""What replies to an administrator's requests have in common: errors that name the thing and the right, ids, brokers.

It knows no request. Read next: `machines.admin.topic_requests`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any, Final, TypeVar
from uuid import UUID

from headrace.error_codes import lacking
from headrace.errors import KafkaError, KafkaException
from headrace.types.acls import AclOperation
from headrace.types.cluster import Node
from headrace.types.records import TopicPartition, Uuid

__all__ = ["NodesById", "by_topic", "failure", "key_of", "milliseconds", "numbers_by_topic", "operations",
           "raise_failure", "uuid_of"]

_V = TypeVar("_V")
_RIGHTS: Final = frozenset((
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED))
_NOT_ASKED: Final = -(2**31)
_HALVES: Final = Struct(">qq")


def failure(what: str, code: int, message: str | None = None, right: str = "") -> KafkaError | None:
    """The error of one topic, resource or group, None when it went well.

    Args:
        what: the thing.
        code: the broker's code.
        message: the broker's words.
        right: operation and resource that the user must be allowed; told when that is what is missing.
    """
    if not code:
        return None
    text = message or KafkaError(code).str()
    if right and code in _RIGHTS:
        text = lacking(text, right)
    return KafkaError(code, f"{what}: {text}")


def raise_failure(what: str, code: int, message: str | None = None, right: str = "") -> None:
    """Raise the error of a whole reply, if there is one.

    Raises:
        KafkaException: there is.
    """
    error = failure(what, code, message, right)
    if error is not None:
        raise KafkaException(error)


def operations(bits: int) -> list[AclOperation] | None:
    """What the client may do, from a reply's bits; None when that was not asked for."""
    if bits == _NOT_ASKED:
        return None
    return [each for each in AclOperation if bits >> each.value & 1]


def uuid_of(wire: UUID) -> Uuid:
    """An id as users see it."""
    return Uuid(*_HALVES.unpack(wire.int.to_bytes(16)))


class NodesById(dict[int, Node]):
    """Brokers by id. One that is not there any more has no address."""

    def __missing__(self, node_id: int) -> Node:
        return Node(node_id, "", -1)


def by_topic(wanted: Mapping[TopicPartition, _V]) -> dict[str, list[tuple[TopicPartition, _V]]]:
    """Partitions, and what is wanted of each, by topic."""
    topics: dict[str, list[tuple[TopicPartition, _V]]] = defaultdict(list)
    for tp, value in wanted.items():
        topics[tp.topic].append((tp, value))
    return topics


def key_of(tp: TopicPartition) -> str:
    """How a partition is named in an error."""
    return f"{tp.topic}[{tp.partition}]"


def milliseconds(seconds: float) -> int:
    """A time as requests have it."""
    return int(seconds * 1000)


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[Any]]:
    """Partition numbers by topic."""
    topics: dict[str, list[Any]] = defaultdict(list)
    for tp in partitions:
        topics[tp.topic].append(tp.partition)
    return topics
