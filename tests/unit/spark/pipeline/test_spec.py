"""Pipeline files: what a good one means, and the one line that each mistake gives."""

from pathlib import Path

import pytest

from headrace.errors import ConfigError
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
        ('checkpoint = "cp"', 'chekpoint = "cp"', "[pipeline]: checkpoint is missing"),
        ('name = "sums"', 'name = "sums"\nowner = "me"', "[pipeline]: unknown key 'owner'"),
        ("processing-time 2 s", "sometimes", 'must be "available-now" or like "processing-time 2 seconds"'),
        ("[[sink]]\nfrom", "[[sinks]]\nfrom", "unknown key 'sinks'; did you mean 'sink'?"),
        ('from = "totals"', 'from = "total"', "names no source, table or step; did you mean 'totals'?"),
        ('name = "archive"', 'name = "totals"', "names of sinks must differ: totals stands twice"),
        ('name = "names"', 'name = "events"', "events stands twice"),
        ('name = "names"', 'name = "my names"', "must be a plain SQL name"),
        ('format = "json"', 'format = "xml"', "must be one of raw, text, json, csv, not 'xml'"),
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
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(old, new, said):
    assert said in refusal(old, new)


@pytest.mark.parametrize(("text", "seconds"), [("30 s", 30), ("10 minutes", 600), ("1 hour", 3600), ("2 days", 172800)])
def test_a_table_may_ask_to_be_read_anew(text, seconds):
    spec = parse_pipeline(GOOD.replace('format = "csv"', f'format = "csv"\nrefresh = "{text}"'))
    assert [each.refresh_s for each in spec.inputs] == [0, seconds]


def test_a_run_that_takes_what_there_is_and_stops_reads_a_table_once():
    given = GOOD.replace('format = "csv"', 'format = "csv"\nrefresh = "1 h"')
    with pytest.raises(ConfigError, match=r"\[\[table\]\] names: refresh needs a trigger like"):
        parse_pipeline(given.replace('trigger = "processing-time 2 s"', ""))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the pipeline file .*nothing\.toml: No such file"):
        load_pipeline(tmp_path / "nothing.toml")


@pytest.mark.parametrize("path", sorted(Path("examples").glob("*/pipeline*.toml")), ids=str)
def test_every_example_is_a_good_file(path):
    assert load_pipeline(path).sinks
