"""The inline sink writes to a topic inside of a query, by a function of its columns, where no Python data source can.

Spark 4.3 lets a Python data source take the output modes append and complete. `foreachBatch` takes update as well, but
plans each micro-batch a second time. Here the rows are written where they are computed, and what is left is a column of
`true` for Spark's `noop` sink. At least once, as every sink: a task that runs again writes again.

This module runs in the driver and in executors. Read next: `headrace.spark.column_writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from headrace.errors import ConfigError
from headrace.spark.options import SinkOptions
from headrace.spark.sink import append_rows, check_columns
from headrace.spark.worker import acknowledge_at_once, spare_collections

__all__ = ["true_for_each", "written"]


def written(frame: DataFrame, given: dict[str, str]) -> DataFrame:
    """The rows of a frame, which are written to a topic by the tasks that compute them.

    Args:
        frame: columns as the sink takes them.
        given: options of a write.

    Returns:
        One column, true for each row.

    Raises:
        ConfigError: an unknown option, a malformed value, or a column that a topic does not take.
    """
    options = SinkOptions.parse(given)
    if options.exactly_once:
        raise ConfigError("delivery.guarantee=exactly_once needs a sink that Spark commits: write with the output mode "
                          "append or complete")
    check_columns(options, frame.schema)
    write = F.arrow_udf(_writing(options), "boolean").asNondeterministic()
    return frame.select(write(F.struct(*frame.columns)).alias("written"))


def true_for_each(rows: pyarrow.Array) -> pyarrow.Array:
    """The column that is left of rows that were written: true for each."""
    # What `pyarrow.array` makes costs an import of pandas, where there is one.
    return pyarrow.Array.from_buffers(
        pyarrow.bool_(), len(rows), [None, pyarrow.py_buffer(b"\xff" * (len(rows) // 8 + 1))])


def _writing(options: SinkOptions) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def write(batches: Iterator[pyarrow.Array]) -> Iterator[pyarrow.Array]:  # types by which Spark knows its kind
        acknowledge_at_once()
        from headrace.spark.column_writer import ColumnWriter

        spare_collections()
        with ColumnWriter(options.client) as out:
            for rows in batches:
                append_rows(out, pyarrow.RecordBatch.from_struct_array(rows), options)
                yield true_for_each(rows)
            out.finish()

    return write
