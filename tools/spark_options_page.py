"""Write `docs/reference/spark-options.md` from `headrace.spark.option_table`: `python -m tools.spark_options_page`."""

from __future__ import annotations

from pathlib import Path

from headrace.spark.option_table import OPTIONS, UNREACHABLE, SparkOption

PAGE = Path(__file__).parents[1] / "docs/reference/spark-options.md"
_HEAD = """# Options of format("headrace")

Made from the table in `headrace/spark/option_table.py` by `python -m tools.spark_options_page`. Names and meanings are
those of Spark's own Kafka connector, and their case does not matter; what it does not have is marked with +. An option
that is not known is an error that names the nearest one.

| option | for | default | what it does |
|---|---|---|---|
"""
_UNREACHABLE = """
## What cannot be had

| of Spark's connector | here |
|---|---|
"""


def page() -> str:
    """The page as it must be."""
    cannot = (f"| {name} | {why} |\n" for name, why in UNREACHABLE.items())
    return "".join((_HEAD, *map(_row, OPTIONS), _UNREACHABLE, *cannot))


def _row(option: SparkOption) -> str:
    mark = " +" if option.ours else ""
    return f"| `{option.name}`{mark} | {option.use} | {option.default} | {option.about} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
