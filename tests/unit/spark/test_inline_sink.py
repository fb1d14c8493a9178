"""What the inline sink refuses before it looks at any rows."""

import pytest

from headrace.errors import ConfigError

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")


def test_a_guarantee_that_only_a_sink_of_spark_can_keep_is_refused():
    from headrace.spark.inline_sink import written

    given = {"kafka.bootstrap.servers": "h:1", "topic": "t", "delivery.guarantee": "exactly_once", "sinkId": "s"}
    with pytest.raises(ConfigError, match="needs a sink that Spark commits"):
        written(None, given)
