"""Schema numbers before payloads, a column at a time."""

import uuid

import pyarrow

from headrace.client.registry.schema_ids import SchemaId, prefix_schema_id_serializer
from headrace.schemas.columns.framing import FramedRows, put_on, split_message_indexes, split_off

GUID = "89791762-2336-4186-9674-299b90a802e2"


def binary(*values: bytes | None) -> pyarrow.Array:
    return pyarrow.array(values, pyarrow.binary())


def framed(body: bytes, schema_id: int, indexes: list[int] | None = None) -> bytes:
    """As confluent_kafka's serializers do it, and ours."""
    return prefix_schema_id_serializer(body, None, SchemaId("PROTOBUF", schema_id, message_indexes=indexes))


def test_payloads_of_one_schema_are_one_group_of_all_rows() -> None:
    split = split_off(binary(b"\0\0\0\0\x07abc", b"\0\0\0\0\x07", b"\0\0\0\0\x07x"))
    (group,) = split.groups
    assert (group.schema, group.rows, group.bodies.to_pylist()) == (7, None, [b"abc", b"", b"x"])
    assert split.malformed == {}


def test_payloads_of_several_schemas_are_told_apart_and_keep_their_rows() -> None:
    split = split_off(binary(framed(b"a", 7), None, framed(b"b", 1 << 31), framed(b"c", 7)))
    found = [(group.schema, group.rows.to_pylist(), group.bodies.to_pylist()) for group in split.groups]
    assert found == [(7, [0, 3], [b"a", b"c"]), (1 << 31, [2], [b"b"])]
    assert split.malformed == {}


def test_a_guid_takes_the_place_of_an_id() -> None:
    payload = b"\1" + uuid.UUID(GUID).bytes
    other = b"\1" + uuid.UUID(GUID).bytes[:15] + b"?"
    split = split_off(binary(payload + b"a", other + b"b", payload + b"c"))
    assert [(group.schema, group.bodies.to_pylist()) for group in split.groups] == [
        (GUID, [b"a", b"c"]), (str(uuid.UUID(bytes=other[1:])), [b"b"])]


def test_payloads_without_framing_are_malformed_and_the_reason_says_what_is_there() -> None:
    split = split_off(binary(b"", b"\0\0\0\0", b"\1" + b"g" * 15, b"{}", framed(b"good", 1)))
    assert [group.rows.to_pylist() for group in split.groups] == [[4]]
    assert split.malformed == {
        0: "the payload is empty: a schema's number should stand first",
        1: "the payload ends within the schema's number",
        2: "the payload ends within the schema's number",
        3: "the first byte is 123: 0 or 1, and a schema's number, should stand first"}


def test_a_column_of_nulls_and_one_of_nothing_have_no_groups() -> None:
    for column in (binary(None, None), binary()):
        split = split_off(column)
        assert (split.groups, split.malformed) == ([], {})


def test_a_slice_of_a_column_is_split_like_a_column_of_its_own() -> None:
    whole = binary(framed(b"x", 1), framed(b"a", 2), framed(b"b", 2), framed(b"y", 1))
    (group,) = split_off(whole.slice(1, 2)).groups
    assert (group.schema, group.bodies.to_pylist()) == (2, [b"a", b"b"])


def test_what_is_put_on_is_what_the_serializers_put_on() -> None:
    for indexes in (None, [0], [1], [2, 0, 300]):
        found = put_on(binary(b"a", None, b""), 42, indexes)
        assert found.to_pylist() == [framed(b"a", 42, indexes), None, framed(b"", 42, indexes)]
        assert found.type == pyarrow.binary()


def test_protobufs_first_message_stays_one_group() -> None:
    split = split_message_indexes(FramedRows(3, None, binary(b"\0ab", b"\0c")))
    (group,) = split.groups
    assert (group.rows, group.message_indexes, group.bodies.to_pylist()) == (None, (0,), [b"ab", b"c"])


def test_protobufs_messages_are_told_apart() -> None:
    column = put_on(binary(b"a", b"c"), 3, [1, 200]), put_on(binary(b"b"), 3, [0])
    bodies = [split_off(each).groups[0].bodies for each in column]
    rows = pyarrow.array([2, 5, 9], pyarrow.int32())
    split = split_message_indexes(FramedRows(3, rows, pyarrow.concat_arrays(bodies)))
    found = [(group.message_indexes, group.rows.to_pylist(), group.bodies.to_pylist()) for group in split.groups]
    assert found == [((1, 200), [2, 5], [b"a", b"c"]), ((0,), [9], [b"b"])]


def test_message_indexes_that_are_none_are_malformed_rows_of_the_whole_column() -> None:
    bodies = binary(b"", b"\xff\xff\xff\xff\xff\xff", b"\x04\x00", b"\x01", b"\x02\x01", b"\0good", None)
    rows = pyarrow.array([0, 10, 20, 30, 40, 50, 60], pyarrow.int32())
    split = split_message_indexes(FramedRows(3, rows, bodies))
    assert set(split.malformed) == {0, 10, 20, 30, 40}
    assert [group.rows.to_pylist() for group in split.groups] == [[50]]
