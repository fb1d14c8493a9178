"""Values and keys with schemas in the source and the sink: bytes in topics, columns in Spark (decision 0038).

`value_format` reads the options, `value_planning` asks the registry in the driver, `value_decoder` and `value_encoder`
work in the tasks. Only `spark_types` imports pyspark.
"""
