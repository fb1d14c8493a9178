"""JSON Schemas. Whether values are valid is not decided here.

It must not know a registry. Read next: `schemas.json_nodes`, then `schemas.json_compatibility`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.schemas.json_compatibility import incompatible_schemas
from headrace.schemas.json_nodes import JsonDocuments
from headrace.schemas.parsed import Incompatibility, ReferencedSchema, compact, load_json
from headrace.slotted import slotted

__all__ = ["ParsedJson", "parse_json_schema"]


@slotted(frozen=True, eq=False)
class ParsedJson:
    """A JSON Schema.

    Attributes:
        root: its JSON.
        documents: it, and what it refers to.
    """

    root: Any
    documents: JsonDocuments

    @property
    def schema_type(self) -> str:
        """`JSON`."""
        return "JSON"

    def canonical(self) -> str:
        """The JSON without spaces."""
        return compact(self.root)

    def normalized(self) -> str:
        """The JSON without spaces and with sorted keys."""
        return compact(_sorted(self.root))

    def formatted(self, name: str) -> str:
        """`canonical`: there are no other formats."""
        return self.canonical()

    def can_read(self, written: ParsedJson) -> list[Incompatibility]:
        """Why what was valid by another schema may not be valid by this one."""
        return incompatible_schemas((written.root, written.documents), (self.root, self.documents))


def parse_json_schema(text: str, references: Sequence[ReferencedSchema] = ()) -> ParsedJson:
    """Read a JSON Schema.

    Args:
        text: JSON.
        references: schemas that it refers to, named as it does.

    Raises:
        InvalidSchemaError: the text is no JSON, a keyword has a wrong form, a reference leads nowhere.
    """
    others = {each.name: load_json(each.text, f"the referenced schema {each.name!r}") for each in references}
    root = load_json(text)
    documents = JsonDocuments(root, others)
    documents.follow()
    return ParsedJson(root, documents)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
