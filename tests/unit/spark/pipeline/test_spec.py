"""Pipeline files: what a good one means, and the one line that each mistake gives."""

import re
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.spark.pipeline.declared import RestartRule, Write
from headrace.spark.pipeline.spec import Input, Sink, Step, Trigger, load_pipeline, parse_pipeline

GOOD = """
[pipeline]
name = "sums"
checkpoint = "cp"
trigger = "processing-time 2 s"

[kafka]
bootstrap.servers = "localhost:9092"
"security.protocol" = "ssl"

[spark]
spark.sql.shuffle.partitions = 4
spark.ui.enabled = false

[[source]]
name = "events"
topic = "events"
format = "json"
schema = "at timestamp, n int"
event_time = "at"
watermark = "1 hour"
options.maxOffsetsPerTrigger = 100

[[table]]
name = "names"
file = "names.csv"
format = "csv"

[[step]]
name = "totals"
sql = "SELECT n, count(*) AS c FROM events JOIN names USING (n) GROUP BY n"

[[sink]]
from = "totals"
topic = "totals"
mode = "update"
key = "n"

[[sink]]
name = "archive"
from = "events"
path = "out"
"""


def refusal(old: str, new: str) -> str:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        parse_pipeline(GOOD.replace(old, new), "file.toml")
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_good_file_becomes_values():
    spec = parse_pipeline(GOOD)
    assert spec.name == "sums"
    assert spec.trigger == Trigger("2 seconds")
    assert spec.kafka == {"bootstrap.servers": "localhost:9092", "security.protocol": "ssl"}
    assert spec.spark == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
    assert spec.inputs[0] == Input(
        "events", topic="events", format="json", schema="at timestamp, n int", event_time="at", watermark="1 hour",
        options={"maxOffsetsPerTrigger": "100"}, streaming=True,
    )
    assert spec.inputs[1] == Input("names", file="names.csv", format="csv")
    assert spec.steps[0] == Step("totals", "SELECT n, count(*) AS c FROM events JOIN names USING (n) GROUP BY n")
    assert spec.sinks == (
        Sink("totals", "totals", topic="totals", mode="update", key="n"), Sink("archive", "events", path="out")
    )
    assert not spec.embedded


def test_a_list_of_settings_becomes_text_with_commas_as_kafka_and_spark_write_lists():
    spec = parse_pipeline(GOOD.replace('"localhost:9092"', '["one:9092", "two:9092"]').replace(
        "[spark]", '[spark]\nspark.jars = ["a.jar", "b.jar"]'))
    assert spec.kafka["bootstrap.servers"] == "one:9092,two:9092"
    assert spec.spark["spark.jars"] == "a.jar,b.jar"


def test_without_a_kafka_section_the_broker_is_embedded():
    spec = parse_pipeline(GOOD.replace("[kafka]", "[spark.kafka]").replace("[spark]\n", ""))
    assert spec.embedded


