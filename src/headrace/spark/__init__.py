"""Kafka as a PySpark data source and sink, and declared pipelines over it.

`spark.read.format("headrace")`, `readStream`, `write` and `writeStream` work as soon as the package is installed: Spark
finds `pyspark_headrace` by itself. `options` and `plan` are pure; `source` and `sink` are Spark's two faces; `pipeline`
runs a TOML file. Only `source`, `sink` and `pipeline` import pyspark.
"""
