"""What the page on guarantees shows are the rows that the campaign has kept, and they have no findings."""

from __future__ import annotations

from .case import EXACTLY_ONCE, Result
from .record import BEGIN, END, PAGE, recorded, row_of, table
from .verdict import Verdict


def test_the_page_on_guarantees_has_the_rows_that_were_kept() -> None:
    shown = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert shown == table(recorded())


def test_the_rows_that_were_kept_are_of_finished_queries_without_findings() -> None:
    rows = recorded()
    assert len(rows) > 0
    for row in rows:
        wrong = {name: row[name] for name in ("twice", "missing", "elsewhere", "disordered")}
        assert set(wrong.values()) == {0}, row
        assert row["committed"] == row["expected"] > 0, row


def test_a_row_says_what_happened_where() -> None:
    result = Result("task raises", "4.4.0", "local[2]", EXACTLY_ONCE, Verdict(10, 9, 1, 2, 3, 4, 5), 1, 7.4)
    assert list(row_of(result).values()) == ["task raises", "sink", "4.4.0", "local[2]", 10, 9, 1, 2, 3, 4, 5, 1, 7]


def test_a_query_that_was_not_finished_has_no_counts() -> None:
    row = row_of(Result("task raises", "4.4.0", "local[2]", EXACTLY_ONCE))
    assert row["committed"] is None
    assert "| not finished |" in table([row])
