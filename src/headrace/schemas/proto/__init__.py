"""Protobuf files: their parts, read from text or from descriptors, and written as both.

Read next: `schemas.protobuf`, the door; `schemas.proto.proto_nodes` for the parts.
"""
