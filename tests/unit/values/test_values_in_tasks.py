"""What planning and tasks do with a registry, without Spark: the registry is one within the process."""

import io
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pyarrow = pytest.importorskip("pyarrow")
fastavro = pytest.importorskip("fastavro")

from headrace.client.registry.schema_registry_client import SchemaRegistryClient  # noqa: E402
from headrace.errors import ConfigError, SchemaRegistryError, SerializationError  # noqa: E402
from headrace.schemas.parsed import InvalidSchemaError  # noqa: E402
from headrace.spark.options import SinkOptions  # noqa: E402
from headrace.types.registry import Schema, SchemaReference  # noqa: E402
from headrace.values import registry_access, value_encoder  # noqa: E402
from headrace.values.decoded_batches import decoded_batches, raw_columns  # noqa: E402
from headrace.values.registry_access import RegistryAccess, UnknownSchemaError  # noqa: E402
from headrace.values.value_decoder import ValueDecoder  # noqa: E402
from headrace.values.value_encoder import ValueEncoder, encoded_columns  # noqa: E402
from headrace.values.value_format import ValueFormat  # noqa: E402
from headrace.values.value_planning import DecodedRead, planned_read, subject_of  # noqa: E402

OLD = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "int"}]}
NEW = {"type": "record", "name": "shop.Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": "-"}]}
OTHER = {"type": "record", "name": "shop.Payment", "fields": [{"name": "sum", "type": "int"}]}


@pytest.fixture
def url():
    return f"mock://{uuid.uuid4().hex}"


@pytest.fixture
def registry(url):
    with SchemaRegistryClient.new_client({"url": url}) as client:
        client.set_compatibility(level="NONE")
        yield client


def format_of(url="", side="value", **more):
    given = {f"{side}.format": "avro", **({"schema.registry.url": url} if url else {})}
    return ValueFormat.parse({**given, **{name.replace("_", "."): value for name, value in more.items()}}, side)


def framed(number, schema, value):
    out = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def binary(*payloads):
    return pyarrow.array(payloads, pyarrow.binary())


def register(registry, subject, schema):
    return registry.register_schema(subject, Schema(json.dumps(schema), "AVRO"))


def test_rows_of_several_schemas_are_read_into_the_one_that_was_planned(url, registry):
    old = register(registry, "t-value", OLD)
    planned = planned_read(format_of(url), ["t"])
    new = register(registry, "t-value", NEW)  # after planning
    other = register(registry, "x", OTHER)
    decoder = ValueDecoder(planned)
    found = decoder.decode(binary(framed(old, OLD, {"id": 1}), None, framed(other, OTHER, {"sum": 5}), b"?",
                                  framed(old, OLD, {"id": 3}), framed(9999, OLD, {"id": 4})))
    assert found.values.type == pyarrow.struct([pyarrow.field("id", pyarrow.int32(), nullable=False)])
    assert found.values.to_pylist() == [{"id": 1}, None, None, None, {"id": 3}, None]
    assert found.malformed == {
        2: "at /: shop.Payment cannot be read as shop.Order: neither its name nor an alias",
        3: "the first byte is 63: 0 or 1, and a schema's number, should stand first",
        5: "the registry has no schema 9999"}
    only = decoder.decode(binary(framed(new, NEW, {"id": 7})))
    assert only.malformed == {0: "at /id: long cannot be read as int"}
    wide = ValueDecoder(planned_read(format_of(url), ["t"]))
    assert wide.decode(binary(framed(old, OLD, {"id": 1}), framed(new, NEW, {"id": 2, "note": "n"}))
                       ).values.to_pylist() == [{"id": 1, "note": "-"}, {"id": 2, "note": "n"}]
    assert wide.decode(binary(framed(9999, OLD, {"id": 4}))).malformed == {0: "the registry has no schema 9999"}


