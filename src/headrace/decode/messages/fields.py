"""Messages to nodes: fields in the order in which they travel, numbers with what they mean, secrets hidden.

Passwords, tokens and keys are never shown, only their size: SASL bytes, SCRAM secrets, delegation tokens, and values of
configuration entries whose names say so. There is no way to ask for them.

Read next: `decode.output.nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from headrace.decode.messages.bodies import api_name, read_request
from headrace.decode.messages.names import MEANINGS, TopicNames, error_name, error_text, uuid_text
from headrace.decode.messages.record_nodes import records_node
from headrace.decode.output.nodes import Hidden, TreeNode, damage, items, moment, struct, value
from headrace.errors import ProtocolError
from headrace.wire.codec import decode_prefixed
from headrace.wire.layout import FieldColumn, columns
from headrace.wire.messages.groups.classic_groups import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from headrace.wire.schema import ApiMessage, Struct

__all__ = ["MessageView", "holds_secret"]

_SECRET_FIELDS: Final = {"auth_bytes", "hmac", "salt", "salted_password", "stored_key", "server_key", "response_data"}
_SECRET_CONFIG: Final = re.compile(r"password|secret|credential|jaas|token|\bkey\b|private", re.IGNORECASE)
_PASSWORD_TYPE: Final = 9
_TIMES: Final = re.compile(r"(^|_)timestamp(_ms)?$")
_LISTED_TIMES: Final = {-1: "latest, or none", -2: "earliest", -3: "of the largest timestamp", -4: "earliest local",
                        -5: "latest tiered", -6: "earliest pending upload"}
_NESTED: Final[dict[tuple[str, str], type[ApiMessage]]] = {
    ("JoinGroupRequestProtocol", "metadata"): ConsumerProtocolSubscription,
    ("JoinGroupResponseMember", "metadata"): ConsumerProtocolSubscription,
    ("SyncGroupRequestAssignment", "assignment"): ConsumerProtocolAssignment,
    ("SyncGroupResponse", "assignment"): ConsumerProtocolAssignment,
    ("DescribedGroupMember", "member_metadata"): ConsumerProtocolSubscription,
    ("DescribedGroupMember", "member_assignment"): ConsumerProtocolAssignment,
    ("StoredGroupMember", "subscription"): ConsumerProtocolSubscription,
    ("StoredGroupMember", "assignment"): ConsumerProtocolAssignment,
}
"""Bytes that are a message of Kafka's own consumers; of other protocols they are something else and shown as bytes."""
_MISSING: Final = object()


def holds_secret(part: Struct) -> bool:
    """True when a message has a secret in it that is not empty."""
    for column in columns(type(part)):
        found = getattr(part, column.name, None)
        if not found:
            continue
        if column.name in _SECRET_FIELDS:
            return True
        if column.type.struct is not None and any(map(holds_secret, found if column.type.is_array else (found,))):
            return True
    return False


