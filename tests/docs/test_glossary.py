"""docs/reference/glossary.md is the authority for words: in order, each with one meaning, and its places exist."""

import re

from .blocks import ROOT

PAGE = ROOT / "docs" / "reference" / "glossary.md"


def rows() -> list[list[str]]:
    """Word, meaning, unit, where."""
    table = PAGE.read_text().partition("|---|---|---|---|\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_words_are_in_order_and_have_one_meaning():
    words = [row[0] for row in rows()]
    assert len(words) > 60
    assert words == sorted(set(words), key=str.lower)
    assert all(len(row) == 4 and row[1] for row in rows())


def test_places_exist():
    places = {row[0]: row[3].strip("`") for row in rows()}
    assert {word: place for word, place in places.items() if not (ROOT / place).exists()} == {}


def test_words_that_refer_to_others_find_them():
    words = [row[0] for row in rows()]
    for word, meaning, *_ in rows():
        if meaning.startswith("see "):
            assert meaning.removeprefix("see ") in words, word


def test_the_words_of_the_readme_are_among_them():
    table = (ROOT / "README.md").read_text().partition("## Seven words\n")[2].partition("\n## ")[0]
    words = re.findall(r"^\| (\w+) \|", table, re.M)[1:]
    assert words
    assert set(words) <= {row[0] for row in rows()}