def test_references_are_fetched_with_the_schema_and_a_guid_names_one_too(url, registry):
    register(registry, "order", OLD)
    text = json.dumps({"type": "record", "name": "Box", "fields": [{"name": "o", "type": "shop.Order"}]})
    number = registry.register_schema("t-value", Schema(text, "AVRO", [SchemaReference("shop.Order", "order", 1)]))
    decoder = ValueDecoder(planned_read(format_of(url), ["t"]))
    assert decoder.decode(binary(b"\0" + number.to_bytes(4, "big") + b"\x08")).values.to_pylist() == [{"o": {"id": 4}}]
    guid = registry.get_latest_version("t-value").guid
    if guid:
        assert decoder.decode(binary(b"\1" + uuid.UUID(guid).bytes + b"\x08")).values.to_pylist() == [{"o": {"id": 4}}]


def test_the_planned_schema_is_the_given_one_else_the_subjects(url, registry):
    with pytest.raises(ConfigError, match="no schema under subject t-value: register one, or name another by value"):
        planned_read(format_of(url), ["t"])
    register(registry, "t-value", OLD)
    register(registry, "t-value", NEW)
    register(registry, "shop.Order", OTHER)
    register(registry, "u-value", OTHER)

    def fields(of, topics=("t",)):
        return [each.name for each in planned_read(of, topics).data_type]

    assert fields(format_of(url)) == ["id", "note"]
    assert fields(format_of(url, value_schema_version="1")) == ["id"]
    assert fields(format_of(url, value_subject="u-value"), None) == ["sum"]
    by_record = {"value.subject.strategy": "record", "value.message": "shop.Order"}
    assert fields(format_of(url, **by_record), None) == ["sum"]
    assert fields(format_of(value_schema=json.dumps(OLD)), None) == ["id"]
    with pytest.raises(ConfigError, match="the subjects t-value, u-value have different schemas"):
        planned_read(format_of(url), ["t", "u"])
    with pytest.raises(ConfigError, match=r"give value.subject or value\.schema"):
        planned_read(format_of(url), None)
    with pytest.raises(ConfigError, match=r"needs a schema: give value\.schema, or schema\.registry\.url"):
        planned_read(format_of(), ["t"])
    with pytest.raises(InvalidSchemaError, match=r"^column value: at /: "):
        _ = planned_read(format_of(value_schema='{"type": "enum"}'), None).data_type


def test_subjects_are_named_by_the_strategy():
    def subject(record="", **more):
        return subject_of(format_of("mock://", **more), "t", record)

    assert subject() == "t-value"
    assert subject("shop.Order", **{"value.subject.strategy": "record"}) == "shop.Order"
    assert subject("shop.Order", **{"value.subject.strategy": "topic_record"}) == "t-shop.Order"
    assert subject(value_subject="s", **{"value.subject.strategy": "record"}) == "s"
    with pytest.raises(ConfigError, match="needs the record's full name"):
        subject(**{"value.subject.strategy": "record"})


def test_the_registrys_word_that_a_schema_is_not_there_is_kept_for_a_while(url, registry):
    now = [0.0]
    access = RegistryAccess({"url": url}, clock=lambda: now[0])
    with pytest.raises(UnknownSchemaError, match="the registry has no schema 1"):
        access.by_number(1)
    assert register(registry, "s", OLD) == 1
    with pytest.raises(UnknownSchemaError):
        access.by_number(1)
    now[0] = registry_access.NO_SUCH_SCHEMA_S + 1
    assert json.loads(access.by_number(1).text)["name"] == "shop.Order"


def test_a_registry_that_does_not_answer_fails_the_task_and_no_row():
    of = format_of("http://127.0.0.1:1", **{"schema.registry.max.retries": "0", "value.schema": json.dumps(OLD)})
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
        ValueDecoder(planned_read(of, ["t"])).decode(binary(framed(1, OLD, {"id": 1})))


ROW = pyarrow.array([{"id": 1}, None], pyarrow.struct([("id", pyarrow.int32())]))


