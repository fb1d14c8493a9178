"""Several writes, dead letters and the source's offsets in one transaction, by `foreachBatch` (decision 0041).

`claims` and `offsets_of_batch` know no Spark classes; `transaction_sink` and `batches` are what a program meets.
"""
