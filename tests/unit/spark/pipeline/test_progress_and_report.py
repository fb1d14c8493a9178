"""Samples from Spark's progress, the lines of the display, and the report at the end."""

import io
import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from headrace.spark.pipeline.display import LiveDisplay, PlainDisplay, make_display, plain_line
from headrace.spark.pipeline.progress import History, percentile, sample_of
from headrace.spark.pipeline.report import Check, Outcome, write_report
from headrace.spark.pipeline.spec import parse_pipeline

SPEC = parse_pipeline("""
[pipeline]
name = "a <b> & c"
checkpoint = "cp"
[[source]]
name = "s"
topic = "in"
[[sink]]
name = "out"
from = "s"
topic = "out"
""")


def progress(batch=3, **changes):
    return {
        "name": "out", "batchId": batch, "timestamp": "2026-01-02T03:04:05.000Z", "numInputRows": 100,
        "durationMs": {"triggerExecution": 2000, "addBatch": 1500},
        "sources": [{
            "numInputRows": 100,
            "endOffset": {"in": {"0": 60, "1": 40}, "@from": {"in": {"0": 0, "1": 0}}, "@v": 1},
            "latestOffset": '{"in": {"0": 100, "1": 45}}',
        }],
        "stateOperators": [{"numRowsDroppedByWatermark": 2}],
        "observedMetrics": {"rows_out": {"rows": 7}, "malformed_s": {"rows": 1}},
        **changes,
    }


def test_a_progress_report_becomes_a_sample():
    sample = sample_of(progress())
    assert (sample.query, sample.batch_id, sample.rows_in, sample.rows_out) == ("out", 3, 100, 7)
    assert (sample.lag, sample.late, sample.malformed) == (45, 2, 1)
    assert sample.rate == 50
    assert sample.topics == {"in": 100}
    assert sample.ended_s == datetime(2026, 1, 2, 3, 4, 7, tzinfo=UTC).timestamp()


def test_the_records_of_a_source_of_several_topics_are_counted_once():
    end = {"b": {"0": 60}, "a": {"0": 40}, "@from": {"a": {"0": 0}, "b": {"0": 0}}, "@v": 1}
    assert sample_of(progress(sources=[{"numInputRows": 100, "endOffset": end}])).topics == {"a, b": 100}


def test_sources_of_the_same_topic_are_counted_together():
    source = {"numInputRows": 30, "endOffset": {"a": {"0": 30}, "@from": {"a": {"0": 0}}, "@v": 1}}
    assert sample_of(progress(sources=[source, {**source, "numInputRows": 12}])).topics == {"a": 42}


def test_a_source_without_offsets_has_no_lag():
    assert sample_of(progress(sources=[{"numInputRows": 1, "endOffset": "none", "latestOffset": None}])).lag == 0


def test_the_lag_of_a_batch_that_runs_again_after_a_restart_is_unknown(tmp_path):
    (source,) = progress()["sources"]
    sample = sample_of(progress(sources=[{**source, "latestOffset": "null"}, source]))
    assert sample.lag is None
    assert plain_line(sample, 100).endswith("7 written, lag unknown")
    history = History()
    history.add(progress(sources=[{**source, "latestOffset": "null"}]))
    write_report(tmp_path / "report.html", SPEC, history, outcome_of())
    assert "<td class=text>lag at the end</td><td>-</td>" in (tmp_path / "report.html").read_text()


def test_a_batch_is_counted_once_and_idle_triggers_are_not():
    history = History()
    assert history.add(progress()) is not None
    assert history.add(progress()) is None
    assert history.add(progress(batch=4, durationMs={"triggerExecution": 5})) is None
    assert history.add(progress(batch=4)) is not None
    assert history.read_per_topic() == {("out", "in"): 200}


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0)])
def test_percentiles_are_values_that_were_there(share, value):
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == value