def test_a_404_that_is_no_word_of_a_registry_fails_the_task_and_no_row():
    class NoRoute(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404)
            self.end_headers()
            self.wfile.write(b"<html>no route</html>")

        def log_message(self, *said):
            pass

    with HTTPServer(("127.0.0.1", 0), NoRoute) as proxy:
        serving = threading.Thread(target=proxy.serve_forever)
        serving.start()
        access = RegistryAccess({"url": f"http://127.0.0.1:{proxy.server_port}"})
        try:
            with pytest.raises(SchemaRegistryError, match="no route"):
                access.by_number(7)
            with pytest.raises(SchemaRegistryError, match="no route"):
                access.of_subject("t-value", None, "value")
        finally:
            proxy.shutdown()
            serving.join()


def test_a_frame_without_a_schema_registers_its_own_once(url, registry):
    encoder = ValueEncoder(format_of(url, value_message="shop.Made"), "t", ROW.type)
    found = registry.get_latest_version("t-value")
    assert json.loads(found.schema.schema_str)["name"] == "shop.Made"
    head = b"\0" + found.schema_id.to_bytes(4, "big")
    assert encoder.encode(ROW).to_pylist() == [head + b"\x02\x02", None]


def test_a_given_schema_is_registered_or_must_be_there(url, registry):
    given = {"value.schema": json.dumps(OLD)}
    with pytest.raises(ConfigError, match="not registered under subject t-value"):
        ValueEncoder(format_of(url, **given, **{"value.auto.register": "false"}), "t", ROW.type)
    ValueEncoder(format_of(url, **given), "t", ROW.type)
    number = registry.get_latest_version("t-value").schema_id
    again = ValueEncoder(format_of(url, **given, **{"value.auto.register": "false"}), "t", ROW.type)
    assert again.encode(ROW).to_pylist()[0] == b"\0" + number.to_bytes(4, "big") + b"\x02"


def test_the_latest_schema_or_a_version_is_written_when_asked_for(url, registry):
    first = register(registry, "t-value", OLD)
    register(registry, "t-value", NEW)
    latest = ValueEncoder(format_of(url, **{"value.use.latest": "true"}), "t", ROW.type)
    assert latest.encode(ROW).to_pylist()[0][5:] == b"\x02\x02-"
    version = ValueEncoder(format_of(url, **{"value.schema.version": "1"}), "t", ROW.type)
    assert version.encode(ROW).to_pylist()[0] == framed(first, OLD, {"id": 1})


def test_a_frame_that_does_not_fit_registers_nothing(url, registry):
    with pytest.raises(SerializationError, match=r"column value: at /: .* no field id"):
        ValueEncoder(format_of(url, **{"value.schema": json.dumps(OTHER)}), "t", ROW.type)
    assert registry.get_subjects() == []
    with pytest.raises(InvalidSchemaError, match="column value: at /: "):
        ValueEncoder(format_of(url, **{"value.schema": '{"type": "enum"}'}), "t", ROW.type)


def test_each_topic_of_a_frame_has_its_own_subject_and_a_process_asks_once(url, registry, monkeypatch):
    made = []
    monkeypatch.setattr(value_encoder, "ValueEncoder", lambda *given: made.append(given[1]) or ValueEncoder(*given))
    options = SinkOptions.parse({"kafka.bootstrap.servers": "a:1", "value.format": "avro", "schema.registry.url": url})
    for topic in ("a", "b", "a"):
        columns = encoded_columns((options.key, options.value), topic, {"value": ROW, "topic": None})
        assert columns["value"].type == pyarrow.binary()
    assert made == ["a", "b"]
    assert sorted(registry.get_subjects()) == ["a-value", "b-value"]


def batch(*payloads):
    rows = len(payloads)
    return pyarrow.RecordBatch.from_pydict({
        "key": binary(*[b"k"] * rows), "value": binary(*payloads), "topic": ["t"] * rows,
        "partition": pyarrow.array([2] * rows, pyarrow.int32()), "offset": pyarrow.array(range(40, 40 + rows))})


