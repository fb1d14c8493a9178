"""Transactions of five clients, read by all of them: through the embedded broker and through a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing import BrokerSettings, EmbeddedBroker

from .client import Record
from .conftest import CLIENTS, FRANZ_GO, JAVA, LIBRDKAFKA, OURS, Clients, make_topic
from .samples import TIME_MS
from .sites import EmbeddedSite, Site

PARTITIONS = 2
COUNT = 40


@pytest.fixture(scope="module")
def older() -> Iterator[Site]:
    """The embedded broker as Kafka 3.9, in which transactions share the epoch of their producer."""
    with EmbeddedBroker(settings=BrokerSettings.of_kafka("3.9")) as broker:
        yield EmbeddedSite(broker)


def records(mark: str) -> list[Record]:
    return [Record(index % PARTITIONS, TIME_MS, None, f"{mark}-{index}".encode()) for index in range(COUNT)]


def values(*marks: str) -> list[bytes]:
    return sorted(record.value for mark in marks for record in records(mark) if isinstance(record.value, bytes))


def read(clients: Clients, site: Site, reader: str, topics: list[str], count: int) -> list[bytes]:
    found = clients[reader].consume(site.servers, topics, count)
    return sorted(record.value for record in found.values() if isinstance(record.value, bytes))


def write_three(clients: Clients, site: Site, writer: str) -> str:
    """One transaction is committed, one aborted, one committed; their topic."""
    topic = f"transactions-of-{writer}"
    make_topic(clients, site, topic, PARTITIONS)
    for mark, commit in (("first", True), ("gone", False), ("last", True)):
        clients[writer].transact(site.servers, topic, records(mark), f"{topic}-id", commit=commit)
    return topic


@pytest.fixture(scope="module")
def all_written() -> dict[str, list[str]]:
    return {}


@pytest.fixture
def written(site: Site, clients: Clients, all_written: dict[str, list[str]]) -> list[str]:
    """Topics with the transactions of every client, written once for each site."""
    if site.name not in all_written:
        all_written[site.name] = [write_three(clients, site, writer) for writer in clients.available()]
    return all_written[site.name]


@pytest.mark.parametrize("reader", CLIENTS)
def test_a_client_reads_what_all_have_committed_and_nothing_that_they_have_aborted(
    site: Site, clients: Clients, written: list[str], reader: str
) -> None:
    found = read(clients, site, reader, written, len(written) * 2 * COUNT)
    assert found == sorted(values("first", "last") * len(written))


@pytest.mark.parametrize("name", [OURS, JAVA, FRANZ_GO])
def test_those_that_know_newer_transactions_go_by_the_older_rules_where_these_hold(
    clients: Clients, older: Site, name: str
) -> None:
    assert read(clients, older, name, [write_three(clients, older, name)], 2 * COUNT) == values("first", "last")


@pytest.mark.parametrize("name", CLIENTS)
def test_what_a_group_has_read_is_written_and_committed_as_one(clients: Clients, embedded: Site, name: str) -> None:
    copy_once(clients, embedded, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_so_it_is_at_a_real_kafka(clients: Clients, kafka: Site, name: str) -> None:
    copy_once(clients, kafka, name)


def copy_once(clients: Clients, site: Site, name: str) -> None:
    """Copy what a group reads in a transaction that is aborted, and again in one that is committed."""
    source, sink = f"source-{name}", f"sink-{name}"
    for topic in (source, sink):
        make_topic(clients, site, topic, PARTITIONS)
    client = clients[name]
    client.produce(site.servers, source, records("a"), idempotent=True)
    how = {"servers": site.servers, "source": source, "topic": sink, "group": f"{name}-copies",
           "transactional_id": f"{name}-copier", "count": COUNT}
    client.ask("copy", **how, commit=False)
    client.ask("copy", **how, commit=True)  # the aborted one has moved no offset
    assert read(clients, site, name, [sink], COUNT) == values("a")
    offsets = clients[LIBRDKAFKA].ask("fetch_offsets", servers=site.servers, group=f"{name}-copies", topic=source)
    assert sum(offsets.values()) == COUNT
