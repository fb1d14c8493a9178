"""What we say of pairs of schemas beside what Java says of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from headrace.schemas.avro import ParsedAvro, parse_avro
from headrace.schemas.avro_text import fingerprint, parsing_canonical_form
from headrace.schemas.parsed import InvalidSchemaError

from .java_avro import verdicts

__all__ = ["compare"]

_STRICTER = re.compile(r"is no text|is none of the symbols|is not a type")
"""What we refuse and Java does not: attributes of a wrong type, which it takes for missing, and names that come later
in the text, which the specification does not allow."""
_UNFINISHED = "Schema fields not set yet"
"""Java cannot check the default of a field whose type is the record that the field is in."""


def compare(pairs: Sequence[tuple[str, str]]) -> tuple[Counter[str], list[str]]:
    """How often what was compared, and what differs."""
    counts: Counter[str] = Counter()
    differences: list[str] = []
    for pair, said in zip(pairs, verdicts(pairs), strict=True):
        parsed = [_parsed(text) for text in pair]
        for name, text, ours in zip(("reader", "writer"), pair, parsed, strict=True):
            differences += [f"{text}\n  {each}" for each in _of_schema(ours, said, name, counts)]
        reader, writer = parsed
        if isinstance(reader, ParsedAvro) and isinstance(writer, ParsedAvro) and "found" in said:
            found = {(each.type, each.location, each.message) for each in reader.can_read(writer)}
            difference = _of_pair(found, said, counts)
            differences += [f"reader {pair[0]}\nwriter {pair[1]}\n  {difference}"] if difference else []
    return counts, differences


def _parsed(text: str) -> ParsedAvro | str:
    try:
        return parse_avro(text)
    except InvalidSchemaError as error:
        return str(error)


def _of_schema(ours: ParsedAvro | str, said: dict[str, Any], name: str, counts: Counter[str]) -> list[str]:
    theirs = said.get(name)
    if isinstance(ours, str) or theirs is None:
        counts["invalid"] += 1
        error = said.get(f"{name}Error", "")
        if (theirs is None or _STRICTER.search(ours)) if isinstance(ours, str) else error == _UNFINISHED:
            return []
        return [f"we say {ours if isinstance(ours, str) else 'it is valid'}, Java {error or 'it is'}"]
    counts["valid"] += 1
    shown = {"text": ours.canonical(), "form": parsing_canonical_form(ours.root),
             "fingerprint": fingerprint(ours.root).hex().lstrip("0")}
    return [f"{key}: ours {shown[key]}, Java's {theirs[key]}" for key in shown if shown[key] != theirs[key]]


def _of_pair(ours: set[tuple[str, str, str]], said: dict[str, Any], counts: Counter[str]) -> str:
    if "comparisonError" in said:  # a field has the names of several: Java gives up, we say so and go on
        counts["ambiguous"] += 1
        return ""
    theirs = {tuple(each) for each in said["found"]}
    counts["incompatible" if theirs else "compatible"] += 1
    return "" if ours == theirs else f"ours {sorted(ours - theirs)}, Java's {sorted(theirs - ours)}"