def decoded(planned_options, *batches, texts=()):
    of = format_of(value_schema='"int"', **planned_options)
    read = DecodedRead({"value": planned_read(of, None)}, texts)
    return list(decoded_batches(read, ["offset", "value", *texts], batches))


def test_batches_have_the_columns_that_were_asked_for():
    (found,) = decoded({}, batch(b"\x02", None), texts=("key",))
    assert found.to_pydict() == {"offset": [40, 41], "value": [1, None], "key": ["k", "k"]}
    assert found.schema.field("key").type == pyarrow.string()


def test_a_malformed_value_is_named_by_topic_partition_and_offset():
    with pytest.raises(SerializationError, match=r"the value of t\[2\]@41 cannot be read: at /: the payload ends too ea"
                                                 r"rly \(and 1 more in the batch\)\. Set value\.malformed"):
        decoded({}, batch(b"\x02", b"", b"\xff"))


def test_malformed_values_may_be_null():
    (found,) = decoded({"value_malformed": "null"}, batch(b"\x02", b"", b"\x04"))
    assert found.to_pydict() == {"offset": [40, 41, 42], "value": [1, None, 2]}


class Letters:
    """A dead-letter topic that keeps what is written."""

    def __init__(self):
        self.opened, self.told, self.calls = 0, [], []

    def __call__(self, of):
        self.opened += 1
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.calls.append("closed")

    def write(self, batch, dead):
        self.told += [(batch.column("offset")[row].as_py(), *why) for row, why in sorted(dead.items())]

    def finish(self):
        self.calls.append("stored")


def test_malformed_records_may_be_set_aside_and_the_others_are_kept_in_their_order():
    letters = Letters()
    given = {"value": format_of(value_schema='"int"', value_malformed="dead-letter"),
             "key": format_of(side="key", key_schema='"string"', key_malformed="dead-letter")}
    read = DecodedRead({name: planned_read(each, None) for name, each in given.items()})
    good, bad = batch(b"\x02").set_column(0, "key", binary(b"\x02k")), batch(b"", b"\x04", b"\x06")
    bad = bad.set_column(0, "key", binary(b"\x02a", b"", b"\x02c"))
    found = list(decoded_batches(read, ["offset", "value", "key"], [good, bad, bad], letters))
    assert [each.to_pylist() for each in found] == [
        [{"offset": 40, "value": 1, "key": "k"}], *[[{"offset": 42, "value": 3, "key": "c"}]] * 2]
    assert [(offset, side) for offset, side, _ in letters.told] == [(40, "value"), (41, "key")] * 2
    assert (letters.opened, letters.calls) == (1, ["stored", "closed"])


def test_nowhere_is_opened_for_malformed_records_where_there_are_none():
    letters = Letters()
    read = DecodedRead({"value": planned_read(format_of(value_schema='"int"', value_malformed="dead-letter"), None)})
    (found,) = decoded_batches(read, ["value"], [batch(b"\x02", None)], letters)
    assert found.to_pylist() == [{"value": 1}, {"value": None}]
    assert letters.opened == 0


def test_only_what_is_needed_is_read():
    def raw(malformed, *columns):
        of = DecodedRead({"value": planned_read(format_of(value_schema='"int"', value_malformed=malformed), None)})
        return raw_columns(of, columns)

    assert raw("null", "value") == ["value"]
    assert raw("fail", "value") == ["value", "topic", "partition", "offset"]
    assert raw("dead-letter", "value", "offset") == ["value", "offset", "topic", "partition", "key", "headers"]
    assert raw("fail", "key", "offset") == ["key", "offset"]


def test_text_that_is_not_utf_8_gets_replacement_characters():
    broken = pyarrow.RecordBatch.from_pydict({"key": binary(b"a", b"\xff", None)})
    (found,) = decoded_batches(DecodedRead({}, ("key",)), ["key"], [broken])
    assert found.to_pydict() == {"key": ["a", "�", None]}
