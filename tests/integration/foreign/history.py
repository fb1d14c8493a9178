"""A client held to an old Kafka's requests: everything that it can do with them, at one broker.

kgo's MaxVersions holds franz-go to the versions of a release, so that all of them can be walked through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from .client import Client, Digest, ForeignError, Place, Record
from .samples import TIME_MS
from .sites import Site

PARTITIONS = 2
COUNT = 40
GROUPS_FROM = (0, 9)
TIMES_FROM = (0, 10)
TOPICS_FROM = (0, 10, 1)
HEADERS_FROM = IDEMPOTENCE_FROM = RECORDS_FROM = (0, 11)
ZSTD_FROM = (2, 1)

OPERATIONS_FROM: dict[str, tuple[int, ...]] = {
    "create_topic": TOPICS_FROM, "delete_topic": TOPICS_FROM, "create_partitions": (1, 0), "delete_records": (0, 11),
    "describe_configs": (0, 11), "replace_configs": (0, 11), "alter_configs": (2, 3), "list_groups": GROUPS_FROM,
    "describe_group": GROUPS_FROM, "delete_group": (1, 1), "fetch_offsets": GROUPS_FROM, "alter_offsets": GROUPS_FROM,
    "delete_offsets": (2, 4),
}
"""The first release that an operation can be asked of."""


class Exchanging(Protocol):
    """A client that writes and reads; some do no more."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], **how: Any) -> list[int]:
        """See `Client.produce`."""

    def consume(self, servers: str, topics: Sequence[str], count: int, **how: Any) -> dict[Place, Record]:
        """See `Client.consume`."""


def number(version: str) -> tuple[int, ...]:
    """A release as numbers: v0.10.1 is (0, 10, 1)."""
    return tuple(int(part) for part in version.removeprefix("v").split("."))


def codecs(release: tuple[int, ...]) -> tuple[str, ...]:
    """The codecs that a release's producers can use."""
    known = ("none", "gzip", "snappy") + (("lz4",) if release >= TIMES_FROM else ())
    return known + (("zstd",) if release >= ZSTD_FROM else ())


def sample(codec: str) -> list[Record]:
    """Records of one codec: some without a key, some of a key alone."""
    return [Record(index % PARTITIONS, TIME_MS + index, None if index % 3 else b"%d" % index,
                   None if index % 6 == 3 else f"{codec} value {index} ".encode() * 10, (("h", b"1"), ("h", b"")))
            for index in range(COUNT)]


def known_to(release: tuple[int, ...], record: Record) -> Record:
    """A record with what a release's format of messages has of it; a time that it has not is 0."""
    return Record(record.partition, record.timestamp if release >= TIMES_FROM else 0, record.key, record.value,
                  record.headers if release >= HEADERS_FROM else ())


def exchange(
    old: Exchanging, new: Exchanging, site: Site, topic: str, release: tuple[int, ...], names: Sequence[str],
    **how: Any,
) -> None:
    """Both write, in each codec, and both read what both have written.

    Args:
        old: the client that is held to a release.
        new: another that is not.
        site: where.
        topic: a topic of two partitions.
        release: the release.
        names: the codecs.
        how: what holds the old client to it.
    """
    written: dict[Place, Record] = {}
    for codec in names:
        for client, arguments in ((old, how), (new, {})):
            records = [known_to(release, record) for record in sample(codec)]
            offsets = client.produce(site.servers, topic, records, codec=codec,
                                     idempotent=client is old and release >= IDEMPOTENCE_FROM, **arguments)
            for record, offset in zip(records, offsets, strict=True):
                written[topic, record.partition, offset] = record
    for client, arguments in ((old, how), (new, {})):
        read = client.consume(site.servers, [topic], len(written), **arguments)
        assert {place: known_to(release, record) for place, record in read.items()} == written


def share(client: Exchanging, site: Site, topic: str, count: int, **how: Any) -> None:
    """A group of the old client's reads a topic, and goes on where it was."""
    group = f"{topic}-group"
    read = client.consume(site.servers, [topic], count, group=group, **how)
    assert len(read) == count
    more = [known_to((0,), record) for record in sample("more")]
    client.produce(site.servers, topic, more, **how)
    again = client.consume(site.servers, [topic], COUNT, group=group, **how)
    assert not read.keys() & again.keys()
    assert sorted(_text(record) for record in again.values()) == sorted(_text(record) for record in more)


