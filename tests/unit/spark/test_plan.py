"""Offsets, limits and splitting: the arithmetic of batches."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.spark import lag as headrace_lag
from headrace.spark.plan import (
    DataLossError,
    Range,
    advance,
    batch_offsets,
    batch_start,
    checked_end,
    lag,
    limit_bytes,
    limit_rows,
    limit_rows_of_partitions,
    logged_epochs,
    logged_ids,
    losses,
    made_anew,
    ranges,
    share_tasks,
    split,
    text_of,
)

A, B, C = ("a", 0), ("a", 1), ("b", 0)


def test_a_batch_s_start_survives_a_start_that_is_resolved_anew():
    logged = json.loads(json.dumps(batch_offsets({A: 100}, {A: 103})))
    resolved_after_a_crash = batch_offsets({A: 105}, {A: 105})
    assert batch_start(resolved_after_a_crash, logged) == ({A: 100}, {A: 103})


def test_offsets_of_spark_s_own_connector_are_understood():
    assert batch_start({"a": {"0": 4}}, {"a": {"0": 9}}) == ({A: 4}, {A: 9})


def test_a_topic_s_name_cannot_hide_the_start():
    offsets = {("_from", 0): 3, ("v", 1): 4}
    assert batch_start({}, batch_offsets(offsets, offsets)) == (offsets, offsets)


def test_the_logged_text_does_not_depend_on_the_order_of_partitions():
    one, other = batch_offsets({A: 0, C: 0}, {C: 2, B: 1}), batch_offsets({C: 0, A: 0}, {B: 1, C: 2})
    assert json.dumps(one) == json.dumps(other)


FORMAT_1 = '{"a": {"0": 103}, "@from": {"a": {"0": 100}}, "@v": 1}'
"""As headrace 0.1 wrote it."""


def test_a_checkpoint_of_format_1_is_read():
    logged = json.loads(FORMAT_1)
    assert batch_start({}, logged) == ({A: 100}, {A: 103})
    assert logged_ids(logged) == {}
    assert logged_epochs(logged) == {}


def test_ids_and_epochs_travel_with_the_offsets_of_their_topics():
    logged = json.loads(json.dumps(batch_offsets({A: 1}, {A: 2, B: 3}, {"a": "id", "z": "other"}, {A: 7, C: 1})))
    assert logged_ids(logged) == {"a": "id"}
    assert logged_epochs(logged) == {A: 7}
    assert batch_start({}, logged) == ({A: 1}, {A: 2, B: 3})
    assert logged["@v"] == 2
    assert batch_offsets({A: 1}, {A: 2}, {"z": "other"}, {C: 1}) == batch_offsets({A: 1}, {A: 2})


def test_ranges_come_in_one_order_so_that_a_batch_that_runs_again_has_the_same_tasks():
    assert ranges({}, {C: 4, B: 3, A: 9}) == ranges({}, {A: 9, B: 3, C: 4}) == [
        Range("a", 0, 0, 9), Range("a", 1, 0, 3), Range("b", 0, 0, 4)]


def test_ranges_know_their_topic_when_they_are_cut():
    whole = ranges({}, {A: 9, C: 4}, {"a": "id"})
    assert [(each.topic_id, each.size) for each in split(whole, max_rows=5)] == [("id", 4), ("id", 5), ("", 4)]


def test_a_newer_format_is_refused():
    with pytest.raises(ConfigError, match="format 3"):
        batch_start({}, {"@v": 3})


def test_lag_counts_what_is_not_read():
    assert lag({"a": {"0": 4, "1": 9}}, {"a": {"0": 10, "1": 9}, "b": {"0": 2}}) == 8
    assert lag(None, {"a": {"0": 4}}) == 0


def test_lag_is_read_from_a_progress_report_as_spark_gives_it():
    end = json.dumps(batch_offsets({A: 0, B: 0}, {A: 4, B: 9}))
    latest = json.dumps(batch_offsets({A: 10, B: 9}, {A: 10, B: 9}))
    ours = {"description": "PythonMicroBatchStream", "endOffset": end, "latestOffset": latest}
    other = {"description": "FileStreamSource", "endOffset": {"logOffset": 3}, "latestOffset": None}
    report = {"sources": [ours, other]}

    class Progress:
        json = globals()["json"].dumps(report)

    for form in (report, json.dumps(report), Progress()):
        assert headrace_lag(form) == {A: 6, B: 0}
    assert headrace_lag(None) == {}


def test_offsets_are_shown_in_order():
    assert text_of({C: 1, A: 2}) == "a[0]@2, b[0]@1"


def test_new_partitions_start_at_their_earliest_record():
    assert advance({A: 5}, {B: 0}, {A: 9, B: 7}, fail_on_data_loss=True) == {A: 5, B: 0}
    assert advance({A: 5}, {B: 2}, {A: 9, B: 7}, fail_on_data_loss=False) == {A: 5, B: 2}


def test_a_new_partition_that_does_not_begin_at_0_is_data_loss():
    with pytest.raises(DataLossError, match=r"a\[1\] were added after the query began and have lost"):
        advance({A: 5}, {B: 2}, {A: 9, B: 7}, fail_on_data_loss=True)


def test_each_partition_is_named_once_with_what_is_the_matter_with_it():
    new = ("c", 0)
    assert losses({A: 5, B: 5, C: 5}, {new: 1, A: 0}, {A: 3, C: 3, new: 4}, anew={"a"}, cut={C: 3, A: 1}) == [
        "a[1] no longer exist, or are no longer among what is read",
        "a[0] belong to a topic that was deleted and made anew",
        "b[0] lack records that were read, after an election of a leader that had not got them",
        "c[0] were added after the query began and have lost their first records since"]
    assert losses({A: 5}, {A: 5, B: 0}, {A: 5, B: 0}) == []


def test_a_deleted_partition_is_data_loss():
    with pytest.raises(DataLossError, match=r"a\[1\] no longer exist.*failOnDataLoss"):
        advance({A: 5, B: 5}, {}, {A: 9}, fail_on_data_loss=True)


def test_a_topic_made_anew_is_data_loss():
    with pytest.raises(DataLossError, match=r"a\[0\] end before"):
        advance({A: 5}, {}, {A: 3}, fail_on_data_loss=True)


def test_a_topic_that_was_made_anew_is_seen_by_its_id_though_its_offsets_fit():
    assert made_anew({"a": "1", "b": "2"}, {"a": "1", "b": "3"}) == {"b"}
    assert made_anew({"a": "1"}, {}) == set()
    with pytest.raises(DataLossError, match=r"a\[0\] belong to a topic that was deleted and made anew"):
        advance({A: 5, C: 5}, {A: 0}, {A: 9, C: 9}, fail_on_data_loss=True, anew={"a"})
    assert advance({A: 5, C: 5}, {A: 2}, {A: 9, C: 9}, fail_on_data_loss=False, anew={"a"}) == {A: 2, C: 5}


def test_a_log_that_was_cut_by_an_election_is_data_loss_though_it_has_grown_again():
    with pytest.raises(DataLossError, match=r"a\[0\] lack records that were read"):
        advance({A: 5}, {}, {A: 9}, fail_on_data_loss=True, cut={A: 3})
    assert advance({A: 5, B: 5}, {}, {A: 9, B: 9}, fail_on_data_loss=False, cut={A: 3}) == {A: 3, B: 5}


def test_without_fail_on_data_loss_the_stream_goes_on_with_what_there_is():
    assert advance({A: 5, B: 5}, {A: 1}, {A: 3}, fail_on_data_loss=False) == {A: 1}


def test_records_that_are_gone_before_they_were_read_are_passed_over_at_once():
    assert advance({A: 5, B: 5}, {A: 8, B: 2}, {A: 9, B: 9}, fail_on_data_loss=False) == {A: 8, B: 5}
    assert advance({A: 5}, {A: 8}, {A: 7}, fail_on_data_loss=False) == {A: 7}  # a run over what there was before
    assert losses({A: 5, B: 5}, {A: 8, B: 5}, {A: 9, B: 9}) == [
        "a[0] begin behind the offsets reached so far: records are gone that were still to be read"]
    with pytest.raises(DataLossError, match=r"a\[0\] begin behind the offsets reached so far"):
        advance({A: 5}, {A: 8}, {A: 9}, fail_on_data_loss=True)


def test_a_batch_read_that_starts_behind_its_end_is_refused_with_both_offsets_and_the_remedy():
    for fail_on_data_loss in (True, False):
        with pytest.raises(ConfigError) as caught:
            checked_end({A: 5, B: 2}, {A: 3, B: 2}, {}, fail_on_data_loss=fail_on_data_loss)
        assert "a[0] starts at offset 5 and ends at offset 3. Choose a starting offset" in str(caught.value)
        assert "a[1]" not in str(caught.value)


def test_a_batch_read_that_ends_behind_the_log_is_refused_or_ends_with_the_log():
    start, end = {A: 1, B: 2}, {A: 30, B: 2}
    with pytest.raises(DataLossError, match=r"a\[0\] is to be read up to offset 30, but its log ends at offset 9\."):
        checked_end(start, end, {A: 9}, fail_on_data_loss=True)
    assert checked_end(start, end, {A: 9}, fail_on_data_loss=False) == {A: 9, B: 2}
    assert checked_end(start, end, {}, fail_on_data_loss=True) == end


def test_the_limit_is_shared_by_backlog():
    assert limit_rows({A: 0, B: 100}, {A: 300, B: 200}, 40) == {A: 30, B: 110}


def test_a_small_backlog_is_not_starved():
    assert limit_rows({A: 0, B: 0}, {A: 1_000_000, B: 1}, 10) == {A: 9, B: 1}


def test_no_limit_takes_all():
    assert limit_rows({A: 0}, {A: 5}, None) == {A: 5}


def test_each_partition_has_a_cap_of_its_own():
    assert limit_rows_of_partitions({A: 5}, {A: 100, B: 3}, 10) == {A: 15, B: 3}
    assert limit_rows_of_partitions({A: 5}, {A: 100}, None) == {A: 100}


def test_bytes_are_shared_by_backlog_and_size_of_the_records():
    assert limit_bytes({}, {A: 100, C: 100}, 6_000, {"a": 100.0, "b": 20.0}) == {A: 50, C: 50}
    assert limit_bytes({}, {A: 100, C: 100}, 12_000, {"a": 100.0, "b": 20.0}) == {A: 100, C: 100}
    assert limit_bytes({A: 7}, {A: 8, C: 1000}, 10, {"a": 100.0, "b": 100.0}) == {A: 8, C: 1}


backlogs = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)),
    min_size=1,
)


@given(backlogs, st.integers(1, 5_000))
def test_limited_batches_move_on_and_reach_the_end(backlog, limit):
    start = {tp: begin for tp, (begin, _) in backlog.items()}
    latest = {tp: begin + size for tp, (begin, size) in backlog.items()}
    end = limit_rows(start, latest, limit)
    read = sum(end[tp] - start[tp] for tp in end)
    assert all(start[tp] <= end[tp] <= latest[tp] for tp in latest)
    assert read <= limit + len(latest)
    assert read > 0 or start == latest


def test_partitions_without_news_make_no_task():
    assert ranges({A: 3, B: 3}, {A: 3, B: 5}) == [Range("a", 1, 3, 5)]


def test_enough_tasks_are_cut_from_the_largest_ranges():
    tasks = split([Range("a", 0, 0, 900), Range("a", 1, 0, 100)], min_partitions=4)
    assert [each.size for each in tasks] == [300, 300, 300, 100]
    grown = split([Range("a", p, 0, size) for p, size in enumerate([100, 200, 900])], min_partitions=5)
    assert [each.size for each in grown] == [100, 200, 300, 300, 300]


def test_no_task_is_larger_than_asked():
    assert [each.size for each in split([Range("a", 0, 10, 35)], max_rows=10)] == [8, 8, 9]


def test_single_records_are_not_cut():
    assert split([Range("a", 0, 7, 8)], min_partitions=5) == [Range("a", 0, 7, 8)]


@given(backlogs, st.integers(1, 40), st.one_of(st.none(), st.integers(1, 3_000)))
def test_splitting_keeps_every_record_once_and_in_order(backlog, wanted, most):
    whole = ranges({tp: b for tp, (b, _) in backlog.items()}, {tp: b + s for tp, (b, s) in backlog.items()})
    tasks = split(whole, wanted, most)
    joined: list[Range] = []
    for each in tasks:
        assert each.size > 0
        assert most is None or each.size <= most
        if joined and joined[-1].end == each.start and (joined[-1].topic, joined[-1].partition) == (
            each.topic, each.partition
        ):
            joined[-1] = Range(each.topic, each.partition, joined[-1].start, each.end)
        else:
            joined.append(each)
    assert joined == whole
    assert len(tasks) >= min(wanted, sum(each.size for each in whole))


def test_small_ranges_that_follow_each_other_share_a_task():
    pieces = [Range("a", p, 0, size) for p, size in enumerate([10, 20, 15, 60, 5, 5])]
    assert [[each.size for each in task] for task in share_tasks(pieces, 40)] == [[10, 20], [15], [60], [5, 5]]


@given(backlogs, st.one_of(st.none(), st.integers(1, 3_000)), st.integers(0, 9_000))
def test_shared_tasks_keep_the_order_and_the_bound_and_take_a_partition_once(backlog, most, shared):
    whole = ranges({tp: b for tp, (b, _) in backlog.items()}, {tp: b + s for tp, (b, s) in backlog.items()})
    pieces = split(whole, None, most)
    tasks = share_tasks(pieces, min(shared, most or shared))
    assert [each for task in tasks for each in task] == pieces
    for task in tasks:
        assert len(task) == 1 or sum(each.size for each in task) <= shared
        assert len({(each.topic, each.partition) for each in task}) == len(task)


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_backlog_that_is_worth_it_has_work_for_each_core(partitions, cores):
    backlog = [Range("a", p, 0, 100 * cores) for p in range(partitions)]
    assert len(share_tasks(backlog, 100)) >= min(cores, partitions)


def test_ranges_travel_to_their_tasks():
    whole = [Range("a", 0, 1, 2, "id"), Range("a", 1, 0, 9)]
    assert pickle.loads(pickle.dumps(whole)) == whole
