"""A conversation with a broker, ours or a real one: requests in one version, and replies made comparable.

What no two brokers have in common is replaced: ids of topics, members, producers and clusters, addresses, clocks, and
the words of error messages; of fetch sessions it is told whether there is one. Left out is `is_default` of
DescribeConfigs version 0, which real brokers forget to set. What is left must be the same.
"""

import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from headrace.errors import KafkaError
from headrace.records import BatchInfo, Cursor, scan
from headrace.records.control import control_records
from headrace.wire.frame import decode_response
from headrace.wire.layout import columns
from headrace.wire.messages.admin.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from headrace.wire.messages.groups.classic_groups import DescribeGroupsRequest, FindCoordinatorRequest
from headrace.wire.messages.producer.produce import InitProducerIdRequest
from headrace.wire.messages.producer.transactions import DescribeTransactionsRequest, TransactionTopic
from headrace.wire.schema import ZERO_UUID, Request, Struct
from tests.support.raw_client import RawClient

HUNG_UP = "the broker hung up"
_LEFT_OUT = {"throttle_time_ms", "controller_id", "is_default"}
_OF_ONE_RELEASE = {
    "errors.deadletterqueue.group.enable", "max.decompressed.message.bytes", "remote.copy.lag.bytes",
    "remote.copy.lag.ms", "message.downconversion.enable", "message.format.version",
    "message.timestamp.difference.max.ms", "message.timestamp.after.max.ms", "min.insync.replicas"}
"""Settings of topics that are not there, or not with the same default, in Kafka 3.9 and 4.4 alike."""
_OF_MACHINE = {"host", "port", "cluster_id", "log_dir", "total_bytes", "usable_bytes", "rack", "session_id"}
_MEMBERS = {"member_id", "leader"}
_TEXTS = {"error_message", "batch_index_error_message", "acknowledge_error_message", "documentation"}
_CLOCKS = {"log_append_time_ms", "transaction_start_time_ms", "last_timestamp", "timestamp"}
_LONG_AGO_MS = 1_750_000_000_000
"""Later times are those of the brokers' clocks."""

Conversation = Callable[["Talk"], None]
LIMITS: dict[Conversation, tuple[str, int]] = {}
"""What `only` said of conversations."""


