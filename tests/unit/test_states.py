"""Tables of states: what they allow, what they refuse, and that no state of theirs is unreachable."""

from enum import Enum

import pytest

from headrace.broker.coordinators.transactional_ids import TransactionState
from headrace.states import Transitions, from_each
from tools.state_diagrams import DIAGRAMS

NAMES_ONLY = {TransactionState.PREPARE_EPOCH_FENCE}
"""States that exist because Kafka has names for them."""
LAST = {"FATAL_ERROR", "DEAD", "STORED", "FAILED", "DIVIDED", "ACKNOWLEDGED", "ARCHIVED"}


class Door(Enum):
    OPEN = "one can go through"
    SHUT = "one cannot"
    GONE = "there is none"


DOORS = Transitions("A door", Door.SHUT, {
    (Door.SHUT, "pull"): Door.OPEN,
    (Door.OPEN, "push"): Door.SHUT,
    **from_each((Door.SHUT, Door.OPEN), "break", Door.GONE),
})


def test_a_trigger_leads_to_the_state_that_the_table_says():
    assert DOORS.go(DOORS.first, "pull") is Door.OPEN
    assert [DOORS.go(state, "break") for state in (Door.OPEN, Door.SHUT)] == [Door.GONE, Door.GONE]


def test_another_way_is_refused_with_what_it_was_about():
    assert not DOORS.allows(Door.GONE, "pull")
    assert DOORS.allows(Door.SHUT, "pull")
    with pytest.raises(RuntimeError, match=r"^A door: no way leads from GONE by 'pull'$"):
        DOORS.go(Door.GONE, "pull")


def test_the_ways_of_one_trigger_can_be_looked_up_without_a_call():
    broken = DOORS.column("break")
    assert (broken[Door.SHUT], broken[Door.OPEN]) == (Door.GONE, Door.GONE)
    with pytest.raises(RuntimeError, match=r"^A door: no way leads from GONE by 'break'$"):
        broken[Door.GONE]
    with pytest.raises(RuntimeError, match=r"^A door: no way is called 'paint'$"):
        DOORS.column("paint")


def test_all_ways_can_be_listed():
    assert list(DOORS) == [(Door.SHUT, "pull", Door.OPEN), (Door.OPEN, "push", Door.SHUT),
                           (Door.SHUT, "break", Door.GONE), (Door.OPEN, "break", Door.GONE)]


@pytest.mark.parametrize("drawn", DIAGRAMS, ids=lambda drawn: drawn.title)
def test_every_state_is_reached_from_the_first_and_left_again(drawn):
    ways = list(drawn.table)
    reached, size = {drawn.table.first}, 0
    while len(reached) > size:
        size = len(reached)
        reached |= {after for state, _, after in ways if state in reached}
    assert reached == set(drawn.table.states) - NAMES_ONLY
    assert {state.name for state in reached - {state for state, _, after in ways if after is not state}} <= LAST
