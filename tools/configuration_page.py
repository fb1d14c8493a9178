"""Write `docs/reference/configuration.md` from `headrace.config`'s tables: `python -m tools.configuration_page`."""

from __future__ import annotations

from pathlib import Path

from headrace.config import PROPERTIES, Property
from headrace.config.property import as_text
from headrace.config.rows_elsewhere import NOT_SUPPORTED, WITHOUT_EFFECT

PAGE = Path(__file__).parents[1] / "docs/reference/configuration.md"
_HEAD = """# Configuration

Made from the tables in `headrace/config/` by `python -m tools.configuration_page`. P, C, A: producer, consumer, admin;
the other clients accept the property, leave it alone, and say so at debug level. Below each name are others that mean
the same.

Every property of librdkafka 2.16 and of Java's clients 4.4 is on this page. Of two properties that contradict each
other one is moved if it was not given; if both were, that is an error that names them.

| property | for | type | range | default | unit | what it does |
|---|---|---|---|---|---|---|
"""
_ACCEPTED = """
## Accepted, and nothing to do

A configuration written for another client may have these; they change nothing here, which is logged at debug level. A
value that is not listed is an error: it is malformed, or should have an effect.

| property | values | why |
|---|---|---|
"""
_REFUSED = """
## Not supported

These are an error that says what to use instead.

| property | instead |
|---|---|
"""
_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "text", "enum": "choice",
          "callable": "function", "objects": "list of objects", "secret": "secret text"}


def page() -> str:
    """The page as it must be."""
    accepted = (f"| `{row.name}` | {_accepted(row)} | {row.doc} |\n" for row in WITHOUT_EFFECT.values())
    refused = (f"| `{name}` | {instead} |\n" for name, instead in NOT_SUPPORTED.items())
    return "".join((_HEAD, *map(_row, PROPERTIES.values()), _ACCEPTED, *accepted, _REFUSED, *refused))


def _row(row: Property) -> str:
    name = f"`{row.name}`" + "".join(f"<br>`{alias}`" for alias in row.aliases)
    roles = "".join(role[0].upper() for role in row.roles)
    doc = row.doc + (f" ({row.kip})" if row.kip else "")
    kind = _TYPES.get(row.kind, row.kind)
    return f"| {name} | {roles} | {kind} | {_range(row)} | {_default(row)} | {row.unit} | {doc} |\n"


def _accepted(row: Property) -> str:
    shown = "; ".join(as_text(value) or "empty" for value in row.only) or _range(row) or "any"
    return shown.replace("|", "\\|")


def _range(row: Property) -> str:
    if row.choices:
        return ", ".join(choice or "(empty)" for choice in row.choices)
    if row.low is not None:
        return f"{row.low:g} or more" if row.high is None else f"{row.low:g} to {row.high:.10g}"
    return "true, false" if row.kind == "bool" else ""


def _default(row: Property) -> str:
    if isinstance(row.choices, dict):
        return next(str(text) for text, value in row.choices.items() if value == row.default)
    if isinstance(row.default, tuple):
        return ",".join(row.default)
    if isinstance(row.default, bool):
        return str(row.default).lower()
    if row.default is None:
        return ""
    return f"{row.default:g}" if isinstance(row.default, float) else str(row.default)


if __name__ == "__main__":
    PAGE.write_text(page())
