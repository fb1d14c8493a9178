"""Settings of groups: the broker's value until one is set, and why a value is refused."""

from __future__ import annotations

from uuid import uuid4

import pytest

from headrace.broker.coordinators.group_configs import GroupConfigs, duration_ms
from headrace.broker.deadlines import Deadlines
from headrace.broker.purgatory import Purgatory
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.catalog import Catalog


@pytest.mark.parametrize(("text", "expected"), [
    ("PT0S", 0), ("P1D", 86_400_000), ("PT1H2M3.5S", 3_723_500), ("P2DT0.0019S", 172_800_001), ("PT90M", 5_400_000),
    ("PT1.123456789S", 1123), ("", None), ("P", None), ("PT", None), ("P1DT", None), ("1D", None), ("PT-1S", None),
    ("P1M", None), ("PT1S ", None), ("PT.5S", None), ("pt1,5s", 1500), ("PT1.S", 1000),
])
def test_a_duration_is_one_of_iso_8601_in_days_to_seconds(text: str, expected: int | None) -> None:
    assert duration_ms("by_duration:" + text) == expected


@pytest.fixture
def configs() -> GroupConfigs:
    catalog = Catalog([1], Purgatory(Deadlines()), uuid4)
    return GroupConfigs(BrokerSettings(share_record_lock_duration_ms=20_000), catalog)


def test_a_group_has_the_brokers_value_until_one_is_set_and_again_once_it_is_taken_back(configs: GroupConfigs) -> None:
    name = "share.record.lock.duration.ms"
    configs.configure("g", {name: "15000"})
    assert (configs.number("g", name), configs.number("other", name), configs.configured()) == (15_000, 20_000, ["g"])
    configs.configure("g", {})
    assert (configs.number("g", name), configs.configured()) == (20_000, [])


@pytest.mark.parametrize(("name", "value", "about"), [
    ("share.auto.offset.reset", "by_duration:soon", "must name a duration"),
    ("share.auto.offset.reset", "newest", "earliest"),
    ("share.delivery.count.limit", "11", "10"),
    ("share.delivery.count.limit", "many", "share.delivery.count.limit cannot be 'many'"),
    ("retention.ms", "1", "Groups have no setting 'retention.ms'"),
])
def test_what_cannot_be_set_is_refused_and_says_why(configs: GroupConfigs, name: str, value: str, about: str) -> None:
    wrong = configs.wrong({name: value})
    assert wrong is not None
    assert about in wrong


def test_what_can_be_set_is_not_refused(configs: GroupConfigs) -> None:
    assert configs.wrong({"share.auto.offset.reset": "by_duration:PT1H", "share.delivery.count.limit": " 5 "}) is None
