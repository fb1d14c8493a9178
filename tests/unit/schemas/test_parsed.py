"""What the three kinds of schemas share: JSON within bounds, and compact JSON."""

import random

import pytest

from headrace.schemas.parsed import MAX_TEXT, Incompatibility, InvalidSchemaError, checked_size, compact, load_json

MOST = 400


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_json_may_nest_so_deep_and_no_deeper(opened: str, closed: str) -> None:
    assert load_json(opened * MOST + "1" + closed * MOST)
    with pytest.raises(InvalidSchemaError, match="the request is nested too deep: more than 400 brackets are open"):
        load_json(opened * (MOST + 1) + "1" + closed * (MOST + 1), "the request")


@pytest.mark.parametrize("text", ["[" * 500, "a" + "{" * 500 + '"', "\\" * 3, '\\"' + "[" * 500, '"' * 3, '[\\"' * 500])
def test_brackets_within_texts_are_no_levels(text: str) -> None:
    assert load_json(compact([text, {text: text}])) == [text, {text: text}]


def test_brackets_behind_texts_are_levels() -> None:
    for text in ("", "a", "\\", '"', '\\"', "\\\\", "[", "]]"):
        with pytest.raises(InvalidSchemaError, match="nested too deep"):
            load_json("[" + compact(text) + "," + "[" * MOST + "]" * MOST + "]")


def test_random_texts_are_read_as_json_reads_them() -> None:
    chance = random.Random(5)
    for _ in range(2000):
        text = "".join(chance.choices('[]{}",:\\a1 ', k=chance.randrange(12)))
        value = [text, {text: [text]}]
        assert load_json(compact(value)) == value


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", "-Infinity", '"\n"'])
def test_what_is_no_json_says_so(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="the schema is not JSON"):
        load_json(text)


def test_what_is_too_long_is_not_looked_at() -> None:
    assert checked_size("x" * MAX_TEXT)
    with pytest.raises(InvalidSchemaError, match=r"it has 4,000,001 characters; 4,000,000 are allowed"):
        checked_size("x" * (MAX_TEXT + 1), "it")


def test_an_incompatibility_reads_as_confluents_registry_writes_it() -> None:
    assert str(Incompatibility("BAD", "about", "/a", "It is bad.")) == (
        "{errorType:'BAD', description:'It is bad.', additionalInfo:'about'}")
