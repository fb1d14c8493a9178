"""Ranges of versions, as Kafka's schemas write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.versions import NEVER, Versions

versions = st.integers(0, 1000)


def test_a_range_of_versions_reads_as_kafka_writes_it() -> None:
    assert Versions.parse("3+").holds(100)
    assert not Versions.parse("3+").holds(2)
    assert Versions.parse("0-12") == (0, 12)
    assert Versions.parse("7") == (7, 7)
    assert not any(NEVER.holds(version) for version in range(20))


@given(versions, versions, versions)
def test_a_range_holds_both_of_its_ends_and_what_is_between(one: int, other: int, version: int) -> None:
    low, high = sorted((one, other))
    closed, open_ended = Versions.parse(f"{low}-{high}"), Versions.parse(f"{low}+")
    assert closed.holds(version) == (low <= version <= high)
    assert open_ended.holds(version) == (version >= low)
    assert Versions.parse(str(low)).holds(version) == (version == low)


@given(versions, versions)
def test_a_range_is_shown_in_words_that_can_be_read_again(one: int, other: int) -> None:
    low, high = sorted((one, other))
    for made in (Versions(low, high), Versions.parse(f"{low}+")):
        assert Versions.parse(str(made)) == made
    assert (str(Versions.parse(f"{low}+")), str(Versions(low, high))) == (f"{low}+", f"{low}-{high}")


@pytest.mark.parametrize("text", ["", "+", "a", "1-b", "none"])
def test_what_is_no_range_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Versions.parse(text)