def _text(record: Record) -> bytes:
    assert not isinstance(record.value, Digest)
    return record.value or b""


def administer(
    client: Client, site: Site, topic: str, release: tuple[int, ...], **how: Any
) -> Iterator[tuple[str, Any]]:
    """What a broker answers to every operation that a release has.

    Args:
        client: a client that is held to the release.
        site: where.
        topic: a topic that its group has read to the end; another is made, changed and deleted.
        release: the release.
        how: what holds the client to it.

    Yields:
        Operations and answers.
    """
    made, group, nowhere = f"{topic}-made", f"{topic}-group", f"{topic}-nowhere"
    steps: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
        ("describe_cluster", {}, _whole),
        ("describe_topic", {"topic": topic}, _whole),
        ("list_offsets", {"topic": topic, "at": "earliest"}, _whole),
        ("list_offsets", {"topic": topic, "at": "latest"}, _whole),
        ("create_topic", {"topic": made, "partitions": 1, "replicas": 1, "configs": {"retention.ms": "-1"}}, _whole),
        ("describe_topic", {"topic": made}, _whole),
        ("create_topic", {"topic": made, "partitions": 1, "replicas": 1, "configs": {}}, _whole),
        ("create_partitions", {"topic": made, "partitions": 3}, _whole),
        ("describe_topic", {"topic": made}, _whole),
        ("describe_configs", {"topic": made}, _settings),
        ("replace_configs", {"topic": made, "configs": {"segment.bytes": "2097152"}}, _whole),
        ("describe_configs", {"topic": made}, _settings),
        ("alter_configs", {"topic": made, "set": {"retention.ms": "77"}, "delete": ["segment.bytes"]}, _whole),
        ("describe_configs", {"topic": made}, _settings),
        ("delete_records", {"topic": topic, "offsets": {0: 3, 1: 0}}, _whole),
        ("list_offsets", {"topic": topic, "at": "earliest"}, _whole),
        ("delete_topic", {"topic": made}, _whole),
        ("delete_topic", {"topic": nowhere}, _whole),
        ("list_groups", {}, lambda found: group in found),
        ("describe_group", {"group": group}, _whole),
        ("describe_group", {"group": nowhere}, _whole),
        ("fetch_offsets", {"group": group, "topic": topic}, _whole),
        ("alter_offsets", {"group": group, "topic": topic, "offsets": {0: 1, 1: 2}}, _whole),
        ("fetch_offsets", {"group": group, "topic": topic}, _whole),
        ("delete_offsets", {"group": group, "topic": topic, "offsets": {1: 0}}, _whole),
        ("fetch_offsets", {"group": group, "topic": topic}, _whole),
        ("delete_group", {"group": group}, _whole),
        ("delete_group", {"group": group}, _whole),
        ("fetch_offsets", {"group": group, "topic": topic}, _whole),
    ]
    for op, arguments, show in steps:
        is_there = release >= TOPICS_FROM or arguments.get("topic") != made
        if is_there and release >= OPERATIONS_FROM.get(op, (0,)):
            yield op, _answer(client, site, op, {**arguments, **how}, show)


def _answer(client: Client, site: Site, op: str, arguments: dict[str, Any], show: Callable[[Any], Any]) -> Any:
    try:
        answer = show(client.ask(op, servers=site.servers, **arguments))
    except ForeignError as error:
        return f"error {error.code or error}"
    if site.name != "embedded" and op in ("create_topic", "create_partitions", "replace_configs", "alter_configs"):
        time.sleep(0.3)  # until a real broker has heard of it from its controller
    return answer


def _whole(answer: Any) -> Any:
    return answer


def _settings(configs: dict[str, Any]) -> dict[str, str]:
    names = ("retention.ms", "segment.bytes", "cleanup.policy", "max.message.bytes")
    return {name: configs[name]["value"] for name in names}
