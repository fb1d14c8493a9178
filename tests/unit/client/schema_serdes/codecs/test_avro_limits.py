"""What bytes of Avro may ask for."""

import io
import json
import random
import time

import fastavro
import pytest

from headrace.client.schema_serdes.codecs.avro_codec import parsed, reader_of
from headrace.client.schema_serdes.codecs.avro_limits import (
    MAX_DECIMAL_BYTES,
    MAX_DEPTH,
    MAX_EMPTY_ITEMS,
    MAX_VALUES_PER_BYTE,
    check_nesting,
    payload_check,
)
from headrace.errors import SerializationError
from tests.support.peak_memory import peak_bytes

LIST = '{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}'
TREE = '{"type":"record","name":"T","fields":[{"name":"of","type":{"type":"array","items":"T"}}]}'
NULLS = '{"type":"array","items":"null"}'
NOTHINGS = ('{"type":"array","items":{"type":"record","name":"N","fields":[{"name":"a","type":"null"},{"name":"b",'
            '"type":{"type":"fixed","name":"F","size":0}}]}}')


def long(value: int) -> bytes:
    value, made = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def checked(text: str):
    schema = parsed(text)
    return payload_check(schema.content, schema.names)


@pytest.mark.parametrize("text", [
    '"int"', '["null","string"]', '{"type":"array","items":"int"}', '{"type":"map","values":"null"}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":["null","int"]}}]}'])
def test_a_schema_that_bounds_its_values_needs_no_check(text) -> None:
    assert checked(text) is None


@pytest.mark.parametrize(("text", "payload"), [
    (f'{{"type":"map","values":{LIST}}}', b"\2\0" + b"\2" * 100_000), (f'["null",{LIST}]', b"\2" * 100_000),
    (f'{{"type":"array","items":["null",{LIST}]}}', b"\2" * 100_000), (LIST, b"\2" * 100_000),
    (LIST, b"\2" * 1_000_000 + b"\0"), (TREE, b"\2" * 100_000)])
def test_values_that_nest_too_deep_are_an_error_and_do_not_end_the_process(text, payload) -> None:
    with pytest.raises(SerializationError, match="nest deeper"):
        reader_of(parsed(text))(payload)


@pytest.mark.parametrize("text", [NULLS, NOTHINGS])
@pytest.mark.parametrize("count", [MAX_EMPTY_ITEMS + 1, 1 << 40, (1 << 63) - 1])
def test_an_array_that_claims_items_without_bytes_is_refused_at_once(text, count) -> None:
    read = reader_of(parsed(text))

    def refused() -> None:
        began = time.process_time()
        with pytest.raises(SerializationError, match="items without bytes"):
            read(long(count) + b"\0")
        assert time.process_time() - began < 1

    assert peak_bytes(refused) < 1_000_000


def test_many_small_arrays_of_nothing_count_together() -> None:
    with pytest.raises(SerializationError, match="items without bytes"):
        reader_of(parsed(NULLS))((long(MAX_EMPTY_ITEMS) + long(1)) + b"\0")
    assert reader_of(parsed(NULLS))(long(3) + b"\0") == [None] * 3


@pytest.mark.parametrize("count", [1 << 40, (1 << 63) - 1, -1, -(1 << 63)])
@pytest.mark.parametrize("kind", ['"string"', '"bytes"', '{"type":"array","items":"int"}',
                                  '{"type":"map","values":"int"}', TREE])
def test_lengths_that_are_not_there_are_errors_within_little_memory(kind, count) -> None:
    text = f'{{"type":"record","name":"R","fields":[{{"name":"a","type":{kind}}},{{"name":"z","type":"double"}}]}}'

    def refused() -> None:
        with pytest.raises(SerializationError):
            reader_of(parsed(text))(long(count) + b"\1\1")

    assert peak_bytes(refused) < 1_000_000


def doubling(times: int, kind: object, name: str = "D") -> object:
    """A record of two records of two records ..., of which the last have two fields of a type."""
    made = kind
    for at in range(times + 1):
        made = {"type": "record", "name": f"{name}{at}", "fields": [
            {"name": "a", "type": made}, {"name": "b", "type": f"{name}{at - 1}" if at else kind}]}
    return made


def wide(fields: int) -> object:
    return {"type": "record", "name": "W", "fields": [{"name": f"f{at}", "type": "null"} for at in range(fields)]}


@pytest.mark.parametrize(("schema", "payload"), [
    (doubling(60, "null"), b""), (["null", doubling(60, "null")], b"\2"),
    ({"type": "array", "items": doubling(20, "null")}, b"\2\0"),
    ({"type": "map", "values": doubling(20, "null")}, b"\2\2k\0"), (doubling(60, json.loads(NULLS)), b"\0" * 999),
    ({"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L", doubling(20, "null")]}]}, b"\4"),
    ({"type": "array", "items": {"type": "record", "name": "B", "fields": [
        {"name": "b", "type": "boolean"}, {"name": "w", "type": wide(5000)}]}}, b"\x82\1" + b"\1" * 65 + b"\0"),
    (wide(MAX_EMPTY_ITEMS + MAX_VALUES_PER_BYTE), b"")])
