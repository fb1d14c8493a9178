"""Each rule that keeps records whole, once and in order is needed: a simulation notices when it is broken.

`python -m tests.campaigns.sim.mutations` prints how many schedules each took.
"""

import pytest

from . import mutations

_SOON = 700  # schedules; what takes longer is for the long tests
_LONG = {
    "Commits: a rebalance waits for what was given up to be committed",
    "Joint: with version 1 the coordinator learns of each partition",
    "Member: it joins under the id that it was given (KIP-394)",
    "Ownership: a member that was dropped keeps its identity",
    "Ownership: what moved is committed as the member that read it",
    "Planned group: a pattern is matched anew when topics come",
    "Sharing member: behind an answer that was lost it asks for its partitions again",
}
"""Rules whose schedules are long when they are broken."""


@pytest.mark.parametrize("mutation", [
    pytest.param(each, id=f"{each.simulation}: {each.rule}",
                 marks=[pytest.mark.slow] if each.within > _SOON or each.rule in _LONG else [])
    for each in mutations.MUTATIONS
])
def test_a_broken_rule_is_noticed(mutation):
    tried, finding = mutation.caught()
    assert tried, f"not within {mutation.within} schedules"
    assert mutation.saying in finding


def test_every_rule_has_a_name_of_its_own():
    names = [each.rule for each in mutations.MUTATIONS]
    assert len(names) == len(set(names))
    assert set(names) >= _LONG


def test_a_rule_that_is_kept_is_not_taken_for_broken():
    """The table would be worth nothing if schedules failed for other reasons."""
    kept = mutations.Mutation("nothing", mutations.MUTATIONS[0].run_schedule, lambda patch: None, 100, "")
    assert kept.caught() == (0, "")


def test_a_mutation_that_does_not_fit_the_code_is_not_taken_for_one_that_was_noticed():
    def run_schedule(seed):
        raise TypeError("unexpected argument")

    with pytest.raises(TypeError, match="the mutation is broken"):
        mutations.Mutation("nothing", run_schedule, lambda patch: None, 100, "").caught()


def test_the_table_names_what_was_noticed_and_fails_when_something_was_not(monkeypatch, capsys):
    first = mutations.MUTATIONS[0]
    monkeypatch.setattr(mutations, "MUTATIONS", [first])
    assert mutations.main(["--jobs", "1"]) == 0
    assert first.rule in capsys.readouterr().out
    kept = mutations.Mutation("nothing", first.run_schedule, lambda patch: None, 10, "")
    monkeypatch.setattr(mutations, "MUTATIONS", [first, kept])
    assert mutations.main(["--jobs", "1"]) == 1
    assert "| nothing | - | 10 | NONE |" in capsys.readouterr().out
