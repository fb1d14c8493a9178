"""Pipelines in a real Spark: tables that are held and read anew, rows that are written again when they grow."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from headrace import Consumer, Message, TopicPartition
from headrace.cli.run import main

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

PIPELINE = """
[pipeline]
name = "sums"
checkpoint = "checkpoint"
trigger = "{trigger}"

[[source]]
name = "sales"
topic = "{sales}"
format = "json"
schema = "item INT, amount INT"
options.maxOffsetsPerTrigger = {most}

[[table]]
name = "items"
{table}
schema = "item INT, name STRING"
{refresh}

[[step]]
name = "sums"
sql = "SELECT name, sum(amount) AS total, count(*) AS sales FROM sales JOIN items USING (item) GROUP BY name"

[[sink]]
from = "sums"
topic = "{sums}"
mode = "update"
key = "name"
{options}
"""
PATIENCE_S = 120


@pytest.fixture
def topics(java, make_topic):
    return {"sales": make_topic(2), "items": make_topic(1), "sums": make_topic(2)}


@pytest.fixture
def put(produce):
    def run(topic, *rows):
        produce(topic, [{"value": json.dumps(row)} for row in rows])

    return run


@pytest.fixture
def run(spark, brokers, topics, tmp_path, capsys):
    """Runs the pipeline in this process, beside the session that is there, and meanwhile a function in a thread.

    When the function is over, a run without an end of its own gets Ctrl-C.
    """
    def run(meanwhile=None, trigger="available-now", refresh="", most=1000, options="", file=None):
        path = tmp_path / "pipeline.toml"
        table = f'file = "{file}"\nformat = "csv"' if file else f'topic = "{topics["items"]}"\nformat = "json"'
        path.write_text(PIPELINE.format(
            trigger=trigger, refresh=refresh, most=most, options=options, table=table, **topics))
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(interrupting, meanwhile) if meanwhile else None
            status = main([str(path), "--directory", str(tmp_path), "--bootstrap", brokers])
            if done:
                done.result()
        return status, *capsys.readouterr()

    return run


def interrupting(meanwhile):
    try:
        meanwhile()
    finally:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def read(brokers, topics):
    """All records of the topic of sums, oldest first in each partition: (name, total, sales)."""
    def run():
        with Consumer({"bootstrap.servers": brokers, "group.id": "g", "enable.auto.commit": False}) as consumer:
            partitions = [TopicPartition(topics["sums"], number, 0) for number in range(2)]
            ends = [consumer.get_watermark_offsets(each, 30)[1] for each in partitions]
            consumer.assign(partitions)
            found = list[Message]()
            # Of each partition, for more may have come to one of them by now.
            while any(max(tp.offset, 0) < ends[tp.partition] for tp in consumer.position(partitions)):
                found += consumer.consume(1000, 0.05)
        rows = [json.loads(message.value()) for message in found]
        assert [message.key().decode() for message in found] == [row["name"] for row in rows]
        return [(row["name"], row["total"], row["sales"]) for row in rows]

    return run


def until(read, name):
    """Wait for a row of this name; gives the newest row of each name."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        newest = {row[0]: row[1:] for row in read()}
        if name in newest:
            return newest
        time.sleep(0.5)
    raise AssertionError(f"no row of {name} came")


def test_rows_that_grow_are_written_again_and_all_are_counted(run, topics, put, read):
    put(topics["items"], *({"item": n, "name": f"i{n}"} for n in range(5)))
    put(topics["sales"], *({"item": n % 5, "amount": 1} for n in range(400)))
    status, told, complaint = run(most=100)
    assert (status, complaint) == (0, "")
    assert "in 4 batches" in told
    rows = read()
    assert {name: rest for name, *rest in rows} == {f"i{n}": [80, 80] for n in range(5)}
    assert f"{len(rows)} written to topic {topics['sums']}" in told
    assert len(rows) == 20  # each of five sums, in each of four batches


def test_a_table_is_what_it_was_when_the_run_began(run, topics, put, read):
    put(topics["items"], {"item": 1, "name": "one"})
    put(topics["sales"], {"item": 1, "amount": 5})

    def meanwhile():
        assert until(read, "one") == {"one": (5, 1)}
        put(topics["items"], {"item": 2, "name": "two"})
        put(topics["sales"], {"item": 2, "amount": 7}, {"item": 1, "amount": 1})
        end = time.monotonic() + PATIENCE_S
        while len(read()) < 2 and time.monotonic() < end:
            time.sleep(0.2)
        assert read() == [("one", 5, 1), ("one", 6, 2)]

    status, _, complaint = run(meanwhile, "processing-time 300 milliseconds")
    assert (status, complaint) == (130, "")


