"""Patterns of subscriptions: what fits is what fits in Python's `re`, in a time that no pattern can stretch."""

from __future__ import annotations

import random
import re

import pytest

from headrace.broker.pattern_re2 import Pattern, PatternError

PARTS = ["a", "b", "-", ".", "[ab]", "[^a]", "[a-c.]", r"\d", r"\W", r"\.", "(a|bc)", "(?:b|)", "(?P<n>c)", "^", "$",
         "[[:digit:]]", r"\x61", r"[\d_]"]
SIGNS = ["", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{1,}"]
NAMED = {"[[:digit:]]": "[0-9]", "(?P<n>c)": "(c)"}


def drawn(chance: random.Random) -> tuple[str, str]:
    """A pattern, and how Python writes it."""
    ours, pythons = "", ""
    for _ in range(chance.randint(1, 5)):
        part = chance.choice(PARTS)
        sign = "" if part in "^$" else chance.choice(SIGNS)
        ours += part + sign
        pythons += NAMED.get(part, part) + sign
    return ours, pythons


def test_what_fits_is_what_fits_in_pythons_expressions() -> None:
    chance, fitted = random.Random(17), 0
    for _ in range(1500):
        ours, pythons = drawn(chance)
        pattern, expected = Pattern(ours), re.compile(pythons, re.ASCII)
        for _ in range(6):
            text = "".join(chance.choices("abc1.-_\n", k=chance.randint(0, 5)))
            fits = expected.fullmatch(text) is not None
            # Python's `$` is before a last newline as well, RE2's is not.
            assert pattern.matches(text) is fits or ("$" in ours and text.endswith("\n")), (ours, text)
            fitted += fits
    assert fitted > 500


def test_a_pattern_that_makes_others_try_again_and_again_reads_its_text_once() -> None:
    assert not Pattern("(a*)*(a|aa)+$").matches("a" * 2000 + "b")
    assert Pattern("(a?){300}a{300}").matches("a" * 300)


@pytest.mark.parametrize("empty", ["()", r"(\Q\E)", "(?:)"])
def test_nothing_repeated_many_times_over_is_nothing(empty: str) -> None:
    pattern = Pattern("(" * 8 + empty + "{1000})" * 8 + "a")
    assert pattern.matches("a")
    assert not pattern.matches("")


@pytest.mark.parametrize("text", [
    "(", ")", "a)", "[a", "a**", "*", "a{3,2}", "a{1001}", "(a{1000}){1000}", r"\p{L}", r"\b", "\\", "[b-a]", r"\x1",
    r"\x{110000}", "[[:letters:]]", "(?i)a", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a>b)", "(?<=a>b)", "(?P<>a)", "(" * 200,
])
def test_what_is_no_pattern_of_re2_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)


@pytest.mark.parametrize(("pattern", "fits", "fits_not"), [
    (r"\Qa.b\E", "a.b", "axb"), ("a{,2}", "a{,2}", "aa"), ("(?<name>a)b", "ab", "b"), (r"\Aa\z", "a", "aa"),
    ("[[:^digit:]]", "x", "1"), (r"[\x41-\x43]", "B", "D"), (r"\x{20ac}", "€", "e"), (".", "x", "\n"),
    ("[]a]", "]", "b"), ("[a-]", "-", "b"), ("a|", "", "b"),
])
def test_what_re2_writes_in_its_own_way(pattern: str, fits: str, fits_not: str) -> None:
    assert Pattern(pattern).matches(fits)
    assert not Pattern(pattern).matches(fits_not)
