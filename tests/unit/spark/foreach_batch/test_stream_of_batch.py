"""What is asked of Spark's JVM about a micro-batch, told by a stand-in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from headrace.errors import ConfigError
from headrace.spark.foreach_batch.stream_of_batch import StreamOfBatch


class Some:
    """An Option or a Seq of Scala's."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def isDefined(self):
        return bool(self._values)

    def get(self):
        return self._values[0]

    def size(self):
        return len(self._values)

    def apply(self, place):
        return self._values[place]


def entry(logged):
    """One of the offset log: a Seq, or a Map where sources have names."""
    kind = "OffsetMap" if isinstance(logged, dict) else "OffsetSeq"
    given = SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind))
    if kind == "OffsetSeq":
        given.offsets = lambda: logged
    else:
        keys = SimpleNamespace(toSeq=lambda: Some(*logged))
        given.offsetsMap = lambda: SimpleNamespace(keys=lambda: keys, apply=logged.__getitem__)
    return given


def frame(query="q", active=True, logged=None):
    """A micro-batch of a query, with what its offset log has by number."""
    log = SimpleNamespace(get=lambda batch: Some(entry(logged[batch])) if batch in logged else Some())
    execution = SimpleNamespace(isActive=lambda: active, offsetLog=lambda: log)
    queries = {"uuid of q": execution}
    java = SimpleNamespace(util=SimpleNamespace(UUID=SimpleNamespace(fromString="uuid of {}".format)))
    shared = SimpleNamespace(activeStreamingQueries=lambda: queries)
    context = SimpleNamespace(_jvm=SimpleNamespace(java=java),
                              getLocalProperty={"sql.streaming.queryId": query, "spark.jobGroup.id": "run-1"}.get)
    session = SimpleNamespace(sparkContext=context, _jsparkSession=SimpleNamespace(sharedState=lambda: shared))
    return SimpleNamespace(sparkSession=session)


def source(text):
    return Some(SimpleNamespace(json=lambda: text))


def test_the_query_and_its_state_are_known():
    assert StreamOfBatch(frame()).query_id == "q"
    assert StreamOfBatch(frame()).is_active
    assert not StreamOfBatch(frame(active=False)).is_active
    assert not StreamOfBatch(frame(query="ended")).is_active


def test_the_ends_of_all_sources_are_the_logged_ones():
    logged = {4: Some(source('{"a": {"0": 7, "1": 9}, "@from": {"a": {"0": 1}}}'), Some(), source('{"b": {"0": 3}}'))}
    assert StreamOfBatch(frame(logged=logged)).end_offsets(4) == {("a", 0): 7, ("a", 1): 9, ("b", 0): 3}


def test_the_ends_of_sources_with_names_are_the_logged_ones_in_whatever_order_they_are_told():
    named = {"second": source('{"b": {"0": 3}}'), "first": source('{"a": {"0": 7}}'), "quiet": Some()}
    stream = StreamOfBatch(frame(logged={4: named}))
    assert stream.end_offsets(4) == {("a", 0): 7, ("b", 0): 3}
    assert stream.digest(4) == StreamOfBatch(frame(logged={4: dict(sorted(named.items()))})).digest(4)


def test_what_a_micro_batch_reads_has_a_digest_whatever_the_sources_are():
    texts = ['{"a": {"0": 7}}', '{"a": {"0": 8}}', '{"logOffset": 3}']
    logged = {number: Some(Some(), source(text)) for number, text in enumerate(texts)}
    stream = StreamOfBatch(frame(logged=logged))
    assert len({stream.digest(number) for number in range(3)}) == 3
    assert stream.digest(0) == StreamOfBatch(frame(logged={9: logged[0]})).digest(9)
    assert stream.digest(3) == ""  # the query has ended


def test_a_source_without_offsets_of_kafka_is_named_with_the_option():
    with pytest.raises(ConfigError, match="option groupId, must be JSON like"):
        StreamOfBatch(frame(logged={0: Some(source('{"logOffset": 3}'))})).end_offsets(0)


def test_a_query_that_has_ended_has_no_offsets():
    for each in (frame(logged={}), frame(query="ended", logged={})):
        with pytest.raises(ConfigError, match="Spark has no offsets of micro-batch 3"):
            StreamOfBatch(each).end_offsets(3)


def test_a_session_without_a_jvm_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match="over Spark Connect, use the sink"):
        StreamOfBatch(SimpleNamespace(sparkSession=SimpleNamespace()))


def test_a_frame_of_no_query_is_refused():
    with pytest.raises(ConfigError, match="no streaming query runs in this thread"):
        StreamOfBatch(frame(query=None))


def test_a_stop_is_told_in_the_words_by_which_spark_knows_one():
    text = StreamOfBatch(frame()).stopped_text(7, "An error occurred while calling o9.save.")
    assert all(word in text for word in ("micro-batch 7", "org.apache.spark.SparkException", "run-1", "cancelled"))
    assert "py4j.protocol.Py4JJavaError" not in text