class Talk:
    """One conversation.

    Attributes:
        version: of the API that it is about.
        name: a name for a topic or a group that no other conversation uses.
        said: the replies so far, made comparable.
    """

    def __init__(self, servers: str, name: str, version: int) -> None:
        self.version = version
        self.name = name
        self.said: list[Any] = []
        self._later = 0
        self._servers = servers
        self._client = RawClient(servers)
        self._ids: dict[UUID, str] = {}
        self._members: dict[str, str] = {}

    def close(self) -> None:
        self._client.socket.close()

    def ask(self, request: Request, *, only_mine: bool = False) -> Any:
        """Send a request in the conversation's version, and note the reply.

        Args:
            request: the request.
            only_mine: leave out topics and groups of other conversations.
        """
        reply = self.call(request, self.version)
        self.note(reply, self.version, only_mine=only_mine)
        return reply

    def note(self, reply: Any, version: int, *, only_mine: bool = False) -> None:
        """Note a reply in a version."""
        if only_mine:
            for name in {"topics", "groups", "replica_election_results"} & set(reply.fields):
                setattr(reply, name, [each for each in getattr(reply, name) if self.name in _name_of(each)])
        self.said.append(reply if reply is HUNG_UP else self._plain(reply, version))

    def call(self, request: Request, version: int | None = None) -> Any:
        """Send a request and note nothing."""
        try:
            return self._client.call(request, version)
        except ConnectionError:
            self._client.socket.close()
            self._client = RawClient(self._servers)
            return HUNG_UP

    def more(self) -> "Talk":
        """The same conversation on a second connection."""
        other = Talk(self._servers, self.name, self.version)
        other.said, other._ids, other._members = self.said, self._ids, self._members
        return other

    def hear(self, kind: type[Request]) -> Any:
        """Note the reply to a request that was sent before."""
        _, reply = decode_response(kind, self.version, self._client.read_frame())
        self.note(reply, self.version)
        return reply

    def wait_for(self, state: str) -> None:
        """Wait until the conversation's group is in a state."""
        for _ in range(500):
            if self.call(DescribeGroupsRequest(groups=[self.name]), 5).groups[0].group_state == state:
                return
            time.sleep(0.01)
        raise AssertionError(f"the group does not come to {state}")

    def send(self, request: Request) -> None:
        """Send a request without waiting for its reply."""
        self._client.send(request, self.version)

    def topic(self, suffix: str = "", partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Make a topic, wait until it is led, and learn its id."""
        name = f"{self.name}{suffix}"
        entries = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
        reply = self.call(CreateTopicsRequest(timeout_ms=10_000, topics=[CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=entries)]), 7)
        assert reply.topics[0].error_code == 0, reply
        self.settle(name, partitions)
        return name

    def settle(self, name: str, partitions: int) -> None:
        """Wait until a topic has so many partitions with a leader; 0 waits until it is gone."""
        for _ in range(200):
            found = self.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)],
                                              allow_auto_topic_creation=False), 12).topics[0]
            if len([part for part in found.partitions if part.leader_id >= 0]) == partitions and self._is_led(found):
                if partitions:
                    self._ids[found.topic_id] = name
                return
            time.sleep(0.01)
        raise AssertionError(f"{name} does not come to {partitions} partitions")

    def catch_up(self, reply: Any) -> None:
        """Wait until a change that was accepted is known to the broker: a topic that is made after it is, then, too."""
        if not any(_codes(reply)):
            self._later += 1
            self.topic(f"-later-{self._later}")

    def _is_led(self, topic: MetadataResponseTopic) -> bool:
        """Whether the leaders know of it, too."""
        wanted = [ListOffsetsPartition(partition_index=part.partition_index, timestamp=-2) for part in topic.partitions]
        if not wanted:
            return True
        reply = self.call(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(
            name=topic.name or "", partitions=wanted)]), 4)
        return not any(_codes(reply))

    def id_of(self, name: str) -> UUID:
        """Id of a topic that was made here."""
        return next(key for key, value in self._ids.items() if value == name)

    def _plain(self, value: Any, version: int) -> Any:
        if isinstance(value, TransactionTopic) and value.topic == "__consumer_offsets":
            return "offsets of a group"  # in one of more or fewer partitions
        if isinstance(value, Struct):
            return dict(self._fields(value, version))
        if isinstance(value, list):
            found = [self._plain(each, version) for each in value
                     if getattr(each, "name", "") not in _OF_ONE_RELEASE]
            return sorted(found, key=repr)  # no order is promised
        return value

    def _fields(self, value: Struct, version: int) -> Iterator[tuple[str, Any]]:
        for column in columns(type(value)):
            if not column.versions.holds(version) or column.name in _LEFT_OUT:
                continue
            yield column.name, self._field(column.name, getattr(value, column.name), value, version)

    def _field(self, name: str, found: Any, value: Struct, version: int) -> Any:
        if name in _OF_MACHINE:
            return "there" if found else found
        if name in _TEXTS:
            # The words are each broker's own, and so is whether a mistake gets any.
            failed = getattr(value, "error_code", 0) or getattr(value, name.replace("message", "code"), 0)
            return None if failed else "there" if found else found
        if name in _MEMBERS and found:
            return self._members.setdefault(found, f"member {len(self._members)}")
        if name in _CLOCKS and found > _LONG_AGO_MS:
            return "now"
        if name == "topic_id":
            return found if found == ZERO_UUID else self._ids.get(found, "an id")
        if name == "producer_id" and found >= 0:
            return "a producer id"
        if name == "records":
            return records_of(found or b"")
        return self._plain(found, version)


def wait_for_coordinators(servers: str) -> None:
    """A real cluster needs a moment before it serves groups and transactions and gives out producer ids: until it does.

    The coordinator of a partition is known before it has loaded the partition, so its own state is asked for, too.
    """
    names = [f"warm-up-{number}" for number in range(20)]
    talk = Talk(servers, names[0], 0)
    for _ in range(400):
        found = talk.call(FindCoordinatorRequest(coordinator_keys=names), 4)
        offsets = talk.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)
                                                       for name in names]), 8)
        producer = talk.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4)
        others = talk.call(FindCoordinatorRequest(key_type=1, coordinator_keys=names), 4)
        transactions = talk.call(DescribeTransactionsRequest(transactional_ids=names), 0)
        codes = [code for reply in (found, offsets, producer, others) for code in _codes(reply)]
        if not any(codes) and set(_codes(transactions)) == {KafkaError.TRANSACTIONAL_ID_NOT_FOUND}:
            talk.close()
            return
        time.sleep(0.05)
    raise AssertionError("the coordinators do not come")


def only(release: str = "", *, since: int = 0) -> Callable[[Conversation], Conversation]:
    """A conversation that is not held with every broker.

    Args:
        release: where Kafka's releases differ, the one that ours is held against.
        since: first version; real brokers cannot serve the earlier ones as they were meant.
    """
    def mark(conversation: Conversation) -> Conversation:
        LIMITS[conversation] = release, since
        return conversation

    return mark


def records_of(data: Any) -> list[Any]:
    """What a reply holds: for each batch or message its format and codec, and then every record."""
    view = memoryview(bytes(data))
    view = view[:_end_of_messages(view)]
    shown: list[Any] = []
    for info in scan(view):
        batch = view[info.position:info.position + info.size]
        shown.append(("format", info.magic, "codec", info.codec, *_transaction_of(info)))
        shown += [("marker", each.offset, each.type, each.coordinator_epoch) for each in control_records(batch)]
        shown += [(each.offset(), each.key(), each.value(), each.headers(), each.timestamp())
                  for each in Cursor(batch, "", 0, 0).take(1 << 20)]
    return shown


def _transaction_of(info: BatchInfo) -> tuple[str | int, ...]:
    return ("transaction of epoch", info.epoch, info.base_sequence) if info.is_transactional else ()


def _end_of_messages(view: memoryview) -> int:
    """Where whole messages end: Kafka fills what conversion has made shorter with the begin of a message at -1."""
    position = 0
    while position + 12 <= len(view):
        offset, size = struct.unpack_from(">qi", view, position)
        if offset < 0 or position + 12 + size > len(view):
            break
        position += 12 + size
    return position


def _name_of(entry: Any) -> str:
    return str(getattr(entry, "group_id", None) or getattr(entry, "topic", None) or getattr(entry, "name", ""))


def _codes(reply: Any) -> Iterator[int]:
    """Every error code in a reply."""
    if isinstance(reply, list):
        for each in reply:
            yield from _codes(each)
    elif isinstance(reply, Struct):
        for name in reply.fields:
            found = getattr(reply, name)
            if name == "error_code":
                yield found
            elif isinstance(found, list):
                yield from _codes(found)


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Where two noted conversations differ, one line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        for key, value in ours.items():
            yield from differences(value, theirs[key], f"{where}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, value in enumerate(ours):
            yield from differences(value, theirs[index], f"{where}[{index}]")
    elif isinstance(ours, list) and isinstance(theirs, list) and ours and theirs and isinstance(ours[0], dict) \
            and "name" in ours[0]:
        here, there = ({each["name"]: each for each in entries} for entries in (ours, theirs))
        yield f"{where}: only here {sorted(here.keys() - there)}, only Kafka {sorted(there.keys() - here)}"
        for key in here.keys() & there.keys():
            yield from differences(here[key], there[key], f"{where}[{key}]")
    elif isinstance(ours, list) and isinstance(theirs, list) and where == "":
        for index, value in enumerate(ours[:len(theirs)]):
            yield from differences(value, theirs[index], f"[{index}]")
        yield f"here {len(ours)} replies, Kafka {theirs[len(ours):] or len(theirs)}"
    elif ours != theirs:
        yield f"{where}: here {ours!r}, Kafka {theirs!r}"
