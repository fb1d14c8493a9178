"""Patterns of transactional ids: RE2's syntax, in time that grows with the text and not beyond."""

import random
import re
import time

import pytest

from headrace.broker.pattern_re2 import Pattern, PatternError
from headrace.errors import KafkaError
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.transactions import ListTransactionsRequest
from tests.support.transactional_client import Transactional

TEXTS = ["", "a", "b", "ab", "aab", "abab", "a-b", "A1", "\n", "aaaa", "x", "0x", "]", "^a", "a.b", "ü", "a b"]


@pytest.mark.parametrize("pattern", [
    "", "a", "ab|b", "a*", "(a|b)*", "(?:ab)+", "a?b", "a{2}", "a{1,}", "a{0,3}b?", ".", ".*", "[ab]+", "[^ab]",
    "[a-c]*", "[]]", "[a-]*", r"\.", r"\d*", r"\w+", r"[\w.]*", r"\s", r"[^\d]", "^ab$", r"\Aa+\z", "a|", "(|a)b",
    "(a*)*", "(a*)+b", "(?P<n>a)b", r"\x61", r"[\x61-\x62]*", "a*?b", "a+?", "()", "(()|a)+", "((a|b)?){2}",
    "[A-Z][0-9]", "ü", "a$|b",
])
def test_a_pattern_fits_what_pythons_own_fits(pattern: str) -> None:
    ours, theirs = Pattern(pattern), re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)
    for text in TEXTS:
        assert ours.matches(text) == (theirs.fullmatch(text) is not None), (pattern, text)


@pytest.mark.parametrize(("pattern", "fits", "does_not"), [
    (r"\x{fc}", "ü", "u"), (r"\Qa.b\E", "a.b", "axb"), (r"\Qa(", "a(", "a"), ("[[:alpha:]]+", "aB", "a1"),
    ("[[:^digit:]_]", "x", "1"), ("[^[:upper:]]", "a", "A"), ("a{3}", "aaa", "aa"), ("(?<name>a)", "a", "b"),
    ("a{,2}", "a{,2}", "aa"), ("a{x}", "a{x}", "a"), (r"\n", "\n", "n"),
])
def test_what_re2_has_beyond_that(pattern: str, fits: str, does_not: str) -> None:
    assert Pattern(pattern).matches(fits)
    assert not Pattern(pattern).matches(does_not)


@pytest.mark.parametrize("pattern", [
    "(", ")", "a)", "[", "[a", "[]", "*", "+a", "a**", "a{2}{3}", "a{1001}", "a{2,1}", "(?=a)", "(?i)a", r"\b",
    r"\p{L}",
    "\\", r"\x", r"\x{110000}", "[b-a]", r"[\b]", "[[:nothing:]]", "(?P<name", "((((a{1000}){1000}){1000}){1000})",
    "(" * 200 + ")" * 200, "(?P", r"\1", "a{1000}{1000}", "a" * 20_000,
])
def test_what_is_no_pattern_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern(pattern)


def test_random_patterns_fit_what_pythons_own_fit() -> None:
    chance = random.Random(7)
    for _ in range(400):
        pattern = "".join(chance.choice(["a", "b", ".", "[ab]", "(a|b)", "a*", "b?", "(ab)+", "|", "a{1,2}"])
                          for _ in range(chance.randint(1, 6)))
        ours, theirs = Pattern(pattern), re.compile(pattern)
        for _ in range(20):
            text = "".join(chance.choice("ab") for _ in range(chance.randint(0, 6)))
            assert ours.matches(text) == (theirs.fullmatch(text) is not None), (pattern, text)


def test_a_pattern_that_would_keep_pythons_own_for_years_is_over_at_once() -> None:
    pattern, begin = Pattern("(a*)*(a|a)*(a+)+b"), time.process_time()
    assert not pattern.matches("a" * 2000)
    assert time.process_time() - begin < 2


def test_transactions_are_listed_by_pattern(broker: EmbeddedBroker) -> None:
    with Transactional(broker, "orders-1") as first, Transactional(broker, "orders-2") as second:
        first.init()
        second.init()

        def listed(pattern: str | None) -> list[str]:
            reply = first.call(ListTransactionsRequest(state_filters=[], producer_id_filters=[],
                                                       transactional_id_pattern=pattern))
            assert reply.error_code == (KafkaError.INVALID_REGULAR_EXPRESSION if pattern == "(" else 0)
            return sorted(each.transactional_id for each in reply.transaction_states)

        assert listed(None) == listed("") == listed("orders-[12]") == ["orders-1", "orders-2"]
        assert listed(".*-1") == ["orders-1"]
        assert listed("orders") == listed("(") == []
