"""The table of options for people has what the code reads, and nothing else."""

from headrace.spark.option_table import OPTIONS, UNREACHABLE
from headrace.spark.options import KNOWN_OPTIONS, SHARED_TASK_ROWS


def test_each_option_is_explained_once() -> None:
    names = [option.name for option in OPTIONS]
    assert len(names) == len(set(names))
    assert set(KNOWN_OPTIONS) - set(names) == set(), "give these a row in headrace/spark/option_table.py"
    assert set(names) - set(KNOWN_OPTIONS) == {"kafka.*"}, "these are not read"


def test_no_cell_of_the_page_breaks_its_table() -> None:
    for option in OPTIONS:
        assert not any("|" in cell or "\n" in cell for cell in map(str, option))
    assert not any("|" in cell for pair in UNREACHABLE.items() for cell in pair)


def test_the_default_of_shared_tasks_is_the_one_of_the_code() -> None:
    assert {option.default for option in OPTIONS if option.name == "maxRecordsPerSharedTask"} == {str(SHARED_TASK_ROWS)}
