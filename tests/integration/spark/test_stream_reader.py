"""The stream reader's promises to Spark, without Spark and without brokers."""

import json
import pickle
import subprocess
import sys
import time

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.errors import ConfigError
from headrace.spark.options import SourceOptions
from headrace.spark.plan import EARLIEST, DataLossError, Range, lag
from headrace.spark.sink import BatchWriter, StreamWriter
from headrace.spark.source import HeadraceSource

KINDS = {
    "binary": T.BinaryType(), "string": T.StringType(), "int": T.IntegerType(), "bigint": T.LongType(),
    "timestamp": T.TimestampType(), "timestamp_ltz": T.TimestampType(),
}
OPTIONS = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", "startingOffsets": "earliest"}


def schema_of(ddl):
    """A schema without a Spark session to parse it."""
    pairs = (column.split() for column in ddl.split(", "))
    return T.StructType([T.StructField(name, KINDS[kind]) for name, kind in pairs])


class FakeView:
    """Partitions with a first and an end offset."""

    def __init__(self, **partitions):
        self.first = {("t", int(name[1:])): first for name, (first, _) in partitions.items()}
        self.end = {("t", int(name[1:])): end for name, (_, end) in partitions.items()}
        self.asked = 0
        self.topic_ids, self.end_epochs, self.log_end = {}, {}, {}
        self.news = lambda: False
        self.committed = []

    def too_short(self, wanted):
        return {tp: self.end[tp] for tp, offset in wanted.items() if self.end[tp] < offset}

    def log_ends(self, epochs):
        return {tp: self.log_end[tp] for tp in epochs}

    def wait_for_records(self, ends, timeout_s):
        if not self.news():
            time.sleep(max(timeout_s, 0))
            return False
        return True

    def begin_commit(self, group_id, offsets):
        self.committed.append((group_id, offsets))
        return lambda timeout_s: None

    def partitions(self):
        return sorted(self.end)

    def ends(self):
        self.asked += 1
        return dict(self.end)

    def earliest(self, partitions):
        return {tp: self.first[tp] for tp in partitions}

    def resolve(self, position, partitions):
        return self.earliest(partitions) if position.logical == EARLIEST else dict(self.end)


def reader_on(view, **options):
    source = HeadraceSource({**OPTIONS, **options})
    reader = source.streamReader(schema_of(source.schema()))
    reader._view = view
    return reader


def test_no_collection_of_all_that_pyspark_has_comes_amid_the_import_of_the_client():
    program = (
        "import gc, pyspark.sql, headrace.spark.source as source\n"
        f"reader = source.HeadraceSource({OPTIONS!r}).streamReader(pyspark.sql.types.StructType())\n"
        "gc.set_threshold(10, 1, 1)\n"
        "collections = []\n"
        "gc.callbacks.append(lambda phase, _: collections.append(phase))\n"
        "assert 'headrace.client.core' not in __import__('sys').modules\n"
        "reader._cluster\n"
        "gc.callbacks.clear()\n"
        "assert 'headrace.client.core' in __import__('sys').modules\n"
        "assert gc.isenabled()\n"
        "print(len(collections))\n")
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert int(done.stdout) < 10  # hundreds else; some may come before and behind it


def logged(offsets):
    """What Spark hands back: the JSON that it stored."""
    return json.loads(json.dumps(offsets))


def ranges_of(reader, start, end):
    return [each for task in tasks_of(reader, start, end) for each in task]


def tasks_of(reader, start, end):
    return [task.value for task in reader.partitions(logged(start), logged(end))]


def test_a_batch_is_read_again_from_where_it_began_after_a_crash_with_latest():
    before = reader_on(FakeView(p0=(0, 100)), startingOffsets="latest")
    start = before.initialOffset()
    before._view.end["t", 0] = 103
    end = before.latestOffset(logged(start), ReadAllAvailable())
    after = reader_on(FakeView(p0=(0, 105)), startingOffsets="latest")
    assert ranges_of(after, after.initialOffset(), end) == [Range("t", 0, 100, 103)]


