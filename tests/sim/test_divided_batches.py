"""The simulation notices when the parts of a batch would be sent as `machines.splitting` says that they must not be."""

import pytest

from headrace.errors import KafkaError
from headrace.machines import splitting

from .campaign import violation_within
from .divided import run_schedule

put_in_place = splitting._put_in_place


@pytest.mark.parametrize("first_seed", range(0, 1000, 250))
def test_nothing_is_lost_doubled_reordered_or_stuck_when_batches_are_divided(first_seed):
    for seed in range(first_seed, first_seed + 250):
        run_schedule(seed)


def test_batches_are_halved_and_parted_from_their_bad_records_in_many_schedules(monkeypatch):
    sizes = []

    def counted(batch, parts, error):
        sizes.append(error.code())
        return put_in_place(batch, parts, error)

    monkeypatch.setattr(splitting, "_put_in_place", counted)
    for seed in range(200):
        run_schedule(seed)
    assert sizes.count(KafkaError.INVALID_RECORD) > 10
    assert sizes.count(KafkaError.MSG_SIZE_TOO_LARGE) > 50
    assert sizes.count(KafkaError.RECORD_LIST_TOO_LARGE) > 50


def changed(monkeypatch, change):
    """Do something to the parts of a batch right after it was divided."""
    def mutated(batch, parts, error):
        made = put_in_place(batch, parts, error)
        change(batch, made)
        return made

    monkeypatch.setattr(splitting, "_put_in_place", mutated)
    return violation_within(run_schedule, 1000)


def test_halves_under_new_numbers_are_noticed(monkeypatch):
    def forget_numbers(batch, made):
        for part in made:
            part.sequence = -1

    assert changed(monkeypatch, forget_numbers)


def test_halves_of_unknown_fate_that_are_taken_for_certain_are_noticed(monkeypatch):
    def be_sure(batch, made):
        for part in made:
            part.uncertain = False

    assert changed(monkeypatch, be_sure)


def test_halves_that_share_one_place_with_what_follows_are_noticed(monkeypatch):
    def stay(batch, made):
        for part in made:
            part.ordinal = batch.ordinal
        made[0].ordinal += 1

    assert changed(monkeypatch, stay)


def test_records_that_fail_with_those_that_the_broker_names_are_noticed(monkeypatch):
    set_aside = splitting.set_aside

    def all_fail(*args, keep_rest):
        return set_aside(*args, keep_rest=False)

    monkeypatch.setattr(splitting, "set_aside", all_fail)
    assert violation_within(run_schedule, 300, "failed with others")


def test_a_rest_of_a_batch_that_may_be_stored_is_noticed_when_it_is_sent_again(monkeypatch):
    set_aside = splitting.set_aside

    def sent_again(batch, *args, **kwargs):
        batch.uncertain = False
        return set_aside(batch, *args, **kwargs)

    monkeypatch.setattr(splitting, "set_aside", sent_again)
    assert violation_within(run_schedule, 500)
