"""Values and keys with schemas: bytes in topics, columns in Arrow (decisions 0038 and 0042).

`value_format` reads the options, `value_planning` asks the registry once for a read, `value_decoder` and
`value_encoder` work on batches, `written_values` reads each value by the schema that it names. Spark's source and sink,
frames and the command line share them; what only Spark needs is in `headrace.spark.values`.
"""