def test_a_first_offset_that_was_logged_without_data_is_no_range_when_it_is_resolved_anew():
    before = reader_on(FakeView(p0=(0, 100)), startingOffsets="latest").initialOffset()
    after = reader_on(FakeView(p0=(0, 105)), startingOffsets="latest")
    assert ranges_of(after, after.initialOffset(), before) == []


def test_without_news_the_same_text_comes_back():
    reader = reader_on(FakeView(p0=(0, 5)))
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    assert json.dumps(reader.latestOffset(start, ReadAllAvailable())) == json.dumps(start)


def test_idle_calls_take_their_time_and_ask_little():
    view = FakeView(p0=(0, 5))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    began, view.asked = time.monotonic(), 0
    reader.latestOffset(start, ReadAllAvailable())
    assert time.monotonic() - began >= 0.09
    assert view.asked == 1


def test_idle_calls_take_longer_and_longer_until_there_is_something(monkeypatch, tmp_path):
    view, waits = FakeView(p0=(0, 5)), []
    monkeypatch.setattr(view, "wait_for_records", lambda ends, timeout_s: waits.append(round(timeout_s, 1)))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    for _ in range(6):
        reader.latestOffset(start, ReadAllAvailable())
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    view.end["t", 0] = 6
    start = logged(reader.latestOffset(start, ReadAllAvailable()))
    reader.latestOffset(start, ReadAllAvailable())
    assert waits[-1] == 0.1
    reader = reader_on(view, stopFile=str(tmp_path / "stop"))
    for _ in range(4):
        reader.latestOffset(start, ReadAllAvailable())
    assert max(waits[-3:]) <= 0.3


def test_a_quiet_source_does_not_keep_the_others_of_its_query_waiting(monkeypatch):
    view, waits = FakeView(p0=(0, 5)), []
    monkeypatch.setattr(view, "wait_for_records", lambda ends, timeout_s: waits.append(round(timeout_s, 1)))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    reader.commit(start)  # a micro-batch of its own
    for _ in range(4):
        reader.latestOffset(start, ReadAllAvailable())
    assert waits == [0.1, 0.2, 0.4, 0.8]
    reader.commit(start)  # one of others
    reader.latestOffset(start, ReadAllAvailable())
    assert len(waits) == 4
    reader._idle_since_s -= 1  # others have waited meanwhile, as they do for this one
    reader.latestOffset(start, ReadAllAvailable())
    assert waits[4:] == [0.1]
    for quiet_s, waited_s in ((4, 0.2), (6, 0.5), (3600, 0.5)):
        for remembered in ("_idle_since_s", "_others_ran_s", "_last_batch_s"):
            setattr(reader, remembered, getattr(reader, remembered) - quiet_s)
        reader.latestOffset(start, ReadAllAvailable())
        assert waits.pop() == waited_s
    reader.commit(start)
    reader.latestOffset(start, ReadAllAvailable())
    assert len(waits) == 5


def test_a_source_that_a_trigger_asks_now_and_then_answers_before_it_asks_again(monkeypatch):
    view, waits = FakeView(p0=(0, 5)), []
    monkeypatch.setattr(view, "wait_for_records", lambda ends, timeout_s: waits.append(round(timeout_s, 2)))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    for _ in range(6):  # by then a lone source would wait for two seconds
        reader.latestOffset(start, ReadAllAvailable())
    reader._last_batch_s -= 3600
    for gap_s, waited_s in ((0.4, 0.1), (0.2, 0.3), (0.06, 0.14)):  # half a second from trigger to trigger, then less
        reader._idle_since_s, reader._waited_s = reader._idle_since_s - gap_s, waited_s
        reader.latestOffset(start, ReadAllAvailable())
        assert waits.pop() == round(0.6 * (gap_s + waited_s), 2)


def test_the_first_offset_is_resolved_once():
    view = FakeView(p0=(0, 5))
    reader = reader_on(view, startingOffsets="latest")
    first = reader.initialOffset()
    view.end["t", 0] = 9
    assert reader.initialOffset() == first


def test_a_limit_is_shared_and_told_to_spark():
    reader = reader_on(FakeView(p0=(0, 300), p1=(0, 100)), maxOffsetsPerTrigger="40")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(40)
    end = reader.latestOffset(logged(reader.initialOffset()), limit)
    assert end["t"] == {"0": 30, "1": 10}
    assert reader.reportLatestOffset()["t"] == {"0": 300, "1": 100}


