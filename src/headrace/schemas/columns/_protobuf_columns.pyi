"""Protobuf's bytes to Arrow columns and back, in C; `_protobuf_columns.pyx` documents it."""

from headrace.schemas.columns._column_tree import GrownColumns
from headrace.schemas.columns.arrow_tree import Grown, Layout, Seen
from headrace.schemas.columns.protobuf.protobuf_plan import MessagePlan

class ProtobufProgram:
    def __init__(self, plan: MessagePlan, layout: Layout, seed: int) -> None: ...
    def decode(self, seen: Seen | None, rows: int) -> tuple[Grown, GrownColumns, dict[int, str]]: ...
    def encode(self, seen: Seen | None, rows: int) -> tuple[Grown, GrownColumns, tuple[int, str] | None]: ...
