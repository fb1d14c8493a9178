"""Avro inside the source and the sink: a broker, a registry and a Spark, all real but small."""

import datetime
import decimal
import json

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"}, {"name": "customer", "type": "string"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}}]}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def options(world):
    return {"kafka.bootstrap.servers": world.bootstrap_servers, "schema.registry.url": world.registry_url,
            "value.format": "avro"}


@pytest.fixture
def read(spark, options, topic):
    def load(**more):
        return spark.read.format("headrace").options(**{**options, **more}).option("subscribe", topic).load()

    return load


@pytest.fixture
def produce_avro(world, topic):
    """Writes values by our serializer, which registers their schema."""
    from headrace import Producer
    from headrace.schema_registry.avro import AvroSerializer
    from headrace.schema_registry.schema_registry_client import SchemaRegistryClient
    from headrace.serialization import MessageField, SerializationContext

    def run(schema, values, partition=0):
        with (SchemaRegistryClient({"url": world.registry_url}) as registry,
              Producer({"bootstrap.servers": world.bootstrap_servers}) as producer):
            serialize = AvroSerializer(registry, json.dumps(schema))
            for value in values:
                given = value if isinstance(value, bytes | None) else serialize(
                    value, SerializationContext(topic, MessageField.VALUE))
                producer.produce(topic, value=given, key=b"k", partition=partition, headers=[("h", b"1")])
            assert producer.flush(30) == 0

    return run


def order(n, **more):
    return {"id": n, "customer": f"c{n}", "price": decimal.Decimal(n) / 4, "tags": ["a"] * (n % 3),
            "at": START + datetime.timedelta(milliseconds=n), **more}


def naive(value):
    """As Spark's session in UTC collects it."""
    return {**value, "at": value["at"].replace(tzinfo=None)}


def test_values_are_struct_columns_and_old_and_new_schemas_are_read_into_one(read, produce_avro):
    produce_avro(ORDER, [order(n) for n in range(5)])
    produce_avro(NEWER, [order(n, note=f"n{n}") for n in range(5, 8)], partition=1)
    frame = read()
    produced = [order(n, note=None) for n in range(5)] + [order(n, note=f"n{n}") for n in range(5, 8)]
    assert dict(frame.dtypes)["value"] == (
        "struct<id:bigint,customer:string,price:decimal(9,2),at:timestamp,tags:array<string>,note:string>")
    assert [each.nullable for each in frame.schema["value"].dataType] == [False] * 5 + [True]
    rows = sorted(frame.select("value.*").collect(), key=lambda row: row.id)
    assert [row.asDict() for row in rows] == [naive(each) for each in produced]


def test_a_readers_schema_chooses_fields(read, produce_avro):
    produce_avro(ORDER, [order(n) for n in range(3)])
    wanted = {"type": "record", "name": "Order", "fields": [
        {"name": "number", "aliases": ["id"], "type": "double"}, {"name": "kind", "type": "string", "default": "web"}]}
    frame = read(**{"value.schema": json.dumps(wanted)})
    assert sorted(tuple(row) for row in frame.select("value.*").collect()) == [(float(n), "web") for n in range(3)]


def test_malformed_values_fail_are_null_or_are_set_aside(read, produce_avro, topic, world, spark):
    good = [order(n) for n in range(3)]
    produce_avro(ORDER, [good[0], b"{}", good[1], None, b"\0\0\0\x7f\x7frest", good[2]])
    with pytest.raises(Exception, match=rf"the value of {topic}\[0\]@1 cannot be read: the first byte is 123.*"
                                        r"and 1 more in the batch.*value.malformed"):
        read().collect()

    nulls = read(**{"value.malformed": "null"}).select("offset", "value.id").collect()
    assert {row.offset: row.id for row in nulls} == {0: 0, 1: None, 2: 1, 3: None, 4: None, 5: 2}

    kept = read(**{"value.malformed": "dead-letter", "deadLetterTopic": f"{topic}-dead"}).select("offset", "value.id")
    assert {row.offset: row.id for row in kept.collect()} == {0: 0, 2: 1, 3: None, 5: 2}
    dead = (spark.read.format("headrace").option("kafka.bootstrap.servers", world.bootstrap_servers)
            .option("subscribe", f"{topic}-dead").option("includeHeaders", "true").load().collect())
    assert {bytes(row.value) for row in dead} == {b"{}", b"\0\0\0\x7f\x7frest"}
    headers = {each.key: bytes(each.value).decode() for each in dead[1].headers}
    assert headers.pop("__connect.errors.exception.message") == "the registry has no schema 32639"
    assert headers == {"h": "1", "__connect.errors.topic": topic, "__connect.errors.partition": "0",
                       "__connect.errors.offset": "4", "__connect.errors.stage": "VALUE_CONVERTER"}
    assert {bytes(row.key) for row in dead} == {b"k"}


def test_a_stream_reads_schemas_that_are_new_to_it_and_writes_another_topic(
    spark, options, topic, produce_avro, world, tmp_path
):
    from headrace.admin import AdminClient, NewTopic

    produce_avro(ORDER, [order(1)])
    other = f"{topic}-copy"
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers})
    admin.create_topics([NewTopic(other, 1, 1)])[other].result()
    stream = (spark.readStream.format("headrace").options(**options).option("subscribe", topic)
              .option("value.schema", json.dumps(ORDER)).option("startingOffsets", "earliest").load())

    def copy_what_is_there():
        query = (stream.selectExpr("value.customer AS key", "value").writeStream.format("headrace").options(**options)
                 .option("topic", other).option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
                 .start())
        assert query.awaitTermination(100)

    copy_what_is_there()
    produce_avro(NEWER, [order(2, note="new")])
    copy_what_is_there()
    rows = spark.read.format("headrace").options(**options).option("subscribe", other).load()
    assert {(row.key and bytes(row.key), row.id, row.customer) for row in
            rows.select("key", "value.id", "value.customer").collect()} == {(b"c1", 1, "c1"), (b"c2", 2, "c2")}
    assert {each.name for each in rows.schema["value"].dataType} == {each["name"] for each in ORDER["fields"]}


