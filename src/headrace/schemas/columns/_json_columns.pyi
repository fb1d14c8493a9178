"""JSON to Arrow columns and back, in C; `_json_columns.pyx` documents it."""

from headrace.schemas.columns._column_tree import GrownColumns
from headrace.schemas.columns.arrow_tree import Grown, Layout, Seen
from headrace.schemas.columns.json.json_shapes import JsonShape

class JsonProgram:
    def __init__(self, shape: JsonShape, layout: Layout, is_loose: bool, seed: int) -> None: ...
    def decode(self, seen: Seen | None, rows: int) -> tuple[Grown, GrownColumns, dict[int, str]]: ...
    def encode(self, seen: Seen | None, rows: int) -> tuple[Grown, GrownColumns, tuple[int, str] | None]: ...
