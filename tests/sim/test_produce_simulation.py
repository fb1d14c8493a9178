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
    assert violation_within(run_schedule, 300, "stored behind")


def test_retries_at_the_front_of_the_queue_are_noticed(monkeypatch):
    monkeypatch.setattr(PartitionQueue, "requeue", lambda self, batch: self.waiting.appendleft(batch))
    assert violation_within(run_schedule, 300)


def test_a_retry_under_a_new_number_is_noticed(monkeypatch):
    number = Sequences.number

    def number_anew(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.sequence = -1
        number(self, queue, batch)

    monkeypatch.setattr(Sequences, "number", number_anew)
    assert violation_within(run_schedule, 300, "stored twice")


def test_a_second_batch_before_the_first_is_stored_is_noticed(monkeypatch):
    allows = Sequences.allows

    def allows_at_once(self: Sequences, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        queue.confirmed = True
        return allows(self, queue, batch)

    monkeypatch.setattr(Sequences, "allows", allows_at_once)
    assert violation_within(run_schedule, 600)


def test_a_window_wider_than_the_brokers_memory_is_noticed(monkeypatch):
    monkeypatch.setattr("headrace.machines.sequences._RECOGNISED", 100)
    assert violation_within(run_schedule, 3000)


def test_forgetting_to_send_again_is_noticed_as_lack_of_progress(monkeypatch):
    monkeypatch.setattr(Accumulator, "requeue", lambda self, batch, retry_at: None)
    assert violation_within(run_schedule, 300, "no progress")


def test_blaming_a_batch_for_the_one_that_is_missing_before_it_is_noticed(monkeypatch):
    monkeypatch.setattr(PartitionQueue, "is_first", lambda self, batch: True)
    assert violation_within(run_schedule, 300, "new epoch")


def test_retries_that_do_not_wait_for_those_in_flight_are_noticed(monkeypatch):
    def eager(self: PartitionQueue, now: float, limit: int) -> ProducerBatch | None:
        ready = self.waiting and now >= self.retry_at and len(self.in_flight) < limit
        return self.waiting[0] if ready and self.waiting[0].sealed is not None else None

    monkeypatch.setattr(PartitionQueue, "sendable", eager)
    assert violation_within(run_schedule, 300, "others' way")


def test_sending_a_refused_number_again_and_again_is_noticed(monkeypatch):
    monkeypatch.setattr(Sequences, "on_refused", lambda self, batch, forgotten: True)
    assert violation_within(run_schedule, 600, "no progress")


def test_a_new_number_for_what_may_be_stored_under_the_refused_one_is_noticed(monkeypatch):
    on_refused = Sequences.on_refused

    def sure(self: Sequences, batch: ProducerBatch, forgotten: bool) -> bool:
        batch.uncertain = False
        return on_refused(self, batch, forgotten)

    monkeypatch.setattr(Sequences, "on_refused", sure)
    assert violation_within(run_schedule, 2000, "stored twice")
