"""In the driver: whether the columns of a frame can be written in the formats that a sink's options name.

Read next: `headrace.values.value_encoder`.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import ConfigError
from headrace.spark.options import SinkOptions
from headrace.spark.values.spark_types import arrow_type_of
from headrace.values.value_encoder import encoder_of

__all__ = ["check_frame"]


def check_frame(options: SinkOptions, schema: Any) -> None:
    """Refuse a frame that cannot be written in its formats, in the driver, as far as it knows the topic.

    Args:
        options: of the write.
        schema: of the frame, Spark's.

    Raises:
        ConfigError: a column is missing, or has a type that no format has; also see `ValueEncoder`, as for the other
            errors.
    """
    types = {each.name: each.dataType for each in schema.fields}
    for of in (options.key, options.value):
        if not of.has_schema:
            continue
        if of.side not in types:
            raise ConfigError(f"option {of.side}.format is {of.name}, and the frame has no column {of.side}")
        data_type = arrow_type_of(types[of.side], of.side)
        if options.topic:
            encoder_of(of, options.topic, data_type)
