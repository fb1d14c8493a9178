"""Write `docs/reference/configuration.md` from the table in `headrace.config`: `python -m tools.configuration_page`."""

from __future__ import annotations

from pathlib import Path

from headrace.config import PROPERTIES, Property

PAGE = Path(__file__).parents[1] / "docs/reference/configuration.md"
_HEAD = """# Configuration

Made from the table in `headrace/config.py` by `python -m tools.configuration_page`. P, C, A: producer, consumer, admin;
the other clients accept the property and leave it alone.

| property | for | range | default | what it does |
|---|---|---|---|---|
"""


def page() -> str:
    """The page as it must be."""
    return _HEAD + "".join(_row(row) for row in PROPERTIES.values())


def _row(row: Property) -> str:
    name = f"`{row.name}`" + "".join(f"<br>`{alias}`" for alias in row.aliases)
    roles = "".join(role[0].upper() for role in row.roles)
    doc = row.doc + (f" ({row.kip})" if row.kip else "")
    return f"| {name} | {roles} | {_range(row)} | {_default(row)} | {doc} |\n"


def _range(row: Property) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.low is not None:
        return f"{row.low:g} to {row.high:.10g} {row.unit}".strip()
    return {"bool": "true, false", "list": "list", "callable": "function", "object": "object",
            "objects": "list"}.get(row.kind, "text")


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