class MessageView:
    """Shows messages.

    Args:
        topics: names of topic ids.
        records: most records of a batch to show; None for all, 0 for none.
    """

    def __init__(self, topics: TopicNames, records: int | None) -> None:
        self.records = records
        self._topics = topics

    def nodes(self, message: Struct, version: int, topic: str = "") -> Iterator[TreeNode]:
        """The fields of a message, or of a part of one, that a version carries and that could be read.

        Args:
            message: what to show.
            version: version of the message.
            topic: name of the topic that the part is about.
        """
        topic = self._topic_of(message) or topic
        for column in columns(type(message)):
            content = getattr(message, column.name, _MISSING)
            if content is not _MISSING and column.versions.holds(version):
                node = self._node(message, column, content, version, topic)
                yield node._replace(quiet=True) if column.is_tagged(version) and _is_default(column, content) else node
        if message.unknown_tags:
            is_secret = not _SECRET_FIELDS.isdisjoint(message.fields)
            yield struct("unknown_tags", [value(str(tag), Hidden(len(data)) if is_secret else data)
                                          for tag, data in message.unknown_tags.items()])

    def _topic_of(self, part: Struct) -> str:
        for name in ("topic", "name"):
            found = getattr(part, name, None)
            if found and isinstance(found, str) and (name == "topic" or "Topic" in type(part).__name__):
                return found
        uuid = getattr(part, "topic_id", None)
        return self._topics.name(uuid_text(uuid)) if isinstance(uuid, UUID) else ""

    def _node(self, owner: Struct, column: FieldColumn, content: Any, version: int, topic: str) -> TreeNode:
        name, type_ = column.name, column.type
        if content is None:
            return value(name, None)
        if _is_secret(owner, name):
            return value(name, Hidden(len(content)))
        if type_.is_array:
            return items(name, self._elements(column, content, version, topic), len(content))
        if type_.struct is not None:
            return struct(name, self.nodes(content, version, topic))
        if type_.name == "Records":
            return records_node(name, memoryview(content), self.records, topic, self.nodes)
        if type_.name == "Bytes":
            return self._bytes(owner, name, content)
        return self._plain(name, content)

    def _elements(self, column: FieldColumn, content: list[Any], version: int, topic: str) -> Iterator[TreeNode]:
        for index, one in enumerate(content):
            if column.type.struct is not None:
                yield struct(f"[{index}]", self.nodes(one, version, topic))
            else:
                yield self._plain(column.name, one)

    def _plain(self, name: str, content: Any) -> TreeNode:
        if isinstance(content, UUID):
            text = uuid_text(content)
            topic = self._topics.name(text)
            return value(name, text, f"{text} ({topic})", topic_name=topic) if topic else value(name, text, text)
        if isinstance(content, (bool, str, bytes, float)):
            return value(name, content)
        if name.endswith("error_code"):
            return TreeNode(name, content, error_text(content), ((f"{name}_name", error_name(content)),))
        if name == "api_key":
            return value(name, content, f"{content} {api_name(content)}", api_name=api_name(content))
        if _TIMES.search(name):
            return moment(name, content, _LISTED_TIMES.get(content, "none") if name == "timestamp" else "none")
        meaning = MEANINGS.get(name, {}).get(content)
        return value(name, content, f"{content} ({meaning})") if meaning else value(name, content)

    def _bytes(self, owner: Struct, name: str, content: bytes) -> TreeNode:
        if name == "request_data":
            return struct(name, self._envelope(content))
        nested = _NESTED.get((type(owner).__name__, name))
        if nested is not None and content:
            try:
                version, message = decode_prefixed(nested, content)
                return struct(name, self.nodes(message, version))
            except ProtocolError:
                pass
        return value(name, content)

    def _envelope(self, content: bytes) -> Iterator[TreeNode]:
        body = read_request(content)
        yield value("api_key", body.api_key, f"{body.api_key} {api_name(body.api_key)}")
        yield value("version", body.version)
        yield value("correlation_id", body.correlation_id)
        yield value("client_id", body.client_id)
        if body.message is not None and body.version is not None:
            yield struct("fields", self.nodes(body.message, body.version))
        if body.damage:
            yield damage(body.damage)


def _is_default(column: FieldColumn, content: Any) -> bool:
    if column.type.struct is None or column.type.is_array:
        return bool(content == column.default) or not content
    default = column.type.struct()
    return all(getattr(content, name, _MISSING) == getattr(default, name) for name in default.fields)


def _is_secret(owner: Struct, name: str) -> bool:
    if name in _SECRET_FIELDS:
        return True
    if name != "value" or not isinstance(getattr(owner, "value", None), str):
        return False
    entry = getattr(owner, "name", None)
    return (bool(getattr(owner, "is_sensitive", False)) or getattr(owner, "config_type", 0) == _PASSWORD_TYPE
            or (isinstance(entry, str) and _SECRET_CONFIG.search(entry) is not None))
