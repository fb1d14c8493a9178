"""What was acknowledged is there after kill -9; what was half written is cut off."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.broker.coordinators.committed_offsets import OffsetStore
from headrace.broker.storage.journal import Journal
from headrace.records import Cursor
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.admin.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.support.raw_client import RawClient, batch_of


@contextmanager
def broker_process(data: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "broker", "--listen", "127.0.0.1:0", "--data", str(data)],
        stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("bootstrap.servers="), line
        yield process, line.strip().partition("=")[2]
    finally:
        process.kill()
        process.communicate()


def read_values(client: RawClient, topic: str, offset: int = 0) -> list[bytes | None]:
    found: list[bytes | None] = []
    while True:
        reply = client.call(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[
            FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, fetch_offset=offset,
                                                               partition_max_bytes=1 << 20)])]), 11)
        data = reply.responses[0].partitions[0]
        assert data.error_code == 0
        messages = Cursor(data.records, topic, 0, offset).take(1 << 20)
        if not messages:
            return found
        found += [message.value() for message in messages]
        offset = int(messages[-1].offset() or 0) + 1


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    expected = [f"value {number}".encode() for number in range(300)]
    with broker_process(tmp_path) as (process, servers), RawClient(servers) as client:
        client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True), 4)
        for value in expected:
            assert client.produce("t", 0, batch_of([value])).error_code == 0
        commit_offset(client, 123)
        os.kill(process.pid, signal.SIGKILL)
    with broker_process(tmp_path) as (process, servers):
        with RawClient(servers) as client:
            assert read_values(client, "t") == expected
            assert committed_offset(client) == 123
        process.terminate()
        assert process.wait(10) == 0


def commit_offset(client: RawClient, offset: int) -> None:
    reply = client.call(OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")])]), 5)
    assert reply.topics[0].partitions[0].error_code == 0


def committed_offset(client: RawClient) -> int:
    reply = client.call(OffsetFetchRequest(group_id="g", topics=[
        OffsetFetchRequestTopic(name="t", partition_indexes=[0])]), 5)
    return int(reply.topics[0].partitions[0].committed_offset)


@pytest.mark.parametrize("cut", [1, 40, 61])
def test_a_torn_tail_is_cut_off(tmp_path: Path, cut: int) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 1}) as broker, RawClient(broker) as client:
        for value in (b"one", b"two", b"three"):
            client.produce("t", 0, batch_of([value]))
    log = next((tmp_path / "topics" / "t-0").glob("*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-cut])
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        assert broker.end_offsets("t") == [2]
        assert client.produce("t", 0, batch_of([b"again"])).base_offset == 2
        assert read_values(client, "t") == [b"one", b"two", b"again"]


def test_a_damaged_batch_and_what_follows_is_cut_off(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 1}) as broker, RawClient(broker) as client:
        for value in (b"one", b"two", b"three"):
            client.produce("t", 0, batch_of([value]))
    log = next((tmp_path / "topics" / "t-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(bytes(data))
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        assert read_values(client, "t") == [b"one"]


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 1}) as broker, RawClient(broker) as client:
        for number in range(10):
            client.produce("t", 0, batch_of([b"%d" % number]))
        reply = client.call(DeleteRecordsRequest(timeout_ms=0, topics=[DeleteRecordsTopic(name="t", partitions=[
            DeleteRecordsPartition(partition_index=0, offset=7)])]))
        assert reply.topics[0].partitions[0].low_watermark == 7
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        assert read_values(client, "t", 7) == [b"7", b"8", b"9"]


def test_a_topic_made_again_is_empty(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 1}) as broker, RawClient(broker) as client:
        client.produce("t", 0, batch_of([b"old"]))
        commit_offset(client, 1)
        reply = client.call(DeleteTopicsRequest(timeout_ms=0, topics=[DeleteTopicState(name="t")]))
        assert reply.responses[0].error_code == 0
        broker.create_topic("t")
        assert broker.end_offsets("t") == [0]
        assert committed_offset(client) == -1
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert broker.end_offsets("t") == [0]


def test_a_request_for_many_topics_writes_them_down_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"t{number}" for number in range(50)]
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        written: list[Path] = []
        monkeypatch.setattr(os, "replace", lambda draft, path, move=os.replace: (written.append(path),
                                                                                  move(draft, path)))
        made = client.call(CreateTopicsRequest(timeout_ms=0, topics=[
            CreatableTopic(name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[])
            for name in [*names, "no/name"]]))
        assert [each.error_code for each in made.topics] == [0] * 50 + [17]
        assert len(written) == 1
        gone = client.call(DeleteTopicsRequest(timeout_ms=0, topics=[DeleteTopicState(name=name)
                                                                     for name in names[1:]]))
        assert not any(each.error_code for each in gone.responses)
        assert len(written) == 2
        assert sorted(path.name for path in (tmp_path / "topics").iterdir()) == ["t0-0", "t0-1"]
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert broker.end_offsets("t0") == [0, 0]


def test_a_request_that_deletes_many_topics_looks_through_what_groups_committed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"t{number}" for number in range(50)]
    with EmbeddedBroker(topics=dict.fromkeys([*names, "t"], 1)) as broker, RawClient(broker) as client:
        commit_offset(client, 1)
        asked: list[str] = []
        monkeypatch.setattr(OffsetStore, "groups", lambda store: asked.append("groups") or list(store._groups))
        gone = client.call(DeleteTopicsRequest(timeout_ms=0, topics=[DeleteTopicState(name=name)
                                                                     for name in [*names, "t", "no-topic"]]))
        assert [each.error_code for each in gone.responses] == [0] * 51 + [3]
        assert asked == ["groups"]
        broker.create_topic("t")
        assert committed_offset(client) == -1


def test_two_brokers_do_not_share_a_directory(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path), pytest.raises(OSError, match="in use by another broker"):
        EmbeddedBroker(data_dir=tmp_path)


def test_a_journal_that_is_closed_twice_closes_no_other_file_and_keeps_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, lambda: [1])
    journal.begin()
    journal.append([2])
    input_of_the_process = os.fstat(0)
    for _ in range(2):
        journal.close()
    assert os.fstat(0) == input_of_the_process
    journal.append([3])
    assert list(Journal(path, list).read()) == [1, 2]
