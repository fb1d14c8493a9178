"""The native twin has the names and types of the plain one."""

from headrace.schemas.columns.avro.avro_plain_decoder import PlainDecoder as Decoder
from headrace.schemas.columns.avro.avro_plain_encoder import PlainEncoder as Encoder

__all__ = ["Decoder", "Encoder"]
