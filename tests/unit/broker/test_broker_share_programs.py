"""The programs of share groups that run on real Kafka run on the embedded broker, and find the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kafka import test_kafka_share_groups as groups
from tests.integration.kafka import test_kafka_share_members as members
from tests.support.embedded_cluster import EmbeddedCluster
from tests.support.real_kafka import make_topic

SAME = [
    groups.test_what_is_polled_is_accepted_by_the_next_poll,
    groups.test_what_was_polled_last_comes_again_after_close,
    groups.test_commit_sync_accepts_and_tells_each_partition,
    groups.test_each_word_about_a_record_does_what_it_says,
    groups.test_the_last_word_before_a_commit_counts,
    groups.test_explicit_acknowledgement_wants_a_word_about_each_record,
    groups.test_a_record_is_given_up_after_as_many_deliveries_as_the_group_allows,
    groups.test_a_record_that_is_renewed_is_held_beyond_its_lock,
    groups.test_other_records_are_read_while_one_is_renewed,
    groups.test_offsets_without_a_record_are_acknowledged_too,
    groups.test_no_more_records_than_the_limit_are_taken_where_the_limit_is_strict,
    groups.test_a_large_batch_comes_whole_and_once_to_who_works_slowly,
    groups.test_a_member_that_does_not_poll_leaves_and_comes_back,
    groups.test_unsubscribe_gives_back_what_is_held_and_subscribe_begins_again,
    groups.test_calls_do_not_meet,
    groups.test_asyncio_members_share,
    groups.test_each_record_goes_to_one_member,
    groups.test_a_leader_that_moves_takes_the_member_along,
]
globals().update({each.__name__: each for each in SAME})


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    """One node, which hands out at once what there is."""
    monkeypatch.setattr(groups, "QUIET_S", 0.7)
    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def three_queues() -> Iterator[EmbeddedCluster]:
    """Three nodes for one test, which may stop them."""
    with EmbeddedCluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture
def topic(queues: Any) -> str:
    """A topic of 3 partitions."""
    return make_topic(queues, 3)


@pytest.mark.slow
def test_a_member_that_is_killed_holds_nothing_any_more(queues: Any) -> None:
    groups.test_a_member_that_is_killed_holds_nothing_any_more(queues)


@pytest.mark.slow
def test_the_records_of_a_member_that_is_frozen_come_again_after_their_lock(queues: Any) -> None:
    groups.test_the_records_of_a_member_that_is_frozen_come_again_after_their_lock(queues)


@pytest.mark.slow
def test_each_record_is_acknowledged_and_its_deliveries_are_counted(queues: Any, topic: str, tmp_path: Path) -> None:
    members.test_each_record_is_acknowledged_and_its_deliveries_are_counted(queues, topic, tmp_path)
