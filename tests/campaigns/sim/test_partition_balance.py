"""Where records without a key go: everywhere alike, less to the slow, never to who does not answer (KIP-794)."""

from typing import Any

import pytest

from .balance import Simulation

FAST, SLOW = 0.001, 0.3
EVEN = [1, 2, 3, 1, 2, 3]


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *given, **how: Simulation(monkeypatch, *given, **how)


def chi_square(turns: list[int]) -> float:
    mean = sum(turns) / len(turns)
    return sum((each - mean) ** 2 / mean for each in turns)


@pytest.mark.parametrize("how", [
    {"batch_bytes": 1_800, "turn_ms": 900_000},  # by bytes, as Java
    {"batch_bytes": 1 << 20, "turn_ms": 4},  # by time
])
def test_partitions_of_equal_brokers_get_equal_parts(simulation: Any, how: Any) -> None:
    made = simulation(EVEN, dict.fromkeys((1, 2, 3), FAST), **how)
    placed = made.produce(8)
    assert chi_square([each / 8 for each in placed]) < 20.5  # turns of 8 records; 5 degrees of freedom, p = 0.001
    made.finish()


def test_turns_are_of_equal_size_for_a_slow_broker_unless_partitions_are_weighed(simulation: Any) -> None:
    made = simulation(EVEN, {1: FAST, 2: FAST, 3: SLOW}, adaptive=False)
    placed = made.produce(8)
    slow = placed[2] + placed[5]
    assert 0.28 < slow / sum(placed) < 0.39
    made.finish()


def test_a_slow_broker_gets_fewer_records(simulation: Any) -> None:
    made = simulation(EVEN, {1: FAST, 2: FAST, 3: SLOW})
    made.produce(2)
    placed = made.produce(5)
    slow = placed[2] + placed[5]
    assert slow < sum(placed) / 6  # not a third
    made.brokers[3].seconds_per_request = FAST
    made.run(5)
    again = made.produce(8)
    assert (again[2] + again[5]) / sum(again) > 0.28
    made.finish()


def test_a_broker_that_does_not_answer_is_left_out_after_the_timeout_and_comes_back(simulation: Any) -> None:
    made = simulation(EVEN, dict.fromkeys((1, 2, 3), FAST), patience_s=0.5)
    made.produce(1)
    made.brokers[2].frozen = True
    assert sum(made.produce(0.45)[1::3]) > 0
    made.produce(0.5)
    placed = made.produce(5)  # requests time out and are sent again meanwhile
    assert placed[1] == placed[4] == 0
    assert min(placed[0], placed[2], placed[3], placed[5]) > 0
    made.brokers[2].frozen = False
    made.produce(2)
    assert sum(made.produce(5)[1::3]) > 2_800
    made.finish()


def test_without_the_timeout_a_broker_that_does_not_answer_still_gets_some(simulation: Any) -> None:
    made = simulation(EVEN, dict.fromkeys((1, 2, 3), FAST))
    made.produce(1)
    made.brokers[2].frozen = True
    made.produce(1.5)
    placed = made.produce(5)
    assert 0 < placed[1] + placed[4] < sum(placed) / 6
    made.finish()


def test_partitions_without_a_leader_are_left_out_until_they_have_one(simulation: Any) -> None:
    made = simulation([1, None, 2], {1: FAST, 2: FAST}, adaptive=False)
    assert made.balance.deadline() is None
    made.run(0.001)
    placed = made.produce(2)
    assert placed[1] == 0 < min(placed[0], placed[2])
    made.picture.lead([1, 1, 2])
    assert made.produce(2)[1] > 0
    made.picture.lead([1, 1, None])
    made.run(0.001)
    assert made.produce(2)[2] == 0
    made.picture.lead([1, 1, 2])
    made.finish()


def test_partitions_led_in_the_own_rack_are_preferred_if_there_are_any(simulation: Any) -> None:
    made = simulation(EVEN, dict.fromkeys((1, 2, 3), FAST), rack="rack 2")
    made.run(0.001)
    placed = made.produce(1)
    assert [partition for partition, count in enumerate(placed) if count] == [1, 4]
    made.picture.lead([1, None, 3, 1, 3, 3])
    made.run(0.001)
    assert [count > 0 for count in made.produce(1)] == [True, False, True, True, True, True]
    made.picture.lead(EVEN)
    made.finish()


def test_if_nothing_can_be_reached_all_are_alike(simulation: Any) -> None:
    made = simulation([None, None, None], {1: FAST})
    placed = made.produce(2)
    assert min(placed) > 0
    made.picture.lead([1, 1, 1])
    made.finish()


def test_a_quiet_balance_asks_for_no_time(simulation: Any) -> None:
    made = simulation(EVEN, dict.fromkeys((1, 2, 3), FAST), patience_s=0.5)
    made.produce(1)
    made.run(1)
    assert made.balance.deadline() is None
