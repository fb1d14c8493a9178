"""Protobuf and JSON inside the source and the sink: a broker, a registry and a Spark, all real but small."""

import datetime
import json

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("google.protobuf")
pytest.importorskip("jsonschema_rs")

from tests.unit.schemas.columns.proto_messages import message_type, parsed

pytestmark = pytest.mark.spark

EVENT = {"title": "Event", "type": "object", "required": ["id"], "properties": {
    "id": {"type": "integer", "minimum": 0}, "at": {"type": "string", "format": "date-time"},
    "tags": {"type": "array", "items": {"type": "string"}}}}
ROWS = [(1, "a", [1.5, None], {"x": 1}, ("in", 2), datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)),
        (2, None, [], {}, None, None)]
TYPES = "id long, name string, l array<double>, m map<string,int>, s struct<t:string,n:int>, at timestamp"


@pytest.fixture
def options(world):
    return {"kafka.bootstrap.servers": world.bootstrap_servers, "schema.registry.url": world.registry_url}


@pytest.fixture
def read(spark, options, topic):
    def load(name, **more):
        given = {**options, "value.format": name, **more}
        return spark.read.format("headrace").options(**given).option("subscribe", topic).load()

    return load


@pytest.fixture
def write(options, topic):
    def save(frame, name, **more):
        (frame.write.format("headrace").options(**{**options, "value.format": name, **more})
         .option("topic", topic).mode("append").save())

    return save


@pytest.fixture
def produce(world, topic):
    def run(*payloads):
        from headrace import Producer

        with Producer({"bootstrap.servers": world.bootstrap_servers}) as producer:
            for payload in payloads:
                producer.produce(topic, value=payload, partition=0)
            assert producer.flush(30) == 0

    return run


@pytest.fixture
def readers(world):
    """Our deserializers and confluent_kafka's."""
    from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJson
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobuf

    from headrace.schema_registry.json_schema import JSONDeserializer
    from headrace.schema_registry.protobuf import ProtobufDeserializer
    from headrace.schema_registry.schema_registry_client import SchemaRegistryClient

    with SchemaRegistryClient({"url": world.registry_url}) as ours, TheirClient({"url": world.registry_url}) as theirs:
        yield {
            "protobuf": lambda kind: [ProtobufDeserializer(kind, schema_registry_client=ours),
                                      TheirProtobuf(kind, {"use.deprecated.format": False}, theirs)],
            "json-schema": lambda: [JSONDeserializer(None, schema_registry_client=ours),
                                    TheirJson(None, schema_registry_client=theirs)]}


def payloads(read):
    return [bytes(row.value) for row in read("raw").collect() if row.value is not None]


@pytest.mark.parametrize("name", ["protobuf", "json-schema", "json"])
def test_a_frame_is_written_and_comes_back_and_others_read_it(name, spark, read, write, readers, topic):
    from headrace.serialization import MessageField, SerializationContext

    frame = spark.createDataFrame(ROWS, TYPES)
    if name == "protobuf":  # its arrays have no nulls
        frame = frame.selectExpr("id", "name", "filter(l, x -> x is not null) AS l", "m", "s", "at")
    write(frame.selectExpr(f"struct({', '.join(frame.columns)}) AS value"), name)
    back = read(name, **({"value.schema": TYPES} if name == "json" else {})).select("value.*")
    rows = sorted(frame.collect(), key=lambda row: row.id)
    assert sorted(back.collect(), key=lambda row: row.id) == rows
    if name == "json-schema":
        found = [each(text, SerializationContext(topic, MessageField.VALUE))
                 for each in readers[name]() for text in payloads(read)]
        first = {"id": 1, "name": "a", "l": [1.5, None], "m": {"x": 1}, "s": {"t": "in", "n": 2},
                 "at": "2026-01-02T03:04:05.678901Z"}
        assert sorted(found, key=lambda each: each["id"]) == [first] * 2 + [{"id": 2, "l": [], "m": {}}] * 2


