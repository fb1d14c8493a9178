"""What a bounded read takes for its begin and end, and which offsets that is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headrace import KafkaError, KafkaException, Producer
from headrace.client.consumer.log_view import LogView
from headrace.errors import ConfigError
from headrace.frames.bounds import Bound, checked_bound, ranges_between
from headrace.testing import EmbeddedBroker

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Ten records in one partition, a second apart, and three in the other."""
    with EmbeddedBroker(topics={"t": 2, "empty": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(13):
                stamp = BEGAN + timedelta(seconds=number % 10)
                producer.produce("t", b"", partition=number // 10, timestamp=int(stamp.timestamp() * 1000))
        yield broker


@pytest.fixture(scope="module")
def view(broker: EmbeddedBroker) -> Iterator[LogView]:
    with LogView({"bootstrap.servers": broker.bootstrap_servers}, ["t"]) as view:
        yield view


def found(view: LogView, start: Bound, end: Bound, partitions: list[int] | None = None) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for each in ranges_between(view, "t", partitions, start, end, 10.0)]


def test_everything_is_read_unless_told_otherwise(view: LogView) -> None:
    assert found(view, "earliest", "latest") == [(0, 0, 10), (1, 0, 3)]
    assert found(view, "latest", "latest") == found(view, "earliest", "earliest") == []


def test_offsets_hold_in_each_partition_and_end_where_the_log_does(view: LogView) -> None:
    assert found(view, 2, 5) == [(0, 2, 5), (1, 2, 3)]
    assert found(view, 3, 99) == [(0, 3, 10)]
    assert found(view, {0: 4}, {0: 6, 1: 1}) == [(0, 4, 6)]


def test_negative_offsets_count_from_the_end_and_stop_at_the_beginning(view: LogView) -> None:
    assert found(view, -2, "latest") == [(0, 8, 10), (1, 1, 3)]
    assert found(view, -5, -1) == [(0, 5, 9), (1, 0, 2)]


def test_times_mean_the_first_record_at_them_or_later(view: LogView) -> None:
    assert found(view, BEGAN + timedelta(seconds=1), BEGAN + timedelta(seconds=4)) == [(0, 1, 4), (1, 1, 3)]
    assert found(view, BEGAN + timedelta(milliseconds=999, microseconds=1), "latest") == [(0, 1, 10), (1, 1, 3)]
    assert found(view, BEGAN + timedelta(hours=1), "latest") == []
    long_ago = datetime.now(UTC) - BEGAN + timedelta(hours=1)
    assert found(view, long_ago, BEGAN) == []
    assert found(view, long_ago, "latest") == [(0, 0, 10), (1, 0, 3)]


def test_partitions_can_be_chosen_and_must_be_there(view: LogView) -> None:
    assert found(view, "earliest", "latest", [1]) == [(1, 0, 3)]
    with pytest.raises(ConfigError, match="t has no partition 7: it has 2"):
        found(view, "earliest", "latest", [7, 0])
    with pytest.raises(ConfigError, match="t has no partition 2"):
        found(view, {2: 0}, "latest")


def test_an_offset_whose_record_is_gone_is_an_error_and_the_earliest_is_not(broker: EmbeddedBroker) -> None:
    broker.create_topic("cut")
    config = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer({**config, "batch.num.messages": 1}) as producer:
        for _ in range(6):
            producer.produce("cut", b"")
    from headrace import TopicPartition
    from headrace.admin import AdminClient

    with AdminClient(config) as admin:
        for done in admin.delete_records([TopicPartition("cut", 0, 4)]).values():
            done.result(10)
    with LogView(config, ["cut"]) as view:
        with pytest.raises(KafkaException, match=r"cut\[0\] begins at offset 4") as gone:
            ranges_between(view, "cut", None, 1, "latest", 10.0)
        assert gone.value.error == KafkaError.OFFSET_OUT_OF_RANGE
        for start in ("earliest", -6, BEGAN):
            (only,) = ranges_between(view, "cut", None, start, "latest", 10.0)
            assert (only.start, only.end) == (4, 6)


def test_a_topic_that_does_not_exist_is_said_within_the_time(broker: EmbeddedBroker) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers, "allow.auto.create.topics": False}
    with LogView(config, ["nothing"]) as view, pytest.raises(KafkaException) as missing:
        ranges_between(view, "nothing", None, "earliest", "latest", 0.3)
    assert missing.value.error == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize("given", ["begin", None, True, 1.5, [1], {0: "a"}, {"0": 1}])
def test_what_is_no_bound_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="start must be 'earliest', 'latest', an offset"):
        checked_bound("start", given)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="end has no time zone"):
        checked_bound("end", BEGAN.replace(tzinfo=None))
