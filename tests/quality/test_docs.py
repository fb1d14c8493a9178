"""Pages that are made from code are current; tests and files that pages name exist."""

import re
from pathlib import Path

import pytest

from tests.campaigns.sim import invariants_page
from tests.campaigns.sim.mutations import MUTATIONS
from tools import broker_page, command_line_page, configuration_page, spark_options_page, state_diagrams

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_configuration_page_is_what_the_table_says() -> None:
    written = configuration_page.PAGE.read_text()
    assert written == configuration_page.page(), "run python -m tools.configuration_page"


def test_the_page_of_the_broker_is_what_its_tables_say() -> None:
    assert broker_page.PAGE.read_text() == broker_page.page(), "run python -m tools.broker_page"


def test_the_page_of_the_command_line_is_what_its_parsers_say() -> None:
    assert command_line_page.PAGE.read_text() == command_line_page.page(), "run python -m tools.command_line_page"


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


PROGRAMS_RUN_IN = {
    "from/aiokafka.md": "tests/unit/pages/test_migration.py",
    "from/confluent-kafka.md": "tests/unit/pages/test_migration.py",
    "from/kafka-python.md": "tests/unit/pages/test_migration.py",
    "how-to/admin.md": "tests/unit/client/admin/test_admin_page.py",
    "how-to/columns.md": "tests/unit/client/consumer/test_columns_page.py",
    "how-to/consumer.md": "tests/unit/client/consumer/test_consumer_page.py",
    "how-to/frames.md": "tests/unit/frames/test_frames_page.py",
    "how-to/from-sparks-connector.md": "tests/integration/spark/test_spark_pages.py",
    "how-to/observe.md": "tests/unit/pages/test_programs.py",
    "how-to/producer.md": "tests/unit/pages/test_programs.py",
    "how-to/registry.md": "tests/unit/client/registry/test_registry_page.py",
    "how-to/schemas.md": "tests/unit/client/schema_serdes/test_schemas_page.py",
    "how-to/security.md": "tests/unit/pages/test_programs.py",
    "how-to/share-groups.md": "tests/unit/pages/test_programs.py",
    "how-to/spark-guarantees.md": "tests/integration/spark/test_spark_pages.py",
    "how-to/spark-source.md": "tests/integration/spark/test_spark_pages.py",
    "how-to/spark-values.md": "tests/integration/spark/test_spark_pages.py",
    "how-to/libraries-on-confluent-kafka.md": "tests/unit/pages/test_libraries.py",
    "how-to/testing.md": "tests/unit/testing/test_testing_page.py",
    "reference/broker.md": "tests/unit/pages/test_programs.py",
    "tutorial/first-steps.md": "tests/unit/pages/test_first_steps.py",
    "tutorial/spark.md": "tests/integration/spark/test_tutorial.py",
}
"""Tests that run the Python programs of pages; each counts that none is left out."""


def test_every_page_with_a_python_program_has_a_test_that_runs_it() -> None:
    with_programs = {path.relative_to(ROOT / "docs").as_posix() for path in PAGES
                     if path.is_relative_to(ROOT / "docs") and "```python\n" in path.read_text()}
    assert with_programs == set(PROGRAMS_RUN_IN)
    for page, test in PROGRAMS_RUN_IN.items():
        assert page.split("/")[1].removesuffix(".md") in (ROOT / test).read_text(), f"{test} does not read {page}"


def test_figures_of_speed_are_those_of_the_readme() -> None:
    figures = re.compile(r"^\| (?:produce|consume|Kafka into|`range`).*$", re.MULTILINE)
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/reference/speed.md"))
    assert len(figures.findall(readme)) >= 9
    assert figures.findall(page) == figures.findall(readme)
