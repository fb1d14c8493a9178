"""Producers, administrators and restarts in any order: readers get whole transactions that were committed, in order,
and nothing else; from whatever offset they begin.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import KafkaError
from headrace.records import scan
from headrace.records.control import control_records
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.admin.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.support.raw_client import ASK_VERSIONS
from tests.support.transactional_client import Transactional, Who
from tests.unit.broker.test_broker_transactions import values

PARTITIONS = (0, 1)
NAMES = ("one", "two", "three")


class Producer:
    """What the test knows of a transactional producer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.who = Who(-1, -1)
        self.sequences = dict.fromkeys(PARTITIONS, 0)
        self.open: dict[int, list[tuple[int, bytes]]] = {each: [] for each in PARTITIONS}
        self.group = -1

    def over(self) -> None:
        self.open = {each: [] for each in PARTITIONS}
        self.group = -1


class Story:
    """A broker, and what must be in it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.directory = directory
        self.producers = [Producer(name) for name in NAMES]
        self.ends = dict.fromkeys(PARTITIONS, 0)
        self.starts = dict.fromkeys(PARTITIONS, 0)
        self.committed: dict[int, list[tuple[int, bytes]]] = {each: [] for each in PARTITIONS}
        self.group = -1
        self.count = 0
        self.start()

    def start(self) -> None:
        self.broker = EmbeddedBroker(data_dir=self.directory, topics={"t": len(PARTITIONS)})
        self.broker.start()
        self.client = Transactional(self.broker)
        self.client.call(ASK_VERSIONS)  # so that the connection stands, should the next step be a restart

    def stop(self) -> None:
        self.client.socket.close()
        self.broker.stop()

    def step(self) -> None:
        producer = self.chance.choice(self.producers)
        self.client.name, self.client.who = producer.name, producer.who
        if producer.who.producer_id < 0:
            self.init(producer)
            return
        action = self.chance.choices((self.store, self.end, self.offset, self.init, self.delete, self.restart),
                                     (60, 25, 10, 4, 2, 2))[0]
        action(producer)

    def init(self, producer: Producer) -> None:
        is_open = any(producer.open.values()) or producer.group >= 0
        code = self.client.init()
        assert code == (KafkaError.CONCURRENT_TRANSACTIONS if is_open else 0)
        if is_open:
            self.ended(producer, commit=False)
            assert self.client.init() == 0
        self.renew(producer)

    def renew(self, producer: Producer) -> None:
        if self.client.who != producer.who:
            producer.sequences = dict.fromkeys(PARTITIONS, 0)
        producer.who = self.client.who

    def store(self, producer: Producer) -> None:
        partition, values_ = self.chance.choice(PARTITIONS), [b"%d" % (self.count + each) for each in range(
            self.chance.randint(1, 3))]
        self.count += len(values_)
        assert self.client.store(*values_, sequence=producer.sequences[partition], partition=partition) == 0
        producer.sequences[partition] += len(values_)
        for value in values_:
            producer.open[partition].append((self.ends[partition], value))
            self.ends[partition] += 1

    def offset(self, producer: Producer) -> None:
        producer.group = self.count
        assert self.client.commit_offset(producer.name, self.count) == 0

    def end(self, producer: Producer) -> None:
        commit = self.chance.random() < 0.6
        if not any(producer.open.values()) and producer.group < 0:
            assert self.client.end(True) == KafkaError.INVALID_TXN_STATE
            return
        assert self.client.end(commit) == 0
        self.ended(producer, commit=commit)
        self.renew(producer)

    def ended(self, producer: Producer, *, commit: bool) -> None:
        for partition, records in producer.open.items():
            self.ends[partition] += 1 if records else 0  # the marker
            if commit:
                self.committed[partition] += records
        if commit and producer.group >= 0:
            assert self.client.offset(producer.name, stable=True) == (producer.group, 0)
        producer.over()

    def delete(self, _: Producer) -> None:
        partition = self.chance.choice(PARTITIONS)
        offset = self.chance.randint(self.starts[partition], self.ends[partition])
        reply = self.client.call(DeleteRecordsRequest(timeout_ms=1000, topics=[DeleteRecordsTopic(
            name="t", partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)])]))
        assert reply.topics[0].partitions[0].error_code == 0
        self.starts[partition] = offset

    def restart(self, _: Producer) -> None:
        self.stop()
        self.start()

    def check(self) -> None:
        for partition in PARTITIONS:
            start, end = self.starts[partition], self.ends[partition]
            open_since = [records[0][0] for each in self.producers if (records := each.open[partition])]
            stable = max(min(open_since, default=end), start)
            for offset in {start, (start + stable) // 2, stable, end}:
                part = self.client.fetch(offset, partition=partition)
                assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, end, stable)
                expected = sorted(each for each in self.committed[partition] if offset <= each[0] < stable)
                assert committed_records(part, offset) == [value for _, value in expected]


def committed_records(part: Any, offset: int) -> list[bytes]:
    """What a reader of committed records makes of a reply: as KIP-98 tells it to."""
    data, found = bytes(part.records), []
    begins, aborting = sorted((each.first_offset, each.producer_id) for each in part.aborted_transactions), set()
    for info in scan(data):
        batch = data[info.position:info.position + info.size]
        while begins and begins[0][0] <= info.last_offset:
            aborting.add(begins.pop(0)[1])
        if info.is_control:
            if next(control_records(batch)).type == 0:
                aborting.discard(info.producer_id)
        elif not (info.is_transactional and info.producer_id in aborting):
            found += values(batch)[max(offset - info.base_offset, 0):]
    return found


def tell(directory: Path, seed: int, steps: int) -> None:
    story = Story(directory, seed)
    try:
        for number in range(steps):
            story.step()
            if number % 10 == 0:
                story.check()
        story.check()
    finally:
        story.stop()


@pytest.mark.parametrize("seed", range(4))
def test_readers_get_committed_transactions_whatever_happens(tmp_path: Path, seed: int) -> None:
    tell(tmp_path, seed, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_readers_get_committed_transactions_whatever_happens_for_long(tmp_path: Path, seed: int) -> None:
    tell(tmp_path, seed, 1500)
