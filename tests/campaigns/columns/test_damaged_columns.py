"""Some rounds of `python -m tests.campaigns.columns`, and that it notices what it must notice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("headrace.schemas.columns._avro_columns", reason="the native modules were not built")

from headrace.schemas.columns.column_codec import DecodedColumn
from tests.campaigns.columns import campaign
from tests.campaigns.columns.samples import all_twins


@pytest.mark.parametrize("number", range(8))
def test_damaged_values_are_read_or_refused_alike_by_both_twins(number: int) -> None:
    finding, counts = campaign.run_round(f"smoke/{number}")
    assert not finding, f"{finding}; again: python -m tests.campaigns.columns --round smoke/{number}"
    assert sum(count for name, count in counts.items() if name.endswith("refused"))


class Broken:
    """Reads as another does, with one thing wrong."""

    def __init__(self, whole: Any, wrong: str) -> None:
        self._whole, self._wrong = whole, wrong

    def decode(self, payloads: Any) -> DecodedColumn:
        found = self._whole.decode(payloads)
        if self._wrong == "values":
            return replace(found, values=found.values.take([0] * len(payloads)))
        return replace(found, malformed={} if self._wrong == "lenient" else dict.fromkeys(range(len(payloads)), "no"))


@pytest.mark.parametrize("wrong", ["values", "lenient", "strict"])
def test_what_is_wrong_in_one_twin_is_a_finding(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Any = [replace(each, native=Broken(each.native, wrong)) for each in all_twins()]
    monkeypatch.setattr(campaign, "all_twins", lambda: broken)
    finding, counts = campaign.run_round("broken")
    assert finding
    assert isinstance(counts, Counter)