def test_the_report_of_a_batch_that_runs_again_after_a_restart_has_the_ends_as_well():
    before = reader_on(FakeView(p0=(0, 300)), maxOffsetsPerTrigger="40")
    start = logged(before.initialOffset())
    end = logged(before.latestOffset(start, before.getDefaultReadLimit()))
    reader = reader_on(FakeView(p0=(0, 300)), maxOffsetsPerTrigger="40")  # asked for tasks alone, by the logged offsets
    assert len(reader.partitions(start, end)) == 1
    assert lag(end, reader.reportLatestOffset()) == 260


def test_everything_at_once_goes_before_the_limit():
    reader = reader_on(FakeView(p0=(0, 300)), maxOffsetsPerTrigger="40")
    assert reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable())["t"] == {"0": 300}


def test_available_now_ends_at_the_end_of_its_start():
    view = FakeView(p0=(0, 10))
    reader = reader_on(view)
    reader.prepareForTriggerAvailableNow()
    view.first["t", 1], view.end["t", 0], view.end["t", 1] = 0, 50, 3
    end = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    assert end["t"]["0"] == 10
    view.wait_for_records = None  # no records are waited for
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_partition_that_is_added_during_an_available_now_run_is_for_the_next_one():
    view = FakeView(p0=(0, 10))
    reader = reader_on(view)
    start = logged(reader.initialOffset())
    reader.prepareForTriggerAvailableNow()
    view.first["t", 1], view.end["t", 1] = 0, 3
    end = logged(reader.latestOffset(start, ReadAllAvailable()))
    assert end["t"] == {"0": 10}
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    later = reader_on(view)
    assert later.latestOffset(end, ReadAllAvailable())["t"] == {"0": 10, "1": 3}


def test_new_partitions_are_read_from_their_beginning():
    view = FakeView(p0=(0, 10))
    reader = reader_on(view, startingOffsets="latest")
    start = logged(reader.initialOffset())
    view.first["t", 1], view.end["t", 1] = 0, 9
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ranges_of(reader, start, end) == [Range("t", 1, 0, 9)]


def test_a_new_partition_that_has_lost_records_stops_the_query_or_is_warned_of_once(caplog):
    view = FakeView(p0=(0, 10))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    view.first["t", 1], view.end["t", 1] = 4, 9
    with pytest.raises(DataLossError, match=r"t\[1\] were added after the query began"):
        reader.latestOffset(start, ReadAllAvailable())
    reader = reader_on(view, failOnDataLoss="false", minOffsetsPerTrigger="6", maxTriggerDelay="10m")
    reader._last_batch_s = time.monotonic()  # so that it waits for more
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ranges_of(reader, start, end) == [Range("t", 1, 4, 9)]
    told = "records may be lost: t[1] were added after the query began"
    assert [each.levelname for each in caplog.records if each.getMessage().startswith(told)] == ["WARNING"]
    view.end["t", 1] = 12
    reader.latestOffset(logged(end), ReadAllAvailable())
    assert sum(message.startswith("records may be lost") for message in caplog.messages) == 1


def test_a_partition_that_vanished_stops_the_query():
    view = FakeView(p0=(0, 10), p1=(0, 10))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    del view.end["t", 1]
    with pytest.raises(DataLossError, match="no longer exist"):
        reader.latestOffset(start, ReadAllAvailable())


def test_a_query_that_is_to_read_another_topic_than_its_checkpoint_says_so():
    reader = reader_on(FakeView(p0=(0, 10)))
    before = {"before": {"0": 3}, "@from": {"before": {"0": 0}}, "@v": 2}
    with pytest.raises(DataLossError, match=r"before\[0\] no longer exist, or are no longer among what is read"):
        reader.latestOffset(before, ReadAllAvailable())


