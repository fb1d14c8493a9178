"""The .proto files that Confluent's registries bring: descriptors of them, for messages that import them.

protoc makes code that imports `confluent_kafka.schema_registry.confluent.meta_pb2`, say, of a file that has tags.
`headrace.schema_registry.confluent` is the public face. It must not know registries.
"""

from __future__ import annotations

from typing import Any

from headrace.client.schema_serdes.codecs.protobuf_codec import protobuf_needed

__all__ = ["confluent_file"]

_META = """
name: "confluent/meta.proto" package: "confluent" dependency: "google/protobuf/descriptor.proto"
message_type {
  name: "Meta"
  field { name: "doc" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "params" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".confluent.Meta.ParamsEntry" }
  field { name: "tags" number: 3 label: LABEL_REPEATED type: TYPE_STRING }
  field { name: "rules" number: 4 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".confluent.Rule" }
  nested_type {
    name: "ParamsEntry"
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
    options { map_entry: true }
  }
}
message_type {
  name: "Rule"
  field { name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "doc" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "expr" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "sql" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING }
}
""" + "".join(
    f'extension {{ name: "{name}_meta" extendee: ".google.protobuf.{options}Options" number: 1088 '
    'label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".confluent.Meta" }\n'
    for name, options in (("file", "File"), ("message", "Message"), ("field", "Field"), ("enum", "Enum"),
                          ("enum_value", "EnumValue"))) + 'options { go_package: "../confluent" }'
_DECIMAL = """
name: "confluent/type/decimal.proto" package: "confluent.type"
message_type {
  name: "Decimal"
  field { name: "value" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "precision" number: 2 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "scale" number: 3 label: LABEL_OPTIONAL type: TYPE_INT32 }
}
"""
_VARIANT = """
name: "confluent/type/variant.proto" package: "confluent.type"
message_type {
  name: "Variant"
  field { name: "metadata" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES }
}
"""
_OLD_DECIMAL = """
name: "confluent/types/decimal.proto" dependency: "confluent/type/decimal.proto" public_dependency: 0
"""
_TEXTS = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
    "confluent/types/decimal.proto": _OLD_DECIMAL,
}


def confluent_file(path: str) -> Any:
    """The descriptor of a file, as protobuf's pool has it; it is added where it is not there yet.

    Args:
        path: as other files import it, for example confluent/meta.proto.

    Raises:
        DependencyError: protobuf is not installed.
    """
    with protobuf_needed():
        from google.protobuf import descriptor_pb2, descriptor_pool, text_format
    pool = descriptor_pool.Default()
    try:
        return pool.FindFileByName(path)
    except KeyError:
        file = text_format.Parse(f'{_TEXTS[path]} syntax: "proto3"', descriptor_pb2.FileDescriptorProto())
        for needed in file.dependency:
            if needed in _TEXTS:
                confluent_file(needed)
        pool.AddSerializedFile(file.SerializeToString())
        return pool.FindFileByName(path)