def test_without_a_terminal_there_is_one_line_per_batch(capsys):
    history = History()
    with make_display(SPEC) as display:
        assert isinstance(display, PlainDisplay)
        display.update([history.add(progress())], history)
    told = capsys.readouterr().out
    assert told == "out: batch 3, 100 rows in 2.0 s (50 rows/s), 100 read in all, 7 written, lag 45\n"


def report_of(tmp_path, outcome, batches=2):
    history = History()
    for batch in range(batches):
        history.add(progress(batch))
    write_report(tmp_path / "deep" / "report.html", SPEC, history, outcome)
    return (tmp_path / "deep" / "report.html").read_text(encoding="utf-8")


def outcome_of(state="finished", **more):
    return Outcome(state, datetime(2026, 1, 2, tzinfo=UTC), 12.5, **more)


def test_the_report_stands_alone_and_shows_three_plots(tmp_path):
    text = report_of(tmp_path, outcome_of(settings={"brokers": "localhost:1"}))
    plots = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(plots) == 3
    for plot in plots:
        assert len(list(ElementTree.fromstring(plot).iter())) > 20
    assert "a &lt;b&gt; &amp; c" in text
    assert not re.findall(r'(?:src|href)="(?!#)', text)
    assert "localhost:1" in text
    assert "<td>200</td>" in text


@pytest.mark.parametrize("state", ["failed: sink out failed", "stopped by Ctrl-C"])
def test_the_report_says_how_the_run_ended(tmp_path, state):
    assert state in report_of(tmp_path, outcome_of(state))


def test_a_run_without_batches_still_has_a_report(tmp_path):
    assert "<svg" not in report_of(tmp_path, outcome_of("failed: no brokers"), batches=0)


def test_the_report_and_the_screen_say_format_guarantee_lag_and_restarts(tmp_path):
    spec = parse_pipeline("""
        [pipeline]
        name = "sales"
        checkpoint = "cp"
        [registry]
        url = "http://localhost:8081"
        [[source]]
        name = "s"
        topic = "in"
        format = "avro"
        [[table]]
        name = "items"
        file = "items.csv"
        format = "csv"
        [[sink]]
        name = "out"
        from = "s"
        topic = "out"
        format = "protobuf"
        guarantee = "exactly_once"
    """)
    history = History()
    history.add(progress())
    write_report(tmp_path / "report.html", spec, history, outcome_of(restarts={"out": 3}))
    text = (tmp_path / "report.html").read_text()
    rows = {"format": "protobuf", "guarantee": "exactly once", "lag at the end": 45, "restarts": 3}
    for label, value in rows.items():
        assert f"<td class=text>{label}</td><td>{value}</td>" in text
    assert "<td class=text>in</td><td class=text>avro</td><td class=text>out</td><td>100</td>" in text
    assert "Tables, held for all of them: items.csv (csv)." in text

    pytest.importorskip("rich")
    from rich.console import Console

    display = LiveDisplay(spec)
    display.update([], history)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(display.table())
    screen = console.export_text()
    for word in ("out", "topic out", "protobuf, exactly once", "Ctrl-C stops it"):
        assert word in screen
    assert re.search(r"3 │ +50 │ +2.0 s │ +100 │ +7 │ +45 │", screen)


@pytest.mark.parametrize(("state", "found", "good"), [
    ("finished", 5, True), ("stopped by Ctrl-C", 5, True), ("finished", 6, False), ("failed: no broker", 5, False)])
def test_a_run_is_good_that_did_not_fail_and_whose_totals_are_equal(state, found, good):
    outcome = Outcome(state, datetime.now(UTC), 0.0, checks=[Check("rows", 5, 5), Check("sum", 5, found)])
    assert outcome.good is good


def test_an_unequal_total_makes_the_run_a_failure(tmp_path):
    outcome = outcome_of(checks=[Check("rows", 5, 5), Check("sum", 1000, 999)])
    text = report_of(tmp_path, outcome)
    assert not outcome.good
    assert text.count("DIFFERENT") == 1
    assert "state bad" in text
