"""Portions as lines: delimiters, kcat's tokens and rpk's verbs; JSON lines and CSV that `produce` reads back."""

import csv
import io
import json

import pytest

from headrace import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE
from headrace.cli.consuming.envelopes import csv_rows, json_lines
from headrace.cli.consuming.line_formats import LineFormat, TokenFormat
from headrace.cli.consuming.portions import Portion
from headrace.errors import ConfigError


def portion(*rows):
    """Rows of (key, value, headers)."""
    columns = {
        "keys": [row[0] for row in rows], "values": [row[1] for row in rows], "headers": [row[2] for row in rows],
        "timestamps": [1_700_000_000_000 + row for row in range(len(rows))],
        "timestamp_types": [TIMESTAMP_CREATE_TIME] * len(rows),
    }
    return Portion("orders", 3, [10 + 2 * row for row in range(len(rows))], columns.__getitem__)


RECORD = portion((b"key", b"va\xfflue", [("a", b"1"), ("b", None)]))


def written(template, rows=RECORD, null=b""):
    return whole(TokenFormat(template, null)(rows))


def whole(pieces):
    return b"".join(map(bytes, pieces))


@pytest.mark.parametrize(("template", "found"), [
    ("%t %p %o %k %s %v", b"orders 3 10 key va\xfflue va\xfflue"), ("%K %S %V", b"3 6 6"),
    ("%T %d", b"1700000000000 1700000000000"), ("%h %H", b"a=1,b=NULL 2"), ("100%%", b"100%"),
    (r"%R\0\x1e\t\n", b"\0\0\0\x06\0\x1e\t\n"), ("%v{hex} %k{base64}", b"7661ff6c7565 a2V5"),
    ("%k{json} %v{json}", b'"key" {"base64":"dmH/bHVl"}'), ("%T{iso}", b"2023-11-14T22:13:20.000Z"),
    ("%T{unix} %d{strftime[%Y %H:%M]}", b"1700000000 2023 22:13"), ("%i", b"1"), ("", b""), ("x", b"x"),
    ("%h{json}", b'[{"name":"a","value":"1"},{"name":"b","value":null}]'),
    ("{%p}", b"{3}"), ("%p%{%%{%}", b"3{%{}"), ("%%{hex}", b"%{hex}"),
])
def test_tokens(template, found):
    assert written(template) == found


@pytest.mark.parametrize("template", ["%", "%x", "%t{hex}", "%v{iso}", "%v{", "%T{%Y}", r"\x"])
def test_what_is_no_token_is_refused(template):
    with pytest.raises(ValueError):
        TokenFormat(template, b"")


def test_every_record_has_its_own_values_and_numbers_go_on_from_one_portion_to_the_next():
    form = TokenFormat("%i:%o:%v;", b"")
    assert whole(form(portion((None, b"a", []), (None, b"b", [])))) == b"1:10:a;2:12:b;"
    assert whole(form(portion((None, b"c", [])))) == b"3:10:c;"


def test_null_is_shown_as_asked_for_and_has_no_size():
    tombstone = portion((None, None, []))
    assert written("[%k|%v|%S|%R]", tombstone, b"NULL") == b"[NULL|NULL|-1|\xff\xff\xff\xff]"
    assert written("[%v]", tombstone) == b"[]"


def test_a_record_without_a_timestamp_has_minus_one():
    rows = portion((b"k", b"v", []))
    rows.timestamp_types = [TIMESTAMP_NOT_AVAILABLE]
    assert written("%T %T{iso}", rows) == b"-1 -1"
    assert json.loads(whole(json_lines(rows)))["timestamp"] is None


def test_lines_have_delimiters_and_keys_where_they_are_asked_for():
    rows = portion((b"k", b"a", []), (None, b"\xff", []), (b"l", None, []))
    assert whole(LineFormat(b"\n", None, "text", b"")(rows)) == b"a\n\xff\n\n"
    assert whole(LineFormat(b"\0", b"=", "text", b"-")(rows)) == b"k=a\0-=\xff\0l=-\0"
    assert whole(LineFormat(b"\n", b" ", "hex", b"")(rows)) == b"6b 61\n ff\n6c \n"


def test_json_lines_say_where_a_record_is_and_what_it_is():
    line, other = whole(json_lines(portion(("ü\"\n\0".encode(), b"\xff", [("a", b"1"), ("a", None)]),
                                           (None, None, [])))).splitlines()
    assert json.loads(line) == {
        "topic": "orders", "partition": 3, "offset": 10, "timestamp": 1_700_000_000_000, "key": "ü\"\n\0",
        "value": {"base64": "/w=="}, "headers": [{"name": "a", "value": "1"}, {"name": "a", "value": None}]}
    assert json.loads(other) == {"topic": "orders", "partition": 3, "offset": 12, "timestamp": 1_700_000_000_001,
                                 "key": None, "value": None, "headers": []}


def test_values_that_are_json_are_part_of_the_line():
    rows = portion((b"k", b"v", [])).in_json(None, [b'{"a":[1]}'])
    assert json.loads(whole(json_lines(rows)))["value"] == {"a": [1]}


def test_csv_quotes_what_must_be_quoted():
    row, = csv.reader(io.StringIO(csv_rows(portion((b'a,"', b"b\nc", [("h", b"x")])), "text").decode(), newline=""))
    assert row == ["orders", "3", "10", "1700000000000", 'a,"', "b\nc", '[{"name":"h","value":"x"}]']


def test_csv_refuses_what_is_no_text_and_says_which_record_it_is():
    with pytest.raises(ConfigError, match=r"orders \[3\] offset 12: not UTF-8.*--encoding base64"):
        csv_rows(portion((b"k", b"v", []), (b"k", b"\xff", [])), "text")
    assert csv_rows(portion((b"k", b"\xff", [])), "base64").startswith(b"orders,3,10,1700000000000,aw==,/w==,")
