"""Pages that are made from code are current; tests and files that pages name exist."""

import re
from pathlib import Path

import pytest

from tests.campaigns.sim import invariants_page
from tests.campaigns.sim.mutations import MUTATIONS
from tools import broker_page, configuration_page, spark_options_page, state_diagrams

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_configuration_page_is_what_the_table_says() -> None:
    written = configuration_page.PAGE.read_text()
    assert written == configuration_page.page(), "run python -m tools.configuration_page"


def test_the_page_of_the_broker_is_what_its_tables_say() -> None:
    assert broker_page.PAGE.read_text() == broker_page.page(), "run python -m tools.broker_page"


def test_the_page_of_spark_s_options_is_what_its_table_says() -> None:
    assert spark_options_page.PAGE.read_text() == spark_options_page.page(), "run python -m tools.spark_options_page"


def test_the_diagrams_of_states_are_those_of_the_tables() -> None:
    assert state_diagrams.PAGE.read_text() == state_diagrams.page(), "run python -m tools.state_diagrams"


def test_the_page_of_invariants_has_every_rule_that_is_broken_on_purpose() -> None:
    written = invariants_page.PAGE.read_text()
    assert written == invariants_page.page(), "run python -m tests.campaigns.sim.invariants_page"
    rules = {each.rule.removesuffix(" (embedded broker)") for each in MUTATIONS}
    assert {rule for rule in rules if f"| {rule} |" not in written} == set()


def test_every_test_that_a_page_names_exists() -> None:
    for path in PAGES:
        last = ""
        for file, test in re.findall(r"`(tests/[\w/]+\.py)?::(test_\w+)`", path.read_text()):
            last = file or last
            assert f"def {test}(" in (ROOT / last).read_text(), f"{path.name} names {last}::{test}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"
