"""The pages about Spark: each of their programs runs."""

import pytest

import headrace.spark
from headrace import Producer
from headrace.spark import by_partition
from headrace.testing import EmbeddedBroker
from tests.support.pages import DOCS, programs_of

pytest.importorskip("pyspark")
for package in ("fastavro", "httpx2"):
    pytest.importorskip(package)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

(FROM_CONNECTOR,) = programs_of(DOCS / "how-to/from-sparks-connector.md")
READ, LAG = programs_of(DOCS / "how-to/spark-source.md")
DECODE, ENCODE, JSON = programs_of(DOCS / "how-to/spark-values.md")
ONCE, TRANSACTION = programs_of(DOCS / "how-to/spark-guarantees.md")


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"orders": 1, "orders-rejected": 1, "prices": 1}, registry=True) as broker:
        yield broker


@pytest.fixture
def run(spark, broker, tmp_path):
    """Runs a program, with the addresses of what is there, and gives its names."""
    names = {"spark": spark, "headrace": headrace, "servers": broker.bootstrap_servers}

    def runs(program):
        for written, address in {"localhost:9092": broker.bootstrap_servers, "broker:9092": broker.bootstrap_servers,
                                 "http://localhost:8081": broker.registry_url, "/data/": f"{tmp_path}/"}.items():
            program = program.replace(written, address)
        exec(compile(program, "page", "exec"), names)
        return names

    return runs


@pytest.fixture
def ended(spark):
    """Has queries read all there is, and end."""
    def end():
        for query in spark.streams.active:
            query.processAllAvailable()
            query.stop()

    yield end
    for query in spark.streams.active:
        query.stop()


def test_a_program_of_sparks_connector_changes_one_word(run):
    before, after = FROM_CONNECTOR.splitlines()
    assert after == before.replace("before =", "after =").replace('"kafka"', '"headrace"')
    assert run(after)["after"].isStreaming


def test_a_stream_is_read_and_its_lag_is_known(run, broker, capsys, tmp_path):
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("orders", "1")
    names = run(READ)
    query = names["frame"].writeStream.format("noop").trigger(availableNow=True)
    names["query"] = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    names["query"].awaitTermination()
    assert run(LAG)["behind"] == {("orders", 0): 0}
    assert capsys.readouterr().out == "0 0\n"


def test_values_are_columns_both_ways(run, broker, spark, ended):
    registry = {"schema.registry.url": broker.registry_url, "kafka.bootstrap.servers": broker.bootstrap_servers}
    orders = spark.sql("SELECT 'k' AS key, struct('Anna' AS customer, 12.5D AS price) AS value")
    orders.write.format("headrace").options(**registry, **{"value.format": "avro"}).option("topic", "orders").save(
        mode="append")
    assert run(DECODE)["frame"].columns[:2] == ["key", "value"]
    run(DECODE.replace(".load()", '.option("startingOffsets", "earliest").load()'))
    run(ENCODE)
    ended()
    read = spark.read.format("headrace").options(**registry, **{"value.format": "avro"})
    assert [tuple(row) for row in read.option("subscribe", "prices").load().select("value.*").collect()] == [
        ("Anna", 12.5)]


def test_json_is_read_by_a_schema_that_is_given(run):
    given = "".join(JSON.splitlines())
    where = '.option("kafka.bootstrap.servers", servers).option("subscribe", "orders")'
    frame = run(f'frame = spark.read.format("headrace"){where}{given}.load()')["frame"]
    assert frame.select("value.*").columns == ["id", "at", "price", "tags"]


def test_a_query_writes_exactly_once_and_a_function_writes_two_topics(run, broker, spark, ended, tmp_path):
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("prices", "1")
    names = run(READ.replace('"orders"', '"prices"'))
    names["stream"] = by_partition(names["frame"].selectExpr("value"), {"topic": "orders", "kafka.bootstrap.servers":
                                                                        broker.bootstrap_servers})
    writer = f'query = {ONCE.strip()}.option("topic", "orders").option("kafka.bootstrap.servers", servers)'
    run(f'{writer}.option("checkpointLocation", "{tmp_path}/once").start()')
    names["rows"] = names["frame"].selectExpr("value", "CAST(CAST(value AS STRING) AS INT) AS amount")
    run(TRANSACTION.replace("rows.where(\"amount >= 0\")", "rows.where(\"amount >= 0\").select(\"value\")")
        .replace("rows.where(\"amount < 0\")", "rows.where(\"amount < 0\").select(\"value\")"))
    ended()
    # The query wrote a record and its marker, and so did the function: of the other topic it had no rows.
    assert broker.end_offsets("orders") == [4]
    assert broker.end_offsets("orders-rejected") == [0]
