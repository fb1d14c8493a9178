"""Tables, JSON, TSV and names."""

import io
import json

import pytest

from headrace.cli.shared.output import Column, coloured, date, human_size, id_text, print_rows, printable

COLUMNS = (Column("topic", "name"), Column("partitions", "how many"), Column("id", "its id", wide=True),
           Column("size", "bytes", shown=human_size), Column("isr", "in sync"))
ROWS = [{"topic": "orders", "partitions": 12, "id": "x", "size": 2048, "isr": [1, 2]},
        {"topic": "a", "partitions": 3, "id": None, "size": None, "isr": []}]


def printed(form: str, rows: object = ROWS) -> str:
    stream = io.StringIO()
    print_rows(form, COLUMNS, rows, stream)  # type: ignore[arg-type]
    return stream.getvalue()


def test_a_table_is_aligned_and_has_no_wide_columns() -> None:
    assert printed("table").splitlines() == ["TOPIC   PARTITIONS     SIZE  ISR",
                                             "orders          12  2.0 KiB  1,2",
                                             "a                3        -  -"]


def test_a_wide_table_has_all_columns() -> None:
    assert printed("wide").splitlines()[0].split() == ["TOPIC", "PARTITIONS", "ID", "SIZE", "ISR"]


def test_json_has_every_key_and_values_as_they_are() -> None:
    assert json.loads(printed("json")) == ROWS
    assert json.loads(printed("json", [])) == []
    assert json.loads(printed("json", [{"topic": "t"}])) == [
        {"topic": "t", "partitions": None, "id": None, "size": None, "isr": None}]


def test_tsv_has_a_head_and_nothing_that_breaks_a_line() -> None:
    assert printed("tsv", [{"topic": "a\tb\nc", "partitions": 1}]) == (
        "topic\tpartitions\tid\tsize\tisr\na\\tb\\nc\t1\t\t\t\n")


def test_names_are_the_first_column_each_once() -> None:
    assert printed("name", [*ROWS, ROWS[0]]) == "orders\na\n"


def test_what_moves_the_cursor_is_shown_and_not_done() -> None:
    assert printable("a\x1b[2Jb\nä") == "a\\x1b[2Jb\\nä"
    assert "\x1b" not in printed("table", [{"topic": "\x1b[31m"}])


def test_colours_are_for_terminals_and_not_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured(Terminal())
    assert not coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal())


@pytest.mark.parametrize(("count", "shown"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 40, "3.0 TiB"),
                                              (None, "-")])
def test_sizes_are_in_the_largest_unit(count: int | None, shown: str) -> None:
    assert human_size(count) == shown


def test_a_date_is_iso_8601_in_utc() -> None:
    assert (date(0), date(None)) == ("1970-01-01T00:00:00.000Z", "-")


def test_an_id_is_as_kafka_s_own_tools_show_it() -> None:
    assert id_text("PqeWBmGiT5W1/FjP7VX+yw") == "PqeWBmGiT5W1_FjP7VX-yw"