def test_a_small_backlog_waits_for_more_but_not_for_ever():
    view = FakeView(p0=(0, 5))
    reader = reader_on(view, minOffsetsPerTrigger="10", maxTriggerDelay="400ms")
    limit = reader.getDefaultReadLimit()
    start = logged(reader.latestOffset(logged(reader.initialOffset()), limit))
    view.end["t", 0] = 9
    assert reader.latestOffset(start, limit) == start
    time.sleep(0.4)
    assert reader.latestOffset(start, limit)["t"] == {"0": 9}


def test_a_query_that_starts_takes_a_small_backlog_at_once_and_then_waits_for_more():
    view = FakeView(p0=(0, 5))
    options = {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "10m"}
    reader = reader_on(view, **options)
    limit = reader.getDefaultReadLimit()
    first = logged(reader.latestOffset(logged(reader.initialOffset()), limit))
    assert first["t"] == {"0": 5}
    view.end["t", 0] = 14
    assert reader.latestOffset(first, limit) == first
    assert reader_on(view, **options).latestOffset(first, limit)["t"] == {"0": 14}  # it was started again
    view.end["t", 0] = 15
    assert reader.latestOffset(first, limit)["t"] == {"0": 15}


def test_a_trigger_that_wants_everything_at_once_does_not_wait_for_more():
    view = FakeView(p0=(0, 5))
    reader = reader_on(view, minOffsetsPerTrigger="10", maxTriggerDelay="10m")
    assert reader.getDefaultReadLimit() != ReadAllAvailable()  # which is Trigger.Once's word
    first = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    view.end["t", 0] = 6
    assert reader.latestOffset(first, ReadAllAvailable())["t"] == {"0": 6}


def test_a_stop_file_ends_planning(tmp_path):
    reader = reader_on(FakeView(p0=(0, 5)), stopFile=str(tmp_path / "stop"))
    start = logged(reader.initialOffset())
    (tmp_path / "stop").touch()
    assert reader.latestOffset(start, ReadAllAvailable()) == start


def test_a_reader_travels_without_its_connections():
    reader = reader_on(FakeView(p0=(0, 5)))
    reader.initialOffset()
    arrived = pickle.loads(pickle.dumps(reader))
    assert (arrived.options, arrived.columns, arrived.decoded) == (reader.options, reader.columns, None)
    assert arrived._view is None


def test_min_partitions_cuts_tasks():
    reader = reader_on(FakeView(p0=(0, 100)), minPartitions="4")
    end = reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable())
    assert [each.size for each in ranges_of(reader, {}, end)] == [25] * 4


def test_small_ranges_share_a_task_and_a_batch_that_runs_again_has_the_same_tasks():
    view = FakeView(p0=(0, 20_000), p1=(0, 20_000), p2=(0, 20_000), p3=(0, 70_000))
    reader = reader_on(view)
    end = reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable())
    tasks = tasks_of(reader, {}, end)
    assert [[each.partition for each in task] for task in tasks] == [[0, 1], [2], [3]]
    assert tasks_of(reader_on(FakeView(p0=(0, 1))), {}, end) == tasks


@pytest.mark.parametrize("given", [{"maxRecordsPerSharedTask": "0"}, {"minPartitions": "1"},
                                   {"maxRecordsPerPartition": "9"}])
def test_ranges_do_not_share_a_task_where_that_is_not_wanted(given):
    reader = reader_on(FakeView(p0=(0, 5), p1=(0, 5)), **given)
    end = reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable())
    assert len(tasks_of(reader, {}, end)) == 2


def test_limits_of_partitions_and_bytes_hold_together(monkeypatch):
    monkeypatch.setattr("headrace.spark.record_sizes.RecordSizes.of", lambda self, begin, latest: {"t": 100.0})
    view = FakeView(p0=(0, 300), p1=(0, 20))
    for options, ends in (({"maxOffsetsPerPartition": "50"}, [50, 20]),
                          ({"maxOffsetsPerPartition": "50", "maxOffsetsPerTrigger": "35"}, [25, 10]),
                          ({"maxOffsetsPerPartition": "50", "maxBytesPerTrigger": "700"}, [5, 2]),
                          ({"maxBytesPerTrigger": "1g"}, [300, 20])):
        reader = reader_on(view, **options)
        limit = reader.getDefaultReadLimit()
        assert isinstance(limit, ReadMaxRows)
        end = reader.latestOffset(logged(reader.initialOffset()), limit)
        assert list(end["t"].values()) == ends
        assert list(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable())["t"].values()) == [300, 20]


