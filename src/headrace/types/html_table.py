"""Tables for notebooks: what `_repr_html_` of several classes gives. Knows nothing of what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["html_table"]

_MOST_ROWS = 60
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def html_table(title: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML; everything that is shown is escaped.

    Args:
        title: stands above it.
        names: of the columns; none for a table of names and values, whose first column is the names.
        rows: their cells. Those behind the sixtieth are counted and left out.
    """
    shown: list[str] = []
    more = 0
    for row in rows:
        if len(shown) < _MOST_ROWS:
            shown.append(_row(row, is_named=not names))
        else:
            more += 1
    head = f"<thead><tr>{''.join(f'<th>{_text(name)}</th>' for name in names)}</tr></thead>" if names else ""
    rest = f"<p>and {more} more</p>" if more else ""
    return f"<table><caption>{_text(title)}</caption>{head}<tbody>{''.join(shown)}</tbody></table>{rest}"


def _row(cells: Sequence[object], *, is_named: bool) -> str:
    made = [f"<td>{_text(cell)}</td>" for cell in cells]
    if is_named:
        made[0] = f"<th>{_text(cells[0])}</th>"
    return f"<tr>{''.join(made)}</tr>"


def _text(what: object) -> str:
    return "" if what is None else str(what).translate(_ESCAPES)