def test_records_of_many_values_and_few_bytes_are_refused_at_once(schema, payload) -> None:
    read = reader_of(parsed(json.dumps(schema)))

    def refused() -> None:
        began = time.process_time()
        with pytest.raises(SerializationError, match=r"values for each of its|items without bytes|ends within"):
            read(payload)
        assert time.process_time() - began < 2

    assert peak_bytes(refused) < 5_000_000


def test_a_record_of_many_values_is_read_where_it_has_bytes_for_them() -> None:
    text = json.dumps(doubling(12, "int"))
    assert checked(text) is None
    read = reader_of(parsed(text))
    assert read(b"\2" * 8192)["a"]["b"]
    some = parsed(json.dumps(doubling(11, "null")))
    assert payload_check(some.content, some.names) is not None
    assert reader_of(some)(b"")["a"]["b"]


def nested(levels: int) -> dict:
    value = None
    for _ in range(levels):
        value = {"next": value}
    return {"next": value}


def test_values_within_the_bounds_are_read() -> None:
    schema = parsed(LIST)
    payload = b"\2" * 200 + b"\0"
    assert reader_of(schema)(payload) == nested(200)


@pytest.mark.parametrize("seed", range(20))
def test_the_check_takes_what_fastavro_wrote(seed) -> None:
    text = """{"type":"record","name":"R","fields":[
        {"name":"m","type":{"type":"map","values":["null","R","long",{"type":"array","items":"null"}]}},
        {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},
        {"name":"f","type":{"type":"fixed","name":"F","size":3}},
        {"name":"s","type":["string","bytes","boolean","float","double",{"type":"array","items":"E"}]}]}"""
    chance = random.Random(seed)

    def record(left: int) -> dict:
        inner = [None, chance.getrandbits(60), [None] * chance.randrange(4)]
        inner += [record(left - 1)] if left else []
        return {"m": {str(at): chance.choice(inner) for at in range(chance.randrange(4))}, "e": chance.choice("AB"),
                "f": b"abc", "s": chance.choice(["text", b"bytes", True, 1.5, ["A", "B"]])}

    schema, out = parsed(text), io.BytesIO()
    value = record(4)
    fastavro.schemaless_writer(out, schema.content, value)
    check = checked(text)
    assert check is not None
    check(out.getvalue())
    assert reader_of(schema)(out.getvalue()) == value
    for size in range(0, len(out.getvalue()), 7):
        with pytest.raises(SerializationError):
            check(out.getvalue()[:size])


@pytest.mark.parametrize("text", [
    '{"type":"record","name":"R","fields":[{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9}}]}',
    '{"type":"array","items":["null",{"type":"bytes","logicalType":"decimal","precision":9}]}'])
def test_a_decimal_of_too_many_digits_is_refused_at_once(text) -> None:
    read, began = reader_of(parsed(text)), time.process_time()
    with pytest.raises(SerializationError, match="a decimal of 1000000 bytes"):
        read((b"\2\2" if "array" in text else b"") + long(1_000_000) + b"\x7f" * 1_000_000)
    assert time.process_time() - began < 1
    assert read((b"\2\2" if "array" in text else b"") + long(MAX_DECIMAL_BYTES) + b"\x7f" * MAX_DECIMAL_BYTES + b"\0")


def test_a_fixed_decimal_of_too_many_digits_is_refused_with_its_schema() -> None:
    with pytest.raises(SerializationError, match="decimals of 5000 bytes"):
        checked('{"type":"fixed","name":"D","size":5000,"logicalType":"decimal","precision":9}')


@pytest.mark.parametrize("size", ['"3"', "-1", "null", "1.5", "[]", "true"])
@pytest.mark.parametrize("more", ["", ',"logicalType":"decimal","precision":2'])
def test_a_fixed_type_whose_size_is_no_size_is_refused_with_its_schema(size, more) -> None:
    with pytest.raises(SerializationError):
        reader_of(parsed(f'{{"type":"array","items":{{"type":"fixed","name":"F","size":{size}{more}}}}}'))


def test_a_type_that_contains_itself_at_once_has_no_values() -> None:
    schema = parsed('{"type":"record","name":"R","fields":[{"name":"again","type":"R"}]}')
    with pytest.raises(SerializationError, match="contains itself"):
        payload_check(schema.content, schema.names)


def test_types_that_lead_to_one_another_in_a_long_line_are_refused() -> None:
    chain = [{"type": "record", "name": "R0", "fields": []}] + [
        {"type": "record", "name": f"R{at}", "fields": [{"name": "n", "type": f"R{at - 1}"}]}
        for at in range(1, 3 * MAX_DEPTH)]
    names: dict = {}
    schema = fastavro.parse_schema(chain, named_schemas=names)
    with pytest.raises(SerializationError, match="nest deeper"):
        payload_check(schema, names)


@pytest.mark.parametrize("levels", [MAX_DEPTH + 2, 10_000])
def test_a_schema_that_nests_too_deep_is_refused(levels) -> None:
    schema: object = "int"
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SerializationError, match="nest deeper"):
        check_nesting(schema)
    check_nesting(["int"] * levels)
