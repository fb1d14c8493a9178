"""Schemas of the three kinds that a Schema Registry knows: read, written in canonical form, compared.

Broker, client and Spark import it; it does no input or output and needs no library. Read next: `schemas.parsing`, the
door, then `schemas.avro`, `schemas.json_schema`, `schemas.protobuf`.
"""
