"""Members of a share group that come and go, are killed and frozen: no record is lost, deliveries are counted."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.support.configuration import OLDER, Configuration
from tests.support.real_kafka import make_topic, until
from tests.support.share_groups import fill, prepare, settings
from tools.kafka import KafkaCluster

ROOT = Path(__file__).parents[3]
RECORDS, PARTITIONS, ROUNDS = 6000, 3, 12
_MOST_DELIVERIES = 5
Place = tuple[int, int]


class Workers:
    """Processes that read, and what each has written down."""

    def __init__(self, cluster: KafkaCluster, topic: str, directory: Path) -> None:
        self._arguments = [repr(settings(cluster, topic, mode="explicit", **{"max.poll.records": 100})), topic]
        self._directory = directory
        self.living: list[subprocess.Popen[bytes]] = []
        self.killed: set[Path] = set()
        self.frozen: set[Path] = set()
        self._logs: dict[int, Path] = {}

    def start(self) -> None:
        """One more."""
        log = self._directory / f"worker-{len(self._logs)}"
        worker = subprocess.Popen([sys.executable, "-m", "tests.support.share_worker", *self._arguments, str(log)],
                                  cwd=ROOT, env=os.environ)
        self._logs[worker.pid] = log
        self.living.append(worker)

    def end(self, number: int) -> None:
        """One leaves in order, as soon as it can be told to."""
        worker = self.living.pop(number)
        until(self._logs[worker.pid].exists)
        worker.terminate()
        assert worker.wait(30) == 0

    def kill(self, number: int) -> None:
        """One is gone."""
        worker = self.living.pop(number)
        worker.kill()
        worker.wait()
        self.killed.add(self._logs[worker.pid])

    def freeze(self, number: int, seconds: float) -> None:
        """One stands still for a while."""
        self.frozen.add(self._logs[self.living[number].pid])
        self.living[number].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.living[number].send_signal(signal.SIGCONT)

    def lines(self) -> list[tuple[Path, str, Place, int]]:
        """What all have written down; a line that was cut off counts for nothing."""
        found = []
        for log in filter(Path.exists, self._logs.values()):
            for line in log.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    word, partition, offset, count = line.split()
                    found.append((log, word, (int(partition), int(offset)), int(count)))
        return found


@pytest.fixture(autouse=True)
def _where_there_are_share_groups(configured: Configuration) -> None:
    if configured.version == OLDER:
        pytest.skip(f"Kafka {OLDER} has no share groups")


def test_each_record_is_acknowledged_and_its_deliveries_are_counted(
    kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    workers = _run(kafka, topic, tmp_path)
    deliveries, accepted = _check(workers)
    assert set(accepted.values()) == {1}
    for place, counts in deliveries.items():
        assert len(set(counts)) == len(counts), f"{place} was delivered twice as the same: {counts}"
        assert len(counts) <= max(counts) <= _MOST_DELIVERIES, f"{place}: {counts}"
        assert not (place in accepted and (place[1] * PARTITIONS + place[0]) % 10 == 3 and counts == [1]), place


@pytest.mark.slow
def test_no_record_is_lost_where_brokers_are_killed_as_well(three_brokers: KafkaCluster, tmp_path: Path) -> None:
    """A new leader does not know what the old one had handed out: it comes again, with the same delivery count."""
    topic = make_topic(three_brokers, PARTITIONS)
    _check(_run(three_brokers, topic, tmp_path, brokers_die=True))


def _run(cluster: KafkaCluster, topic: str, directory: Path, *, brokers_die: bool = False) -> Workers:
    """Write records while workers, and perhaps brokers, come and go, until all was accepted."""
    prepare(cluster, topic, record_lock_duration_ms="2000", session_timeout_ms="3000", heartbeat_interval_ms="500")
    dice, workers = random.Random(1), Workers(cluster, topic, directory)
    try:
        for _ in range(3):
            workers.start()
        for each in range(ROUNDS):
            if brokers_die and each % 4 == 1:
                cluster.kill(1 + each // 4)
            fill(cluster, topic, RECORDS // ROUNDS, PARTITIONS, first=each * RECORDS // ROUNDS)
            time.sleep(0.5)
            number, fault = dice.randrange(3), ("kill", "end", "freeze")[each % 3]
            if fault == "freeze":
                workers.freeze(number, 3.0)  # longer than a lock, and as a session
            else:
                getattr(workers, fault)(number)
                workers.start()
            if brokers_die and each % 4 == 3:
                cluster.restart(1 + each // 4)
        _wait_for_all(workers)
    finally:
        for worker in list(workers.living):
            worker.kill()
            worker.wait()
    return workers


def _wait_for_all(workers: Workers) -> None:
    """Until each record is confirmed, or was with a worker that was killed; then all that is left has come again."""
    deadline = time.monotonic() + 60
    while len({place for _, word, place, _ in workers.lines() if word == "D"}) < RECORDS or _unconfirmed(workers):
        assert time.monotonic() < deadline, f"{len(_unconfirmed(workers))} records were handed out and not accepted"
        time.sleep(0.5)
    for number in reversed(range(len(workers.living))):
        workers.end(number)


def _unconfirmed(workers: Workers) -> set[Place]:
    """Records that no living or ended worker has had accepted, and that no killed one had last."""
    lines = workers.lines()
    confirmed = {place for _, word, place, _ in lines if word == "A"}
    last = {place: log for log, word, place, count in sorted(lines, key=lambda line: line[3]) if word == "D"}
    return {place for place, log in last.items() if place not in confirmed and log not in workers.killed}


def _check(workers: Workers) -> tuple[dict[Place, list[int]], Counter[Place]]:
    """The delivery counts of each record, and how often a broker has confirmed that it was accepted."""
    deliveries: dict[Place, list[int]] = defaultdict(list)
    accepted: Counter[Place] = Counter()
    late: set[Place] = set()
    for log, word, place, count in workers.lines():
        if word == "D":
            deliveries[place].append(count)
        elif log in workers.frozen:
            late.add(place)
        else:
            accepted[place] += 1
    # Once the group is past a record, brokers confirm whatever is said of it, and so also what one says who stood still
    # for longer than its lock: that counts where nobody else has accepted it meanwhile.
    accepted.update(late - accepted.keys())
    every = {(number % PARTITIONS, number // PARTITIONS) for number in range(RECORDS)}
    assert deliveries.keys() == every
    assert len(every - accepted.keys()) <= 100 * len(workers.killed)  # accepted, and killed before it was written down
    print(f"{len(deliveries)} records, {sum(map(len, deliveries.values()))} deliveries, {len(accepted)} confirmed, "
          f"{Counter(max(counts) for counts in deliveries.values())} by deliveries")
    return deliveries, accepted
