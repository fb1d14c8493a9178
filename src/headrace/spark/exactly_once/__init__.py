"""Exactly-once writes: each micro-batch, or each batch write, is one Kafka transaction (decision 0037).

`batch_marker` and `task_report` decide and know neither Spark nor Kafka; `driver_transaction` is what the driver does,
`task_transaction` what each task does. Only `spark_task` imports pyspark.
"""
