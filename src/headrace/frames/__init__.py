"""Topics as frames, and frames as topics: `read_topic()` and `write_topic()`, without a Python object for a record.

They are in `headrace` as well. pyarrow is imported where it is used, pandas and Polars when they are asked for. Read
next: `headrace.frames.topic_reading`.
"""

from headrace.frames.topic_reading import read_topic
from headrace.frames.topic_writing import write_topic

__all__ = ["read_topic", "write_topic"]