def test_a_table_that_asks_for_it_is_read_anew_and_no_row_is_lost_or_counted_twice(run, topics, put, read):
    put(topics["items"], {"item": 1, "name": "one"})
    sent = [1]

    def meanwhile():
        put(topics["sales"], {"item": 1, "amount": 1})
        until(read, "one")
        put(topics["items"], {"item": 2, "name": "two"})
        end = time.monotonic() + PATIENCE_S
        while not any(name == "two" for name, *_ in read()) and time.monotonic() < end:
            put(topics["sales"], {"item": 1, "amount": 1}, {"item": 2, "amount": 1})
            sent[0] += 1
            time.sleep(0.3)
        put(topics["sales"], {"item": 1, "amount": 1}, {"item": 1, "amount": 1000})
        while not any(name == "one" and total > 1000 for name, total, _ in read()) and time.monotonic() < end:
            time.sleep(0.3)

    status, told, complaint = run(meanwhile, "processing-time 200 milliseconds", 'refresh = "3 seconds"')
    assert (status, complaint) == (130, "")
    newest = {name: (total, sales) for name, total, sales in read()}
    assert newest["one"] == (sent[0] + 1 + 1000, sent[0] + 2)
    assert 0 < newest["two"][1] < sent[0]
    assert f"sums: {2 * sent[0] + 1} rows read" in told


def test_a_table_that_cannot_be_read_anew_is_read_later(run, topics, put, read, tmp_path, monkeypatch):
    items, notes = tmp_path / "items.csv", list[str]()
    items.write_text("1,one\n")
    monkeypatch.setattr("headrace.spark.pipeline.display.PlainDisplay.note", lambda self, text: notes.append(text))

    def meanwhile():
        put(topics["sales"], {"item": 1, "amount": 1})
        until(read, "one")
        items.unlink()
        end = time.monotonic() + PATIENCE_S
        while not notes and time.monotonic() < end:
            time.sleep(0.1)
        items.write_text("1,one\n2,two\n")
        put(topics["sales"], {"item": 2, "amount": 7})
        assert until(read, "two") == {"one": (1, 1), "two": (7, 1)}

    status, *_ = run(meanwhile, "processing-time 200 milliseconds", 'refresh = "1 second"', file=items)
    assert status == 130
    assert notes[0].startswith("sink sums failed: table items: ")
    assert "restart 1 of 5 in " in notes[0]
    assert "sink sums runs again" in notes


def test_a_stop_that_comes_while_a_table_is_to_be_read_anew_starts_no_query_again(tmp_path):
    from headrace.spark.pipeline.endpoints import Endpoints
    from headrace.spark.pipeline.run import Pipeline
    from headrace.spark.pipeline.spec import parse_pipeline

    class Queries:
        queries, settled = {}, True

        def look(self, *, restart):
            assert restart

        def stop(self):
            pipeline.request_stop()  # by Ctrl-C, on a thread of its own

        def begin(self, names):
            raise AssertionError

    text = PIPELINE.format(trigger="processing-time 1 second", sales="sales", sums="sums", most=1, options="",
                           table='topic = "items"\nformat = "json"', refresh='refresh = "1 second"')
    pipeline = Pipeline(Endpoints(parse_pipeline(text), tmp_path), master="local[1]")
    pipeline._supervisor, pipeline._stop_file = Queries(), tmp_path / "stop"
    pipeline._tables = SimpleNamespace(due=True)
    assert pipeline.poll() == []
    assert pipeline._stop_file.exists()
    assert not pipeline.running


@pytest.mark.parametrize(("form", "malformed"), [
    ("json", "keep"), ("json", "drop"), ("csv", "fail"), ("csv", "keep"), ("csv", "drop")])
def test_a_value_is_parsed_once_whatever_is_asked_of_its_columns(spark, form, malformed):
    from headrace.spark.pipeline.spec import Input
    from headrace.spark.pipeline.views import parsed

    source = Input("sales", topic="t", format=form, schema="item INT, amount INT", malformed=malformed,
                   streaming=True)
    topic = spark.range(4).selectExpr(
        "CAST('k' AS BINARY) AS key", f"CAST(to_{form}(struct(id AS item, id AS amount)) AS BINARY) AS value",
        "'t' AS topic", "0 AS partition", "id AS offset", "current_timestamp() AS timestamp")
    rows = parsed(topic, source).where("item IS NOT NULL AND amount > 1").select("item")
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count(f"from_{form}(") == 1
    assert sorted(row.item for row in rows.collect()) == [2, 3]


