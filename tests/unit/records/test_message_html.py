"""A message in a notebook, of either twin."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import KafkaError
from tests.support.twins import NATIVE, PLAIN


@pytest.mark.parametrize("twin", [PLAIN, *([NATIVE] if NATIVE else [])], ids=str)
@pytest.mark.parametrize(("fields", "shown"), [
    ({"value": b"<b>"}, "<th>value</th><td>&lt;b&gt;</td>"),
    ({"value": b"\xff"}, "<td>b&#x27;\\xff&#x27;</td>"),
    ({"value": None}, "<th>value</th><td>null</td>"),
    ({"value": {"id": 1}}, "<td>{&#x27;id&#x27;: 1}</td>"),
    ({"value": b"x" * 3000}, "x... (3,000 in all)"),
    ({"headers": [("h", b"1")]}, "<th>header h</th><td>1</td>"),
    ({"timestamp": (1, 1_700_000_000_123)}, "<td>2023-11-14T22:13:20.123+00:00</td>"),
    ({"timestamp": (1, 1 << 60)}, f"<td>{1 << 60} ms</td>"),
    ({"error": KafkaError(KafkaError._PARTITION_EOF)}, "<th>error</th>"),
])
def test_it_shows_what_it_holds_escaped_and_bounded(twin: Any, fields: dict[str, Any], shown: str) -> None:
    made = twin.Message(topic="t", partition=2, offset=3, key=b"k", **fields)._repr_html_()
    assert "<caption>t[2]@3</caption>" in made
    assert "<th>key</th><td>k</td>" in made
    assert shown in made
