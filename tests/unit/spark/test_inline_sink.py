"""What the inline sink refuses before it looks at any rows, and what its tasks do with them."""

import pytest

from headrace.errors import ConfigError
from headrace.testing import EmbeddedBroker

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")


def test_a_guarantee_that_only_a_sink_of_spark_can_keep_is_refused():
    from headrace.spark.inline_sink import written

    given = {"kafka.bootstrap.servers": "h:1", "topic": "t", "delivery.guarantee": "exactly_once", "sinkId": "s"}
    with pytest.raises(ConfigError, match="needs a sink that Spark commits"):
        written(None, given)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 16, 17])
def test_one_column_is_left_of_rows_which_is_true_for_each(rows):
    import pyarrow

    from headrace.spark.inline_sink import true_for_each

    left = true_for_each(pyarrow.nulls(rows))
    left.validate(full=True)
    assert left.to_pylist() == [True] * rows


def test_a_task_that_has_handed_out_its_last_row_has_all_of_them_acknowledged():
    import pyarrow

    from headrace.frames.topic_reading import read_topic
    from headrace.spark.inline_sink import _writing
    from headrace.spark.options import SinkOptions

    with EmbeddedBroker(topics={"t": 1}) as broker:
        options = SinkOptions.parse({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "t"})
        rows = [pyarrow.array([{"value": text} for text in part]) for part in ("ab", "c")]
        assert [each.to_pylist() for each in _writing(options)(iter(rows))] == [[True, True], [True]]
        found = read_topic("t", broker.bootstrap_servers, format="arrow")
        assert found.column("value").to_pylist() == [b"a", b"b", b"c"]
