"""Transactions outlive the broker: open ones, ended ones, and those whose end was decided and not yet carried out."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.broker.coordinators import transaction_coordinator
from headrace.broker.coordinators.committed_offsets import Committed, OffsetStore
from headrace.broker.coordinators.transactional_ids import ProducerIdAndEpoch
from headrace.broker.deadlines import Now
from headrace.broker.storage import journal
from headrace.broker.storage.journal import Journal
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.records import Cursor, scan
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.transactional_client import Transactional, Who
from tests.unit.broker.test_broker_durability import broker_process
from tests.unit.broker.test_broker_transactions import until, values


@contextmanager
def running(directory: Path, **settings: int) -> Iterator[Transactional]:
    """A broker on a directory, and a client of it."""
    with (EmbeddedBroker(data_dir=directory, topics={"t": 2}, settings=BrokerSettings(**settings)) as broker,
          Transactional(broker) as client):
        client.broker = broker  # type: ignore[attr-defined]
        yield client


def open_one(directory: Path, timeout_ms: int = 60_000) -> Who:
    """A broker that ends in the middle of a transaction."""
    with running(directory) as client:
        client.init(timeout_ms)
        client.store(b"before")
        client.end(True)
        client.store(b"a", b"b")
        client.commit_offset("g", 5)
        return client.who


def test_an_open_transaction_goes_on_and_is_committed_after_a_restart(tmp_path: Path) -> None:
    who = open_one(tmp_path)
    with running(tmp_path) as client:
        assert client.state().transaction_state == "Ongoing"
        assert client.fetch().last_stable_offset == 2
        assert client.offset("g", stable=True) == (-1, KafkaError.UNSTABLE_OFFSET_COMMIT)
        assert client.store(b"c", sequence=2, who=who) == 0
        assert client.end(True, who=who) == 0
        assert values(client.fetch().records) == [b"before", b"a", b"b", b"c"]
        assert client.offset("g", stable=True) == (5, 0)
    with running(tmp_path) as client:
        assert client.fetch().last_stable_offset == 6
        assert client.offset("g") == (5, 0)
        assert client.store(b"late", who=who) == KafkaError.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_is_aborted_by_the_next_producer_after_a_restart(tmp_path: Path) -> None:
    open_one(tmp_path)
    with running(tmp_path) as client:
        assert client.init() == KafkaError.CONCURRENT_TRANSACTIONS
        assert client.init() == 0
        assert [each.first_offset for each in client.fetch().aborted_transactions] == [2]
    with running(tmp_path) as client:
        assert [each.first_offset for each in client.fetch().aborted_transactions] == [2]
        assert client.offset("g", stable=True) == (-1, 0)


def test_the_clock_of_an_open_transaction_goes_on_while_the_broker_is_away(tmp_path: Path) -> None:
    open_one(tmp_path, timeout_ms=1500)
    time.sleep(1.5)
    with running(tmp_path) as client:
        until(lambda: client.state().transaction_state == "CompleteAbort")
        assert client.fetch().last_stable_offset == 5


@pytest.mark.parametrize("version", [1, 2])
def test_a_decided_end_is_carried_out_after_a_restart(tmp_path: Path, version: int) -> None:
    with running(tmp_path, marker_delay_ms=60_000) as client:
        client.init()
        client.add(0, 1)
        for partition in (0, 1):
            assert client.store(b"a", partition=partition, version=11) == 0
        client.add_group("g")
        client.commit_offset("g", 5, version=3)
        assert client.end(True, version=5 if version == 2 else 3) == 0
        assert client.state().transaction_state == "PrepareCommit"
    with running(tmp_path) as client:
        assert client.state().transaction_state == "CompleteCommit"
        assert [values(client.fetch(partition=each).records) for each in (0, 1)] == [[b"a"], [b"a"]]
        assert client.offset("g", stable=True) == (5, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_markers_that_were_written_before_a_sudden_end_are_not_written_again(tmp_path: Path, version: int) -> None:
    with running(tmp_path) as client:
        client.init()
        client.add(0, 1)
        for partition in (0, 1):
            client.store(b"a", partition=partition, version=11)
        client.end(True, version=5 if version == 2 else 3)
    path = tmp_path / "transactions.journal"
    lines = path.read_text().splitlines()
    assert json.loads(lines[-1])["state"] == "CompleteCommit"
    path.write_text("\n".join(lines[:-1]) + '\n{"id": "tx", "sta')
    with running(tmp_path) as client:
        assert client.state().transaction_state == "CompleteCommit"
        assert [client.fetch(partition=each).high_watermark for each in (0, 1)] == [2, 2]


def test_sequences_of_a_transaction_are_known_after_a_restart(tmp_path: Path) -> None:
    who = open_one(tmp_path)
    with running(tmp_path) as client:
        assert client.store(b"a", b"b", who=who) == 0  # again
        assert client.fetch(committed=False).high_watermark == 4
        assert client.store(b"x", sequence=9, who=who) == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_journal_that_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as client:
        client.init()
        client.store(b"a")

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        assert client.end(True) == KafkaError.COORDINATOR_NOT_AVAILABLE
        assert client.init() == KafkaError.COORDINATOR_NOT_AVAILABLE
        monkeypatch.undo()
        assert client.state().transaction_state == "Ongoing"
        assert client.end(True) == 0


def test_a_disk_that_is_full_for_a_while_delays_an_abort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_coordinator, "_AGAIN_AFTER_S", 0.05)
    with running(tmp_path) as client:
        client.init(timeout_ms=1000)
        client.store(b"a")
        write, failures = os.write, []

        def full(fd: int, data: bytes) -> int:
            if len(failures) < 1:
                failures.append(fd)
                raise OSError(28, "No space left on device")
            return write(fd, data)

        monkeypatch.setattr(os, "write", full)
        until(lambda: client.state().transaction_state == "CompleteAbort")
        assert failures


def test_every_broken_journal_is_read_as_far_as_it_makes_sense(tmp_path: Path) -> None:
    path = tmp_path / "some.journal"
    path.write_bytes(b'[1]\n{"torn": \n\xff\xfe\n[2]\nnot finished')
    assert list(Journal(path, list).read()) == [[1], [2]]


def test_a_journal_leaves_its_history_out_when_it_grows_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_LARGEST_HISTORY_BYTES", 5000)
    largest = 0
    with running(tmp_path) as client:
        client.init()
        for number in range(60):
            assert client.store(b"a") == 0
            assert client.commit_offset("g", number) == 0
            assert client.end(True) == 0
            largest = max(largest, *(path.stat().st_size for path in tmp_path.glob("*.journal")))
        client.store(b"open")
        client.commit_offset("g", 100)
    assert largest < 7000
    with running(tmp_path) as client:
        assert client.state().transaction_state == "Ongoing"
        assert client.offset("g") == (59, 0)
        assert client.offset("g", stable=True) == (-1, KafkaError.UNSTABLE_OFFSET_COMMIT)


def test_transactions_are_whole_after_kill_9(tmp_path: Path) -> None:
    committed: list[bytes] = []
    with broker_process(tmp_path) as (process, servers), Transactional(servers) as client:
        client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True), 4)
        client.init()
        for number in range(21):
            assert client.store(b"a%d" % number, b"b%d" % number) == 0
            client.commit_offset("g", number)
            if number % 3 == 1:
                client.end(False)
            elif number < 20:
                client.end(True)
                committed += [b"a%d" % number, b"b%d" % number]
        os.kill(process.pid, signal.SIGKILL)
    with broker_process(tmp_path) as (process, servers), Transactional(servers) as client:
        part = client.fetch()
        aborted = {each.first_offset for each in part.aborted_transactions}
        found = [message.value() for info in scan(part.records) if info.base_offset not in aborted
                 for message in Cursor(part.records[info.position:info.position + info.size], "t", 0, 0).take(9)]
        assert found == committed
        assert client.offset("g") == (18, 0)
        assert client.offset("g", stable=True) == (-1, KafkaError.UNSTABLE_OFFSET_COMMIT)
        assert client.state().transaction_state == "Ongoing"


# -- offsets that wait

def entry(offset: int) -> list[tuple[tuple[str, int], Committed]]:
    return [(("t", 0), Committed(offset))]


STORIES: list[tuple[Callable[[OffsetStore], None], int | None, bool]] = [
    (lambda store: store.stage(1, "g", entry(5)), None, True),
    (lambda store: (store.stage(1, "g", entry(5)), store.settle(1, commit=True)), 5, False),  # type: ignore
    (lambda store: (store.stage(1, "g", entry(5)), store.settle(1, commit=False)), None, False),  # type: ignore
    (lambda store: (store.stage(1, "g", entry(5)), store.commit("g", entry(9)),  # type: ignore
                    store.settle(1, commit=True)), 9, False),
    (lambda store: (store.commit("g", entry(9)), store.stage(1, "g", entry(5)),  # type: ignore
                    store.settle(1, commit=True)), 5, False),
    (lambda store: (store.stage(1, "g", entry(5)), store.stage(2, "g", entry(6)),  # type: ignore
                    store.settle(2, commit=True), store.settle(1, commit=True)), 6, False),
    (lambda store: (store.stage(1, "g", entry(5)), store.forget_group("g"),  # type: ignore
                    store.settle(1, commit=True)), None, False),
    (lambda store: (store.stage(1, "g", entry(5)), store.forget_topics({"t"}),  # type: ignore
                    store.settle(1, commit=True)), None, False),
    (lambda store: (store.commit("g", entry(1)), store.stage(1, "g", entry(5))), 1, True),  # type: ignore
]


@pytest.mark.parametrize(("story", "offset", "is_unstable"), STORIES)
def test_offsets_that_wait_are_the_same_after_any_number_of_restarts(
    tmp_path: Path, story: Callable[[OffsetStore], None], offset: int | None, is_unstable: bool
) -> None:
    path = tmp_path / "offsets.journal"
    store = OffsetStore(path)
    story(store)
    for _ in range(3):
        found = store.fetch("g").get(("t", 0))
        assert (found.offset if found else None, ("t", 0) in store.unstable("g")) == (offset, is_unstable)
        store.close()
        store = OffsetStore(path)
    store.close()


def test_an_older_staged_offset_does_not_win_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "offsets.journal"
    store = OffsetStore(path)
    store.stage(1, "g", entry(5))
    store.commit("g", entry(9))
    store.close()
    store = OffsetStore(path)
    store.settle(1, commit=True)
    assert store.fetch("g")["t", 0].offset == 9
    store.close()


def test_transactional_ids_that_expired_are_gone_from_the_journal(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.init()
    with running(tmp_path, transactional_id_expiration_ms=0) as client:
        time.sleep(0.005)
        assert client.state().error_code == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
    with running(tmp_path) as client:
        assert client.state().error_code == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
        broker = client.broker  # type: ignore[attr-defined]
        with pytest.raises(ApiError):
            broker.apply(lambda cluster: cluster.transactions.verify("tx", ProducerIdAndEpoch(1, 0), Now(0.0, 0)))