def test_a_row_is_written_whole_whatever_its_columns_are_called(spark):
    from headrace.spark.pipeline.spec import Sink
    from headrace.spark.pipeline.views import as_records

    rows = spark.range(1).selectExpr("7 AS `user.id`", "8 AS `a b`", "9 AS `p``q`", "struct(6 AS id) AS user",
                                      "'in' AS topic", "CAST(1 AS INT) AS partition")
    found = as_records(rows, Sink("s", "s", topic="t"), "`user.id`").collect()
    assert [(row.key, json.loads(row.value), row.partition) for row in found] == [
        ("7", {"user.id": 7, "a b": 8, "p`q": 9, "user": {"id": 6}, "topic": "in"}, 1)]


@pytest.mark.parametrize(("form", "kind"), [("json", "struct<item:bigint>"), ("raw", "string")])
def test_a_key_with_a_format_keeps_its_type(spark, form, kind):
    from headrace.spark.pipeline.spec import Sink
    from headrace.spark.pipeline.views import as_records

    sink = Sink("s", "s", topic="t", options={"KEY.format": form})
    records = as_records(spark.range(1), sink, "named_struct('item', id)")
    assert records.schema["key"].dataType.simpleString() == kind


def test_what_becomes_of_json_that_cannot_be_read_changes_no_other_row(
        spark, brokers, make_topic, produce, values_of, tmp_path, capsys):
    sales, bad = make_topic(1), make_topic(1)
    times = ("2026-07-01 12:00:00", "2026-07-01T12:00:00Z", "2026-07-01T14:00:00+02:00")
    produce(sales, [{"value": json.dumps({"item": n, "at": at})} for n, at in enumerate(times)])
    produce(sales, [{"value": b'{"item": "x"}'}])

    def run(**ways):
        path = tmp_path / "pipeline.toml"
        path.write_text('''
pipeline = { name = "ways", checkpoint = "checkpoint" }
restart = { attempts = 0 }
spark = { "spark.sql.session.timeZone" = "Asia/Tokyo" }
''' + "".join(f"""
[[source]]
name = "{name}"
topic = "{sales}"
format = "json"
schema = "item INT, at TIMESTAMP"
options.maxOffsetsPerTrigger = 3
{how}
[[step]]
name = "{name}_times"
sql = "SELECT item, unix_timestamp(at) AS at, _offset AS number FROM {name}"
[[sink]]
from = "{name}_times"
path = "{name}"
""" for name, how in ways.items()))
        return main([str(path), "--directory", str(tmp_path), "--bootstrap", brokers])

    def rows(name):
        return sorted(map(tuple, spark.read.parquet(str(tmp_path / name)).collect()), key=lambda row: row[2])

    noon = 1_782_907_200  # in UTC, whatever the session's zone is
    good = [(number, noon, number) for number in range(3)]
    assert run(kept='malformed = "keep"', left='malformed = "drop"',
               buried=f'malformed = "dead-letter"\ndead_letters = "{bad}"') == 0
    assert (rows("kept"), rows("left"), rows("buried")) == ([*good, (None, None, 3)], good, good)
    assert values_of(bad) == ['{"item": "x"}']
    capsys.readouterr()
    assert run(failed='malformed = "fail"') == 1
    complaint = capsys.readouterr().err
    assert f"the value of {sales}[0]@3 cannot be read" in complaint
    assert 'Set malformed of the source to "keep"' in complaint
    assert "value.malformed" not in complaint, "no key of the file"
    assert rows("failed") == good


def test_a_table_that_is_not_there_is_one_line_before_anything_starts(run, topics):
    topics["items"] = "no-such-topic"
    status, _, complaint = run()
    assert status == 2
    assert complaint.startswith("headrace run: table items: ")
    assert "topic no-such-topic does not exist: create it or check its name" in complaint
    assert complaint.count("\n") == 1


def test_a_wrong_option_of_the_sink_is_one_line(run):
    status, _, complaint = run(options='options.partitoner = "random"')
    assert status == 2
    assert "unknown option 'partitoner'" in complaint
    assert complaint.count("\n") == 1
