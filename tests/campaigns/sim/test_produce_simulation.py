"""The produce path holds its promises on many schedules, and these are as bad as they claim."""

from collections import Counter

import pytest

from headrace.errors import KafkaError
from headrace.machines.producer import split

from . import divided, made_anew, produce
from .campaign import run_campaign


@pytest.mark.parametrize("first_seed", range(0, 500, 250))
def test_nothing_is_lost_doubled_reordered_or_stuck(first_seed):
    for seed in range(first_seed, first_seed + 250):
        produce.run_schedule(seed)


@pytest.mark.parametrize("first_seed", range(0, 250, 125))
def test_nothing_is_lost_doubled_reordered_or_stuck_when_batches_are_divided(first_seed):
    for seed in range(first_seed, first_seed + 125):
        divided.run_schedule(seed)


def test_nothing_is_lost_or_stuck_when_a_topic_is_made_anew_while_its_leaders_move():
    counts = Counter()
    for seed in range(150):
        counts += made_anew.run_schedule(seed)
    assert counts["topics deleted and made anew"] >= 150


def test_everything_that_can_happen_does_happen():
    counts = Counter()
    for seed in range(400):
        counts.update(produce.run_schedule(seed))
    rare = {what: times for what, times in counts.items() if times < 10}
    assert not rare
    assert len(counts) > 30


def test_batches_are_halved_and_parted_from_their_bad_records_in_many_schedules(monkeypatch):
    put_in_place, codes = split._put_in_place, []

    def counted(batch, parts, error):
        codes.append(error.code())
        return put_in_place(batch, parts, error)

    monkeypatch.setattr(split, "_put_in_place", counted)
    for seed in range(200):
        divided.run_schedule(seed)
    assert codes.count(KafkaError.INVALID_RECORD) > 10
    assert codes.count(KafkaError.MSG_SIZE_TOO_LARGE) > 50
    assert codes.count(KafkaError.RECORD_LIST_TOO_LARGE) > 50


def test_a_campaign_counts_what_happened_and_fails_with_a_finding(capsys, monkeypatch):
    assert run_campaign(produce.run_schedule, "", ["--schedules", "20", "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert "20 schedules, 0 findings" in told
    assert "records acknowledged" in told
    monkeypatch.setattr("headrace.machines.producer.batch_queue.PartitionQueue.insert",
                        lambda self, batch: self.waiting.append(batch))
    assert run_campaign(produce.run_schedule, "", ["--schedules", "50", "--jobs", "1"]) == 1
    assert "stored behind" in capsys.readouterr().err
