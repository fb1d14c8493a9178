"""Spark's way of finding us: it imports every top-level module named ``pyspark_*`` and registers its `DefaultSource`.

So `spark.read.format("headrace")` works without `spark.dataSource.register`. Read next: `headrace.spark.source`.
"""

from headrace.spark.source import HeadraceSource as DefaultSource

__all__ = ["DefaultSource"]
