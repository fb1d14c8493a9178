"""`headrace run --explain`: what would run, without Spark, brokers or secrets."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from headrace.cli.run import main

TEXT = """
[pipeline]
name = "shop"
checkpoint = "cp"
trigger = "processing-time 5 seconds"
[kafka]
bootstrap.servers = "nowhere:9092"
"sasl.mechanism" = "PLAIN"
"security.protocol" = "SASL_SSL"
"sasl.username" = "me"
"sasl.password" = "hush"
[spark]
spark.hadoop.fs.s3a.secret.key = "hush"
[[source]]
name = "sales"
topic = "sales"
format = "json"
schema = "item INT, amount INT"
options.minPartitions = 8
[[table]]
name = "items"
file = "items.csv"
format = "csv"
refresh = "10 minutes"
[[step]]
name = "sums"
sql = '''
    SELECT item, sum(amount) AS total
    FROM sales GROUP BY item'''
[[sink]]
from = "sums"
topic = "sums"
mode = "update"
[[sink]]
from = "sales"
name = "archive"
path = "out"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pipeline.toml"
    path.write_text(TEXT)
    return path


def told(capsys, *argv):
    assert main([str(each) for each in argv]) == 0
    return capsys.readouterr().out


def test_it_names_sources_steps_sinks_tasks_guarantees_and_restarts(capsys, file):
    text = told(capsys, file, "--explain")
    for line in (
        "pipeline shop: trigger processing-time 5 seconds, checkpoint cp, Spark master local[2]",
        "source sales: topic sales, read as a stream, format json",
        "  kafka.bootstrap.servers = nowhere:9092",
        "  tasks: one for each partition with records, or fewer where ranges are small, at least 8",
        "table items: file items.csv, read anew after 600 s, format csv",
        "step sums:\n  SELECT item, sum(amount) AS total\n  FROM sales GROUP BY item",
        "sink sums: sums into topic sums, format json, mode update",
        "  guarantee: at least once: a micro-batch that runs again writes its rows again",
        "sink archive: sales into Parquet out, format parquet, mode append",
        "  guarantee: exactly once, by the list of files that Spark's own sink keeps",
    ):
        assert f"{line}\n" in text
    assert "begins again up to 5 times in a row" in text


def test_what_is_written_exactly_once_is_explained_with_its_name_and_its_topics(capsys, file):
    once = TEXT.replace('mode = "update"', 'guarantee = "exactly_once"')
    file.write_text(once + """
        [[transaction]]
        name = "both"
        from = "sales"
        [[transaction.write]]
        topic = "small"
        sql = "SELECT *\\n FROM sales WHERE amount < 10"
        [[transaction.write]]
        topic = "all"
    """)
    text = told(capsys, file, "--explain")
    for line in (
        "sink sums: sums into topic sums, format json, mode append",
        "  guarantee: exactly once: the topic in one transaction for each micro-batch, sink id shop-sums",
        "sink both: sales into topics small, all, format json, mode append",
        "  guarantee: exactly once: all topics in one transaction for each micro-batch, sink id shop-both\n"
        "  topic small: SELECT * FROM sales WHERE amount < 10\n  topic all: all rows",
        "  its own query: reads sales by itself, checkpoint cp/both",
    ):
        assert f"{line}\n" in text


def test_secrets_are_hidden(capsys, file):
    text = told(capsys, file, "--explain")
    assert "hush" not in text
    assert text.count("= [hidden]") == 3  # of the source, the sink, and the Spark setting


def test_once_is_explained_as_such(capsys, file):
    text = told(capsys, file, "--explain", "--once", "--bootstrap", "there:1")
    assert "trigger available-now" in text
    assert "table items: file items.csv, read once" in text
    assert "kafka.bootstrap.servers = there:1" in text


def test_a_mistake_is_one_line_and_status_2(capsys, file):
    file.write_text(TEXT.replace("minPartitions", "minPartition"))
    assert main([str(file), "--explain"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("headrace run: source sales: unknown option 'minpartition'. Did you mean")


def test_neither_pyspark_nor_a_jvm_is_loaded(file):
    code = ("import sys; from headrace.cli.run import main; main([sys.argv[1], '--explain']); "
            "print(sorted({'pyspark', 'py4j', 'pyarrow'} & set(sys.modules)))")
    found = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True).stdout
    assert found.endswith("\n[]\n")
