"""Batches of five clients are the same to each of them, through the embedded broker and through a real Kafka."""

from __future__ import annotations

import pytest

from .client import Place, Record
from .conftest import CLIENTS, KAFKAJS, OURS, Clients, make_topic
from .samples import PARTITIONS, large, many, one, squeezable, that_kafkajs_can_write, with_grouped_headers
from .sites import CODECS, Batch, Site, batches

HOW = {
    "none": {"acks": "1", "idempotent": False}, "gzip": {"acks": "all", "idempotent": True},
    "snappy": {"acks": "all", "idempotent": False}, "lz4": {"acks": "all", "idempotent": True},
    "zstd": {"acks": "1", "idempotent": False},
}

class Written:
    """What each client has written to a site, in a topic for each client and codec."""

    def __init__(self, site: Site, clients: Clients) -> None:
        self.site = site
        self.records: dict[Place, Record] = {}
        self.alone: dict[str, int] = {}
        self.writers = clients.available()
        for writer in self.writers:
            for codec in CODECS:
                self._write(clients, writer, codec)

    def _write(self, clients: Clients, writer: str, codec: str) -> None:
        topic = f"{writer}-{codec}"
        make_topic(clients, self.site, topic, PARTITIONS)
        for records in (one(), many(), large(), squeezable()):
            if writer == KAFKAJS:
                records = list(map(that_kafkajs_can_write, records))
            offsets = clients[writer].produce(self.site.servers, topic, records, codec=codec, **HOW[codec])
            assert len(offsets) == len(records)
            for record, offset in zip(records, offsets, strict=True):
                assert (topic, record.partition, offset) not in self.records
                self.records[topic, record.partition, offset] = record.shown()

    def batches(self, writer: str, codec: str, partition: int) -> list[Batch]:
        """The batches of a partition as the broker has stored them."""
        return list(batches(self.site.log(f"{writer}-{codec}", partition)))


@pytest.fixture(scope="session")
def all_written() -> dict[str, Written]:
    return {}


@pytest.fixture
def written(site: Site, clients: Clients, all_written: dict[str, Written]) -> Written:
    """Written once for each site, in whatever order the tests run."""
    if site.name not in all_written:
        all_written[site.name] = Written(site, clients)
    return all_written[site.name]


@pytest.mark.parametrize("reader", CLIENTS)
def test_a_client_reads_every_field_of_what_all_clients_have_written(
    written: Written, clients: Clients, reader: str
) -> None:
    topics = sorted({topic for topic, _, _ in written.records})
    read = clients[reader].consume(written.site.servers, topics, len(written.records))
    assert read.keys() == written.records.keys()
    for place, record in written.records.items():
        expected, found = record, read[place]
        if reader == KAFKAJS:
            expected, found = with_grouped_headers(expected), with_grouped_headers(found)
        assert found == expected, place


@pytest.mark.parametrize("writer", CLIENTS)
def test_batches_are_stored_as_their_producer_made_them(written: Written, clients: Clients, writer: str) -> None:
    assert clients[writer]
    for codec in CODECS:
        first, *_ = written.batches(writer, codec, 0)
        assert (first.base_offset, first.count) == (0, 1)
        stored = [batch for partition in range(PARTITIONS) for batch in written.batches(writer, codec, partition)]
        assert {batch.magic for batch in stored} == {2}
        # librdkafka and franz-go leave a batch as it is that would only grow.
        assert {batch.codec for batch in stored if batch.count > 1} == {codec}
        assert max(batch.count for batch in stored) > 100


@pytest.mark.parametrize("writer", CLIENTS)
def test_each_codec_of_each_client_makes_batches_smaller(written: Written, clients: Clients, writer: str) -> None:
    assert clients[writer]
    size = {codec: sum(batch.size for batch in written.batches(writer, codec, 2)) for codec in CODECS}
    for codec in CODECS[1:]:
        assert size[codec] < size["none"] / 3, size


@pytest.mark.parametrize("writer", CLIENTS)
def test_records_arrive_without_acknowledgement(site: Site, clients: Clients, writer: str) -> None:
    topic = f"{writer}-unacknowledged"
    client = clients[writer]
    make_topic(clients, site, topic, 1)
    records = [that_kafkajs_can_write(record) for record in one() * 50]
    client.produce(site.servers, topic, records, acks="0")
    assert list(clients[OURS].consume(site.servers, [topic], 50).values()) == records
