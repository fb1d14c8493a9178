"""The one line that a failure of Spark comes down to."""

import pytest

pytest.importorskip("pyspark")

from headrace.spark.pipeline.supervisor import first_line

WORKER = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "source.py", line 173, in _read_range
    with PartitionReader(
{error}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
Caused by: java.lang.InterruptedException
"""


@pytest.mark.parametrize("error", ["headrace.errors.KafkaException: it is gone", "TimeoutError", "KeyError: 'x'"])
def test_the_error_of_a_worker_is_told_and_not_the_frames_round_it(error):
    assert first_line(WORKER.format(error=error)) == error


def test_an_error_of_spark_is_itsfirst_line():
    assert first_line("[UNRESOLVED_COLUMN] m is not known\n'Project [m]\n") == "[UNRESOLVED_COLUMN] m is not known"


def test_an_error_of_java_is_what_java_says_and_not_the_call_that_it_came_of():
    text = """An error occurred while calling o40.load.
: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: headrace.
\tat org.apache.spark.sql.classic.DataFrameReader.load(DataFrameReader.scala:110)
Caused by: java.lang.ClassNotFoundException: headrace.DefaultSource
"""
    assert first_line(text) == ("org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find "
                                "the data source: headrace.")
