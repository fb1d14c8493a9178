"""A part of what `python -m tests.campaigns.avro` compares: Java and we say the same of Avro schemas."""

from __future__ import annotations

from tests.support.real_kafka import needed_in_ci

from .agreement import compare
from .schema_pairs import pairs


def test_java_says_the_same_of_generated_pairs() -> None:
    with needed_in_ci():
        counts, differences = compare(list(pairs(2000, 1)))
    assert differences == []
    assert min(counts["compatible"], counts["incompatible"]) > 500
    assert counts["invalid"] > 100


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert list(pairs(50, 3)) == list(pairs(50, 3)) != list(pairs(50, 4))
