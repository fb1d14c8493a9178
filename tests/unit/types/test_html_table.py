"""Tables for notebooks: escaped, bounded, and empty where nothing is."""

from __future__ import annotations

from headrace.types.html_table import html_table


def test_what_is_shown_is_escaped_and_none_is_empty() -> None:
    assert html_table("<t>", ("a&b",), [("<script>",), (None,)]) == (
        "<table><caption>&lt;t&gt;</caption><thead><tr><th>a&amp;b</th></tr></thead>"
        "<tbody><tr><td>&lt;script&gt;</td></tr><tr><td></td></tr></tbody></table>")


def test_a_table_of_names_and_values_has_its_names_in_front() -> None:
    assert "<tr><th>key</th><td>1</td></tr>" in html_table("t", (), [("key", 1)])
    assert "thead" not in html_table("t", (), [("key", 1)])


def test_many_rows_are_counted_and_not_shown() -> None:
    made = html_table("t", ("n",), ((number,) for number in range(100)))
    assert made.count("<td>") == 60
    assert made.endswith("<p>and 40 more</p>")
