"""`confluent/meta.proto`: options that give messages and fields tags and rules. `pip install headrace[protobuf]`.

Tags and rules are read with the schema, and rules are not run (decision 0034).
"""

from __future__ import annotations

from headrace.client.schema_serdes.codecs.confluent_files import confluent_file
from headrace.client.schema_serdes.codecs.protobuf_codec import class_of

__all__ = ["DESCRIPTOR", "Meta", "Rule", "enum_meta", "enum_value_meta", "field_meta", "file_meta", "message_meta"]

DESCRIPTOR = confluent_file("confluent/meta.proto")
Meta = class_of(DESCRIPTOR.message_types_by_name["Meta"])
Rule = class_of(DESCRIPTOR.message_types_by_name["Rule"])
file_meta = DESCRIPTOR.extensions_by_name["file_meta"]
message_meta = DESCRIPTOR.extensions_by_name["message_meta"]
field_meta = DESCRIPTOR.extensions_by_name["field_meta"]
enum_meta = DESCRIPTOR.extensions_by_name["enum_meta"]
enum_value_meta = DESCRIPTOR.extensions_by_name["enum_value_meta"]
