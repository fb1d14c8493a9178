"""Protobuf's messages as columns: plans, and the plain twin of the native code; `protobuf_columns` is the door."""
