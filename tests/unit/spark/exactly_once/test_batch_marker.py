"""What the marker of the last micro-batch says about the next one."""

import pytest

from headrace import KafkaError, KafkaException
from headrace.spark.exactly_once.batch_marker import BatchMarker, BatchVerdict, check_skipped, verdict

LAST = BatchMarker("q", 5)


@pytest.mark.parametrize(("last", "wanted", "expected"), [
    (None, BatchMarker("q", 0), BatchVerdict.WRITE),
    (LAST, BatchMarker("q", 6), BatchVerdict.WRITE),
    (LAST, BatchMarker("q", 9), BatchVerdict.WRITE),  # empty micro-batches leave no marker
    (LAST, BatchMarker("q", 5), BatchVerdict.SKIP),
    (LAST, BatchMarker("other", 5), BatchVerdict.WRITE),
    (LAST, BatchMarker("other", 0), BatchVerdict.WRITE),
])
def test_only_the_micro_batch_that_was_committed_last_is_skipped(last, wanted, expected):
    assert verdict(last, wanted) is expected


def test_a_checkpoint_that_was_taken_back_is_refused():
    with pytest.raises(KafkaException) as raised:
        verdict(LAST, BatchMarker("q", 4))
    assert raised.value.error == KafkaError._STATE
    assert "micro-batch 5 of the same query" in raised.value.error.str()


def test_a_checkpoint_that_was_taken_back_by_one_micro_batch_is_known_by_its_offsets():
    last = BatchMarker("q", 5, offsets="a")
    assert verdict(last, BatchMarker("q", 5, offsets="a")) is BatchVerdict.SKIP
    assert verdict(last, BatchMarker("q", 6, offsets="b")) is BatchVerdict.WRITE
    assert verdict(LAST, BatchMarker("q", 5, offsets="b")) is BatchVerdict.SKIP  # an earlier version has marked it
    assert verdict(last, BatchMarker("q", 5)) is BatchVerdict.SKIP  # a task of Spark's own sink does not know them
    with pytest.raises(KafkaException, match="was of other offsets then: the checkpoint was taken back"):
        verdict(last, BatchMarker("q", 5, offsets="b"))


def test_no_more_rows_are_passed_over_than_were_written():
    check_skipped(LAST, 7)  # an earlier version has marked it
    for rows in (0, 6, 7):
        check_skipped(BatchMarker("q", 5, 7), rows)
    with pytest.raises(KafkaException, match="micro-batch 5 is in the topics with 7 rows, and has 8 now"):
        check_skipped(BatchMarker("q", 5, 7), 8)


@pytest.mark.parametrize("marker", [LAST, BatchMarker("q", 5, 0), BatchMarker("q", 5, 7, "abc")])
def test_a_marker_is_read_as_it_was_written(marker):
    assert BatchMarker.read(marker.text()) == marker
    assert LAST.text() == '{"q":"q","b":5,"v":1}'


@pytest.mark.parametrize("text", [
    "", "hello", "[]", "3", '{"v":1}', '{"q":"q","b":5,"v":2}', '{"q":"q","b":"x","v":1}'])
def test_what_is_no_marker_of_this_version_is_refused(text):
    with pytest.raises(KafkaException) as raised:
        BatchMarker.read(text)
    assert raised.value.error == KafkaError._INCONSISTENT
