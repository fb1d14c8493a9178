"""The words that the code coined are explained where they are said to be."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs/internals/glossary.md"
_ROWS = [tuple(cell.strip() for cell in line.strip("|\n").split(" | "))
         for line in _PAGE.read_text().splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[0])
def test_each_word_of_the_glossary_occurs_in_the_files_that_it_names(row: tuple[str, ...]) -> None:
    word, meaning, where, elsewhere = row
    files = re.findall(r"`([^`]+)`", where)
    assert meaning
    assert elsewhere
    assert files
    for file in files:
        text = (_ROOT / "src/headrace" / file).read_text()
        for part in word.split():
            # At the start of a word, of a part of a snake_case name, or of a CamelCase name.
            assert re.search(rf"(?<![A-Za-z])(?i:{part})|{part.capitalize()}", text), f"{file} has no {part!r}"


def test_the_words_of_the_glossary_stand_once_and_in_order() -> None:
    words = [row[0] for row in _ROWS]
    assert len(words) > 50
    assert words == sorted(set(words))