def test_min_max_and_delay_hold_together():
    view = FakeView(p0=(0, 50))
    reader = reader_on(view, minOffsetsPerTrigger="40", maxOffsetsPerTrigger="45", maxTriggerDelay="10m")
    limit = reader.getDefaultReadLimit()
    first = logged(reader.latestOffset(logged(reader.initialOffset()), limit))
    assert first["t"] == {"0": 45}
    assert reader.latestOffset(first, limit) == first
    view.end["t", 0] = 200
    assert reader.latestOffset(first, limit)["t"] == {"0": 90}


def test_records_that_come_while_nothing_is_there_are_seen_at_once():
    view = FakeView(p0=(0, 5))
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))

    def arrives():
        view.end["t", 0] = 6
        return True

    view.news = arrives
    assert reader.latestOffset(start, ReadAllAvailable())["t"] == {"0": 6}


def test_a_topic_made_anew_stops_the_query_or_is_read_from_its_beginning():
    view = FakeView(p0=(0, 10))
    view.topic_ids = {"t": "old"}
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    view.topic_ids, view.end["t", 0] = {"t": "new"}, 30
    with pytest.raises(DataLossError, match="made anew"):
        reader_on(view).latestOffset(start, ReadAllAvailable())
    reader = reader_on(view, failOnDataLoss="false")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ranges_of(reader, start, end) == [Range("t", 0, 0, 30, "new")]
    assert ranges_of(reader, {}, start) == [Range("t", 0, 0, 10, "old")]  # the batch before it, when it runs again


def test_a_limit_takes_no_micro_batches_for_records_that_are_gone(caplog):
    view = FakeView(p0=(0, 1000), p1=(0, 1000))
    reader = reader_on(view, failOnDataLoss="false", maxOffsetsPerPartition="10")
    start = logged(reader.latestOffset(logged(reader.initialOffset()), reader.getDefaultReadLimit()))
    view.first["t", 0] = 900
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    planned = [Range("t", 0, 900, 910), Range("t", 1, 10, 20)]
    assert ranges_of(reader, start, end) == planned
    assert [message.split(":")[1] for message in caplog.messages] == [" t[0] begin behind the offsets reached so far"]
    view.first["t", 0] = 950
    assert ranges_of(reader_on(view), start, end) == planned  # as it was logged, when the query starts again


