"""Numbers, times and lengths of time as they are typed."""

import argparse
from typing import Any

import pytest

from headrace.cli.shared.parsers import Parser, moment, number, pattern, place, seconds


@pytest.mark.parametrize(("text", "length"), [
    ("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("7d", 604800), ("1w", 604800), ("500ms", 0.5),
    ("PT15M", 900), ("P1DT12H", 129600), ("P1W", 604800), ("PT0.5S", 0.5), ("0", 0),
])
def test_a_length_of_time_has_a_unit_or_is_iso_8601(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize(("read", "text"), [
    (seconds, "soon"), (seconds, "P"), (seconds, "-5s"), (seconds, "5 s"), (number(1), "0"), (number(), "-1"),
    (number(1, 5), "6"), (number(), "1_000"), (number(), "²"), (moment, "noon"), (moment, "2026-01-31T12:00:00"),
    (place, "first"), (pattern, "("),
])
def test_what_is_none_is_refused(read: Any, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        read(text)


def test_numbers_moments_and_places_are_read() -> None:
    assert (number()("0"), number(-5)("-5"), number(1, 5)("5")) == (0, -5, 5)
    assert moment("1970-01-01T00:00:01.5Z") == moment("1500") == place("1500") == 1500
    assert place("latest") == "latest"


def test_a_parser_takes_no_abbreviations_and_says_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("headrace test")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("names", nargs="*")
    assert parser.parse_intermixed_args(["a", "--partitions", "3", "b"]).names == ["a", "b"]
    for read in (parser.parse_args, parser.parse_intermixed_args):
        with pytest.raises(SystemExit) as left:
            read(["--partition", "3"])
        assert left.value.code == 2
        assert capsys.readouterr().err == ("headrace test: unrecognized arguments: --partition; did you mean "
                                           "--partitions? (see `headrace test --help`)\n")
