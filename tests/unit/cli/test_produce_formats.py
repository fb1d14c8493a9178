"""Lines, JSON lines and CSV as slices: what becomes a record, and what is told of everything else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.producing.csvrows import CsvForm, csv_slices
from headrace.cli.producing.jsonlines import envelope_slices, headers_of, timestamp_of, value_slices
from headrace.cli.producing.lines import line_slices, split_lines
from headrace.cli.producing.slices import Places, Slice
from headrace.errors import ConfigError


class Told:
    """Takes what is malformed; `skip` goes on behind it."""

    def __init__(self, skip=True):
        self.skip = skip
        self.found = []

    def __call__(self, line, why):
        self.found.append((line, why))
        return not self.skip


def numbered(data, delimiter=b"\n", told=None, limit=1000, chunk=7):
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    return split_lines(chunks, delimiter, limit, 0, told or Told(skip=False))


def joined(slices):
    """All columns of all slices, each whole."""
    whole = {}
    for part in slices:
        for name in Slice.__slots__:
            column = getattr(part, name)
            assert column is None or len(column) == len(part), name
            whole.setdefault(name, []).extend(column if column is not None else [None] * len(part))
    return whole


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=30), st.integers(1, 50),
       st.booleans())
def test_lines_are_what_stands_between_delimiters_however_they_come(lines, chunk, ended):
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    found = list(numbered(data, chunk=chunk))
    assert [line for _, part in found for line in part] == expected
    numbers = [first + place for first, part in found for place in range(len(part))]
    assert numbers == list(range(1, len(expected) + 1))


def test_a_delimiter_of_two_bytes_may_be_cut_by_a_chunk():
    found = list(numbered(b"aaa\r\nbb\r\n\r\nc", b"\r\n", chunk=4))
    assert [line for _, part in found for line in part] == [b"aaa", b"bb", b"", b"c"]


def test_a_line_that_is_too_long_is_told_once_and_never_kept():
    told = Told()
    found = list(numbered(b"a\n" + b"x" * 5000 + b"\nb\n", told=told))
    assert [(first, part) for first, part in found] == [(1, [b"a"]), (3, [b"b"])]
    assert [line for line, _ in told.found] == [2]
    told = Told(skip=False)
    assert list(numbered(b"a\n" + b"x" * 5000 + b"\nb\n", told=told)) == [(1, [b"a"])]


def lines(data, told=None, **options):
    given = {"key_delimiter": None, "encoding": "text", "raw": False, **options}
    return joined(line_slices(numbered(data, told=told), Places(), told or Told(skip=False), **given))


def test_a_key_ends_at_the_first_delimiter_and_a_line_without_one_is_malformed():
    told = Told()
    found = lines(b"a:1:2\n:\nnothing\nb:\n", told, key_delimiter=b":")
    assert (found["keys"], found["values"], found["lines"]) == ([b"a", b"", b"b"], [b"1:2", b"", b""], [1, 2, 4])
    assert told.found == [(3, "no key: the delimiter ':' of -K is not in the line")]


@pytest.mark.parametrize(("encoding", "text"), [("hex", b"00ff"), ("base64", b"AP8=")])
def test_binary_is_decoded_and_what_is_not_so_encoded_is_malformed(encoding, text):
    told = Told()
    found = lines(text + b":" + text + b"\nzz:?\n", told, key_delimiter=b":", encoding=encoding)
    assert (found["keys"], found["values"]) == ([b"\0\xff"], [b"\0\xff"])
    assert told.found[0][0] == 2
    assert encoding in told.found[0][1]


def test_what_stands_before_a_malformed_line_is_a_record_also_when_the_reading_ends_there():
    told = Told(skip=False)
    assert lines(b"a:1\nb:2\nno\nc:3\n", told, key_delimiter=b":")["values"] == [b"1", b"2"]


def envelopes(*objects, told=None):
    data = b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in objects)
    return joined(envelope_slices(numbered(data, limit=10_000), Places(), told or Told(skip=False), False))


def test_an_envelope_has_key_value_headers_partition_and_timestamp():
    found = envelopes({"key": "k", "value": "v", "headers": {"h": "x"}, "partition": 3, "timestamp": 17})
    assert found == {"lines": [1], "values": [b"v"], "keys": [b"k"], "partitions": [3], "timestamps": [17],
                     "headers": [[("h", b"x")]], "raw": [None]}
    bare = envelopes({"value": None})
    assert (bare["values"], bare["keys"], bare["partitions"], bare["timestamps"]) == ([None], [None], [-1], [0])


def test_what_kcat_prints_is_an_envelope():
    found = envelopes({"topic": "t", "partition": 1, "offset": 7, "tstype": "create", "ts": 99, "broker": 1,
                       "key": None, "payload": "p", "headers": ["a", "1", "a", None]})
    assert (found["values"], found["timestamps"], found["partitions"]) == ([b"p"], [99], [1])
    assert found["headers"] == [[("a", b"1"), ("a", None)]]


@given(st.binary(max_size=30), st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=10))
def test_bytes_and_text_come_through_an_envelope_unchanged(value, key):
    import base64

    found = envelopes({"key": key, "value": {"base64": base64.b64encode(value).decode()}},
                      {"key": key, "value": {"hex": value.hex()}})
    assert found["values"] == [value, value]
    assert found["keys"] == [None if key is None else key.encode()] * 2


def test_other_json_is_sent_as_its_compact_text():
    found = envelopes(b'{"key": 42, "value": {"a": [1, 2.5, null], "z": "\\u00e9"}}', {"value": True}, {"value": {}})
    assert found["values"] == ['{"a":[1,2.5,null],"z":"é"}'.encode(), b"true", b"{}"]
    assert found["keys"] == [b"42", None, None]


@pytest.mark.parametrize(("line", "why"), [
    (b"{", "not JSON"), (b"\xff", "not UTF-8 at byte 0"), (b"[1]", "an envelope is an object, not an array"),
    (b'{"vaule": 1}', "no field 'vaule'"), (b'{"key": "k"}', "there is no value"),
    (b'{"value": "a", "payload": "b"}', "another name for 'value'"), (b'{"value": 1, "value": 2}', "stands twice"),
    (b'{"value": NaN}', "NaN is not JSON"), (b'{"value": "\\ud800"}', "surrogate"),
    (b'{"value": "v", "partition": -2}', "no"), (b'{"value": "v", "partition": true}', "not a partition number"),
    (b'{"value": "v", "timestamp": "yesterday"}', "ISO 8601"), (b'{"value": "v", "timestamp": -5}', "neither"),
    (b'{"value": "v", "headers": 5}', "an object or an array"), (b'{"value": "v", "headers": [["a"]]}', "headers are"),
    (b'{"value": {"base64": "?"}}', "value is not base64"), (b'{"value": {"hex": "0"}}', "value is not hex"),
    (b"[" * 100_000, "nested too deeply"),
])
def test_what_is_no_envelope_is_told_with_its_line(line, why):
    told = Told()
    slices = envelope_slices(iter([(1, [b'{"value": "v"}', line, b'{"value": "w"}'])]), Places(), told, False)
    assert joined(slices)["values"] == [b"v", b"w"]
    (number, text), = told.found
    assert number == 2
    assert why in text


def test_blank_lines_are_no_envelopes_and_no_mistakes():
    told = Told()
    assert envelopes(b"", {"value": "v"}, b"  ", told=told)["lines"] == [2]
    assert told.found == []


@pytest.mark.parametrize("content", [
    {"a": "1", "b": None}, [["a", "1"], ["b", None]], [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    [{"key": "a", "value": "1"}, {"key": "b", "value": None}], ["a", "1", "b", None],
])
def test_headers_have_four_forms(content):
    assert headers_of(content) == [("a", b"1"), ("b", None)]


def test_timestamps_are_milliseconds_or_iso_8601_with_an_offset():
    assert timestamp_of("2023-11-14T22:13:20.123Z") == 1_700_000_000_123
    assert timestamp_of("2023-11-14T23:13:20.123+01:00") == 1_700_000_000_123
    assert [timestamp_of(now) for now in (None, -1)] == [0, 0]
    with pytest.raises(ValueError, match="with an offset"):
        timestamp_of("2023-11-14T22:13:20")


def test_json_values_are_sent_byte_for_byte_with_a_field_as_the_key():
    told = Told()
    data = b'{"id": 7, "x": 1.10}\n{"id": null}\n{"x": 1}\nnope\n'
    found = joined(value_slices(numbered(data), Places(), told, "id", False))
    assert (found["values"], found["keys"]) == ([b'{"id": 7, "x": 1.10}', b'{"id": null}'], [b"7", None])
    assert [line for line, _ in told.found] == [3, 4]


def rows(data, told=None, **options):
    given = {"delimiter": ",", "header": True, "roles": {}, "encoding": "text", "limit": 1000, **options}
    found = csv_slices(numbered(data), Places(), told or Told(skip=False), CsvForm(**given))
    return joined(found)


def test_columns_of_csv_have_the_roles_they_are_called_like():
    data = (b'\xef\xbb\xbfkey,value,partition,timestamp,headers,other\n'
            b'k,"a ""b""\nc",1,17,"{""h"": ""x""}",o\nl,v,,,,o\n')
    found = rows(data)
    assert found["values"] == [b'a "b"\nc', b"v"]
    assert (found["keys"], found["partitions"], found["timestamps"]) == ([b"k", b"l"], [1, -1], [17, 0])
    assert found["headers"] == [[("h", b"x")], []]
    assert found["lines"] == [2, 4]


def test_all_columns_without_a_role_make_an_object():
    found = rows(b"id;a;b\n7;1;x\n", delimiter=";", roles={"value": "*", "key": "id"})
    assert (found["values"], found["keys"]) == ([b'{"a":"1","b":"x"}'], [b"7"])


def test_csv_without_names_has_numbered_columns():
    found = rows(b"a,1\nb,2\n", header=False, roles={"value": "2", "key": "1"})
    assert (found["values"], found["keys"]) == ([b"1", b"2"], [b"a", b"b"])


def test_a_column_that_is_not_there_is_wrong_usage_and_names_those_that_are():
    with pytest.raises(ConfigError, match=r"no column 'value'.*--value-column.*'a', 'b'"):
        rows(b"a,b\n1,2\n")
    with pytest.raises(ConfigError, match="more than one column 'value'"):
        rows(b"value,value\n1,2\n")


@pytest.mark.parametrize(("row", "why"), [
    (b"1", "1 fields where 3 columns are"), (b"v,x,", "partition 'x'"), (b"v,,yesterday", "timestamp 'yesterday'"),
])
def test_a_row_that_is_no_record_is_told_with_the_line_where_it_begins(row, why):
    told = Told()
    found = rows(b'value,partition,timestamp\n"a\nb",0,5\n' + row + b"\nc,1,6\n", told)
    assert found["values"] == [b"a\nb", b"c"]
    (number, text), = told.found
    assert (number, why in text) == (4, True)


def test_a_quote_without_an_end_is_told():
    told = Told()
    assert rows(b'value\na\n"b\n', told)["values"] == [b"a"]
    assert told.found[0][0] == 3


def test_places_are_told_by_file_and_line():
    places = Places()
    assert places.begin("a") == 0
    places.reached(5)
    assert places.begin("b") == 5
    assert [places.where(5), places.where(6), places.where(7, 10)] == ["a:5", "b:1", "b:2-4"]