def test_a_log_that_is_empty_by_now_is_passed_over_and_logged():
    view = FakeView(p0=(0, 1000))
    reader = reader_on(view, failOnDataLoss="false", maxOffsetsPerTrigger="10")
    start = logged(reader.latestOffset(logged(reader.initialOffset()), reader.getDefaultReadLimit()))
    view.first["t", 0] = 1000
    end = logged(reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert end["t"]["0"] == 1000
    assert ranges_of(reader, start, end) == []
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end


def test_an_available_now_run_passes_over_records_that_are_gone_up_to_its_end_and_no_further():
    view = FakeView(p0=(0, 100))
    reader = reader_on(view, failOnDataLoss="false", maxOffsetsPerTrigger="10")
    reader.prepareForTriggerAvailableNow()
    start = logged(reader.latestOffset(logged(reader.initialOffset()), reader.getDefaultReadLimit()))
    view.first["t", 0], view.end["t", 0] = 150, 200
    end = logged(reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert end["t"]["0"] == 100
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end


def test_a_log_that_an_election_has_cut_stops_the_query_or_is_read_from_the_cut(caplog):
    view = FakeView(p0=(0, 10), p1=(0, 10))
    view.end_epochs = {("t", 0): 4, ("t", 1): 4}
    reader = reader_on(view)
    start = logged(reader.latestOffset(logged(reader.initialOffset()), ReadAllAvailable()))
    view.end["t", 0], view.end["t", 1], view.end_epochs["t", 0] = 20, 12, 5
    view.log_end = {("t", 0): 10}
    assert reader.latestOffset(start, ReadAllAvailable())["t"] == {"0": 20, "1": 12}
    view.log_end = {("t", 0): 7}
    with pytest.raises(DataLossError, match="lack records that were read"):
        reader.latestOffset(start, ReadAllAvailable())
    reader = reader_on(view, failOnDataLoss="false")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ranges_of(reader, start, end) == [Range("t", 0, 7, 20), Range("t", 1, 10, 12)]
    assert "records may be lost: t[0] lack records that were read, after an election" in caplog.text


@pytest.mark.parametrize("text", [
    '{"t": {"0": 5}, "@from": {"t": {"0": 1}}, "@v": 1}',
    '{"t":{"0":5}}',
])
def test_checkpoints_of_the_previous_format_and_of_spark_s_connector_go_on(text):
    view = FakeView(p0=(0, 9))
    view.topic_ids, view.end_epochs = {"t": "id"}, {("t", 0): 3}
    reader = reader_on(view)
    start = json.loads(text)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ranges_of(reader, start, end) == [Range("t", 0, 5, 9, "id")]
    assert (end["@ids"], end["@epochs"], end["@v"]) == ({"t": "id"}, {"t": {"0": 3}}, 2)
    view.end["t", 0] = 5
    assert reader.latestOffset(json.loads(text), ReadAllAvailable()) == json.loads(text)


def test_a_group_gets_the_end_of_finished_batches_and_never_a_start():
    view = FakeView(p0=(0, 10))
    reader = reader_on(view, groupId="shown")
    start = logged(reader.initialOffset())
    first = logged(reader.latestOffset(start, ReadAllAvailable()))
    assert view.committed == []
    view.end["t", 0] = 12
    second = logged(reader.latestOffset(first, ReadAllAvailable()))
    assert view.committed == [("shown", {("t", 0): 10})]
    reader.latestOffset(second, ReadAllAvailable())
    reader.latestOffset(second, ReadAllAvailable())
    assert view.committed[1:] == [("shown", {("t", 0): 12})]


def test_an_available_now_run_ends_when_the_group_has_the_end_of_its_last_batch(monkeypatch):
    class SlowView(FakeView):
        def begin_commit(self, group_id, offsets):
            def answered(timeout_s):
                if not timeout_s:
                    raise TimeoutError
                self.committed.append((group_id, offsets))
            return answered

    view = SlowView(p0=(0, 10))
    reader = reader_on(view, groupId="g", maxOffsetsPerTrigger="5")
    reader.prepareForTriggerAvailableNow()
    end = logged(reader.initialOffset())
    for _ in range(3):
        end = logged(reader.latestOffset(end, reader.getDefaultReadLimit()))
    assert view.committed == [("g", {("t", 0): 5}), ("g", {("t", 0): 10})]


def test_columns_are_chosen_by_an_option():
    source = HeadraceSource({**OPTIONS, "columns": "value, offset, headers"})
    assert source.schema() == "value binary, offset bigint, headers array<struct<key:string,value:binary>>"
    with pytest.raises(ConfigError, match="option columns: 'payload' cannot be read"):
        HeadraceSource({**OPTIONS, "columns": "payload"}).schema()


@pytest.mark.parametrize(("given", "said"), [
    ({"maxOffsetsPerTriger": "5"}, "Did you mean 'maxOffsetsPerTrigger'?"),
    ({"maxOffsetsPerTrigger": "some"}, "maxOffsetsPerTrigger must be a whole number"),
    ({"subscribePattern": "t.*"}, "exactly one of subscribe"),
    ({"kafka.group.idd": "g"}, "No such configuration property"),
    ({"startingOffsets": "soon", "value.format": "json", "value.schema": "a int"}, "must be earliest, latest or JSON"),
])
def test_a_wrong_option_is_refused_when_spark_asks_for_the_schema_at_load(given, said):
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        HeadraceSource({**OPTIONS, **given}).schema()


@pytest.mark.parametrize("ask", [
    lambda reader: reader.initialOffset(), lambda reader: reader.getDefaultReadLimit(),
    lambda reader: reader.prepareForTriggerAvailableNow(), lambda reader: reader.latestOffset({}, ReadAllAvailable()),
    lambda reader: reader.partitions({}, {}), lambda reader: reader.read(None),
])
def test_a_stream_with_a_wrong_option_has_a_reader_that_says_so_whatever_it_is_asked(ask):
    reader = HeadraceSource({**OPTIONS, "endingOffsets": "latest"}).streamReader(schema_of("value binary"))
    assert isinstance(reader, SupportsTriggerAvailableNow)
    with pytest.raises(ConfigError, match="endingOffsets"):
        ask(reader)
    reader.stop()


def test_a_schema_of_decoded_values_checks_the_options_once(monkeypatch):
    parse, parsed = SourceOptions.parse, []
    monkeypatch.setattr(SourceOptions, "parse", lambda *given, **how: parsed.append(how) or parse(*given, **how))
    source = HeadraceSource({**OPTIONS, "value.format": "json", "value.schema": "a int"})
    assert source.schema()["value"].dataType == T.StructType([T.StructField("a", T.IntegerType())])
    assert parsed == [{}]
    assert source.streamReader(source.schema()).decoded is not None
    assert parsed == [{}, {}, {"streaming": True}]


def test_a_table_is_made_without_options():
    assert HeadraceSource({"owner": "me", "provider": "headrace"}).schema().startswith("key binary")
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        HeadraceSource({}).schema()


def test_a_schema_may_leave_columns_out_but_not_change_them():
    source = HeadraceSource(OPTIONS)
    assert source.streamReader(schema_of("offset bigint, value binary")).columns == ["offset", "value"]
    with pytest.raises(ConfigError, match="column value must be binary and nullable, not string"):
        source.reader(schema_of("value string"))
    with pytest.raises(ConfigError, match="column value must be binary and nullable, not binary not null"):
        source.reader(T.StructType([T.StructField("value", T.BinaryType(), nullable=False)]))
    with pytest.raises(ConfigError, match="column payload cannot be read"):
        source.reader(schema_of("payload binary"))


def test_a_schema_that_the_user_gives_has_the_types_of_the_values_that_are_decoded():
    source = HeadraceSource({**OPTIONS, "value.format": "avro", "key.format": "string", "value.schema": json.dumps({
        "type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]})})
    planned = source.schema()
    assert [each.dataType.simpleString() for each in planned.fields[:2]] == ["string", "struct<a:int,b:string>"]
    source.streamReader(planned).getDefaultReadLimit()
    other = T.StructType([T.StructField("a", T.IntegerType(), True), T.StructField("b", T.StringType(), True)])
    refused = source.streamReader(T.StructType([T.StructField("value", other)]))
    with pytest.raises(ConfigError, match=r"column value must have the schema's type.*: leave its type to the source"):
        refused.getDefaultReadLimit()


def test_headers_are_a_column_when_asked_for():
    for said in ("true", " True "):
        assert "headers" in HeadraceSource({**OPTIONS, "includeHeaders": said}).schema()
    assert "headers" not in HeadraceSource(OPTIONS).schema()


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("key string", "takes a column named value"),
        ("value int", "column value must be binary or string, not int: cast it"),
        ("value string, extra int", "column extra cannot be written"),
        ("value string, partition bigint", "column partition must be int, not bigint"),
    ],
)
@pytest.mark.parametrize("writer", [BatchWriter, StreamWriter])
def test_columns_that_a_topic_cannot_take_are_named(ddl, said, writer):
    source = HeadraceSource({"kafka.bootstrap.servers": "localhost:1", "topic": "t"})
    make = source.streamWriter if writer is StreamWriter else source.writer
    with pytest.raises(ConfigError, match=said):
        make(schema_of(ddl), False)


def test_rows_need_a_topic_from_somewhere():
    source = HeadraceSource({"kafka.bootstrap.servers": "localhost:1"})
    with pytest.raises(ConfigError, match="name the topic"):
        source.writer(schema_of("value string"), False)
    assert source.writer(schema_of("value string, topic string"), False)


def test_a_topic_is_never_overwritten():
    source = HeadraceSource({"kafka.bootstrap.servers": "localhost:1", "topic": "t"})
    with pytest.raises(ConfigError, match="cannot be overwritten"):
        source.writer(schema_of("value string"), True)
