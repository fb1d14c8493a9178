"""`confluent/type/decimal.proto`: numbers of a fixed scale. `pip install headrace[protobuf]`.

Older files import it as `confluent/types/decimal.proto`, and their code from `confluent.types.decimal_pb2`.
"""

from __future__ import annotations

from headrace.client.schema_serdes.codecs.confluent_files import confluent_file
from headrace.client.schema_serdes.codecs.protobuf_codec import class_of

__all__ = ["DESCRIPTOR", "Decimal"]

DESCRIPTOR = confluent_file("confluent/type/decimal.proto")
confluent_file("confluent/types/decimal.proto")
Decimal = class_of(DESCRIPTOR.message_types_by_name["Decimal"])