def test_the_default_trigger_takes_what_there_is_and_stops():
    assert parse_pipeline(GOOD.replace('trigger = "processing-time 2 s"', "")).trigger == Trigger()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[pipeline]", "[pipeline", "file.toml is not TOML"),
        ('name = "sums"', "", "[pipeline]: name is missing"),
        ('checkpoint = "cp"', 'chekpoint = "cp"',
         "[pipeline]: checkpoint is missing; did you mean 'checkpoint' by 'chekpoint'?"),
        ('name = "sums"', 'name = "sums"\nowner = "me"', "[pipeline]: unknown key 'owner'"),
        ("processing-time 2 s", "sometimes", 'must be "available-now" or like "processing-time 2 seconds"'),
        ("processing-time 2 s", "processing-time 2 parsecs", 'must be "available-now" or like "processing-time 2'),
        ("[[sink]]\nfrom", "[[sinks]]\nfrom", "unknown key 'sinks'; did you mean 'sink'?"),
        ('from = "totals"', 'from = "total"', "names no source, table or step; did you mean 'totals'?"),
        ('name = "archive"', 'name = "totals"', "names of sinks must differ: totals stands twice"),
        ('name = "names"', 'name = "events"', "events stands twice"),
        ('name = "names"', 'name = "Events"', "not in case alone: Events, events stand twice"),
        ('name = "names"', 'name = "my names"', "must be a plain SQL name"),
        ('format = "json"', 'format = "xml"',
         "must be one of raw, text, json, csv, avro, protobuf, json-schema, not 'xml'"),
        ('schema = "at timestamp, n int"', "", "format json needs a schema"),
        ('format = "json"', 'format = "text"', "format text has no schema"),
        ('watermark = "1 hour"', "", "event_time and watermark go together"),
        ('file = "names.csv"', "", "give either topic or file"),
        ('path = "out"', "", "give either topic or path"),
        ('path = "out"', 'path = "out"\nmode = "complete"', "Parquet takes mode append"),
        ('mode = "update"', 'mode = "upsert"', "must be one of append, update, complete"),
        ("sql = ", "query = ", "[[step]] totals: sql is missing"),
        ('format = "csv"', 'format = "csv"\nrefresh = "often"', 'refresh must be a time like "30 seconds"'),
        ('format = "csv"', 'format = "csv"\nrefresh = "0 s"', "[[table]] names: refresh must be a time like"),
        ('format = "json"', 'format = "json"\nrefresh = "1 h"', "[[source]] events: unknown key 'refresh'"),
        ('format = "json"\nschema = "at timestamp, n int"', 'format = "avro"', "avro needs a [registry] with a url"),
        ('format = "json"', 'format = "json"\nsubject = "s"', "subject belongs to formats avro, protobuf, json-schema"),
        ('format = "json"', 'format = "avro"\nschema_file = "s"', "give either schema or schema_file"),
        ('format = "json"', 'format = "avro"\ndead_letters = "d"', "dead_letters go together: give both or none"),
        ('format = "json"', 'format = "csv"\ndead_letters = "d"\nmalformed = "dead-letter"',
         "dead letters are of formats json, avro, protobuf, json-schema, not csv"),
        ('key = "n"', 'key = "n"\nguarantee = "twice"', "must be one of at_least_once, exactly_once, not 'twice'"),
        ('key = "n"', 'key = "n"\nguarantee = "exactly_once"', "exactly_once takes mode append or complete"),
        ('key = "n"', 'key = "n"\nschema = "{}"', "schema belongs to formats avro"),
        ('path = "out"', 'path = "out"\nguarantee = "exactly_once"', "guarantee is of topics"),
        ('path = "out"', 'path = "out"\nformat = "avro"', "format is of topics; files are Parquet"),
        ('path = "out"', 'path = "out"\nschema_file = "s"', "schema_file is of topics; files are Parquet"),
        ('path = "out"', 'path = "out"\nkey = "n"', "Parquet takes mode append and no key"),
        ('path = "out"', 'path = "out"\nfmt = "avro"', "[[sink]] archive: unknown key 'fmt'; did you mean 'format'?"),
        ('format = "csv"', 'format = "csv"\nschema_file = "s"', "[[table]] names: unknown key 'schema_file'"),
        ("sql = ", 'topic = "t"\nsql = ', "[[step]] totals: unknown key 'topic'"),
        ("[spark]", "[restart]\nattempts = -1\n[spark]", "[restart]: attempts must be a whole number of at least 0"),
        ("[spark]", "[restart]\nattempts = true\n[spark]", "attempts must be a whole number of at least 0, not True"),
        ("[spark]", '[restart]\nattempts = "5"\n[spark]', "attempts must be a whole number of at least 0, not '5'"),
        ("[spark]", '[restart]\nlongest = "soon"\n[spark]', "[restart]: longest must be a time like"),
        ("[spark]", "[restart]\ntimes = 1\n[spark]", "[restart]: unknown key 'times'"),
        ("[spark]", '[registry]\nurl = "embedded"\n[spark]', 'url = "embedded" needs [kafka] bootstrap.servers'),
        ("[spark]", '[registry]\nurls = "x"\n[spark]', "[registry]: url is missing"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(old, new, said):
    assert said in refusal(old, new)


def test_formats_guarantee_and_restarts_become_values():
    spec = parse_pipeline(GOOD.replace('mode = "update"\nkey = "n"', """
        format = "avro"
        subject = "sums"
        guarantee = "exactly_once"
    """).replace('format = "json"\nschema = "at timestamp, n int"', """
        format = "protobuf"
        message = "shop.Sale"
        schema_version = 3
        malformed = "dead-letter"
        dead_letters = "bad"
        group = "sums-lag"
    """) + """
        [registry]
        url = "http://localhost:8081"
        basic.auth.user.info = "me:it"
        [restart]
        attempts = 2
        first = "100 ms"
        longest = "5 s"
        healthy = "1 minute"
    """)
    source, sink = spec.inputs[0], spec.sinks[0]
    assert (source.format, source.malformed, source.dead_letters, source.group) == (
        "protobuf", "dead-letter", "bad", "sums-lag")
    assert source.schema_keys == {"message": "shop.Sale", "schema_version": "3"}
    assert (sink.format, sink.schema_keys, sink.guarantee, sink.promise) == (
        "avro", {"subject": "sums"}, "exactly_once", "exactly once")
    assert spec.registry == {"url": "http://localhost:8081", "basic.auth.user.info": "me:it"}
    assert spec.restart == RestartRule(attempts=2, first_s=0.1, longest_s=5, healthy_s=60)


def test_a_transaction_is_a_sink_of_several_topics():
    spec = parse_pipeline(GOOD + """
        [[transaction]]
        name = "both"
        from = "totals"
        format = "avro"
        schema = "{}"
        group = "totals-job"
        [[transaction.write]]
        topic = "small"
        sql = "SELECT * FROM totals WHERE c < 10"
        key = "n"
        [[transaction.write]]
        topic = "all"
    """)
    sink = spec.sinks[-1]
    assert sink.writes == (Write("small", "SELECT * FROM totals WHERE c < 10", "n"), Write("all"))
    assert (sink.guarantee, sink.group, sink.target) == ("exactly_once", "totals-job", "topics small, all")
    with pytest.raises(ConfigError, match=r"\[\[transaction\]\] totals: there is no \[\[transaction.write\]\]"):
        parse_pipeline(GOOD + "[[transaction]]\nfrom = 'totals'\nname = 'totals'")
    with pytest.raises(ConfigError, match=r"\[\[transaction\]\] both: from = 'total' names no source"):
        parse_pipeline(GOOD + "[[transaction]]\nfrom = 'total'\nname = 'both'\n[[transaction.write]]\ntopic = 'x'")


@pytest.mark.parametrize(("text", "said"), [
    ("[[transaction]]\nfrom='totals'\nname='second'\n[[transaction.write]]\ntopic='a'\n[[transaction.write]]\nsqll='x'",
     "[[transaction]] second: [[transaction.write]] 2: topic is missing"),
    ("[[transaction]]\nfrom='totals'\n[[transaction.write]]\ntopic='a'",
     "names of sinks must differ: totals stands twice"),
    ("[[transaction]]\nfrom='totals'\nname='second'\nschema='{}'\n[[transaction.write]]\ntopic='a'",
     "[[transaction]] second: schema belongs to formats avro"),
    ("[[transaction]]\nfrom='totals'\nname='second'\nmode='update'\n[[transaction.write]]\ntopic='a'",
     "[[transaction]] second: unknown key 'mode'"),
    ("[[transaction]]\nfrom='totals'\nname='second'\n[[transaction.write]]\ntopic='a'\nmode='update'",
     "[[transaction]] second: [[transaction.write]] 1: unknown key 'mode'"),
    ("[[transaction]]\nfrom='totals'\nname='second'\nwrite='a'",
     "[[transaction]] second: write must be a list of tables, [[transaction.write]]"),
    ("[[sink]]\nfrom='totals'\ntopic='b'\noptions='x'", "[[sink]] 3: options must be a table, [sink.options]"),
    ("[restart]\nattempt=1", "[restart]: unknown key 'attempt'"),
])
def test_a_mistake_in_a_table_within_a_table_is_found_by_both_names(text, said):
    with pytest.raises(ConfigError, match="^pipeline: " + re.escape(said)):
        parse_pipeline(GOOD + text)


def test_a_guarantee_of_the_pipeline_is_that_of_its_topics():
    spec = parse_pipeline(GOOD.replace('checkpoint = "cp"', 'checkpoint = "cp"\nguarantee = "exactly_once"')
                          .replace('mode = "update"', ""))
    assert [sink.promise for sink in parse_pipeline(GOOD).sinks] == ["at least once", "exactly once"]
    assert [sink.guarantee for sink in spec.sinks] == ["exactly_once", "at_least_once"]
    assert [sink.promise for sink in spec.sinks] == ["exactly once", "exactly once"]  # Spark's own sink of files has it


def test_once_takes_all_there_is_and_reads_tables_once():
    spec = parse_pipeline(GOOD.replace('format = "csv"', 'format = "csv"\nrefresh = "1 h"')).once()
    assert spec.trigger == Trigger()
    assert [each.refresh_s for each in spec.inputs] == [0, 0]


@pytest.mark.parametrize(("text", "seconds"), [("30 s", 30), ("10 minutes", 600), ("1 hour", 3600), ("2 days", 172800)])
def test_a_table_may_ask_to_be_read_anew(text, seconds):
    spec = parse_pipeline(GOOD.replace('format = "csv"', f'format = "csv"\nrefresh = "{text}"'))
    assert [each.refresh_s for each in spec.inputs] == [0, seconds]


def test_a_run_that_takes_what_there_is_and_stops_reads_a_table_once():
    given = GOOD.replace('format = "csv"', 'format = "csv"\nrefresh = "1 h"')
    with pytest.raises(ConfigError, match=r"\[\[table\]\] names: refresh needs a trigger like"):
        parse_pipeline(given.replace('trigger = "processing-time 2 s"', ""))


def test_a_file_that_is_not_utf_8_is_refused_in_one_line(tmp_path):
    path = tmp_path / "pipeline.toml"
    path.write_bytes(b"# sch\xf6n\n" + GOOD.encode())
    with pytest.raises(ConfigError, match=r"pipeline\.toml is not UTF-8 text: .* at byte 5"):
        load_pipeline(path)


def test_a_file_may_begin_with_the_mark_that_some_editors_write(tmp_path):
    path = tmp_path / "pipeline.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_pipeline(path) == parse_pipeline(GOOD)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the pipeline file .*nothing\.toml: No such file"):
        load_pipeline(tmp_path / "nothing.toml")


@pytest.mark.parametrize("path", sorted(Path("examples").glob("*/pipeline*.toml")), ids=str)
def test_every_example_is_a_good_file(path):
    assert load_pipeline(path).sinks
