"""Machines and the embedded broker together keep their promises; `tests.campaigns.sim.whole` runs many more."""

from collections import Counter

import pytest

from . import whole

_FEW = {"share-groups": 12, "joint-transactions": 12}
"""Schedules of kinds that take longer than others; the others have 50."""


@pytest.mark.parametrize("first_seed", range(0, 100, 50))
@pytest.mark.parametrize("kind", whole.KINDS)
def test_nothing_is_lost_doubled_torn_or_stuck(kind: str, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + _FEW.get(kind, 50)):
        whole.KINDS[kind](seed)


@pytest.mark.parametrize("kind", whole.KINDS)
def test_everything_that_can_happen_does_happen(kind: str) -> None:
    wanted = {
        "produce": {"leaders moved", "brokers restarted", "requests repeated", "topics deleted and made anew",
                    "brokers said OUT_OF_ORDER_SEQUENCE_NUMBER", "brokers said NOT_LEADER_FOR_PARTITION",
                    "brokers said MSG_SIZE_TOO_LARGE", "producers expired"},
        "transactions": {"transactions committed", "transactions aborted", "transactions timed out",
                         "producers that took over", "brokers said CONCURRENT_TRANSACTIONS"},
        "groups": {"members frozen", "members killed", "members that left", "members that worked too long",
                   "partitions lost", "partitions revoked", "commits refused", "topics that grew", "topics that came",
                   "brokers restarted", "members that came back", "members fenced by twins", "strangers",
                   "refused: before there is a plan", "refused: of another generation",
                   "refused: of whom the group does not know", "refused: while members join",
                   "refused: who does not coordinate the group", "refused: without a member id"},
        "planned-groups": {"members frozen", "members killed", "members that left", "members that worked too long",
                           "partitions lost", "partitions revoked", "commits refused", "topics that grew",
                           "topics that came", "brokers restarted", "members that came back", "twins",
                           "refused: of another epoch", "refused: of whom the group does not know",
                           "refused: under the name of one who has not left",
                           "refused: who does not coordinate the group"},
        "share-groups": {"members frozen", "members killed", "members that left", "members that worked too long",
                         "locks that were over", "records renewed", "records released", "records rejected",
                         "acknowledgements refused", "records of another leader", "records of sessions that ended",
                         "topics that grew", "brokers restarted", "leaders moved"},
        "read-process-write": {"partitions handed over", "offsets that were not settled", "workers started again",
                               "offsets of a member that was replaced", "brokers restarted"},
        "joint-transactions": {"drivers killed", "drivers that died before Spark's note", "second drivers",
                               "stages that were tried again", "tasks that died at work", "tasks that skipped",
                               "transactions timed out", "rows that were not arranged", "brokers restarted"},
    }[kind]
    counts: Counter[str] = Counter()
    for seed in range(6 * _FEW.get(kind, 50)):
        counts.update(whole.KINDS[kind](seed))
        if all(counts[what] for what in wanted):
            return
    assert {what for what in wanted if not counts[what]} == set()


def test_a_seed_means_the_same_schedule_each_time() -> None:
    for seed in range(9):
        assert whole.run_schedule(seed) == whole.run_schedule(seed)
