"""The produce path holds its promises on many schedules, and the simulation notices when it would not."""

import pytest

from headrace.machines.accumulator import Accumulator, PartitionQueue, ProducerBatch
from headrace.machines.sequences import Sequences

from .campaign import violation_within
from .produce import run_schedule


@pytest.mark.parametrize("first_seed", range(0, 2000, 250))
def test_nothing_is_lost_doubled_reordered_or_stuck(first_seed):
    for seed in range(first_seed, first_seed + 250):
        run_schedule(seed)


def test_retries_at_the_end_of_the_queue_are_noticed(monkeypatch):
    monkeypatch.setattr(PartitionQueue, "requeue", lambda self, batch: self.waiting.append(batch))
    assert "stored behind" in violation_within(run_schedule, 300)


def test_retries_at_the_front_of_the_queue_are_noticed(monkeypatch):
    monkeypatch.setattr(PartitionQueue, "requeue", lambda self, batch: self.waiting.appendleft(batch))
    assert violation_within(run_schedule, 300)


def test_a_retry_under_a_new_number_is_noticed(monkeypatch):
    number = Sequences.number

    def number_anew(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.sequence = -1
        number(self, queue, batch)

    monkeypatch.setattr(Sequences, "number", number_anew)
    assert "stored twice" in violation_within(run_schedule, 300)


def test_a_second_batch_before_the_first_is_stored_is_noticed(monkeypatch):
    allows = Sequences.allows

    def allows_at_once(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        queue.confirmed = True
        return allows(self, queue, batch)

    monkeypatch.setattr(Sequences, "allows", allows_at_once)
    assert violation_within(run_schedule, 600)


def test_a_window_wider_than_the_brokers_memory_is_noticed(monkeypatch):
    monkeypatch.setattr("headrace.machines.sequences._RECOGNISED", 100)
    assert violation_within(run_schedule, 600)


def test_forgetting_to_send_again_is_noticed_as_lack_of_progress(monkeypatch):
    monkeypatch.setattr(Accumulator, "requeue", lambda self, batch, retry_at: None)
    assert "no progress" in violation_within(run_schedule, 300)
