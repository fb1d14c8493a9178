"""Rows of the campaign that are kept, and the table that the page on guarantees makes of them.

`recorded.json` has the last row of each fault, way of writing, version of Kafka and master; `--record` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from .case import AT_LEAST_ONCE, FOREACH_BATCH, Result

Row = dict[str, Any]
"""Cells by the name of their column; a count is None if the query was not finished."""

RECORD: Final = Path(__file__).parent / "recorded.json"
PAGE: Final = Path(__file__).parents[3] / "docs/how-to/spark-guarantees.md"
BEGIN: Final = "<!-- rows of tests/campaigns/spark_once: begin -->\n"
END: Final = "<!-- rows of tests/campaigns/spark_once: end -->\n"
_KEYS: Final = ("fault", "writes by", "Kafka", "master")
_COUNTS: Final = {"expected": "expected", "committed": "committed", "twice": "twice", "missing": "missing",
                  "elsewhere": "foreign", "disordered": "disordered", "aborted": "aborted"}
_WAYS: Final = {FOREACH_BATCH: "foreachBatch, two topics", AT_LEAST_ONCE: "sink, at least once"}


def row_of(result: Result) -> Row:
    """What is told of one case."""
    found = {name: None if result.verdict is None else getattr(result.verdict, field)
             for name, field in _COUNTS.items()}
    return {"fault": result.name, "writes by": _WAYS.get(result.how, "sink"), "Kafka": result.kafka,
            "master": result.master, **found, "restarts": result.restarts, "seconds": round(result.seconds)}


def keep(result: Result) -> None:
    """Write a row down in the place of an older one, and make the page anew."""
    rows = {_key(row): row for row in recorded()}
    row = row_of(result)
    rows[_key(row)] = row
    texts = [json.dumps(row) for _, row in sorted(rows.items())]
    RECORD.write_text("[\n" + ",\n".join(texts) + "\n]\n")
    show_on_page()


def show_on_page() -> None:
    """Make the table of the page anew."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table(recorded()) + END + rest.split(END)[1])


def recorded() -> list[Row]:
    """The rows that are kept."""
    found: list[Row] = json.loads(RECORD.read_text()) if RECORD.exists() else []
    return found


def table(rows: Iterable[Row]) -> str:
    """The rows, in Markdown."""
    rows = list(rows)
    names = list(rows[0])
    lines = [names, ["---"] * len(_KEYS) + ["---:"] * (len(names) - len(_KEYS)), *(
        ["not finished" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell for cell in row.values()]
        for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("writes by", "master", "Kafka", "fault"))
