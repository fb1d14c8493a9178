"""Names: the topics that a message speaks of, the names of topic ids as a capture shows them, and codes in words.

Read next: `fields`, which shows messages with them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from headrace.error_codes import CODES
from headrace.wire.layout import columns
from headrace.wire.messages.admin.topics import CreateTopicsResponse
from headrace.wire.messages.cluster.metadata import MetadataResponse
from headrace.wire.schema import ApiMessage, Struct

__all__ = ["MEANINGS", "TopicNames", "error_text", "topics_of", "uuid_text"]

_MAX_NAMES: Final = 100_000
_OPERATIONS: Final = {
    0: "unknown", 1: "any", 2: "all", 3: "read", 4: "write", 5: "create", 6: "delete", 7: "alter", 8: "describe",
    9: "cluster_action", 10: "describe_configs", 11: "alter_configs", 12: "idempotent_write", 13: "create_tokens",
    14: "describe_tokens", 15: "two_phase_commit",
}
_RESOURCES: Final = {0: "unknown", 1: "any", 2: "topic", 3: "group", 4: "cluster", 5: "transactional_id",
                     6: "delegation_token", 7: "user"}
_PATTERNS: Final = {0: "unknown", 1: "any", 2: "match", 3: "literal", 4: "prefixed"}
MEANINGS: Final[dict[str, dict[int, str]]] = {
    "acks": {-1: "all in-sync replicas", 0: "none, there is no reply", 1: "the leader"},
    "isolation_level": {0: "read_uncommitted", 1: "read_committed"},
    "key_type": {0: "group", 1: "transaction", 2: "share"},
    "operation": _OPERATIONS,
    "permission_type": {1: "any", 2: "deny", 3: "allow"},
    "pattern_type": _PATTERNS, "pattern_type_filter": _PATTERNS, "resource_pattern_type": _PATTERNS,
    "resource_type_filter": _RESOURCES,
    "transaction_status": dict(enumerate(("empty", "ongoing", "prepare commit", "prepare abort", "complete commit",
                                          "complete abort", "dead", "prepare epoch fence"))),
    "mechanism": {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"},
}
"""What the numbers of fields mean, by the field's name."""


def error_text(code: int) -> str:
    """An error code's name and meaning."""
    entry = CODES.get(code)
    if entry is None:
        return f"{code} (not known here)"
    return f"{code} {error_name(code)}" + (f": {entry.about}" if code else "")


def error_name(code: int) -> str:
    """An error code's name, as Kafka has it."""
    entry = CODES.get(code)
    return "NONE" if code == 0 else entry.kafka_name if entry else f"ERROR_{code}"


def uuid_text(uuid: UUID) -> str:
    """A UUID as Kafka writes it: 22 characters of URL-safe Base64."""
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def topics_of(message: ApiMessage | None) -> frozenset[str]:
    """The names and ids of the topics that a message speaks of."""
    return frozenset(_topics(message, is_topic=False)) if message is not None else frozenset()


def _topics(part: Struct, is_topic: bool) -> Iterator[str]:
    for column in columns(type(part)):
        found: Any = getattr(part, column.name, None)
        if found is None:
            continue
        about_topic = "topic" in column.name or (is_topic and column.name == "name")
        if column.type.struct is not None:
            for one in found if column.type.is_array else (found,):
                yield from _topics(one, is_topic="topic" in column.name or "Topic" in column.type.struct.__name__)
        elif about_topic and column.type.name == "String":
            yield from found if column.type.is_array else (found,)
        elif about_topic and column.type.name == "Uuid":
            yield from map(uuid_text, found if column.type.is_array else (found,))


class TopicNames:
    """Names of topic ids, learned from what brokers answer. At most 100,000 are kept."""

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}

    def learn(self, message: ApiMessage | None) -> None:
        """Take the names from a reply."""
        if isinstance(message, (MetadataResponse, CreateTopicsResponse)):
            for topic in getattr(message, "topics", None) or ():
                uuid, name = getattr(topic, "topic_id", None), getattr(topic, "name", None)
                if uuid and uuid.int and name and len(self._by_id) < _MAX_NAMES:
                    self._by_id[uuid_text(uuid)] = name

    def name(self, uuid: str) -> str:
        """The name of a topic id as text; empty when it is not known."""
        return self._by_id.get(uuid, "")

    def speaks_of(self, topics: frozenset[str], wanted: frozenset[str]) -> bool:
        """True when one of the topics, by name or id, is wanted."""
        return any(topic in wanted or self.name(topic) in wanted for topic in topics)