def test_a_frame_registers_its_schema_and_other_deserializers_read_what_it_wrote(
    spark, options, topic, world, read
):
    from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer as Theirs
    from confluent_kafka.serialization import MessageField, SerializationContext

    from headrace.schema_registry.avro import AvroDeserializer as Ours
    from headrace.schema_registry.schema_registry_client import SchemaRegistryClient

    frame = spark.createDataFrame(
        [(1, "a", [1, None], {"x": 1.5}, True, ("in", 2)), (2, None, [], {}, None, None)],
        "id long, name string, l array<int>, m map<string,double>, b boolean, s struct<t:string,n:int>")
    columns = ", ".join(frame.columns)
    (frame.selectExpr(f"struct({columns}) AS value", "struct(id) AS key").write.format("headrace")
     .options(**options).option("key.format", "avro").option("topic", topic).mode("append").save())
    read_back = read(**{"key.format": "avro"})
    assert sorted(read_back.select("value.*").collect(), key=lambda row: row.id) == frame.collect()
    assert {row.id for row in read_back.select("key.id").collect()} == {1, 2}

    payloads = [bytes(row.value) for row in read(**{"value.format": "raw"}).collect()]
    with SchemaRegistryClient({"url": world.registry_url}) as registry, TheirClient(
            {"url": world.registry_url}) as theirs:
        readers = [Ours(registry), Theirs(theirs)]
        for deserialize in readers:
            found = [deserialize(each, SerializationContext(topic, MessageField.VALUE)) for each in payloads]
            assert sorted(found, key=lambda each: each["id"]) == [
                {"id": 1, "name": "a", "l": [1, None], "m": {"x": 1.5}, "b": True, "s": {"t": "in", "n": 2}},
                {"id": 2, "name": None, "l": [], "m": {}, "b": None, "s": None}]
        assert registry.get_latest_version(f"{topic}-key").version == 1


def test_what_cannot_be_written_is_said_in_the_driver(spark, options, topic):
    frame = spark.createDataFrame([(1,)], "id long")

    def write(value, **more):
        (frame.selectExpr(f"{value} AS value").write.format("headrace").options(**{**options, **more})
         .option("topic", topic).mode("append").save())

    with pytest.raises(Exception, match="at /id: a column of type int64 cannot be written as string: cast it"):
        write("struct(id)", **{"value.schema": '{"type":"record","name":"R","fields":[{"name":"id","type":"string"}]}'})
    with pytest.raises(Exception, match=f"no schema under subject {topic}-value"):
        write("struct(id)", **{"value.use.latest": "true"})
    write("struct(id)", **{"value.schema": '{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}'})
    with pytest.raises(Exception, match="409"):
        write("struct(id AS number)")


def test_credentials_of_the_registry_show_nowhere(spark, world, topic, produce_avro, capfd):
    produce_avro(ORDER, [order(1), b"bad"])
    options = {"kafka.bootstrap.servers": world.bootstrap_servers, "schema.registry.url": world.registry_url,
               "schema.registry.basic.auth.user.info": "reader:s3cr3t-word", "value.format": "avro"}
    frame = spark.read.format("headrace").options(**options).option("subscribe", topic).load()
    plans = frame._jdf.queryExecution().toString() + frame._jdf.queryExecution().simpleString()
    with pytest.raises(Exception, match="cannot be read") as caught:
        frame.collect()
    captured = capfd.readouterr()
    assert "s3cr3t-word" not in plans + str(caught.value) + captured.out + captured.err


def test_columns_have_the_types_and_values_of_sparks_own_from_avro(spark, read, produce_avro, topic):
    """Spark's classes for Avro come with pyspark; only the function `from_avro` is in a jar of its own."""
    from headrace.schemas.avro import parse_avro
    from headrace.schemas.columns.avro_columns import AvroColumns
    from headrace.spark.values.spark_types import spark_type_of

    logical = [("int", "date"), ("int", "time-millis"), ("long", "time-micros"), ("long", "timestamp-millis"),
               ("long", "timestamp-micros"), ("long", "local-timestamp-millis"), ("long", "local-timestamp-micros"),
               ("string", "uuid")]
    types = [{"type": kind, "logicalType": name} for kind, name in logical]
    types += [
        "boolean", "int", "long", "float", "double", "bytes", "string", "null", ["null", "int"], ["int", "long"],
        ["null", "long", "int"], ["float", "double"], ["int", "string"], ["null", "int", "string"], ["int"],
        {"type": "array", "items": ["null", "int"]}, {"type": "map", "values": "int"},
        {"type": "enum", "name": "e", "symbols": ["A"]}, {"type": "fixed", "name": "f", "size": 3},
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        {"type": "fixed", "name": "g", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
        {"type": "fixed", "name": "h", "size": 2, "logicalType": "decimal", "precision": 10},
        {"type": "record", "name": "r", "fields": [{"name": "x", "type": {"type": "array", "items": "string"}}]}]
    text = json.dumps({"type": "record", "name": "All", "fields": [
        {"name": f"f{index}", "type": each} for index, each in enumerate(types)]})
    jvm = spark._jvm
    theirs = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(jvm.org.apache.avro.Schema.Parser().parse(text))
    ours = spark_type_of(AvroColumns(parse_avro(text)).data_type)
    assert ours.jsonValue() == json.loads(theirs.dataType().json())