@pytest.mark.parametrize("name", ["protobuf", "json-schema", "json"])
def test_moments_are_written_and_read_in_a_session_of_any_zone(name, spark, read, write):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        write(spark.sql("SELECT struct(TIMESTAMP'1969-12-31 23:59:59.5Z' AS at) AS value"), name)
        found = read(name, **({"value.schema": "at timestamp"} if name == "json" else {}))
        assert found.selectExpr("string(value.at)").first()[0] == "1970-01-01 08:59:59.5"
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_protobuf_is_read_with_a_reader_of_another_language_and_written_for_it(spark, read, write, readers, topic):
    from headrace.serialization import MessageField, SerializationContext

    kind = message_type("shop.Order")
    frame = spark.sql("""SELECT struct(id AS a, concat('n', id) AS n, 'BLUE' AS color, array(1, 2) AS ints,
        map('k', cast(id AS int)) AS counts, struct('x' AS name) AS item, timestamp'2026-01-01' AS at,
        interval '1' second AS took) AS value FROM (SELECT cast(id AS int) AS id FROM range(4))""")
    write(frame, "protobuf", **{"value.schema": parsed("shop.Order").canonical()})
    for deserialize in readers["protobuf"](kind):
        found = [deserialize(each, SerializationContext(topic, MessageField.VALUE)) for each in payloads(read)]
        assert sorted((each.a, each.n, each.color, list(each.ints), dict(each.counts), each.item.name,
                       each.took.seconds) for each in found) == [
            (n, f"n{n}", 7, [1, 2], {"k": n}, "x", 1) for n in range(4)]
    back = read("protobuf").selectExpr("value.a", "value.color", "value.at", "value.took", "value.maybe", "value.texts")
    assert sorted(back.collect(), key=lambda row: row.a or 0) == [
        (n or None, "BLUE", datetime.datetime(2026, 1, 1), datetime.timedelta(seconds=1), None, []) for n in range(4)]


def test_malformed_values_fail_are_null_or_are_set_aside(spark, read, produce, topic, world):
    texts = [b'{"id":1}', b'{"id":"x"}', None, b'{"id":99999999999}', b'{"id":2']
    produce(*texts)
    given = {"value.schema": "id INT"}
    with pytest.raises(Exception, match=r"@1 cannot be read: field id: the value is no whole number.*and 2 more"):
        read("json", **given).collect()
    nulls = read("json", **given, **{"value.malformed": "null"}).select("offset", "value.id").collect()
    assert {row.offset: row.id for row in nulls} == {0: 1, 1: None, 2: None, 3: None, 4: None}
    kept = read("json", **given, **{"value.malformed": "dead-letter", "deadLetterTopic": f"{topic}-dead"})
    assert {row.offset for row in kept.collect()} == {0, 2}
    dead = (spark.read.format("headrace").option("kafka.bootstrap.servers", world.bootstrap_servers)
            .option("subscribe", f"{topic}-dead").load())
    assert {bytes(row.value) for row in dead.collect()} == {texts[1], texts[3], texts[4]}


def test_a_stream_turns_json_into_checked_json_and_protobuf(spark, options, topic, read, produce, world, tmp_path):
    from headrace.admin import AdminClient, NewTopic

    produce(b'{"id":1,"at":"2026-01-01T00:00:00Z","tags":["a"]}')
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers})
    stream = (spark.readStream.format("headrace").options(**options).option("subscribe", topic)
              .option("value.format", "json").option("value.schema", "id BIGINT, at TIMESTAMP, tags ARRAY<STRING>")
              .option("startingOffsets", "earliest").load().select("value"))
    queries = {}
    for name in ("protobuf", "json-schema"):
        admin.create_topics([NewTopic(f"{topic}-{name}", 1, 1)])[f"{topic}-{name}"].result()
        more = {"value.schema": json.dumps(EVENT), "value.validate": "true"} if name == "json-schema" else {}
        queries[name] = (stream.writeStream.format("headrace").options(**{**options, **more, "value.format": name})
                         .option("topic", f"{topic}-{name}").option("checkpointLocation", str(tmp_path / name)).start())
    try:
        for query in queries.values():
            query.processAllAvailable()
        produce(b'{"id":2}')
        for name, query in queries.items():
            query.processAllAvailable()
            rows = (spark.read.format("headrace").options(**options).option("value.format", name)
                    .option("subscribe", f"{topic}-{name}").load().select("value.*").collect())
            assert sorted((row.id, row.at, row.tags or []) for row in rows) == [
                (1, datetime.datetime(2026, 1, 1), ["a"]), (2, None, [])]
        produce(b'{"id":-1}')
        with pytest.raises(Exception, match="-1 is less than the minimum of 0"):
            queries["json-schema"].processAllAvailable()
    finally:
        for query in queries.values():
            query.stop()


def test_what_has_no_columns_is_said_when_the_query_is_planned(read, write, spark):
    with pytest.raises(Exception, match="the message type Node holds itself, so it has no columns: Node > Node"):
        read("protobuf", **{"value.schema": 'syntax = "proto3"; message Node { Node next = 1; }'})
    with pytest.raises(Exception, match="#/properties/a/type of the JSON Schema has no type of a column"):
        read("json-schema", **{"value.schema": '{"properties":{"a":{"type":["string","integer"]}}}'})
    with pytest.raises(Exception, match="format json needs"):
        read("json")
    with pytest.raises(Exception, match="field a is string, and the schema has int32: cast the column"):
        write(spark.sql("SELECT struct('x' AS a) AS value"), "protobuf",
              **{"value.schema": 'syntax = "proto3"; message M { int32 a = 1; }'})
