"""Message sets, the record formats 0 and 1, and the way between them and batches."""
