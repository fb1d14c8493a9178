"""`confluent/type/variant.proto`: values of any type, as Parquet's variants. `pip install headrace[protobuf]`."""

from __future__ import annotations

from headrace.client.schema_serdes.codecs.confluent_files import confluent_file
from headrace.client.schema_serdes.codecs.protobuf_codec import class_of

__all__ = ["DESCRIPTOR", "Variant"]

DESCRIPTOR = confluent_file("confluent/type/variant.proto")
Variant = class_of(DESCRIPTOR.message_types_by_name["Variant"])
