"""What all kept clients have in common: handed out to one at a time, again while they are good, and closed in the end.

`test_kept_producers.py` and `test_kept_readers.py` show it with brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from headrace.client import kept_clients
from headrace.client.kept_clients import KeptClients


class Toy:
    """A client that does nothing."""

    def __init__(self) -> None:
        self.usable = self.finished = self.answers = True
        self.closed = False
        self.asked = 0


class Toys(KeptClients[Toy]):
    def make(self, properties: Mapping[str, Any]) -> Toy:
        return Toy()

    def is_usable(self, client: Toy) -> bool:
        return client.usable

    def has_finished(self, client: Toy) -> bool:
        return client.finished

    def confirm(self, client: Toy) -> bool:
        client.asked += 1
        return client.answers

    def end(self, client: Toy) -> None:
        client.closed = True

    def abandon(self, client: Toy) -> None:
        client.closed = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(kept_clients, "_clock", clock)
    return clock


@pytest.fixture
def toys(clock: Clock) -> Iterator[Toys]:
    toys = Toys()
    yield toys
    toys.close()


def test_a_client_is_one_task_s_alone_and_the_next_one_s_when_it_is_given_back(toys: Toys) -> None:
    first = toys.take({"a": 1})
    assert toys.take({"a": 1}) is not first
    toys.give_back(first)
    assert toys.take({"a": 2}) is not first
    assert toys.take({"a": 1}) is first


@pytest.mark.parametrize("fault", ["usable", "finished"])
def test_a_client_that_cannot_go_on_is_closed_and_not_kept(toys: Toys, fault: str) -> None:
    first = toys.take({})
    setattr(first, fault, False)
    toys.give_back(first)
    assert first.closed
    assert toys.take({}) is not first


def test_a_client_that_breaks_while_nobody_uses_it_is_closed_when_it_is_wanted(toys: Toys) -> None:
    first = toys.take({})
    toys.give_back(first)
    first.usable = False
    assert toys.take({}) is not first
    assert first.closed


def test_brokers_are_asked_once_a_second_at_most(toys: Toys, clock: Clock) -> None:
    first = toys.take({})
    for clock.now, asked in ((0.5, 0), (1.1, 1), (1.9, 1), (2.2, 2)):
        toys.give_back(first)
        assert toys.take({}) is first
        assert first.asked == asked


def test_a_client_whose_brokers_say_otherwise_is_closed(toys: Toys, clock: Clock) -> None:
    first = toys.take({})
    toys.give_back(first)
    clock.now, first.answers = 5.0, False
    assert toys.take({}) is not first
    assert first.closed


def test_an_old_client_is_not_kept(toys: Toys, clock: Clock) -> None:
    first = toys.take({})
    clock.now = 301.0
    toys.give_back(first)
    assert first.closed


def test_a_client_that_is_thrown_away_is_closed(toys: Toys) -> None:
    first = toys.take({})
    toys.discard(first)
    assert first.closed
    assert toys.take({}) is not first


def test_what_is_given_back_after_the_end_is_closed(toys: Toys) -> None:
    idle, busy = toys.take({}), toys.take({})
    toys.give_back(idle)
    toys.close()
    toys.give_back(busy)
    assert idle.closed
    assert busy.closed


def test_a_child_begins_with_none(toys: Toys) -> None:
    first = toys.take({})
    toys.give_back(first)
    toys.after_fork()
    assert toys.take({}) is not first
