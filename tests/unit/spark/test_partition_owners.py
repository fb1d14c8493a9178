"""What is asked before rows are arranged: whether they may be, and how many partitions there are."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa
from pyspark.errors import AnalysisException

from headrace import consistent, murmur2
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.spark import partition_owners
from headrace.spark.options import SinkOptions
from headrace.spark.partition_owners import PartitionCounts, arranged, schema_of

_ERRORS = {"none": KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART),
           "secret": KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed to describe secret")}
ONCE = {"delivery.guarantee": "exactly_once", "sinkId": "s"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the brokers were asked for each topic.

    `many` has six partitions, `none` does not exist, and `secret` is hidden.
    """
    calls: Counter[str] = Counter()

    class Admin:
        def __init__(self, properties: dict[str, Any]) -> None:
            pass

        def __enter__(self) -> Admin:
            return self

        def __exit__(self, *exception: object) -> None:
            pass

        def list_topics(self, topic: str, timeout: float) -> Any:
            calls[topic] += 1
            partitions = dict.fromkeys(range(6)) if topic == "many" else {}
            return SimpleNamespace(topics={topic: SimpleNamespace(error=_ERRORS.get(topic), partitions=partitions)})

    monkeypatch.setattr(partition_owners, "AdminClient", Admin)
    return calls


def options(topic: str = "many", **given: str) -> SinkOptions:
    return SinkOptions.parse({"kafka.bootstrap.servers": "b:9092", "topic": topic, **given})


def frame(speculation: str) -> Any:
    """Columns without a key, in a session with this setting."""
    return SimpleNamespace(sparkSession=SimpleNamespace(conf=SimpleNamespace(
        get=lambda name, default: speculation if name == "spark.speculation" else default)))


def test_a_topic_is_asked_for_once_however_often_it_is_written(asked: Counter[str]) -> None:
    counts = PartitionCounts()
    assert [counts.of(options()) for _ in range(3)] == [6, 6, 6]
    assert asked == {"many": 1}


def test_a_topic_that_does_not_exist_is_refused_and_asked_for_again(asked: Counter[str]) -> None:
    counts = PartitionCounts()
    for _ in range(2):
        with pytest.raises(ConfigError, match="none does not exist"):
            counts.of(options("none"))
    assert asked == {"none": 2}


def test_a_topic_that_the_user_may_not_see_is_not_said_to_be_missing(asked: Counter[str]) -> None:
    with pytest.raises(KafkaException, match="not allowed to describe secret"):
        PartitionCounts().of(options("secret"))


@pytest.mark.parametrize("setting", ["true", "TRUE"])
def test_rows_are_not_arranged_for_tasks_that_may_run_twice_at_once(asked: Counter[str], setting: str) -> None:
    with pytest.raises(ConfigError, match=r"spark\.speculation=false"):
        arranged(frame(setting), options(**ONCE))
    assert not asked


@pytest.mark.parametrize(("setting", "given"), [("true", {}), ("false", ONCE)])
def test_speculation_is_no_matter_where_it_is_off_or_rows_may_come_twice(
    asked: Counter[str], setting: str, given: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="none does not exist"):  # which is asked behind it
        arranged(frame(setting), options("none", **given))


class OfAFlow:
    """A frame in a flow of Declarative Pipelines: Spark tells nothing of its columns."""

    def __init__(self, reason: str = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION") -> None:
        self._reason = reason

    @property
    def schema(self) -> Any:
        raise AnalysisException("not here", errorClass=self._reason, messageParameters={})


def test_only_columns_that_a_flow_hides_may_be_unknown() -> None:
    assert schema_of(cast("Any", OfAFlow())) is None
    with pytest.raises(AnalysisException):
        schema_of(cast("Any", OfAFlow("UNRESOLVED_COLUMN")))


@pytest.mark.parametrize(("partitioner", "hashed", "by_lot"), [
    ("consistent_random", consistent, (None, b"")), ("murmur2_random", murmur2, (None,)), ("murmur2", murmur2, ())])
def test_rows_whose_columns_only_a_task_knows_go_where_the_sinks_partitioner_puts_them(
    monkeypatch: pytest.MonkeyPatch, asked: Counter[str], partitioner: str, hashed: Any, by_lot: tuple[Any, ...],
) -> None:
    made: list[Any] = []

    def arrow_udf(choose: Any, kind: Any) -> Any:
        made.append(choose)
        return SimpleNamespace(asNondeterministic=lambda: str)

    monkeypatch.setattr(partition_owners, "F", SimpleNamespace(arrow_udf=arrow_udf, struct=str, col=str))
    rows = SimpleNamespace(repartitionById=lambda count, column: (count, column))
    frame_of_flow: Any = OfAFlow()
    frame_of_flow.withColumn = lambda name, chosen: rows
    assert arranged(frame_of_flow, options(**{"kafka.partitioner": partitioner})) == (6, "partition")
    keys = [None, b"", b"a", b"b", b"c"]
    for kind in (pa.binary(), pa.string()):
        given = pa.array([None if key is None else key if kind == pa.binary() else key.decode() for key in keys], kind)
        found = made[0](pa.StructArray.from_arrays([given], ["key"])).to_pylist()
        assert all(0 <= partition < 6 for partition in found)
        assert all(found[row] == hashed(key or b"", 6) for row, key in enumerate(keys) if key not in by_lot)
    assert made[0](pa.StructArray.from_arrays([pa.array([5, None])], ["partition"])).to_pylist()[0] == 5
