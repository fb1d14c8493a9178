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
